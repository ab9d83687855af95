"""Profiles that can be given to one pod: the rule against a search through all labels, and the live set's complaint."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placewright.api.decode import convert
from placewright.api.profileaccess import NamespaceFacts, NamespaceRule
from placewright.api.profilepods import ProfilePods
from placewright.api.selectors import compile_label_selector
from placewright.profiles.live import LiveProfiles, Outcome
from placewright.profiles.podoverlap import NAMESPACE_NAME, rivals
from placewright.profiles.profilestate import ProfileStanding, Reason
from profiles.makers import CATALOGUE, a_profile

Spec = dict[str, Any]
EARLIER, LATER = "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"
KEYS, VALUES = ("app", "tier"), ("a", "b")
#: Each label absent, with a value that expressions name, and with one that none names.
LABELS = [
    {key: value for key, value in zip(KEYS, values, strict=True) if value is not None}
    for values in product((None, *VALUES, "another"), repeat=len(KEYS))
]
NAMESPACES = [{**labels, NAMESPACE_NAME: name} for labels in LABELS for name in ("red", "blue", "another")]

values = st.lists(st.sampled_from(VALUES), min_size=1, max_size=2, unique=True)
keys = st.sampled_from(KEYS)
expressions = st.fixed_dictionaries({"key": keys, "operator": st.sampled_from(["In", "NotIn"]), "values": values}) | st.fixed_dictionaries(
    {"key": keys, "operator": st.sampled_from(["Exists", "DoesNotExist"])}
)
selectors = st.fixed_dictionaries(
    {"matchLabels": st.dictionaries(keys, st.sampled_from(VALUES), max_size=1), "matchExpressions": st.lists(expressions, max_size=3)}
)
profiles_pods = st.fixed_dictionaries(
    {},
    optional={
        "podSelector": selectors,
        "namespaceSelector": selectors,
        "allowedNamespaces": st.lists(st.sampled_from(["red", "blue"]), min_size=1, unique=True),
        "allowedNamespaceSelector": selectors,
    },
)


def selects(pods: ProfilePods, labels: dict[str, str], namespace: dict[str, str]) -> bool:
    """Kubernetes' own meaning of the selectors, by the compiled ones."""
    selectors = ((pods.pod_selector, labels), (pods.namespace_selector, namespace))
    matches = all(each is None or compile_label_selector(each.as_label_selector()).matches(found) for each, found in selectors)
    facts = NamespaceFacts(namespace[NAMESPACE_NAME], namespace)
    return pods.assigns and matches and not NamespaceRule("p", pods).objection(facts)


@given(one=profiles_pods, other=profiles_pods)
def test_two_profiles_can_select_one_pod_exactly_where_a_search_finds_one(one: Spec, other: Spec) -> None:
    first, second = convert(one, ProfilePods), convert(other, ProfilePods)
    found = any(selects(first, labels, namespace) and selects(second, labels, namespace) for labels in LABELS for namespace in NAMESPACES)
    assert rivals({"a": first, "b": second}) == ({"a": ["b"], "b": ["a"]} if found else {})
    assert bool(rivals({"a": second, "b": first})) is found


class Scheduler:
    """A live set of profiles that build at once."""

    def __init__(self) -> None:
        self.live = LiveProfiles[object](CATALOGUE, lambda _: object())

    def apply(self, name: str, pods: Spec | None, generation: int = 1, created: str = EARLIER, **spec: Any) -> Outcome[object]:
        said = {"schedulerName": name, **({} if pods is None else {"pods": pods}), **spec}
        return self.live.apply(a_profile(said, name, uid=name, generation=generation, creationTimestamp=created))

    def standing(self, name: str) -> ProfileStanding:
        (found,) = (each for each in self.live.standings() if each.name == name)
        return found


@pytest.fixture
def scheduler() -> Scheduler:
    return Scheduler()


def app(*names: str, **more: Any) -> Spec:
    return {"podSelector": {"matchExpressions": [{"key": "app", "operator": "In", "values": list(names)}]}, **more}


