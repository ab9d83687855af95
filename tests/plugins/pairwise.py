"""Runs one plugin on a cluster, as the framework would: for the tests of plugins that look at other pods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
import numpy as np

from placewright import testing as kit
from placewright.api.compatibility import AUTO
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.interface import CycleState, FilterPlugin, PreScorePlugin, ScorePlugin
from placewright.framework.runtime.handle import ProfileHandle
from placewright.framework.status import SUCCESS, Code, Status
from placewright.offline.world import world_from
from placewright.plugins.catalog import in_tree
from placewright.plugins.domainlimit.plugin import DomainLimit
from placewright.plugins.interpodaffinity.plugin import InterPodAffinity
from placewright.plugins.podtopologyspread.plugin import PodTopologySpread
from placewright.testing.nodes import NodeMaker
from placewright.testing.objectmaker import ObjectMaker
from placewright.testing.pods import PodMaker

Pairwise = PodTopologySpread | InterPodAffinity | DomainLimit


def build(kind: type[Any], cluster: Cluster, args: Mapping[str, Any] | None = None, compatibility: str = AUTO) -> Any:
    """The plugin, with arguments as a profile would write them."""
    handle = ProfileHandle(cluster)
    handle.evaluator(kit.profile("test").only().spec(compatibility=compatibility).resolved(), in_tree())
    return kind(msgspec.convert(dict(args or {}), kind.Args), handle)


def a_node(name: str, **labels: str) -> NodeMaker:
    """A node with these labels, and no others."""
    return NodeMaker(name).labels(labels)


def a_pod(name: str, on: str = "", app: str = "web", namespace: str = "home", **spec: Any) -> PodMaker:
    """A pod with the label `app`; its uid is its name."""
    return kit.pod(name, on=on, labels={"app": app}, **spec).namespace(namespace).uid(name)


def load(objects: Iterable[ObjectMaker[Any] | dict[str, Any]]) -> Cluster:
    """A cluster of these objects; pods that are on no node, or finished, are left out."""
    manifests = (each.manifest if isinstance(each, ObjectMaker) else each for each in objects)
    return world_from(manifests, "test").cluster


def verdicts(plugin: Pairwise, cluster: Cluster, pod: PodInfo) -> dict[str, Status]:
    """Why the plugin rejects a node, by name; nodes that it allows are absent. Holds Filter and explain together."""
    state, rows = CycleState(), cluster.rows()
    status = plugin.pre_filter(state, pod, cluster).status
    if status.code is Code.SKIP:
        return {}
    if not status.ok:
        return {str(cluster.names[row]): status for row in rows}
    return rejections(plugin, state, cluster, pod)


def rejections(plugin: FilterPlugin, state: CycleState, cluster: Cluster, pod: PodInfo) -> dict[str, Status]:
    """Why Filter rejects a node, by name. Holds Filter and explain together; PreFilter was asked before."""
    rows = cluster.rows()
    rejected = rows[~plugin.filter(state, pod, cluster, rows)]
    explained = plugin.explain(state, pod, cluster, rejected) if len(rejected) else ()
    said = {str(cluster.names[row]): verdict for verdict, group in explained for row in group}
    assert set(said) == {cluster.names[row] for row in rejected}
    return said


def scores(plugin: ScorePlugin, cluster: Cluster, pod: PodInfo, feasible: list[str]) -> dict[str, int]:
    """Final scores of the feasible nodes by name; empty when the plugin skips."""
    state = CycleState()
    rows = np.array([row for row in cluster.rows() if cluster.names[row] in set(feasible)], np.intp)
    status = plugin.pre_score(state, pod, cluster, rows) if isinstance(plugin, PreScorePlugin) else SUCCESS
    if status.code is Code.SKIP:
        return {}
    assert status.ok, status
    raw = plugin.score(state, pod, cluster, rows)
    summary = plugin.summarise(state, raw)
    final = raw if summary is None else plugin.normalise(state, raw, summary)
    return {str(cluster.names[row]): int(score) for row, score in zip(rows, final, strict=True)}
