"""Objects around pods, in a few words: namespaces, Services, the controllers that own pods, disruption budgets, and groups of pods.

Groups are Kubernetes' own PodGroup, and the one of scheduler-plugins.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from placewright.api.podgroups import (
    COSCHEDULING_GROUP,
    KIND,
    NATIVE_GROUP,
    PREFERRED,
    REQUIRED,
    TOPOLOGY_KEY,
    TOPOLOGY_MODE,
    CoschedulingPodGroup,
    NativePodGroup,
)
from placewright.api.workloads import Namespace, PodDisruptionBudget, ReplicaSet, Service, StatefulSet
from placewright.testing.objectmaker import DELETED_AT, PlainMaker, T


class NamespaceMaker(PlainMaker[Namespace]):
    """Builds a Namespace step by step; see `namespace`."""

    namespaced = False


def namespace(name: str) -> NamespaceMaker:
    """Begin a Namespace with the label that every API server gives it."""
    return NamespaceMaker(name).labels({"kubernetes.io/metadata.name": name})


class ServiceMaker(PlainMaker[Service]):
    """Builds a Service step by step; see `service`."""

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

    api_version = "apps/v1"


def replica_set(name: str) -> ReplicaSetMaker:
    """Begin a ReplicaSet in the namespace `default` that selects nothing; its pods name it with `owned_by`."""
    return ReplicaSetMaker(name).spec()


class StatefulSetMaker(SelectingMaker[StatefulSet]):
    """Builds a StatefulSet step by step; see `stateful_set`."""

    api_version = "apps/v1"


def stateful_set(name: str) -> StatefulSetMaker:
    """Begin a StatefulSet in the namespace `default` that selects nothing; its pods name it with `owned_by`."""
    return StatefulSetMaker(name).spec(serviceName=name, template={})


class DisruptionBudgetMaker(SelectingMaker[PodDisruptionBudget]):
    """Builds a PodDisruptionBudget step by step; see `disruption_budget`.

    `selects` without labels protects all pods of the namespace.
    """

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


class PodGroupMaker(PlainMaker[NativePodGroup]):
    """Builds a PodGroup of Kubernetes step by step; see `pod_group`."""

    _kind_name = KIND
    api_version = f"{NATIVE_GROUP}/v1alpha2"

    def members(self, least: int) -> Self:
        """Place so many members together or none (the policy `gang`)."""
        return self.spec(schedulingPolicy={"gang": {"minCount": least}})

    def basic(self) -> Self:
        """Place members one by one; they only belong together (the policy `basic`)."""
        return self.spec(schedulingPolicy={"basic": {}})

    def topology(self, key: str) -> Self:
        """Require one domain of this node label for all members."""
        return self.spec(schedulingConstraints={"topology": [{"key": key}]})

    def disruption(self, mode: str) -> Self:
        """Set what may be evicted at a time: `Pod` or `PodGroup`."""
        return self.spec(disruptionMode=mode)

    def priority(self, priority: int) -> Self:
        """Set the group's own priority, which goes before its members'."""
        return self.spec(priority=priority)


def pod_group(name: str, members: int = 1) -> PodGroupMaker:
    """Begin a PodGroup of Kubernetes' own (scheduling.k8s.io) in the namespace `default`.

    Args:
        name: the name that members use; see `PodMaker.in_group`.
        members: so many are placed together or none.

    Returns:
        The group's maker.

    Example:
        pod_group("train", 8).topology("rack").build()
    """
    return PodGroupMaker(name).members(members)


class CoschedulingGroupMaker(PlainMaker[CoschedulingPodGroup]):
    """Builds a PodGroup of scheduler-plugins step by step; see `coscheduling_group`."""

    _kind_name = KIND
    api_version = f"{COSCHEDULING_GROUP}/v1alpha1"

    def members(self, least: int) -> Self:
        """Place so many members together or none."""
        return self.spec(minMember=least)

    def timeout(self, seconds: int) -> Self:
        """Let members wait for each other so long."""
        return self.spec(scheduleTimeoutSeconds=seconds)

    def topology(self, key: str, *, required: bool = True) -> Self:
        """Place all members in one domain of a node label.

        Args:
            key: the node label's.
            required: whether members wait for a domain that holds all of them, or only prefer one.

        Returns:
            A new maker; this one stays as it is.
        """
        asked: dict[str, Any] = {TOPOLOGY_KEY: key, TOPOLOGY_MODE: REQUIRED if required else PREFERRED}
        return self.annotations(asked)


def coscheduling_group(name: str, members: int = 1) -> CoschedulingGroupMaker:
    """Begin a PodGroup of scheduler-plugins (scheduling.x-k8s.io) in the namespace `default`.

    Args:
        name: the name that members use; see `PodMaker.in_coscheduling_group`.
        members: so many are placed together or none.

    Returns:
        The group's maker.

    Example:
        coscheduling_group("train", 8).timeout(60).build()
    """
    return CoschedulingGroupMaker(name).members(members)
