"""For tests of plugins: pods and nodes in a few words, and a cluster on which one plugin is asked, as the scheduler would ask it.

What the plugin raises, answers wrongly, or writes into objects that it is shown, raises `PluginError`, which names the plugin and the
extension point. This module is public: it changes only with a note in the changelog.

Example:
    from placewright.testing import PluginCase, node, pod

    def test_nodes_with_few_pods_are_better():
        case = PluginCase(QuietNodes, nodes=[node("a"), node("b")], pods=[pod("other", on="a")])
        assert case.scores(pod("web")) == {"a": 99, "b": 100}
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from placewright.api.decode import convert
from placewright.api.objects import Node, NodeName, Pod
from placewright.api.pods import PodInfo
from placewright.api.profile import SchedulingProfile
from placewright.cluster.cluster import Cluster
from placewright.framework.interface import (
    CycleState,
    FilterPlugin,
    Plugin,
    PreFilterPlugin,
    PreScorePlugin,
    Rows,
    ScorePlugin,
)
from placewright.framework.runtime.failures import PluginFailures
from placewright.framework.runtime.guard import Guarding
from placewright.framework.runtime.handle import NoBinder, build_evaluator
from placewright.framework.runtime.podcolumns import check_range
from placewright.framework.runtime.rowchecks import NoNominations
from placewright.framework.status import Code
from placewright.plugins.catalog import in_tree
from placewright.profiles.resolve import resolve


def pod(
    name: str,
    *,
    on: str = "",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    cpu: str = "",
    memory: str = "",
    **spec: Any,
) -> PodInfo:
    """A pod as plugins get it, in the namespace `default`.

    Args:
        name: its name, which is its uid, too.
        on: the node that it stands on; empty for one that waits.
        labels: its labels.
        annotations: its annotations.
        cpu: requested, such as `500m`.
        memory: requested, such as `1Gi`.
        spec: other fields of the spec, as in a manifest: `pod("web", nodeSelector={"disk": "ssd"})`.
    """
    requests = {resource: amount for resource, amount in (("cpu", cpu), ("memory", memory)) if amount}
    container = {"name": "main", "image": "main", "resources": {"requests": requests}}
    meta = {"name": name, "namespace": "default", "uid": name, "labels": dict(labels or {}), "annotations": dict(annotations or {})}
    return PodInfo(convert({"metadata": meta, "spec": {"containers": [container], "nodeName": on, **spec}}, Pod))


def node(
    name: str,
    *,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    spec: Mapping[str, Any] | None = None,
    **offers: str,
) -> Node:
    """A node with 4 CPUs, 16 GiB and room for 110 pods unless `offers` says otherwise (`cpu="8"`); `spec` as in a manifest."""
    meta = {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}, "annotations": dict(annotations or {})}
    status = {"allocatable": {"cpu": "4", "memory": "16Gi", "pods": "110", **offers}}
    return convert({"metadata": meta, "spec": dict(spec or {}), "status": status}, Node)


class PluginCase:
    """One plugin on a small cluster.

    Attributes:
        plugin: built as the scheduler builds it, and watched; for calls of other extension points, such as `case.plugin.reserve(…)`.
        cluster: what it is shown.
    """

    def __init__(
        self, plugin: type[Plugin], *, args: Mapping[str, Any] | None = None, nodes: Iterable[Node] = (), pods: Iterable[PodInfo] = ()
    ) -> None:
        """Build the plugin.

        Args:
            plugin: its class.
            args: as `pluginConfig` of a profile would give them; checked likewise.
            nodes: the cluster's.
            pods: on nodes.

        Raises:
            ProfileError: the arguments are wrong.
            PluginBuildError: its constructor raises.
        """
        self.cluster = Cluster()
        for each in nodes:
            self.cluster.set_node(each)
        for standing in pods:
            self.cluster.set_pod(standing)
        registry = in_tree().extended([plugin])
        config = [] if args is None else [{"name": plugin.name, "args": dict(args)}]
        spec = {"schedulerName": "test", "plugins": {"multiPoint": {"enabled": [{"name": plugin.name}]}}, "pluginConfig": config}
        profile = resolve(convert({"metadata": {"name": "test", "generation": 1}, "spec": spec}, SchedulingProfile), registry)
        guarding = Guarding(untouched=True)
        evaluator = build_evaluator(profile, registry, self.cluster, NoBinder(), NoNominations(), guarding=guarding)
        self.plugin: Any = evaluator.runtime.plugin(plugin.name)

    def rejections(self, pod: PodInfo) -> dict[str, str]:
        """By node, why the plugin rejects the pod there; nodes that it lets pass are left out. Raises `PluginError`."""
        state = CycleState()
        left = self._rows()
        told: dict[str, str] = {}
        if isinstance(self.plugin, PreFilterPlugin):
            result = self.plugin.pre_filter(state, pod, self.cluster)
            if result.status.code is Code.SKIP:
                return {}
            if not result.status.ok:
                return {self._name(row): result.status.message for row in left}
            if result.nodes is not None:
                told = {self._name(row): "is none of the nodes that PreFilter names" for row in left if self._name(row) not in result.nodes}
                left = np.array([row for row in left.tolist() if self._name(row) not in told], np.intp)
        if isinstance(self.plugin, FilterPlugin) and len(left):
            rejected = left[~self.plugin.filter(state, pod, self.cluster, left)]
            groups = self.plugin.explain(state, pod, self.cluster, rejected) if len(rejected) else []
            told |= {self._name(row): status.message for status, rows in groups for row in rows}
        return told

    def scores(self, pod: PodInfo) -> dict[str, int]:
        """By node, 0 to 100, after normalising over all nodes; empty when PreScore skips. Raises `PluginError`."""
        state, rows = CycleState(), self._rows()
        if isinstance(self.plugin, PreFilterPlugin):
            self.plugin.pre_filter(state, pod, self.cluster)
        if isinstance(self.plugin, PreScorePlugin) and not self.plugin.pre_score(state, pod, self.cluster, rows).ok:
            return {}
        if not isinstance(self.plugin, ScorePlugin):
            return {}
        raw = self.plugin.score(state, pod, self.cluster, rows)
        summary = self.plugin.summarise(state, raw)
        final = raw if summary is None else self.plugin.normalise(state, raw, summary)
        check_range(self.plugin, final, PluginFailures())
        return {self._name(row): score for row, score in zip(rows, final.tolist(), strict=True)}

    def _rows(self) -> Rows:
        return np.flatnonzero(self.cluster.present)

    def _name(self, row: int) -> NodeName:
        name = self.cluster.names[row]
        assert name is not None  # rows that hold nodes
        return name
