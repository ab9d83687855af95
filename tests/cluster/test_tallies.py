"""Which groups a selection picks, against the rule written out; and what tallies promise to those that keep them."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from cluster.makers import a_pod
from placewright.api.objects import LabelSelector, Requirement
from placewright.api.pods import PairwiseKey, PodInfo
from placewright.api.selectors import CompiledRequirement, Selector, compile_label_selector, selector_from_pairs
from placewright.cluster import pairwisegroups, tallies
from placewright.cluster import tally as tally_room
from placewright.cluster.pairwisecounts import PairwiseCounts
from placewright.cluster.podselections import AffinityCarrier, PodSelection
from placewright.cluster.tally import Tally
from randomcases import cases

ROWS = 4
APART = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]}}


def one(namespace: str = "n", *, terminating: bool = False, carries: bool = False, **labels: str) -> PodInfo:
    maker = a_pod(f"{namespace}/{hash(str(labels))}/{terminating}/{carries}").labels(**labels).metadata(namespace=namespace)
    maker = maker.deleting() if terminating else maker
    return maker.spec(affinity=APART if carries else None).build()


CARRIED = one(carries=True).pairwise_key.affinity
PODS = tuple(
    one(namespace, terminating=terminating, carries=carries, **labels)
    for namespace in ("n", "m")
    for terminating in (False, True)
    for carries in (False, True)
    for labels in ({}, {"app": "web"}, {"app": "db", "tier": "x"})
)


def asks(*requirements: tuple[str, str, tuple[str, ...]]) -> Any:
    said = tuple(Requirement(key=key, operator=operator, values=values) for key, operator, values in requirements)
    return compile_label_selector(LabelSelector(match_expressions=said))


#: A selector, and the same rule in Python.
SELECTORS: Mapping[str, tuple[Any, Any]] = {
    "everything": (selector_from_pairs({}), lambda labels: True),
    "web": (selector_from_pairs({"app": "web"}), lambda labels: labels.get("app") == "web"),
    "web or db": (asks(("app", "In", ("web", "db"))), lambda labels: labels.get("app") in ("web", "db")),
    "not web": (asks(("app", "NotIn", ("web",))), lambda labels: labels.get("app") != "web"),
    "any app": (asks(("app", "Exists", ())), lambda labels: "app" in labels),
    "no tier": (asks(("tier", "DoesNotExist", ())), lambda labels: "tier" not in labels),
    "db in x": (asks(("tier", "Exists", ()), ("app", "In", ("db",))), lambda labels: labels.get("app") == "db" and "tier" in labels),
}
SAID = st.fixed_dictionaries(
    {
        "namespaces": st.sampled_from([None, (), ("n",), ("m",), ("n", "m"), ("nowhere",)]),
        "selector": st.sampled_from(sorted(SELECTORS)),
        "terminating": st.booleans(),
        "carriers": st.sampled_from([None, None, (), (("n", CARRIED),), (("n", CARRIED), ("m", CARRIED)), (("n", b""),)]),
    }
)


def selection(said: Mapping[str, Any]) -> PodSelection:
    return PodSelection(
        None if said["namespaces"] is None else frozenset(said["namespaces"]),
        SELECTORS[said["selector"]][0],
        terminating=said["terminating"],
        carriers=None if said["carriers"] is None else frozenset(AffinityCarrier(*each) for each in said["carriers"]),
    )


def picked(said: Mapping[str, Any], info: PodInfo) -> bool:
    """The rule, read off the pod itself."""
    affinity = CARRIED if info.pod.spec.affinity else b""
    return (
        (said["namespaces"] is None or info.namespace in said["namespaces"])
        and (said["terminating"] or not info.terminating)
        and (said["carriers"] is None or (info.namespace, affinity) in said["carriers"])
        and SELECTORS[said["selector"]][1](dict(info.labels))
    )


@given(SAID)
def test_a_selection_picks_pods_by_namespace_life_stage_affinity_and_labels(said: dict[str, Any]) -> None:
    wanted = selection(said)
    assert [wanted.selects(info.pairwise_key, info.labels) for info in PODS] == [picked(said, info) for info in PODS]


MOVES = st.lists(st.tuples(st.integers(0, len(PODS) - 1), st.integers(0, ROWS - 1), st.booleans()), max_size=12)


@settings(max_examples=cases(80))
@given(MOVES, st.lists(SAID, min_size=1, max_size=3), st.booleans())
def test_a_tally_counts_what_was_there_before_it_and_what_comes_after(moves: list[Any], asked: list[dict[str, Any]], early: bool) -> None:
    counts, standing = PairwiseCounts(), dict[tuple[int, int], int]()
    if early:
        for said in asked:
            counts.tally(selection(said), ROWS)
    for which, row, comes in moves:
        if comes or standing.get((which, row)):
            counts.add(PODS[which], row, 1 if comes else -1)
            standing[which, row] = standing.get((which, row), 0) + (1 if comes else -1)
    for said in asked:
        expected = [sum(n for (which, at), n in standing.items() if at == row and picked(said, PODS[which])) for row in range(ROWS)]
        assert counts.tally(selection(said), ROWS).by_row(ROWS).tolist() == expected
    assert set(counts) == {PODS[which].pairwise_key for (which, _), n in standing.items() if n}
    for info in PODS:
        rows = {row: n for (which, row), n in standing.items() if n and PODS[which].pairwise_key == info.pairwise_key}
        assert dict(counts.rows(info.pairwise_key)) == rows


# --- equal selections ------------------------------------------------------------------------------------------------------------


@given(SAID, SAID)
def test_selections_that_say_the_same_are_one_key_and_share_a_tally(one_says: dict[str, Any], other_says: dict[str, Any]) -> None:
    first, second = selection(one_says), selection(other_says)
    assert (first == second) is (one_says == other_says)
    assert first == selection(one_says)
    assert hash(first) == hash(selection(one_says))
    counts = PairwiseCounts()
    assert (counts.tally(first, 1) is counts.tally(second, 1)) is (one_says == other_says)


def test_a_selection_is_no_tuple_and_shows_what_it_says() -> None:
    plain = PodSelection(frozenset({"n"}))
    assert plain != (frozenset({"n"}), selector_from_pairs({}), True, None)
    assert (plain == "n", plain == plain) == (False, True)  # noqa: PLR0124 - that a thing equals itself is asked in every lookup
    assert repr(plain) == "PodSelection(frozenset({'n'}), Selector(expressions=()), True, None)"


def test_selections_whose_hashes_collide_are_still_two() -> None:
    one_selection, other = PodSelection(frozenset({"n"})), PodSelection(frozenset({"m"}))
    other._hash = one_selection._hash
    assert one_selection != other


# --- what a tally promises -------------------------------------------------------------------------------------------------------


def test_equal_serials_and_versions_promise_equal_counts() -> None:
    counts, seen = PairwiseCounts(), dict[tuple[int, int], list[int]]()
    for row in (0, 1, 1, 0):
        for wanted in (PodSelection(None), PodSelection(frozenset({"m"}))):
            tally = counts.tally(wanted, ROWS)
            assert seen.setdefault((tally.serial, tally.version), tally.by_row(ROWS).tolist()) == tally.by_row(ROWS).tolist()
        counts.add(one(), row, 1)
    everywhere, elsewhere = counts.tally(PodSelection(None), ROWS), counts.tally(PodSelection(frozenset({"m"})), ROWS)
    assert everywhere.serial != elsewhere.serial
    before = everywhere.version, elsewhere.version
    counts.add(one(), 0, -1)
    assert everywhere.version > before[0]
    assert elsewhere.version == before[1], "none of its pods moved"


CHANGES = st.lists(st.tuples(st.integers(0, 199), st.sampled_from([1, 1, 1, 2, 200, -1])), max_size=60)
SIZES = st.lists(st.tuples(st.integers(0, 59), st.sampled_from([0, 3, 70, 200, 5000])), max_size=6)


@settings(max_examples=cases(200))
@given(CHANGES, SIZES)
def test_a_tally_says_the_same_whether_it_is_kept_as_a_dictionary_or_as_a_column(changes: list[Any], sizes: list[Any]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tally_room, "_FEW", 4)
        tally, standing, kept_as = Tally(7), Counter[int](), set[bool]()
        for step, (row, more) in enumerate(changes):
            delta = max(more, -standing[row])
            if delta:
                tally.add(row, delta)
            standing[row] += delta
            for _, size in (each for each in sizes if each[0] == step):
                tally.fit(size)
            kept_as.add(tally._column is None)
            assert tally[row] == standing[row]
        rows, counts = tally.taken()
        expected = {row: count for row, count in standing.items() if count}
        assert dict(zip(rows.tolist(), counts.tolist(), strict=True)) == expected
        assert tally.by_row(300).tolist() == [standing[row] for row in range(300)]
        assert (counts.dtype, rows.dtype, tally.by_row(300).dtype) == (np.int64, np.intp, np.int32)
        event(f"kept in {len(kept_as)} ways")


def test_a_tally_becomes_a_column_where_many_rows_have_pods_and_a_dictionary_again_where_few_have() -> None:
    tally = Tally(7)
    for row in range(200):
        tally.add(row, 1)
    as_dictionary = tally.nbytes
    tally.fit(200)
    assert tally.nbytes < as_dictionary / 8, "a byte a row, while no row has many"
    tally.add(3, 200)
    assert (tally[3], tally[4]) == (201, 1)
    for row in range(195):
        tally.add(row, -tally[row])
    tally.fit(200)
    assert sorted(tally.taken().rows.tolist()) == [195, 196, 197, 198, 199]
    assert tally._column is None


def test_what_changed_in_a_tally_is_told_to_those_who_follow_and_not_for_ever() -> None:
    tally = Tally(7)
    tally.add(1, 1)
    assert tally.changes_since(0) is None, "nobody followed then"
    start = tally.follow()
    tally.add(1, 2)
    tally.add(4, -1)
    assert tally.changes_since(start) == [(1, 2), (4, -1)]
    assert tally.changes_since(tally.follow()) == []
    for _ in range(1000):
        tally.add(1, 1)
    assert tally.changes_since(start) is None


def test_the_version_of_all_counts_grows_with_every_change() -> None:
    counts = PairwiseCounts()
    for delta in (1, 1, -1, -1):
        before = counts.version
        counts.add(one(), 0, delta)
        assert counts.version > before
    counts.tally(PodSelection(None), 1)
    assert counts.version > 0


KEYS = st.sampled_from(["app", "tier", "none"])
REQUIREMENTS = st.one_of(
    st.tuples(KEYS, st.sampled_from(["In", "NotIn"]), st.sampled_from([("web",), ("web", "db"), ("x",)])),
    st.tuples(KEYS, st.sampled_from(["Exists", "DoesNotExist"]), st.just(())),
)


@given(st.lists(REQUIREMENTS, max_size=8), st.sampled_from([None, frozenset({"n"})]), st.booleans())
def test_many_groups_are_asked_label_by_label_and_answer_as_each_would(
    requirements: list[tuple[str, str, tuple[str, ...]]], namespaces: frozenset[str] | None, terminating: bool
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pairwisegroups, "_FEW_GROUPS", 0)
        groups = pairwisegroups.PairwiseGroups()
        opened = [groups.open(info) for info in PODS]
        wanted = PodSelection(namespaces, asks(*requirements), terminating=terminating)
        found = groups.selected(wanted)
    assert {id(group) for group in found} == {id(group) for group in opened if wanted.selects(group.key, group.labels)}
    assert len({id(group) for group in found}) == len(found)


class Looked(dict[str, str]):
    """Labels that count how often they are looked at."""

    looks = 0

    def get(self, *key: Any) -> Any:
        Looked.looks += 1
        return super().get(*key)

    def __contains__(self, key: object) -> bool:
        Looked.looks += 1
        return super().__contains__(key)


def looks(expressions: int, groups_there: int) -> int:
    """How often groups' labels are looked at for a selector of so many expressions, some of them over labels that pods have."""
    groups = pairwisegroups.PairwiseGroups()
    for number in range(groups_there):
        group = groups.open(one(app=str(number), tier="x"))
        group.labels = Looked(group.labels)
    said = [(f"k{n}", "DoesNotExist", ()) if n % 2 else (("app", "tier")[n % 4 // 2], "NotIn", (f"v{n}",)) for n in range(expressions)]
    Looked.looks = 0
    assert len(groups.selected(PodSelection(None, asks(*said)))) == groups_there
    return Looked.looks


def test_the_looks_at_groups_do_not_grow_with_the_expressions_of_a_selector() -> None:
    assert 0 < looks(400, 100) <= looks(8, 100)
    assert looks(400, 200) <= 2 * looks(400, 100)


# --- what is forgotten -----------------------------------------------------------------------------------------------------------


def test_of_more_tallies_than_there_is_room_for_the_one_not_asked_for_the_longest_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = PairwiseCounts()
    counts.add(one(app="0"), 2, 1)
    wanted = [PodSelection(frozenset({"n"}), selector_from_pairs({"app": str(n)})) for n in range(5)]
    first = [counts.tally(each, ROWS) for each in wanted[:4]]
    monkeypatch.setattr(tallies, "_MAX_TALLY_BYTES", sum(each.nbytes for each in first))
    assert [counts.tally(each, ROWS) for each in wanted[:2]] == first[:2], "there is room for four; these two were asked for again"
    fifth = counts.tally(wanted[4], ROWS)
    assert len(counts._tallies) == 4
    assert [counts.tally(wanted[n], ROWS) for n in (0, 1, 3, 4)] == [first[0], first[1], first[3], fifth]
    counts.add(one(app="0"), 2, 1)
    assert first[0].by_row(ROWS).tolist() == [0, 0, 2, 0]
    again = counts.tally(wanted[2], ROWS)
    assert again is not first[2]
    assert again.serial != first[2].serial, "who kept the old one's versions must look again"


def test_a_tally_that_was_dropped_is_not_counted_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tallies, "_MAX_TALLY_BYTES", 0)
    counts = PairwiseCounts()
    carried = PodSelection(None, carriers=frozenset({AffinityCarrier("n", CARRIED)}))
    for wanted in (PodSelection(frozenset({"n"})), PodSelection(None, selector_from_pairs({"app": "web"})), carried):
        dropped = counts.tally(wanted, ROWS)
        counts.add(one(carries=True, app="web"), 0, 1)
        before = dropped[0]
        counts.tally(PodSelection(frozenset({"m"})), ROWS)
        counts.add(one(carries=True, app="web"), 0, 1)
        counts.add(one(carries=True, app="web", new=str(wanted)), 0, 1)
        assert dropped[0] == before
        assert counts.tally(wanted, ROWS)[0] == before + 2


def test_a_tally_that_grew_counts_with_what_it_takes_now(monkeypatch: pytest.MonkeyPatch) -> None:
    counts, everywhere, elsewhere = PairwiseCounts(), PodSelection(None), PodSelection(frozenset({"m"}))
    tally = counts.tally(everywhere, 100_000)
    monkeypatch.setattr(tallies, "_MAX_TALLY_BYTES", 2 * tally.nbytes)
    assert counts.tally(elsewhere, 100_000) is counts.tally(elsewhere, 100_000)
    for row in range(500):
        counts.add(one(), row, 1)
    assert counts.tally(everywhere, 100_000) is tally
    assert len(counts._tallies) == 1


def test_no_more_tallies_are_kept_of_one_group_than_each_pod_that_comes_can_be_added_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tallies, "_MOST_OF_A_GROUP", 4)
    counts = PairwiseCounts()
    counts.add(one(app="web"), 0, 1)
    wanted = [PodSelection(None, asks((f"k{n}", "DoesNotExist", ()), ("app", "In", ("web",)))) for n in range(9)]
    first = [counts.tally(each, ROWS) for each in wanted]
    (group,) = counts._groups
    assert [each.tally for each in group.tallies] == first[-4:]
    assert len(counts._tallies) == 4
    counts.add(one(app="web"), 1, 1)
    assert all(counts.tally(each, ROWS).by_row(ROWS).tolist() == [1, 1, 0, 0] for each in wanted)


def test_no_more_selections_without_a_value_are_kept_than_each_new_group_can_be_compared_with(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tallies, "_MOST_BROAD", 3)
    counts = PairwiseCounts()
    narrow = PodSelection(None, selector_from_pairs({"app": "web"}))
    kept = counts.tally(narrow, ROWS)
    for number in range(7):
        counts.tally(PodSelection(None, asks((f"k{number}", "Exists", ()))), ROWS)
    assert len(counts._tallies) == 4
    counts.add(one(app="web", k0="x"), 2, 1)
    assert kept.by_row(ROWS).tolist() == [0, 0, 1, 0]
    assert counts.tally(PodSelection(None, asks(("k0", "Exists", ()))), ROWS).by_row(ROWS).tolist() == [0, 0, 1, 0]


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.sampled_from([1, -1])), max_size=30), st.integers(0, 30))
def test_pods_of_different_weights_are_counted_with_them_whenever_they_come(moves: list[tuple[int, int, int]], asked_after: int) -> None:
    pods = [one(carries=True, app=str(n)) for n in range(2)] + [one("m", carries=True)]
    weights = {AffinityCarrier("n", CARRIED): 7, AffinityCarrier("m", CARRIED): -3}
    selection = PodSelection(frozenset({"n", "m"}), carriers=frozenset(weights), weights=weights)
    counts, there = PairwiseCounts(), Counter[tuple[int, int]]()
    for number, (which, row, delta) in enumerate(moves):
        if number == asked_after:
            counts.tally(selection, ROWS)
        if delta < 0 and not there[which, row]:
            continue
        there[which, row] += delta
        counts.add(pods[which], row, delta)
    expected = [sum(there[which, row] * (7 if which < 2 else -3) for which in range(3)) for row in range(ROWS)]
    assert counts.tally(selection, ROWS).by_row(ROWS).tolist() == expected
    assert dict(zip(*map(list, counts.tally(selection, ROWS).taken()), strict=True)) == {r: n for r, n in enumerate(expected) if n}


