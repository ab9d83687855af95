"""Many rows changed at once, and each judged as if it alone were: what a judge says, and what the plugin says of that one change."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import pytest
import test_domain_limit as domainlimit
import test_inter_pod_affinity as affinity
import test_pod_topology_spread as spread
from hypothesis import given, settings
from hypothesis import strategies as st
from pairwise import build, verdicts
from pairwise_worlds import Body, Dice, World, happen, info, populate
from storage_worlds import StorageDice
from storage_worlds import happen as happen_to_storage
from storage_worlds import populate as populate_storage

from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.interface import CycleState
from placewright.framework.rowwise import RowVerdict
from placewright.framework.status import Code
from placewright.plugins.domainlimit.plugin import DomainLimit
from placewright.plugins.interpodaffinity.plugin import InterPodAffinity
from placewright.plugins.nodevolumelimits.plugin import NodeVolumeLimits
from placewright.plugins.podtopologyspread.plugin import PodTopologySpread
from placewright.plugins.volumebinding.plugin import VolumeBinding
from placewright.plugins.volumerestrictions import VolumeRestrictions
from placewright.plugins.volumezone import VolumeZone
from randomcases import cases

Said = tuple[str, str]
SEEDS = st.integers(0, 2**32)


def apart(judge: RowVerdict, cluster: Cluster) -> dict[str, Said]:
    """Why the judge rejects nodes, by name."""
    rows = cluster.rows()
    rejected = rows[~judge.passes(rows)]
    explained = judge.explain(rejected) if len(rejected) else []
    found = {str(cluster.names[row]): (status.code.value, status.message) for status, group in explained for row in group}
    assert set(found) == {cluster.names[row] for row in rejected}
    return found


def alone(plugin: Any, cluster: Cluster, pod: PodInfo, gone: dict[int, list[PodInfo]]) -> dict[str, Said]:
    """The same from the plugin itself, one row changed at a time."""
    found: dict[str, Said] = {}
    for row in cluster.rows().tolist():
        with cluster.dry_run_on_row(remove=gone[row], row=row):
            name = str(cluster.names[row])
            status = verdicts(plugin, cluster, pod).get(name)
            if status is not None:
                found[name] = (status.code.value, status.message)
    return found


def judged(plugin: Any, cluster: Cluster, pod: PodInfo, dice: Dice) -> tuple[list[dict[str, Said]], list[dict[str, Said]]]:
    """(by the judge, by the plugin row by row): pods leave many rows, and then one of them comes back on each."""
    state = CycleState()
    status = plugin.pre_filter(state, pod, cluster).status
    rows = cluster.rows().tolist()
    gone = {row: [each for each in cluster.pods_on(cluster.names[row]) if dice.maybe(0.7)] for row in rows}
    kept = {row: pods[1:] for row, pods in gone.items()}
    if status.rejected or status.code is Code.ERROR:
        return [], []  # nothing is tried in step then
    expected = [alone(plugin, cluster, pod, gone), alone(plugin, cluster, pod, kept)]
    if status.code is Code.SKIP:
        return [{}, {}], expected  # a plugin that skips a pod has nothing to say either when pods leave
    judge = plugin.judge(state, pod, cluster)
    with ExitStack() as stack:
        for row in rows:
            stack.enter_context(cluster.dry_run_on_row(remove=gone[row], row=row))
        found = [apart(judge, cluster)]
        for row in rows:
            stack.enter_context(cluster.dry_run_on_row(add=gone[row][:1], row=row))
        found.append(apart(judge, cluster))
    return found, expected


@settings(max_examples=cases(100))
@given(SEEDS)
def test_affinity_judges_a_row_as_if_it_alone_had_changed(seed: int) -> None:
    dice, world = Dice(seed), World()
    plugin = build(InterPodAffinity, world.cluster)
    populate(world, dice, affinity.any_spec)
    for _ in range(4):
        by_judge, by_plugin = judged(plugin, world.cluster, info(affinity.newcomer(dice)), dice)
        assert by_judge == by_plugin
        happen(world, dice, affinity.any_spec)


@pytest.mark.parametrize("version", ["1.36", "1.38"])
@settings(max_examples=cases(50))
@given(seed=SEEDS)
def test_spread_judges_a_row_as_if_it_alone_had_changed(version: str, seed: int) -> None:
    dice, world = Dice(seed), World()
    plugin = build(PodTopologySpread, world.cluster, compatibility=version)
    for name in ("n0", "n1", "n2", "n3", "n4", "n5"):
        world.set_node(dice.node(name))
    for uid in range(25):
        world.place(dice.pod(str(uid), {}), dice.choice([*world.nodes]))
    for _ in range(6):
        by_judge, by_plugin = judged(plugin, world.cluster, info(picky(dice)), dice)
        assert by_judge == by_plugin


def picky(dice: Dice) -> Body:
    """A newcomer that is never without hard constraints, and seldom with one that counts nobody."""
    new = spread.newcomer(dice)
    chosen = [{"matchLabels": {"app": "a"}}, {"matchExpressions": [{"key": "tier", "operator": "Exists"}]}, dice.selector()]
    hard = {"whenUnsatisfiable": "DoNotSchedule", "labelSelector": dice.choice(chosen), "matchLabelKeys": None}
    new["spec"]["topologySpreadConstraints"] = [spread.constraint(dice) | hard for _ in range(dice.choice((1, 1, 2)))]
    return new


@settings(max_examples=cases(100))
@given(SEEDS)
def test_limits_judge_a_row_as_if_it_alone_had_changed(seed: int) -> None:
    dice, world = Dice(seed), World()
    plugin = build(DomainLimit, world.cluster, domainlimit.arguments(dice))
    for name in ("n0", "n1", "n2", "n3", "n4", "n5"):
        world.set_node(dice.node(name))
    for uid in range(12):
        world.place(dice.pod(str(uid), {}), dice.choice([*world.nodes]))
    for _ in range(6):
        by_judge, by_plugin = judged(plugin, world.cluster, info(domainlimit.newcomer(dice)), dice)
        assert by_judge == by_plugin


@pytest.mark.parametrize("kind", [NodeVolumeLimits, VolumeBinding, VolumeRestrictions, VolumeZone])
@settings(max_examples=cases(100))
@given(seed=SEEDS)
def test_volume_plugins_judge_a_row_as_if_it_alone_had_changed(kind: type[Any], seed: int) -> None:
    dice, world = StorageDice(seed), World()
    plugin = build(kind, world.cluster)
    populate_storage(world, dice)
    for _ in range(8):
        happen_to_storage(world, dice)
        by_judge, by_plugin = judged(plugin, world.cluster, info(dice.pod_with_volumes("0")), dice)
        assert by_judge == by_plugin
