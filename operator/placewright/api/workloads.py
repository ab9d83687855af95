"""The objects around pods: namespaces, services, controllers that own pods, and disruption budgets. The rules of `api.objects` hold."""

from __future__ import annotations

from typing import Annotated

from placewright.api.objects import KubeObject, Labels, LabelSelector, ObjectMeta
from placewright.api.writers import Writer


class Namespace(KubeObject, frozen=True):
    """A namespace: its labels matter to pod affinity."""

    metadata: Annotated[ObjectMeta, Writer.OWNER] = ObjectMeta()


class SelectorSpec(KubeObject, frozen=True):
    """`spec.selector` of a workload."""

    selector: LabelSelector | None = None


class SelectingWorkload(KubeObject, frozen=True):
    """The shared part of ReplicaSets and StatefulSets: a selector that spreads their pods by default."""

    metadata: Annotated[ObjectMeta, Writer.TENANT] = ObjectMeta()
    spec: Annotated[SelectorSpec, Writer.TENANT] = SelectorSpec()


class ReplicaSet(SelectingWorkload, frozen=True):
    """A ReplicaSet."""


class StatefulSet(SelectingWorkload, frozen=True):
    """A StatefulSet."""


class MapSelectorSpec(KubeObject, frozen=True):
    """`spec.selector` of a Service or ReplicationController: plain pairs."""

    selector: Labels | None = None


class Service(KubeObject, frozen=True):
    """A Service: its selector spreads pods by default."""

    metadata: Annotated[ObjectMeta, Writer.TENANT] = ObjectMeta()
    spec: Annotated[MapSelectorSpec, Writer.TENANT] = MapSelectorSpec()


class ReplicationController(Service, frozen=True):
    """A ReplicationController: it selects as a Service does."""


class DisruptionBudgetSpec(KubeObject, frozen=True):
    """`spec` of a PodDisruptionBudget."""

    selector: LabelSelector | None = None


class DisruptionBudgetStatus(KubeObject, frozen=True):
    """`status` of a PodDisruptionBudget."""

    disruptions_allowed: int = 0
    disrupted_pods: dict[str, str] | None = None


class PodDisruptionBudget(KubeObject, frozen=True):
    """A budget that preemption tries to respect."""

    metadata: Annotated[ObjectMeta, Writer.TENANT] = ObjectMeta()
    spec: Annotated[DisruptionBudgetSpec, Writer.TENANT] = DisruptionBudgetSpec()
    status: Annotated[DisruptionBudgetStatus, Writer.CONTROL_PLANE] = DisruptionBudgetStatus()