def test_groups_without_pods_are_kept_up_to_a_number_and_then_the_oldest_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairwisegroups, "_MAX_EMPTY_GROUPS", 2)
    counts = PairwiseCounts()
    for info in (one(app="a"), one("m", carries=True), one(app="b")):
        counts.add(info, 0, 1)
        counts.add(info, 0, -1)
    assert list(counts) == []
    assert {group.key for group in counts._groups} == {one("m", carries=True).pairwise_key, one(app="b").pairwise_key}
    assert len(counts.carriers) == 1
    counts.add(one(app="a"), 3, 1)
    assert dict(counts.rows(one(app="a").pairwise_key)) == {3: 1}
    assert list(counts) == [one(app="a").pairwise_key]


def test_a_group_that_gets_pods_again_is_not_forgotten_with_the_empty_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairwisegroups, "_MAX_EMPTY_GROUPS", 1)
    counts, back = PairwiseCounts(), one(app="back")
    counts.add(back, 0, 1)
    counts.add(back, 0, -1)
    counts.add(back, 1, 1)
    for name in ("x", "y"):
        counts.add(one(app=name), 0, 1)
        counts.add(one(app=name), 0, -1)
    assert list(counts) == [back.pairwise_key]
    assert dict(counts.rows(back.pairwise_key)) == {1: 1}


