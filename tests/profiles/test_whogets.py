"""`placewright profiles who`, its answer: which profile gets a pod, and one clause for each other profile."""

from __future__ import annotations

from typing import Any

from placewright.api.profileaccess import NamespaceFacts
from placewright.profiles.assignment import NewPod, value_of, who_gets

from .test_assignment import EARLIER, LATER, WEB, giving, web

ANNOTATION = "placewright.dev/assigned-profile"
LOW, HIGH = giving("low"), giving("high", {**WEB, "priority": 4}, created=LATER)
OTHER = giving("other", {"podSelector": {"matchLabels": {"app": "db"}}})


def answered(pod: NewPod, *profiles: Any) -> tuple[str, dict[str, tuple[bool, str]]]:
    """The sentence, and by profile whether it gets the pod and why."""
    found = who_gets(pod, profiles)
    return found.said, {each.profile.metadata.name: (each.gets_it, each.why) for each in found.verdicts}


def test_the_profile_that_is_given_comes_first_and_each_other_has_its_reason() -> None:
    said, verdicts = answered(web(), LOW, OTHER, HIGH)
    assert said == 'profile "high" (schedulerName "high")'
    assert list(verdicts.items()) == [
        ("high", (True, "it selects the pod")),
        ("low", (False, 'it selects the pod, too, but "high" has the higher priority (4 to 0)')),
        ("other", (False, 'spec.pods.podSelector wants label app to be "db", and it is "web"')),
    ]


def test_among_equal_ones_the_reason_is_age_or_name() -> None:
    later, named = giving("later", created=LATER), giving("named", created=EARLIER)
    _, verdicts = answered(web(), LOW, later, named)
    assert verdicts["later"] == (False, 'it selects the pod, too, but "low" has the same priority (0) and is older')
    assert verdicts["named"] == (False, 'it selects the pod, too, but "low" has the same priority (0) and is first by name')


def test_a_pod_that_names_a_profile_gets_that_one() -> None:
    said, verdicts = answered(web(scheduler_name="other"), LOW, OTHER)
    assert said == 'profile "other" (schedulerName "other")'
    assert verdicts == {
        "other": (True, "the pod names its schedulerName"), "low": (False, 'not given: it names schedulerName "other" itself'),
    }  # fmt: skip


def test_a_pod_that_names_a_profile_which_its_namespace_may_not_use_waits() -> None:
    closed = giving("closed", {"allowedNamespaces": ["blue"]})
    said, _ = answered(web(scheduler_name="closed"), closed)
    why = 'namespace "red" may not use profile "closed": spec.pods.allowedNamespaces does not name it'
    assert said == f'profile "closed" (schedulerName "closed"), and waits: {why}'


def test_a_pod_that_no_profile_selects_keeps_its_scheduler() -> None:
    assert answered(NewPod(NamespaceFacts("red")), LOW)[0] == 'no profile: it keeps schedulerName "default-scheduler"'
    opted_out = web(labels={"app": "web", "placewright.dev/assign-profile": "false"})
    said, verdicts = answered(opted_out, LOW)
    assert said == 'no profile: it keeps schedulerName "default-scheduler", as its label placewright.dev/assign-profile is "false"'
    assert verdicts == {"low": (False, 'not given: its label placewright.dev/assign-profile is "false"')}
    kept = 'no profile: it keeps schedulerName "mine", as it names schedulerName "mine" itself'
    assert answered(web(scheduler_name="mine"), LOW)[0] == kept


def test_a_profile_may_place_the_pods_of_the_default_scheduler() -> None:
    ours = giving("ours", {}, schedulerName="default-scheduler")
    said, verdicts = answered(NewPod(NamespaceFacts("red")), LOW, ours)
    assert said == 'profile "ours" (schedulerName "default-scheduler")'
    assert verdicts["ours"] == (True, "it places the pods of default-scheduler, and no profile is given to this one")


def test_a_pod_in_the_cluster_has_the_profile_that_it_was_given() -> None:
    pod = web(scheduler_name="low", annotations={ANNOTATION: value_of(LOW)})
    assert answered(pod, LOW, OTHER) == (
        'profile "low" (schedulerName "low")',
        {
            "low": (True, "it was given to the pod at its creation"),
            "other": (False, 'spec.pods.podSelector wants label app to be "db", and it is "web"'),
        },
    )
    assert answered(pod, LOW, HIGH)[1]["high"] == (True, 'it selects the pod, and ranks above "low"')


def test_without_profiles_there_is_one_sentence() -> None:
    assert who_gets(web(), []) == ('no profile: it keeps schedulerName "default-scheduler"', ())
