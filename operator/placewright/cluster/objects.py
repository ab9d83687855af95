"""Cluster objects that are neither nodes nor pods: kept as they are, read by the plugins that care."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from placewright.api.objects import (
    Namespace,
    PodDisruptionBudget,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)

#: The kinds kept here; the reflectors watch these.
ClusterObject = Namespace | Service | ReplicationController | ReplicaSet | StatefulSet | PodDisruptionBudget
KINDS: Final = (Namespace, Service, ReplicationController, ReplicaSet, StatefulSet, PodDisruptionBudget)
_NO_LABELS: Final[Mapping[str, str]] = {}


class ClusterObjects:
    """Namespaces, Services, workloads and disruption budgets, each keyed by `namespace/name` (namespaces by name).

    Attributes:
        version: grows with every change; a fingerprint for columns that read any of these.
    """

    def __init__(self) -> None:
        self.version = 0
        self.namespaces: dict[str, Namespace] = {}
        self.services: dict[str, Service] = {}
        self.replication_controllers: dict[str, ReplicationController] = {}
        self.replica_sets: dict[str, ReplicaSet] = {}
        self.stateful_sets: dict[str, StatefulSet] = {}
        self.disruption_budgets: dict[str, PodDisruptionBudget] = {}
        self._by_kind: dict[type[ClusterObject], dict[str, Any]] = {
            Namespace: self.namespaces,
            Service: self.services,
            ReplicationController: self.replication_controllers,
            ReplicaSet: self.replica_sets,
            StatefulSet: self.stateful_sets,
            PodDisruptionBudget: self.disruption_budgets,
        }

    def put(self, item: ClusterObject) -> None:
        """Add or replace an object."""
        self._by_kind[type(item)][_key(item)] = item
        self.version += 1

    def remove(self, item: ClusterObject) -> None:
        """Take an object away; unknown ones are no error."""
        if self._by_kind[type(item)].pop(_key(item), None) is not None:
            self.version += 1

    def namespace_labels(self, name: str) -> Mapping[str, str]:
        """Labels of a namespace; empty when it is unknown."""
        namespace = self.namespaces.get(name)
        return (namespace.metadata.labels if namespace else None) or _NO_LABELS


def _key(item: ClusterObject) -> str:
    meta = item.metadata
    return f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name
