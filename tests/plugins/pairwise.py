"""Runs one plugin on a cluster, as the framework would: for the tests of the two plugins that look at other pods."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from placewright.api.objects import Node, Pod
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.cluster.objects import KINDS
from placewright.framework.interface import CycleState
from placewright.framework.status import Code, Status
from placewright.plugins.interpodaffinity import InterPodAffinity
from placewright.plugins.podtopologyspread import PodTopologySpread

Pairwise = PodTopologySpread | InterPodAffinity


@dataclass
class FakeHandle:
    """The part of the scheduler that these plugins ask for."""

    cluster: Cluster


def build(kind: type[Any], cluster: Cluster, args: Mapping[str, Any] | None = None) -> Any:
    """The plugin, with arguments as a profile would write them."""
    return kind(msgspec.convert(dict(args or {}), kind.Args), FakeHandle(cluster))


def load(objects: list[dict[str, Any]]) -> Cluster:
    """A cluster of these objects."""
    kinds = {kind.__name__: kind for kind in KINDS}
    cluster = Cluster()
    for body in objects:
        kind = body["kind"]
        if kind == "Node":
            cluster.set_node(msgspec.convert(body, Node))
        elif kind == "Pod":
            pod = PodInfo(msgspec.convert(body, Pod))
            if pod.node_name and not pod.finished:
                cluster.set_pod(pod)
        elif kind in kinds:
            cluster.objects.put(msgspec.convert(body, kinds[kind]))
    return cluster


def verdicts(plugin: Pairwise, cluster: Cluster, pod: PodInfo) -> dict[str, Status]:
    """Why the plugin rejects a node, by name; nodes that it allows are absent. Holds Filter and explain together."""
    state, rows = CycleState(), cluster.rows()
    status = plugin.pre_filter(state, pod, cluster).status
    if status.code is Code.SKIP:
        return {}
    if not status.ok:
        return {str(cluster.names[row]): status for row in rows}
    rejected = rows[~plugin.filter(state, pod, cluster, rows)]
    said = {
        str(cluster.names[row]): verdict
        for verdict, group in plugin.explain(state, pod, cluster, rejected)
        for row in group
    }
    assert set(said) == {cluster.names[row] for row in rejected}
    return said


def scores(plugin: Pairwise, cluster: Cluster, pod: PodInfo, feasible: list[str]) -> dict[str, int]:
    """Normalised scores of the feasible nodes by name; empty when the plugin skips."""
    state = CycleState()
    rows = np.array([row for row in cluster.rows() if cluster.names[row] in set(feasible)], np.intp)
    status = plugin.pre_score(state, pod, cluster, rows)
    if status.code is Code.SKIP:
        return {}
    assert status.ok, status
    raw = plugin.score(state, pod, cluster, rows)
    normal = plugin.normalise(state, raw, plugin.summarise(state, raw))
    return {str(cluster.names[row]): int(score) for row, score in zip(rows, normal, strict=True)}
