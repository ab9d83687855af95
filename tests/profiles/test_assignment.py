"""Which profile a new pod is given, and why the others are not: by hand, rule by rule."""

from __future__ import annotations

from typing import Any

import pytest

from placewright.api.profile import SchedulingProfile
from placewright.api.profileaccess import NamespaceFacts
from placewright.profiles.assignment import (
    NewPod,
    Rank,
    assigned_profile,
    left_alone,
    not_selected,
    patch_of,
    rank_of,
    value_of,
)
from profiles.makers import a_profile

EARLIER, LATER = "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"
WEB = {"podSelector": {"matchLabels": {"app": "web"}}}


def giving(name: str, pods: dict[str, Any] | None = None, *, created: str = EARLIER, active: int = 1, **spec: Any) -> SchedulingProfile:
    made = a_profile({"schedulerName": name, "pods": WEB if pods is None else pods, **spec}, name, creationTimestamp=created)
    return SchedulingProfile(metadata=made.metadata, spec=made.spec, status=type(made.status)(active_generation=active))


def web(**facts: Any) -> NewPod:
    return NewPod(NamespaceFacts("red"), **{"labels": {"app": "web"}, **facts})


def name_of(found: SchedulingProfile | None) -> str:
    return "" if found is None else found.metadata.name


# --- which one -------------------------------------------------------------------------------------------------------------------


def test_the_profile_that_selects_a_pod_is_given_to_it() -> None:
    assert name_of(assigned_profile(web(), [giving("batch")])) == "batch"


def test_of_two_the_higher_priority_wins_in_either_order() -> None:
    profiles = [giving("low", {**WEB, "priority": -3}), giving("middle"), giving("high", {**WEB, "priority": 4}, created=LATER)]
    assert name_of(assigned_profile(web(), profiles)) == "high"
    assert name_of(assigned_profile(web(), profiles[::-1])) == "high"
    assert name_of(assigned_profile(web(), profiles[:2])) == "middle"


def test_of_equal_ones_the_older_wins_then_the_name() -> None:
    assert name_of(assigned_profile(web(), [giving("a", created=LATER), giving("z")])) == "z"
    assert name_of(assigned_profile(web(), [giving("z"), giving("a")])) == "a"


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        ({"namespace": "kube-system"}, 'pods of namespace "kube-system" are never given a profile'),
        ({"labels": {"app": "web", "placewright.dev/assign-profile": "false"}}, 'its label placewright.dev/assign-profile is "false"'),
        ({"node_name": "n"}, 'it is created on node "n"'),
        ({"scheduler_name": "mine"}, 'it names schedulerName "mine" itself'),
        ({"scheduler_name": "mine", "annotations": {"placewright.dev/assigned-profile": f"0 {EARLIER} a a"}},
         'it names schedulerName "mine" itself'),
    ],
)  # fmt: skip
def test_some_pods_are_left_alone_whatever_profiles_there_are(facts: dict[str, Any], why: str) -> None:
    namespace = NamespaceFacts(facts.get("namespace", "red"))
    pod = NewPod(**{"labels": {"app": "web"}, **facts, "namespace": namespace})
    assert left_alone(pod) == why
    assert assigned_profile(pod, [giving("batch")]) is None


def test_another_value_of_the_label_does_not_opt_out() -> None:
    assert left_alone(web(labels={"app": "web", "placewright.dev/assign-profile": "true"})) == ""


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (giving("p", {"allowedNamespaces": ["red"]}), "its spec.pods has no selector"),
        (giving("p", active=0), "no generation of it is in effect"),
        (giving("p", {**WEB, "allowedNamespaces": ["blue"]}),
         'namespace "red" may not use profile "p": spec.pods.allowedNamespaces does not name it'),
        (giving("p", {"podSelector": {"matchLabels": {"app": "db"}}}),
         'spec.pods.podSelector wants label app to be "db", and it is "web"'),
        (giving("p", {"podSelector": {"matchLabels": {"tier": "a"}}}),
         'spec.pods.podSelector wants label tier to be "a", and it is absent'),
        (giving("p", {"podSelector": {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web", "db"]}]}}),
         'spec.pods.podSelector wants label app NotIn [web, db], and it is "web"'),
        (giving("p", {"namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "Exists"}]}}),
         "spec.pods.namespaceSelector wants label team Exists, and it is absent"),
    ],
)  # fmt: skip
def test_a_profile_that_does_not_select_a_pod_is_told_with_its_reason(given: SchedulingProfile, why: str) -> None:
    assert not_selected(web(), given) == why
    assert assigned_profile(web(), [given]) is None


def test_an_empty_selector_selects_everything_and_an_absent_one_does_not_count() -> None:
    assert not_selected(NewPod(NamespaceFacts("red")), giving("p", {"podSelector": {}})) == ""
    named = giving("p", {"namespaceSelector": {"matchLabels": {"team": "a"}}})
    assert not_selected(NewPod(NamespaceFacts("red", {"team": "a"})), named) == ""


def test_a_paused_profile_is_given_too_and_its_pods_wait() -> None:
    assert name_of(assigned_profile(web(), [giving("p", paused=True)])) == "p"


# --- what is written --------------------------------------------------------------------------------------------------------------


def test_the_patch_names_the_scheduler_and_notes_the_rank() -> None:
    high = giving("high", {**WEB, "priority": 4})
    assert value_of(high) == f"4 {EARLIER} high high"
    assert patch_of(web(), high) == [
        {"op": "add", "path": "/spec/schedulerName", "value": "high"},
        {"op": "add", "path": "/metadata/annotations", "value": {"placewright.dev/assigned-profile": value_of(high)}},
    ]
    assert patch_of(web(annotations={"a": "b"}), high)[1] == {
        "op": "add", "path": "/metadata/annotations/placewright.dev~1assigned-profile", "value": value_of(high),
    }  # fmt: skip


def test_a_pod_that_was_given_a_profile_is_given_only_one_of_a_higher_rank() -> None:
    low, high = giving("low"), giving("high", {**WEB, "priority": 4})
    assert rank_of(high) == Rank(-4, EARLIER, "high") < rank_of(low)
    notes = [{"placewright.dev/assigned-profile": value_of(each)} for each in (low, high)]
    of_low, of_high = web(scheduler_name="low", annotations=notes[0]), web(scheduler_name="high", annotations=notes[1])
    assert name_of(assigned_profile(of_low, [low, high])) == "high"
    assert assigned_profile(of_high, [low, high]) is None


@pytest.mark.parametrize("value", ["", "1 2 3", "x 2 3 p", "12345678901 2 3 p", f"1 {EARLIER} p other"])
def test_an_annotation_that_is_none_of_ours_leaves_a_chosen_scheduler_alone(value: str) -> None:
    assert left_alone(web(scheduler_name="p", annotations={"placewright.dev/assigned-profile": value})) != ""
