"""Cluster objects that are neither nodes nor pods: kept as they are, read by the plugins that care."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from placewright.api.objects import Namespace, PodDisruptionBudget, Service, Workload

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
        self.replication_controllers: dict[str, Service] = {}
        self.replica_sets: dict[str, Workload] = {}
        self.stateful_sets: dict[str, Workload] = {}
        self.disruption_budgets: dict[str, PodDisruptionBudget] = {}

    def changed(self) -> None:
        """Must be called by whoever wrote to one of the maps."""
        self.version += 1

    def namespace_labels(self, name: str) -> Mapping[str, str]:
        """Labels of a namespace; empty when it is unknown."""
        namespace = self.namespaces.get(name)
        return (namespace.metadata.labels if namespace else None) or _NO_LABELS
