"""Rows that hold so many pods: found afresh, and followed through changes, they are the same."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placewright.cluster import tally as tallies
from placewright.cluster.cluster import Cluster
from placewright.cluster.podselections import PodSelection
from placewright.framework.memory import NodeMemory
from placewright.framework.topology import counts_by_row, domains, tally_of
from placewright.testing import node, pod
from randomcases import cases

HOST = "kubernetes.io/hostname"
NODES = tuple(f"n{number}" for number in range(6))


@settings(max_examples=cases(100))
@given(seed=st.integers(0, 2**32), changes=st.sampled_from((1, 4, 16)))
def test_full_rows_are_those_that_a_count_of_all_rows_finds(seed: int, changes: int) -> None:
    dice = random.Random(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tallies, "_CHANGES", changes)
        cluster, memory = Cluster(), NodeMemory()
        for name in NODES:
            labels = {HOST: name} if dice.random() < 0.8 else {}
            cluster.set_node(node(name).metadata(labels=labels).build())
        web = PodSelection(frozenset({"default"}))
        place = domains(memory, cluster, HOST)
        for step in range(40):
            if dice.random() < 0.6:
                cluster.set_pod(pod(f"p{step}").on(dice.choice(NODES)).build())
            else:
                cluster.remove_pod(f"uid-p{dice.randrange(step + 1)}")
            if dice.random() < 0.5:
                for most in (1, 2):
                    full = place.full_rows(tally_of(cluster, web), most)
                    expected = {row for row, count in enumerate(counts_by_row(cluster, web)) if count >= most and place.labelled[row]}
                    assert sorted(full.tolist()) == sorted(expected)


def test_full_rows_of_a_dry_run_are_those_of_the_dry_run_and_are_not_there_afterwards() -> None:
    cluster, memory = Cluster(), NodeMemory()
    cluster.set_node(node("n0").build())
    place, selection = domains(memory, cluster, HOST), PodSelection(frozenset({"default"}))

    def full() -> list[int]:
        found: list[int] = place.full_rows(tally_of(cluster, selection), 1).tolist()
        return found

    assert full() == []
    with cluster.dry_run_on_row(add=[pod("p").build()], row=0):
        assert full() == [0]
    assert full() == []
