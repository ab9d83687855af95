"""Which schedulerNames count as meant for a profile, and what is said of them."""

from __future__ import annotations

import pytest

from placewright import testing as kit
from placewright.api.objects import Condition, Pod
from placewright.profiles.unclaimed import OTHER_SCHEDULERS, ProfileNames, Why, looked_at_by_others, placed_by_others

NAMES = ProfileNames(live=("placewright", "batch"), refused={"inference": "gpus"}, deleted={"web": "frontends"})


@pytest.mark.parametrize(
    ("name", "why", "ours", "profile"),
    [
        ("web", Why.DELETED, "web", "frontends"),
        ("inference", Why.REFUSED, "inference", "gpus"),
        ("placewrigth", Why.MISSPELT, "placewright", ""),
        ("Placewright", Why.MISSPELT, "placewright", ""),
        ("bacth", Why.MISSPELT, "batch", ""),
        ("inferense", Why.MISSPELT, "inference", ""),
    ],
)
def test_a_name_that_a_profile_had_claims_or_resembles_was_meant_for_it(name: str, why: Why, ours: str, profile: str) -> None:
    found = NAMES.judge(name)
    assert found is not None
    assert (found.scheduler_name, found.why, found.ours, found.profile) == (name, why, ours, profile)


@pytest.mark.parametrize("name", ["placewright", "batch", "default-scheduler", "volcano", "somebody-elses", ""])
def test_other_names_are_none_of_our_business(name: str) -> None:
    assert NAMES.judge(name) is None


def test_a_name_that_another_profile_has_by_now_is_taken() -> None:
    assert ProfileNames(live=("web",), refused={"web": "b"}, deleted={"web": "a"}).judge("web") is None


@pytest.mark.parametrize("name", sorted(OTHER_SCHEDULERS))
def test_a_well_known_scheduler_s_name_is_its_own_however_it_resembles_one_of_ours(name: str) -> None:
    assert ProfileNames(live=(f"{name}2",)).judge(name) is None


def test_a_well_known_name_that_a_profile_had_counts() -> None:
    found = ProfileNames(live=(), deleted={"default-scheduler": "default"}).judge("default-scheduler")
    assert found is not None
    assert found.why is Why.DELETED


def test_the_words_say_what_to_do() -> None:
    assert str(NAMES.judge("web")) == (
        "no profile takes pods of schedulerName 'web': profile 'frontends', which had it, was deleted; apply it again, "
        "or let the pods' creator name another schedulerName"
    )
    assert str(NAMES.judge("inference")) == (
        "no profile takes pods of schedulerName 'inference': profile 'gpus' is refused, and its status says why"
    )
    assert str(NAMES.judge("bacth")) == (
        "no profile takes pods of schedulerName 'bacth' (did you mean 'batch'?); a pod's own cannot be changed, "
        "so the pod's creator must name another one"
    )


def a_pod(node: str = "", **annotations: str) -> Pod:
    noted = {key.replace("__", "/").replace("_", "."): value for key, value in annotations.items()}
    return kit.pod("a", on=node, annotations=noted).decoded()


def test_who_placed_a_pod_shows_in_its_annotations() -> None:
    assert placed_by_others(a_pod("node-1"))
    assert not placed_by_others(a_pod("node-1", placewright_dev__decision="{}"))
    assert not placed_by_others(a_pod("node-1", kubernetes_io__config_mirror="x")), "its node made it"
    assert not placed_by_others(a_pod())


def test_who_looked_at_a_waiting_pod_shows_in_its_conditions() -> None:
    assert looked_at_by_others([Condition("PodScheduled", "False", "Unschedulable")])
    assert not looked_at_by_others([Condition("PodScheduled", "False", "SchedulingGated")]), "the API server itself writes that"
    assert not looked_at_by_others([Condition("Ready", "False")])
    assert not looked_at_by_others(None)


def test_pods_of_a_profile_that_is_held_hear_why() -> None:
    found = ProfileNames(live=(), refused={"x": "p"}, held={"p": 'Filter plugin "Sleepy" did not return'}).judge("x")
    assert found is not None
    assert found.why is Why.HANGING
    assert str(found) == "no profile takes pods of schedulerName 'x': profile 'p' is held: Filter plugin \"Sleepy\" did not return"
