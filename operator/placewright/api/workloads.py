"""The objects around pods: namespaces, services, controllers that own pods, and disruption budgets. The rules of `api.objects` hold."""

from __future__ import annotations

from typing import Annotated

from placewright.api.objects import KubeObject, Labels, LabelSelector, OwnerObject, TenantObject
from placewright.api.writers import Writer


class Namespace(OwnerObject, frozen=True):
    """A namespace: its labels matter to pod affinity."""


class SelectorSpec(KubeObject, frozen=True):
    """`spec.selector` of a workload."""

    selector: LabelSelector | None = None


class SelectingWorkload(TenantObject, frozen=True):
    """An object that selects pods by labels. ReplicaSets and StatefulSets spread the selected pods by default."""

    spec: Annotated[SelectorSpec, Writer.TENANT] = SelectorSpec()


class ReplicaSet(SelectingWorkload, frozen=True):
    """A ReplicaSet."""


class StatefulSet(SelectingWorkload, frozen=True):
    """A StatefulSet."""


class MapSelectorSpec(KubeObject, frozen=True):
    """`spec.selector` of a Service or ReplicationController: plain pairs."""

    selector: Labels | None = None


class Service(TenantObject, frozen=True):
    """A Service: its selector spreads pods by default."""

    spec: Annotated[MapSelectorSpec, Writer.TENANT] = MapSelectorSpec()


class ReplicationController(Service, frozen=True):
    """A ReplicationController: it selects as a Service does."""


class DisruptionBudgetStatus(KubeObject, frozen=True):
    """`status` of a PodDisruptionBudget."""

    disruptions_allowed: int = 0
    disrupted_pods: dict[str, str] | None = None


class PodDisruptionBudget(SelectingWorkload, frozen=True):
    """A budget that preemption tries to respect."""

    status: Annotated[DisruptionBudgetStatus, Writer.CONTROL_PLANE] = DisruptionBudgetStatus()
