"""Scores of resources are divided in floats; plain whole numbers say what must come of it."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from placewright.api.profile import PluginConfig, default_profile
from placewright.cluster.cluster import Cluster
from placewright.framework.interface import CycleState
from placewright.offline.world import offline_evaluator
from placewright.plugins.catalog import in_tree
from placewright.plugins.noderesources.args import (
    RequestedToCapacityRatio,
    ResourceSpec,
    ScoringStrategy,
    ShapePoint,
    StrategyType,
)
from placewright.plugins.noderesources.balanced import NodeResourcesBalancedAllocation
from placewright.plugins.noderesources.fit import NodeResourcesFit
from placewright.plugins.noderesources.strategies import FEW_ROWS, LoadTable, strategy_score
from placewright.profiles.resolve import resolve
from placewright.testing import node, pod

#: Bytes: nothing, small, a memory's, around where doubles end to be exact, and far beyond.
AMOUNTS = st.one_of(
    st.integers(0, 300), st.integers(0, 2**40), st.integers(2**46 - 50, 2**46 + 50), st.integers(2**56 - 9, 2**56), st.just(0)
)
SHAPE = RequestedToCapacityRatio((ShapePoint(0, 10), ShapePoint(37, 2), ShapePoint(100, 9)))


def plain(kind: StrategyType, used: int, capacity: int) -> int:
    """The score of one resource that there is some of, as upstream works it out."""
    if kind == "LeastAllocated":
        return 0 if used > capacity else (capacity - used) * 100 // capacity
    if kind == "MostAllocated":
        return min(used, capacity) * 100 // capacity
    percent = 100 if used > capacity else used * 100 // capacity
    if percent <= 37:
        return 100 - (80 * percent // 37)
    return 20 + 70 * (percent - 37) // 63


@pytest.mark.parametrize("kind", ["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"])
@given(st.lists(st.tuples(AMOUNTS, AMOUNTS), min_size=1, max_size=6), AMOUNTS)
@example([(3 * 2**45, 2**46), (2**46 - 1, 2**46), (2**46, 2**46 + 1)], 0)
def test_shares_divided_in_floats_are_those_of_whole_numbers(kind: StrategyType, nodes: list[tuple[int, int]], own: int) -> None:
    cluster = Cluster()
    for at, (used, capacity) in enumerate(nodes):
        cluster.set_node(node(f"n{at}", memory=str(capacity)).build())
        if used:
            cluster.set_pod(pod(f"p{at}", on=f"n{at}", memory=str(used)).build())
    strategy = ScoringStrategy(kind, (ResourceSpec("memory"),), SHAPE if kind == "RequestedToCapacityRatio" else None)
    offered = cluster.resources.column("memory").allocatable.tolist()  # an amount that no node could have is cut off
    taken = [used + own for used in cluster.scoring_memory.tolist()]
    wanted = [plain(kind, used, capacity) if capacity else 0 for used, capacity in zip(taken, offered, strict=False)]
    table = LoadTable("memory")
    for rows in (cluster.all_rows, cluster.all_rows.copy()):
        assert strategy_score(strategy, [table.load(cluster, rows, own, 1)], len(rows)).tolist() == wanted


KINDS: list[tuple[Any, dict[str, Any]]] = [
    *[(NodeResourcesFit, {"scoringStrategy": {"type": kind}}) for kind in ("LeastAllocated", "MostAllocated")],
    (NodeResourcesFit, {"scoringStrategy": {"resources": [{"name": "cpu", "weight": 3}, {"name": "memory"}, {"name": "x.io/gpu"}]}}),
    (NodeResourcesBalancedAllocation, {}),
    (NodeResourcesBalancedAllocation, {"resources": [{"name": name} for name in ("cpu", "memory", "x.io/gpu")]}),
]


@pytest.mark.parametrize(("plugin", "args"), KINDS)
@given(st.integers(0, 2**32))
def test_many_rows_are_answered_as_each_row_alone_is(plugin: Any, args: dict[str, Any], seed: int) -> None:
    dice = random.Random(seed)
    cluster = Cluster()
    for at in range(3 * FEW_ROWS):
        cpu, memory, gpus = dice.choice("029"), dice.choice(("0", "7Gi", "1001Mi")), dice.choice("03")
        cluster.set_node(node(f"n{at}", cpu=cpu, memory=memory, **{"x.io/gpu": gpus}).build())
    for at in range(40):
        cluster.set_pod(pod(f"p{at}", on=f"n{dice.randrange(cluster.size)}", cpu=f"{dice.randrange(3000)}m", memory="77Mi").build())
    config = PluginConfig(name=plugin.name, args=args)
    profile = resolve(default_profile(plugin_config=[config]), in_tree())
    asked_of: Any = offline_evaluator(profile, in_tree(), cluster).runtime.plugin(plugin.name)
    asked = pod("asked", cpu=f"{dice.randrange(2500)}m", memory=dice.choice(("", "300Mi"))).build()
    rows = cluster.all_rows
    for ask in (asked_of.score, *([asked_of.filter] if plugin is NodeResourcesFit else [])):
        alone = [ask(CycleState(), asked, cluster, rows[at : at + 1]).tolist()[0] for at in range(len(rows))]
        assert ask(CycleState(), asked, cluster, rows).tolist() == alone
        assert ask(CycleState(), asked, cluster, rows[1:].copy()).tolist() == alone[1:]


@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from([0, 1, 2**30, 2**47, 2**56])), max_size=12))
def test_a_table_that_was_mended_is_one_that_is_made_anew(steps: list[tuple[int, int]]) -> None:
    cluster, table = Cluster(), LoadTable("memory")
    for turn, (at, amount) in enumerate(steps):
        if turn % 2:
            cluster.set_pod(pod(f"p{turn}", on=f"n{at}", memory=str(amount)).build())
        else:
            cluster.set_node(node(f"n{at}", memory=str(amount)).build())
        for kept, made in zip(table.current(cluster), LoadTable("memory").current(cluster), strict=True):
            assert kept.dtype == made.dtype
            assert np.array_equal(kept, made)
