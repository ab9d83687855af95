"""Resource columns exist for what nodes offer; what pods request beyond that is kept for as long as the pods are there, and no longer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.cluster.resources import Resources
from placewright.testing import node, pod
from randomcases import cases

A, B = NodeName("a"), NodeName("b")
MANY = {f"example.com/r{i}": "1" for i in range(1000)}


def asking(uid: str, requests: Mapping[str, Any]) -> PodInfo:
    return pod(uid, containers=[{"resources": {"requests": dict(requests)}}]).build()


def two_nodes() -> Cluster:
    found = Cluster()
    for name in ("a", "b"):
        found.set_node(node(name).build())
    return found


def requested(found: Cluster, resource: str) -> list[int]:
    return found.resources.column(resource).requested[: found.size].tolist()


@pytest.mark.parametrize("way", ["watched", "assumed", "changed on its node", "hypothetical", "on a node that comes later"])
def test_names_that_only_pods_know_make_no_columns_and_leave_nothing_behind(way: str) -> None:
    found = two_nodes()
    before = found.resources.names()
    greedy = asking("p", MANY)
    if way == "watched":
        found.set_pod(greedy.on(A))
    elif way == "assumed":
        found.assume(greedy, A)
    elif way == "changed on its node":
        found.set_pod(asking("p", {}).on(A))
        found.set_pod(greedy.on(A))
    elif way == "hypothetical":
        crowd = [asking(f"p{i}", MANY) for i in range(20)]
        with found.dry_run_on_row(add=crowd, row=0):
            assert found.resources.names() == before
    else:
        found.set_pod(greedy.on(NodeName("later")))
        found.set_node(node("later").build())
    assert found.resources.names() == before
    found.remove_pod("uid-p")
    assert (found.resources.names(), found.resources.requested_without_offer()) == (before, 0)


def test_a_node_that_begins_to_offer_a_resource_finds_its_pods_requests_counted_and_may_cease_again() -> None:
    """As a device plugin does that registers after its pods were bound, and as its node does when it breaks."""
    found = two_nodes()
    found.set_pod(asking("p", {"example.com/gpu": "3"}).on(A))
    found.set_node(node("a", **{"example.com/gpu": "8"}).build())
    assert requested(found, "example.com/gpu") == [3, 0]
    found.set_pod(asking("q", {"example.com/gpu": "2"}).on(B))
    found.set_node(node("a").build())
    assert "example.com/gpu" not in found.resources.names()
    found.set_node(node("b", **{"example.com/gpu": "8"}).build())
    assert requested(found, "example.com/gpu") == [3, 2]


def test_to_offer_nothing_of_a_resource_is_not_to_offer_it() -> None:
    found = two_nodes()
    found.set_node(node("a", **{"example.com/gpu": "0"}).build())
    assert "example.com/gpu" not in found.resources
    assert "cpu" in found.resources


NAMES, ROWS = st.sampled_from("xyz"), st.integers(0, 3)
AMOUNTS = st.dictionaries(NAMES, st.integers(0, 3))
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("offer"), ROWS, AMOUNTS),
        st.tuples(st.just("add"), ROWS, AMOUNTS),
        st.tuples(st.just("add all"), st.lists(ROWS, min_size=1, max_size=4), AMOUNTS),
        st.tuples(st.just("grow"), st.just(0), st.just({})),
    ),
    max_size=40,
)


@settings(max_examples=cases(300))
@given(STEPS)
def test_through_any_history_columns_say_what_was_offered_and_requested_and_nothing_else_is_kept(steps: list[Any]) -> None:
    found, capacity = Resources(4), 4
    offers: dict[int, dict[str, int]] = {}
    asked: Counter[tuple[str, int]] = Counter()
    undo: list[tuple[int, dict[str, int]]] = []
    for act, where, amounts in steps:
        if act == "offer":
            found.set_allocatable(where, amounts)
            offers[where] = amounts
        elif act == "grow":
            capacity += 2
            found.grow(capacity)
        else:
            rows = [where] if act == "add" else where
            if act == "add":
                found.add_requests(where, amounts, 1)
            else:
                found.add_all(np.array(rows, np.intp), [amounts] * len(rows), 1)
            for row in rows:
                undo.append((row, amounts))
                asked.update({(name, row): amount for name, amount in amounts.items()})
        offered = {name for offer in offers.values() for name, amount in offer.items() if amount}
        assert set(found.names()) == offered
        for name in offered:
            column = found.column(name)
            assert column.allocatable.tolist() == [offers.get(row, {}).get(name, 0) for row in range(capacity)]
            assert column.requested.tolist() == [asked[name, row] for row in range(capacity)]
        assert not found.column("nobody's").requested.any()
        assert found.requested_without_offer() == sum(amount > 0 and name not in offered for (name, _), amount in asked.items())
    for row, amounts in undo:
        found.add_requests(row, amounts, -1)
    assert found.requested_without_offer() == 0
