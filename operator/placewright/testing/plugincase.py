"""One plugin on a small cluster, asked as the scheduler would ask it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import wraps
from typing import Any

import numpy as np

from placewright.api.compatibility import AUTO
from placewright.api.objects import Node, NodeName
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.cluster.objects import ClusterObject
from placewright.framework.interface import (
    CycleState,
    FilterPlugin,
    Plugin,
    PreFilterPlugin,
    PreScorePlugin,
    ScorePlugin,
)
from placewright.framework.runtime.calllimit import CALL_SECONDS, limited_calls
from placewright.framework.runtime.guard import Guarding, PluginFailures
from placewright.framework.runtime.handle import ProfileHandle
from placewright.framework.runtime.podcolumns import check_range
from placewright.framework.status import Code
from placewright.testing.objectmaker import PlainMaker
from placewright.testing.pods import PodMaker
from placewright.testing.profiles import profile, registry_with, require_plugin

#: The kit takes makers wherever it takes objects.
AnyPod = PodInfo | PodMaker
AnyNode = Node | PlainMaker[Node]
AnyObject = ClusterObject | PlainMaker[Any]


class PluginCase:
    """One plugin on a small cluster.

    Calls of the plugin are checked. An exception, an answer of the wrong shape, or a write into a shown object raises `PluginError`. The
    error names the plugin and the extension point.

    Attributes:
        plugin: built as the scheduler builds it; for other extension points: `case.plugin.reserve(state, pod("web"), "a")`.
        cluster: the columns that the plugin is shown.

    Example:
        case = PluginCase(QuietNodes, args={"most": 2}, nodes=[node("a"), node("b")], pods=[pod("p1").on("a")])
        assert case.scores(pod("web")) == {"a": 99, "b": 100}
    """

    def __init__(
        self,
        plugin: type[Plugin],
        *,
        args: Mapping[str, Any] | None = None,
        nodes: Iterable[AnyNode] = (),
        pods: Iterable[AnyPod] = (),
        objects: Iterable[AnyObject] = (),
        compatibility: str = AUTO,
        call_seconds: float | None = CALL_SECONDS,
    ) -> None:
        """Build the plugin on a cluster.

        Args:
            plugin: its class.
            args: arguments as in a profile's `pluginConfig`; checked likewise.
            nodes: the cluster's.
            pods: pods on these nodes.
            objects: everything else in the cluster: volumes, Services, claims to devices.
            compatibility: value of `spec.compatibility`, for a plugin that asks `Handle.in_force`.
            call_seconds: that one call of the plugin may take before `PluginError` ends it; None for no limit, as under a debugger.

        Raises:
            TypeError: `plugin` is no class of a plugin.
            ProfileError: the arguments are wrong.
            PluginBuildError: the plugin's constructor raises.
        """
        require_plugin(plugin)
        self._call_seconds = call_seconds
        self.cluster = Cluster()
        for each in nodes:
            self.cluster.set_node(built(each))
        for standing in pods:
            self.cluster.set_pod(built(standing))
        for item in objects:
            self.cluster.objects.put(built(item))
        # A whole profile, so that arguments are checked and defaults are merged as for the scheduler.
        made = profile("test").spec(compatibility=compatibility).enable(plugin)
        if args is not None:
            made = made.args(plugin, **args)
        handle = ProfileHandle(self.cluster, guarding=Guarding(untouched=True))
        with limited_calls(call_seconds):
            evaluator = handle.evaluator(made.resolved(plugin), registry_with([plugin]))
        self._plugin: Any = evaluator.runtime.plugin(plugin.name)
        self.plugin: Any = _TakingMakers(self._plugin, call_seconds)

    def rejections(self, pod: AnyPod) -> dict[str, str]:
        """Ask PreFilter, Filter and explain.

        Args:
            pod: waits; a pod on a node of the cluster is not taken off it.

        Returns:
            By name of each node that the plugin rejects, the reason; nodes that it lets pass are left out.

        Raises:
            PluginError: the plugin breaks its contract.

        Example:
            assert case.rejections(pod("web")) == {"a": "node(s) had too many pods"}
        """
        with limited_calls(self._call_seconds):
            return self._rejections(built(pod))

    def _rejections(self, info: PodInfo) -> dict[str, str]:
        state, left = CycleState(), self.cluster.rows()
        told: dict[str, str] = {}
        if isinstance(self._plugin, PreFilterPlugin):
            result = self._plugin.pre_filter(state, info, self.cluster)
            # After SKIP the framework does not ask `filter`, so no node is rejected.
            if result.status.code is Code.SKIP:
                return {}
            if not result.status.ok:
                return {self._name(row): result.status.message for row in left}
            if result.nodes is not None:
                told = {self._name(row): "is none of the nodes that PreFilter names" for row in left if self._name(row) not in result.nodes}
                left = np.array([row for row in left.tolist() if self._name(row) not in told], np.intp)
        if isinstance(self._plugin, FilterPlugin) and len(left):
            rejected = left[~self._plugin.filter(state, info, self.cluster, left)]
            groups = self._plugin.explain(state, info, self.cluster, rejected) if len(rejected) else []
            told |= {self._name(row): status.message for status, rows in groups for row in rows}
        return told

    def scores(self, pod: AnyPod) -> dict[str, int]:
        """Ask PreFilter, PreScore and Score on all nodes, and normalise. No node is filtered out beforehand.

        Args:
            pod: waits; a pod on a node of the cluster is not taken off it.

        Returns:
            By node, the score from 0 to 100; empty when PreScore skips.

        Raises:
            PluginError: the plugin breaks its contract.
            CycleError: a score is out of range.
        """
        with limited_calls(self._call_seconds):
            return self._scores(built(pod))

    def _scores(self, info: PodInfo) -> dict[str, int]:
        state, rows = CycleState(), self.cluster.rows()
        if isinstance(self._plugin, PreFilterPlugin):
            self._plugin.pre_filter(state, info, self.cluster)
        if isinstance(self._plugin, PreScorePlugin) and not self._plugin.pre_score(state, info, self.cluster, rows).ok:
            return {}
        if not isinstance(self._plugin, ScorePlugin):
            return {}
        raw = self._plugin.score(state, info, self.cluster, rows)
        summary = self._plugin.summarise(state, raw)
        final = raw if summary is None else self._plugin.normalise(state, raw, summary)
        # The scheduler checks the range as well: a score beyond it would outweigh all other plugins.
        check_range(self._plugin, final, PluginFailures())
        return {self._name(row): score for row, score in zip(rows, final.tolist(), strict=True)}

    def _name(self, row: int) -> NodeName:
        return NodeName(self.cluster.node(row).metadata.name)


def built(thing: Any) -> Any:
    """Build the object of a maker. Any other value is returned as it is.

    Example:
        def fill(cluster: Cluster, *nodes: Node | NodeMaker) -> None:
            for each in nodes:
                cluster.set_node(built(each))
    """
    return thing.build() if isinstance(thing, (PodMaker, PlainMaker)) else thing


class _TakingMakers:
    """A plugin whose methods also take makers, and are handed what these build."""

    def __init__(self, plugin: Any, call_seconds: float | None) -> None:
        self._plugin = plugin
        self._call_seconds = call_seconds

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._plugin, name)
        if not callable(method):
            return method

        @wraps(method)
        def call(*args: Any, **kwargs: Any) -> Any:
            with limited_calls(self._call_seconds):
                return method(*map(built, args), **{name: built(value) for name, value in kwargs.items()})

        return call