def test_of_equal_priorities_that_can_meet_the_younger_is_stalled_with_both_names_and_both_stay_in_effect(scheduler: Scheduler) -> None:
    scheduler.apply("old", app("web", "db", priority=5))
    assert scheduler.standing("old").reason is Reason.ACTIVE
    outcome = scheduler.apply("new", app("db", "batch", priority=5), created=LATER)
    standing = scheduler.standing("new")
    assert (standing.reason, standing.active_generation) == (Reason.PODS_SELECTED_TWICE, 1)
    assert standing.message == (
        'spec.pods.priority: found 5, with which profiles "new" and "old" can select one pod, and it is given "old", '
        "the oldest; allowed another priority, or selectors that exclude each other; "
        "generation 1 stays in effect for schedulerName 'new'"
    )
    assert scheduler.standing("old").reason is Reason.ACTIVE, "one team degrades no other's profile"
    assert outcome.others == ()
    assert set(scheduler.live.active) == {"old", "new"}


@pytest.mark.parametrize(
    "pods",
    [
        app("db", priority=4),
        app("batch", priority=5),
        {"allowedNamespaces": ["red"]},
        None,
        app("db", priority=5, allowedNamespaces=["red"]),
    ],
    ids=["another priority", "other pods", "no selector", "nothing", "other namespaces"],
)
def test_profiles_that_cannot_meet_or_have_other_priorities_are_fine(scheduler: Scheduler, pods: Spec | None) -> None:
    scheduler.apply("old", app("web", "db", priority=5, allowedNamespaces=["blue"]))
    scheduler.apply("new", pods)
    assert [each.reason for each in scheduler.live.standings()] == [Reason.ACTIVE, Reason.ACTIVE]


def test_an_absent_priority_is_zero(scheduler: Scheduler) -> None:
    scheduler.apply("old", app("web"))
    scheduler.apply("new", app("web", priority=0))
    assert scheduler.standing("old").reason is Reason.PODS_SELECTED_TWICE


def test_a_change_or_deletion_of_either_ends_it(scheduler: Scheduler) -> None:
    scheduler.apply("old", app("web"))
    scheduler.apply("new", app("web"), created=LATER)
    scheduler.apply("old", app("web", priority=1), generation=2)
    assert [each.reason for each in scheduler.live.standings()] == [Reason.ACTIVE, Reason.ACTIVE]
    scheduler.apply("old", app("web"), generation=3)
    assert scheduler.standing("new").reason is Reason.PODS_SELECTED_TWICE
    scheduler.live.remove("old")
    assert scheduler.standing("new").reason is Reason.ACTIVE


def test_the_same_objects_give_the_same_standings_in_any_order_of_arrival(scheduler: Scheduler) -> None:
    profiles = {"a": app("x", "y"), "b": app("y", "z"), "c": app("z"), "d": app("w")}
    for name, pods in profiles.items():
        scheduler.apply(name, pods, created=f"2026-01-0{len(name)}T00:00:00Z")
    other = Scheduler()
    for name, pods in reversed(profiles.items()):
        other.apply(name, pods, created=f"2026-01-0{len(name)}T00:00:00Z")
    stands = {each.name: (each.reason, each.active_generation) for each in scheduler.live.standings()}
    assert stands == {each.name: (each.reason, each.active_generation) for each in other.live.standings()}
    assert {name for name, (reason, _) in stands.items() if reason is Reason.PODS_SELECTED_TWICE} == {"b", "c"}


def test_a_profile_that_is_not_in_effect_takes_no_part(scheduler: Scheduler) -> None:
    scheduler.apply("old", app("web"))
    scheduler.apply("bad", app("web"), weights={"Nonsense": 1})
    assert scheduler.standing("old").reason is Reason.ACTIVE
    assert scheduler.standing("bad").reason is Reason.INVALID_PROFILE


def test_a_paused_profile_takes_part(scheduler: Scheduler) -> None:
    scheduler.apply("old", app("web"), paused=True)
    scheduler.apply("new", app("web"))
    assert scheduler.standing("old").reason is Reason.PODS_SELECTED_TWICE
