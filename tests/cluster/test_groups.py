"""Tallies count what a recount counts, whatever comes, goes and is asked."""

from __future__ import annotations

import random
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placewright.api.objects import Affinity, ObjectMeta, Pod, PodAffinity, PodSpec
from placewright.api.pods import PodInfo
from placewright.api.selectors import selector_from_pairs
from placewright.cluster import pairwisegroups, tallies
from placewright.cluster.pairwisecounts import PairwiseCounts
from placewright.cluster.podselections import AffinityCarrier, PodSelection
from randomcases import cases

ROWS = 5


def a_pod(namespace: str, app: str, *, terminating: bool = False, carries: bool = False) -> PodInfo:
    meta = ObjectMeta(namespace=namespace, labels={"app": app}, deletion_timestamp="2026-01-01T00:00:00Z" if terminating else None)
    affinity = Affinity(pod_affinity=PodAffinity()) if carries else None
    return PodInfo(Pod(metadata=meta, spec=PodSpec(affinity=affinity)))


def recount(placed: Iterable[tuple[PodInfo, int]], selection: PodSelection) -> list[int]:
    counts = [0] * ROWS
    for one, row in placed:
        counts[row] += selection.selects(one.pairwise_key, one.labels)
    return counts


def any_selection(dice: random.Random) -> PodSelection:
    carriers = frozenset({AffinityCarrier("a", a_pod("a", "", carries=True).pairwise_key.affinity)})
    return PodSelection(
        dice.choice([None, frozenset({"a"}), frozenset({"a", "b"}), frozenset()]),
        selector_from_pairs(dice.choice([{}, {"app": "x"}, {"app": "y"}])),
        terminating=dice.random() < 0.5,
        carriers=carriers if dice.random() < 0.2 else None,
    )


@settings(max_examples=cases(150))
@given(st.integers(0, 2**32))
def test_a_tally_is_what_a_recount_would_be(seed: int) -> None:
    dice, counts, placed = random.Random(seed), PairwiseCounts(), []
    with pytest.MonkeyPatch.context() as patch:  # small limits, so that tallies and groups are dropped and come back
        patch.setattr(tallies, "_MAX_TALLY_BYTES", 4 * 1500)
        patch.setattr(pairwisegroups, "_MAX_EMPTY_GROUPS", 2)
        for _ in range(40):
            if placed and dice.random() < 0.5:
                one, row = placed.pop(dice.randrange(len(placed)))
                counts.add(one, row, -1)
            else:
                one = a_pod(dice.choice("abc"), dice.choice("xyz"), terminating=dice.random() < 0.2, carries=dice.random() < 0.3)
                row = dice.randrange(ROWS)
                placed.append((one, row))
                counts.add(one, row, 1)
            selection = any_selection(dice)
            assert counts.tally(selection, ROWS).by_row(ROWS).tolist() == recount(placed, selection)
        assert {one.pairwise_key for one, _ in placed} == set(counts)
        kept = {id(tally) for tally in counts._tallies._kept.values()}
        assert all(id(tally) in kept for group in counts._groups for tally in group.tallies)
        assert {AffinityCarrier(g.namespace, g.affinity) for g in counts if g.affinity} <= set(counts.carriers)


def test_a_tally_grows_with_the_cluster() -> None:
    counts = PairwiseCounts()
    everywhere = PodSelection(None)
    assert counts.tally(everywhere, 1).by_row(1).tolist() == [0]
    counts.add(a_pod("a", "x"), 6, 1)
    assert counts.tally(everywhere, 7).taken().rows.tolist() == [6]


def test_an_affinity_that_no_pod_carries_any_more_is_forgotten_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairwisegroups, "_MAX_EMPTY_GROUPS", 0)
    counts, one = PairwiseCounts(), a_pod("a", "x", carries=True)
    counts.add(one, 0, 1)
    seen = counts.carriers_version
    assert list(counts.carriers) == [AffinityCarrier("a", one.pairwise_key.affinity)]
    counts.add(one, 0, -1)
    assert not counts.carriers
    assert counts.carriers_version > seen
