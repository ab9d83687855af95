"""Objects around pods, in a few words: namespaces, Services, the controllers that own pods, and disruption budgets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

from placewright.api.workloads import Namespace, PodDisruptionBudget, ReplicaSet, Service, StatefulSet
from placewright.testing.objectmaker import DELETED_AT, PlainMaker, T


class NamespaceMaker(PlainMaker[Namespace]):
    """Builds a Namespace step by step; see `namespace`."""

    kind = Namespace
    namespaced = False


def namespace(name: str) -> NamespaceMaker:
    """Begin a Namespace with the label that every API server gives it."""
    return NamespaceMaker(name).labels({"kubernetes.io/metadata.name": name})


class ServiceMaker(PlainMaker[Service]):
    """Builds a Service step by step; see `service`."""

    kind = Service

    def selects(self, labels: Mapping[str, str] | None = None, /, **more: str) -> Self:
        """Select pods with these labels."""
        return self.spec(selector={**(labels or {}), **more})


def service(name: str) -> ServiceMaker:
    """Begin a Service in the namespace `default` that selects nothing."""
    return ServiceMaker(name).spec()


class SelectingMaker(PlainMaker[T]):
    """Builds objects that select pods."""

    def selects(self, labels: Mapping[str, str] | None = None, /, **more: str) -> Self:
        """Select pods with these labels."""
        return self.spec(selector={"matchLabels": {**(labels or {}), **more}})


class ReplicaSetMaker(SelectingMaker[ReplicaSet]):
    """Builds a ReplicaSet step by step; see `replica_set`."""

    kind = ReplicaSet
    api_version = "apps/v1"


def replica_set(name: str) -> ReplicaSetMaker:
    """Begin a ReplicaSet in the namespace `default` that selects nothing; its pods name it with `owned_by`."""
    return ReplicaSetMaker(name).spec()


class StatefulSetMaker(SelectingMaker[StatefulSet]):
    """Builds a StatefulSet step by step; see `stateful_set`."""

    kind = StatefulSet
    api_version = "apps/v1"


def stateful_set(name: str) -> StatefulSetMaker:
    """Begin a StatefulSet in the namespace `default` that selects nothing; its pods name it with `owned_by`."""
    return StatefulSetMaker(name).spec(serviceName=name, template={})


class DisruptionBudgetMaker(SelectingMaker[PodDisruptionBudget]):
    """Builds a PodDisruptionBudget step by step; see `disruption_budget`.

    `selects` without labels protects all pods of the namespace.
    """

    kind = PodDisruptionBudget
    api_version = "policy/v1"

    def allows(self, disruptions: int) -> Self:
        """Allow so many evictions now."""
        return self.status(disruptionsAllowed=disruptions)

    def disrupted(self, *pods: str) -> Self:
        """Note that these pods, by name, are on their way out and counted already."""
        return self.status(disruptedPods=dict.fromkeys(pods, DELETED_AT))


def disruption_budget(name: str) -> DisruptionBudgetMaker:
    """Begin a PodDisruptionBudget in the namespace `default` that protects nothing and allows no eviction."""
    return DisruptionBudgetMaker(name).spec()