# --- carriers --------------------------------------------------------------------------------------------------------------------


def test_an_affinity_is_carried_while_some_group_carries_it_and_says_what_its_pods_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairwisegroups, "_MAX_EMPTY_GROUPS", 0)
    counts, carrier = PairwiseCounts(), AffinityCarrier("n", CARRIED)
    assert not counts.carriers
    first, second = one(carries=True), one(carries=True, app="web")
    seen = [counts.carriers_version]
    for info, delta in ((first, 1), (second, 1), (first, -1), (second, -1)):
        counts.add(info, 0, delta)
        seen.append(counts.carriers_version)
        if counts.carriers:
            assert list(counts.carriers) == [carrier]
    assert (seen[1] > seen[0], seen[1] == seen[2] == seen[3], seen[4] > seen[3]) == (True, True, True)
    assert not counts.carriers


def test_the_same_affinity_means_something_else_in_another_namespace() -> None:
    counts = PairwiseCounts()
    for namespace in ("n", "m"):
        counts.add(one(namespace, carries=True), 0, 1)
    assert set(counts.carriers) == {AffinityCarrier("n", CARRIED), AffinityCarrier("m", CARRIED)}
    only = PodSelection(None, carriers=frozenset({AffinityCarrier("m", CARRIED)}))
    assert counts.tally(only, 1).by_row(1).tolist() == [1]


