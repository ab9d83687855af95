"""Makers for the framework's tests: nodes and pods in a few words, a cluster under a profile, and plugins that do as they are told."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from placewright.api.annotations import DEVICES
from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.interface import Handle, Plugin
from placewright.framework.registry import Registry
from placewright.framework.runtime.columnbudget import ColumnBudget
from placewright.framework.runtime.evaluation import Evaluation, Evaluator, PluginScore
from placewright.framework.runtime.handle import ProfileHandle
from placewright.framework.runtime.resolvedprofile import ResolvedProfile
from placewright.framework.runtime.rowchecks import NoNominations
from placewright.plugins.catalog import in_tree
from placewright.profiles.config import read_profiles
from placewright.profiles.resolve import resolve
from placewright.testing import built
from placewright.testing.plugincase import AnyNode, AnyPod

Body = dict[str, Any]


def names(cluster: Cluster, rows: NDArray[Any]) -> set[str]:
    """Names of the nodes in these rows (a mask, or indices)."""
    indices = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
    return {str(cluster.names[row]) for row in indices}


@lru_cache(maxsize=256)
def resolved(spec: bytes, plugins: tuple[type[Plugin], ...]) -> ResolvedProfile:
    """A profile of the default scheduler's pods with this spec, in JSON; kept, for nobody writes into it."""
    document: Body = {"apiVersion": "placewright.dev/v1alpha1", "kind": "SchedulingProfile", "metadata": {"name": "p"}}
    document["spec"] = {"schedulerName": "default-scheduler", **msgspec.json.decode(spec)}
    return resolve(read_profiles(document, "test")[0], Registry(plugins))


@dataclass
class Scene(NoNominations):
    """A cluster under a profile; it is its own source of nominations."""

    extra: tuple[type[Plugin], ...] = ()
    spec: Body = field(default_factory=dict)
    registry: Registry = field(default_factory=in_tree)
    cluster: Cluster = field(default_factory=Cluster)
    nominated: dict[NodeName, list[PodInfo]] = field(default_factory=dict)
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

    def handle(self) -> Handle:
        """A handle as plugins get it."""
        return self.evaluator().runtime.queue_sort.handle

    def evaluator(self, budget: ColumnBudget | None = None) -> Evaluator:
        """The profile's plugins around this cluster."""
        registry = self.registry.extended(self.extra)
        profile = resolved(msgspec.json.encode(self.spec), tuple(registry.values()))
        return ProfileHandle(self.cluster, nominations=self, budget=budget).evaluator(profile, registry)

    def parts(self, evaluator: Evaluator, evaluation: Evaluation) -> dict[str, dict[str, PluginScore]]:
        """By node that fits, by plugin; `score` was called before."""
        rows = np.flatnonzero(evaluation.feasible)
        found = evaluator.breakdown(evaluation, rows)
        return {str(self.cluster.names[row]): {plugin: scores[i] for plugin, scores in found.items()} for i, row in enumerate(rows)}
