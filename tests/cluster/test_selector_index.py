"""The index of selectors and the index of groups, each against a scan of everything."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from cluster.makers import a_pod
from placewright.api.objects import LabelSelector, Requirement
from placewright.api.pods import PodInfo
from placewright.api.selectors import Selector, compile_label_selector
from placewright.cluster import pairwisegroups, selectorindex
from placewright.cluster.pairwisegroups import PairwiseGroups
from placewright.cluster.podselections import AffinityCarrier, PodSelection
from placewright.cluster.selectorindex import SelectorIndex
from randomcases import cases

NAMESPACES = ("n", "m", "o")
LABELS = st.dictionaries(st.sampled_from("abc"), st.sampled_from("xyz"), max_size=3)


class Asked(NamedTuple):
    """A selector as it is written: namespaces, and (key, operator, values)."""

    namespaces: tuple[str, ...] | None
    requirements: tuple[tuple[str, str, tuple[str, ...]], ...]

    @property
    def selector(self) -> Selector:
        """Compiled."""
        said = tuple(Requirement(key=key, operator=operator, values=values) for key, operator, values in self.requirements)
        return compile_label_selector(LabelSelector(match_expressions=said))

    def means(self, namespace: str, labels: dict[str, str]) -> bool:
        """The rule, written out."""
        return (self.namespaces is None or namespace in self.namespaces) and all(
            {
                "In": labels.get(key) in values,
                "NotIn": labels.get(key) not in values,
                "Exists": key in labels,
                "DoesNotExist": key not in labels,
            }[operator]
            for key, operator, values in self.requirements
        )


VALUES = st.lists(st.sampled_from("xyz"), min_size=1, max_size=3, unique=True).map(tuple)
REQUIREMENTS = st.one_of(
    st.tuples(st.sampled_from("abc"), st.sampled_from(["In", "In", "NotIn"]), VALUES),
    st.tuples(st.sampled_from("abc"), st.sampled_from(["Exists", "DoesNotExist"]), st.just(())),
)
ASKED = st.builds(
    Asked, st.sampled_from([None, ("n",), ("m",), ("n", "m"), ("n", "m", "o"), ()]), st.lists(REQUIREMENTS, max_size=3).map(tuple)
)


LOOKS = st.lists(st.tuples(st.sampled_from(NAMESPACES), LABELS), min_size=1, max_size=4)


@settings(max_examples=cases(200))
@given(st.lists(st.one_of(ASKED, st.integers(0, 20)), max_size=20), LOOKS)
def test_labels_meet_every_selector_that_matches_them_once_and_equal_stamps_promise_the_same_ones(
    history: list[Any], looks: list[tuple[str, dict[str, str]]]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(selectorindex, "_MOST_BUCKETS", 4)  # so that some selectors have too many values or namespaces
        index, there, seen = SelectorIndex[int](), dict[int, Asked](), dict[tuple[int, tuple[int, ...]], set[int]]()
        for number, step in enumerate(history):
            before = index.version
            if isinstance(step, int):
                index.discard(step)
                there.pop(step, None)
            else:
                there[number] = step
                index.add(number, step.namespaces, step.selector)
            assert index.version > before
            assert len(index) == len(there)
            for which, (namespace, labels) in enumerate(looks):
                met = list(index.meeting(namespace, labels.items()))
                assert len(met) == len(set(met))
                assert {item for item, asked in there.items() if asked.means(namespace, labels)} <= set(met) <= set(there)
                assert seen.setdefault((which, index.stamps(namespace, labels.items())), set(met)) == set(met)
        for item in there:
            index.discard(item)
        assert not index._buckets, "nothing is left of what went"


@pytest.mark.parametrize("others", [20, 2000])
def test_labels_meet_as_few_selectors_as_concern_them_however_many_there_are(others: int) -> None:
    index = SelectorIndex[int]()
    for number in range(others):  # the key that all have in common comes first, as in charts that sort their labels
        asked = Asked(("n",), (("component", "In", ("server",)), ("instance", "In", (f"i{number}",)), ("tier", "Exists", ())))
        index.add(number, asked.namespaces, asked.selector)
    labels = {"component": "server", "instance": "i7", "tier": "x"}
    assert sorted(index.meeting("n", labels.items())) in ([7], [0, 7]), "the first one could not know which label is common"


# --- groups ----------------------------------------------------------------------------------------------------------------------

APART = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]}}


def described(namespace: str, labels: dict[str, str], *, carries: bool) -> PodInfo:
    found = a_pod(f"{namespace}/{labels}/{carries}").namespace(namespace).labels(labels)
    return found.spec(affinity=APART if carries else None).build()


CARRIED = described("n", {}, carries=True).pairwise_key.affinity
MOVES = st.lists(st.tuples(st.sampled_from(NAMESPACES), LABELS, st.booleans(), st.sampled_from([1, 1, -1])), max_size=25)
CARRIERS = st.sampled_from([None, None, (("n", CARRIED),), (("n", CARRIED), ("m", CARRIED)), (("o", b""),), ()])


@settings(max_examples=cases(200))
@given(MOVES, st.lists(st.tuples(ASKED, CARRIERS, st.booleans()), min_size=1, max_size=4))
def test_the_groups_found_are_those_that_a_scan_finds(moves: list[Any], asked: list[Any]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pairwisegroups, "_MAX_EMPTY_GROUPS", 1)
        groups, standing = PairwiseGroups(), dict[PodInfo, int]()
        infos = dict[Any, PodInfo]()
        for namespace, labels, carries, delta in moves:
            info = infos.setdefault((namespace, *sorted(labels.items()), carries), described(namespace, labels, carries=carries))
            if standing.get(info, 0) + delta < 0:
                continue
            standing[info] = standing.get(info, 0) + delta
            group = groups.get(info.pairwise_key) or groups.open(info)
            group.rows[0] = standing[info]
            (groups.filled if standing[info] else groups.emptied)(group)
            for each, carriers, early in asked:
                if early:
                    check(groups, standing, each, carriers)
        for each, carriers, _ in asked:
            check(groups, standing, each, carriers)
        assert {carrier for info in standing if standing[info] for carrier in carrier_of(info)} <= set(groups.carried.carriers)


def carrier_of(info: PodInfo) -> Iterator[AffinityCarrier]:
    if info.pairwise_key.affinity:
        yield AffinityCarrier(info.namespace, info.pairwise_key.affinity)


def check(groups: PairwiseGroups, standing: dict[PodInfo, int], asked: Asked, carriers: Any) -> None:
    found = groups.selected(
        PodSelection(
            None if asked.namespaces is None else frozenset(asked.namespaces),
            asked.selector,
            carriers=None if carriers is None else frozenset(AffinityCarrier(*each) for each in carriers),
        )
    )
    keys = [group.key for group in found]
    assert len(keys) == len(set(keys))
    expected = {
        info.pairwise_key
        for info, count in standing.items()
        if count
        and asked.means(info.namespace, dict(info.labels))
        and (carriers is None or (info.namespace, info.pairwise_key.affinity) in carriers)
    }
    assert {group.key for group in found if group.rows[0]} == expected
    event("found some" if expected else "found none")


def test_what_is_carried_is_compiled_once_however_many_groups_carry_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairwisegroups, "_MAX_EMPTY_GROUPS", 0)
    groups, carrier = PairwiseGroups(), AffinityCarrier("n", CARRIED)
    opened = [groups.open(described("n", labels, carries=True)) for labels in ({}, {"a": "x"})]
    assert (list(groups.carried.carriers), groups.carried.changes) == ([carrier], 1)
    for group in opened:
        groups.emptied(group)
    assert (list(groups.carried.carriers), groups.carried.changes) == ([], 2)


def test_a_key_is_indexed_when_a_selection_asks_for_it_and_only_as_long_as_a_group_has_it() -> None:
    groups = PairwiseGroups()
    member = described("n", {"a": "x", "index": "7"}, carries=False)
    group = groups.open(member)
    assert not groups._by_label
    for key in ("a", "nobody"):
        groups.selected(PodSelection(None, Asked(None, ((key, "In", ("x",)),)).selector))
    assert list(groups._by_label) == ["a"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pairwisegroups, "_MAX_EMPTY_GROUPS", 0)
        groups.emptied(group)
    assert not groups._by_label
    assert not groups._groups_with
