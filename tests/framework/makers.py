"""Makers for the framework's tests: nodes and pods in a few words, a cluster under a profile, and plugins that do as they are told."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from placewright.api.annotations import DEVICES
from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.interface import Handle, Plugin
from placewright.framework.preemption.evictions import Evictions
from placewright.framework.registry import Registry
from placewright.framework.runtime.columnbudget import ColumnBudget
from placewright.framework.runtime.evaluation import Evaluation, Evaluator, PluginScore
from placewright.framework.runtime.handle import ProfileHandle
from placewright.framework.runtime.rowchecks import NoNominations
from placewright.testing import built, profile
from placewright.testing.plugincase import AnyNode, AnyPod
from placewright.testing.profiles import registry_with

Body = dict[str, Any]


def names(cluster: Cluster, rows: NDArray[Any]) -> set[str]:
    """Names of the nodes in these rows (a mask, or indices)."""
    indices = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
    return {str(cluster.names[row]) for row in indices}


@dataclass
class Scene(NoNominations):
    """A cluster under a profile; it is its own source of nominations."""

    extra: tuple[type[Plugin], ...] = ()
    spec: Body = field(default_factory=dict)
    cluster: Cluster = field(default_factory=Cluster)
    nominated: dict[NodeName, list[PodInfo]] = field(default_factory=dict)
    evictions: Evictions | None = None
    #: Nobody logs what becomes of `nominated`, so nothing may be kept.
    with_terms: int = 1

    def node_of(self, uid: str) -> NodeName | None:
        return next((node for node, pods in self.nominated.items() if uid in [pod.uid for pod in pods]), None)

    def nodes(self) -> Collection[NodeName]:
        return self.nominated.keys()

    def pods_on(self, node: NodeName) -> Collection[PodInfo]:
        return self.nominated.get(node, [])

    def claimants(self) -> list[tuple[PodInfo, NodeName]]:
        return [(pod, node) for node, pods in self.nominated.items() for pod in pods]

    def with_nodes(self, *nodes: AnyNode) -> Scene:
        """Add nodes."""
        for one in nodes:
            self.cluster.set_node(built(one))
        return self

    def place(self, pod: AnyPod, node: str) -> Scene:
        """Assume a pod onto a node; a pod with a note of its devices is bound there."""
        info = built(pod)
        if DEVICES in (info.pod.metadata.annotations or ()):
            self.cluster.set_pod(info.on(NodeName(node)))
        else:
            self.cluster.assume(info, NodeName(node))
        return self

    @property
    def registry(self) -> Registry:
        """The plugins of the tree, and the extra ones."""
        return registry_with(self.extra)

    def handle(self) -> Handle:
        """A handle as plugins get it."""
        return self.evaluator().runtime.queue_sort.handle

    def evaluator(self, budget: ColumnBudget | None = None) -> Evaluator:
        """The profile's plugins around this cluster."""
        handle = ProfileHandle(self.cluster, nominations=self, budget=budget, evictions=self.evictions)
        return handle.evaluator(profile("p").generation(0).spec(**self.spec).resolved(*self.extra), self.registry)

    def parts(self, evaluator: Evaluator, evaluation: Evaluation) -> dict[str, dict[str, PluginScore]]:
        """By node that fits, by plugin; `score` was called before."""
        rows = np.flatnonzero(evaluation.feasible)
        found = evaluator.breakdown(evaluation, rows)
        return {str(self.cluster.names[row]): {plugin: scores[i] for plugin, scores in found.items()} for i, row in enumerate(rows)}
