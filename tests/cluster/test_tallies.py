"""Which pairwisecounts a selection picks, against the rule written out; and what tallies promise to those that keep them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster.makers import pod
from placewright.api.objects import LabelSelector, Requirement
from placewright.api.pods import PairwiseKey, PodInfo
from placewright.api.selectors import compile_label_selector, selector_from_pairs
from placewright.cluster import pairwisecounts
from placewright.cluster.pairwisecounts import AffinityCarrier, PairwiseCounts, PodSelection, Tally

ROWS = 4
APART = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]}}


def one(namespace: str = "n", *, terminating: bool = False, carries: bool = False, **labels: str) -> PodInfo:
    maker = pod(f"{namespace}/{labels}/{terminating}/{carries}").labels(**labels).meta(namespace=namespace)
    maker = maker.terminating() if terminating else maker
    return maker.spec(affinity=APART if carries else None).info


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


@settings(max_examples=80)
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
        assert counts.tally(selection(said), ROWS).counts.tolist() == expected
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
            assert seen.setdefault((tally.serial, tally.version), tally.counts.tolist()) == tally.counts.tolist()
        counts.add(one(), row, 1)
    everywhere, elsewhere = counts.tally(PodSelection(None), ROWS), counts.tally(PodSelection(frozenset({"m"})), ROWS)
    assert everywhere.serial != elsewhere.serial
    before = everywhere.version, elsewhere.version
    counts.add(one(), 0, -1)
    assert everywhere.version > before[0]
    assert elsewhere.version == before[1], "none of its pods moved"


@pytest.mark.parametrize(("first", "then", "room"), [(4, 4, 4), (4, 5, 8), (4, 9, 9), (4, 3, 4), (0, 1, 1)])
def test_a_tally_makes_room_for_as_many_rows_as_are_asked_for_and_keeps_its_counts(first: int, then: int, room: int) -> None:
    counts = PairwiseCounts()
    wanted = PodSelection(None)
    if first:
        counts.add(one(), 1, 1)
    kept = counts.tally(wanted, first)
    assert counts.tally(wanted, then) is kept
    assert len(kept.counts) == room
    assert kept.counts.sum() == (1 if first else 0)
    assert kept.counts.dtype == np.int32


@pytest.mark.parametrize(("row", "room"), [(3, 4), (4, 8), (20, 21)])
def test_a_row_beyond_the_end_is_counted_all_the_same(row: int, room: int) -> None:
    tally = Tally(7, 4)
    tally.add(row, 2)
    tally.add(row, -1)
    assert (tally.counts[row], len(tally.counts), tally.serial, tally.version) == (1, room, 7, 2)


def test_the_version_of_all_counts_grows_with_every_change() -> None:
    counts = PairwiseCounts()
    for delta in (1, 1, -1, -1):
        before = counts.version
        counts.add(one(), 0, delta)
        assert counts.version > before
    counts.tally(PodSelection(None), 1)
    assert counts.version > 0


# --- what is forgotten -----------------------------------------------------------------------------------------------------------


def test_of_more_tallies_than_there_is_room_for_the_half_not_asked_for_the_longest_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairwisecounts, "_MAX_TALLY_ROWS", 4 * ROWS)
    counts = PairwiseCounts()
    counts.add(one(app="0"), 2, 1)
    wanted = [PodSelection(frozenset({"n"}), selector_from_pairs({"app": str(n)})) for n in range(5)]
    first = [counts.tally(each, ROWS) for each in wanted[:4]]
    assert [counts.tally(each, ROWS) for each in wanted[:2]] == first[:2], "there is room for four; these two were asked for again"
    fifth = counts.tally(wanted[4], ROWS)
    assert len(counts._tallies) == 3
    assert [counts.tally(wanted[n], ROWS) for n in (0, 1, 4)] == [*first[:2], fifth]
    assert len(counts._tallies_at) == 3, "nothing hangs on what is gone"
    counts.add(one(app="0"), 2, 1)
    assert first[0].counts.tolist() == [0, 0, 2, 0]
    again = counts.tally(wanted[2], ROWS)
    assert again is not first[2]
    assert again.serial != first[2].serial, "who kept the old one's versions must look again"


def test_a_tally_that_was_dropped_is_not_counted_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairwisecounts, "_MAX_TALLY_ROWS", 0)
    counts = PairwiseCounts()
    dropped = counts.tally(PodSelection(frozenset({"n"})), ROWS)
    counts.add(one(), 0, 1)
    counts.tally(PodSelection(None), ROWS)
    counts.tally(PodSelection(frozenset({"m"})), ROWS)
    counts.add(one(), 0, 1)
    assert dropped.counts[0] == 1
    assert counts.tally(PodSelection(frozenset({"n"})), ROWS).counts[0] == 2


@pytest.mark.parametrize(("limit", "kept"), [(2, True), (1, False)])
def test_groups_without_pods_are_kept_up_to_a_number_and_then_all_forgotten(
    monkeypatch: pytest.MonkeyPatch, limit: int, *, kept: bool
) -> None:
    monkeypatch.setattr(pairwisecounts, "_MAX_EMPTY_GROUPS", limit)
    counts = PairwiseCounts()
    for info in (one(app="a"), one("m", carries=True)):
        counts.add(info, 0, 1)
        counts.add(info, 0, -1)
    assert list(counts) == []
    assert set(counts._by_namespace) == ({"n", "m"} if kept else set())
    assert len(counts.carriers) == int(kept)
    counts.add(one(app="a"), 3, 1)
    assert dict(counts.rows(one(app="a").pairwise_key)) == {3: 1}
    assert list(counts) == [one(app="a").pairwise_key]


def test_a_group_that_gets_pods_again_is_not_forgotten_with_the_empty_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairwisecounts, "_MAX_EMPTY_GROUPS", 1)
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
    monkeypatch.setattr(pairwisecounts, "_MAX_EMPTY_GROUPS", 0)
    counts, carrier = PairwiseCounts(), AffinityCarrier("n", CARRIED)
    with pytest.raises(KeyError):
        counts.affinity(carrier)
    assert not counts.carriers
    first, second = one(carries=True), one(carries=True, app="web")
    seen = [counts.carriers_version]
    for info, delta in ((first, 1), (second, 1), (first, -1), (second, -1)):
        counts.add(info, 0, delta)
        seen.append(counts.carriers_version)
        if counts.carriers:
            assert list(counts.carriers) == [carrier]
            assert counts.affinity(carrier) == first.pod.spec.affinity
    assert (seen[1] > seen[0], seen[1] == seen[2] == seen[3], seen[4] > seen[3]) == (True, True, True)
    assert not counts.carriers


def test_the_same_affinity_means_something_else_in_another_namespace() -> None:
    counts = PairwiseCounts()
    for namespace in ("n", "m"):
        counts.add(one(namespace, carries=True), 0, 1)
    assert set(counts.carriers) == {AffinityCarrier("n", CARRIED), AffinityCarrier("m", CARRIED)}
    only = PodSelection(None, carriers=frozenset({AffinityCarrier("m", CARRIED)}))
    assert counts.tally(only, 1).counts.tolist() == [1]


def test_rows_of_a_group_can_only_be_read() -> None:
    counts = PairwiseCounts()
    counts.add(one(), 0, 1)
    with pytest.raises(TypeError):
        counts.rows(one().pairwise_key)[0] = 5  # type: ignore[index]
    assert dict(counts.rows(PairwiseKey("n", frozenset(), terminating=True, affinity=b""))) == {}