def test_rows_of_a_group_can_only_be_read() -> None:
    counts = PairwiseCounts()
    counts.add(one(), 0, 1)
    with pytest.raises(TypeError):
        counts.rows(one().pairwise_key)[0] = 5  # type: ignore[index]
    assert dict(counts.rows(PairwiseKey("n", frozenset(), terminating=True, affinity=b""))) == {}


def test_a_tally_counts_with_all_that_its_selection_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tallies, "_MAX_TALLY_BYTES", 100_000)
    counts = PairwiseCounts()
    few = counts.tally(PodSelection(frozenset({"n"})), ROWS)
    assert counts.tally(PodSelection(frozenset({"n"})), ROWS) is few
    for number in range(3):
        values = frozenset(f"{number}-{'x' * 50}-{each}" for each in range(300))
        wanted = PodSelection(None, Selector((CompiledRequirement("app", "In", values),)))
        assert sys.getsizeof(wanted) > 300 * 50
        counts.tally(wanted, ROWS)
    assert len(counts._tallies) == 1, "two such selections are more than there is room for, and the latest one is always kept"


@pytest.mark.parametrize("carries", [False, True])
def test_groups_without_pods_are_kept_up_to_so_many_bytes(carries: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairwisegroups, "_MAX_EMPTY_BYTES", 50_000)
    counts = PairwiseCounts()
    there = one(app="there", carries=carries)
    counts.add(there, 0, 1)
    for number in range(50):
        gone = one(carries=carries, **{f"label-{number}-{each}": "x" * 60 for each in range(20)})
        counts.add(gone, 0, 1)
        counts.add(gone, 0, -1)
    groups = counts._groups
    assert sum(group.nbytes for group in groups if not group.rows) == groups._empty_bytes <= 50_000
    assert 2 <= len(list(groups)) < 15
    assert list(counts) == [there.pairwise_key]
