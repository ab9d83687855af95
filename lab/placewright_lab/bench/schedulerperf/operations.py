"""The steps of a workload of scheduler_perf, with their parameters filled in. Names and meanings of fields are upstream's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

Labels = Mapping[str, str]


class SchedulingStage(StrEnum):
    """The stage of scheduling that a barrier waits for."""

    SCHEDULED = "Scheduled"
    ATTEMPTED = "Attempted"


@dataclass(frozen=True, slots=True)
class Template:
    """A file that describes objects.

    Attributes:
        path: where it is.
        text: of one YAML document, with template actions or without.
    """

    path: Path
    text: str


@dataclass(frozen=True, slots=True)
class NodePreparation:
    """Additions to all nodes of one operation beside their template; at most one of upstream's strategies.

    Attributes:
        allocatable: beside the template's, by resource.
        csi_drivers: `spec.drivers[].allocatable` of a CSINode that each node gets, by driver; None for no CSINode.
        migrated_plugins: in-tree plugins that the CSINode says were migrated.
        label_key, label_values: a label with these values in turn.
        unique_label_key: a label with another value for each node.
    """

    allocatable: Mapping[str, str] = field(default_factory=dict)
    csi_drivers: Mapping[str, Any] | None = None
    migrated_plugins: Sequence[str] = ()
    label_key: str = ""
    label_values: Sequence[str] = ()
    unique_label_key: str = ""


@dataclass(frozen=True, slots=True)
class CreateNodes:
    """Nodes, from a template or upstream's default (4 CPUs, 32 GiB, 110 pods)."""

    count: int
    template: Template | None = None
    preparation: NodePreparation = NodePreparation()


@dataclass(frozen=True, slots=True)
class CreateNamespaces:
    """Namespaces named by a prefix and a number."""

    count: int
    prefix: str
    template: Template | None = None


@dataclass(frozen=True, slots=True)
class CreatePods:
    """Pods, as fast as they are accepted.

    Attributes:
        namespace: empty for one of the operation's own.
        measured: whether their bindings are what is measured.
        waits: whether the next operation begins only when as many pods of the namespace are on nodes.
        volume, claim: templates of a PersistentVolume and its PersistentVolumeClaim for each pod, bound to each other.
    """

    count: int
    template: Template | None = None
    namespace: str = ""
    measured: bool = False
    waits: bool = True
    volume: Template | None = None
    claim: Template | None = None


@dataclass(frozen=True, slots=True)
class DeletePods:
    """Deletes the pods of a namespace, all at once or so many a second; `waits` as in `CreatePods`."""

    namespace: str
    labels: Labels
    per_second: int = 0
    waits: bool = True


@dataclass(frozen=True, slots=True)
class Churn:
    """Objects that come (and, with `recreate`, go again) every so many seconds beside the operations that follow.

    Attributes:
        number: of rounds; with `recreate`, after so many they go again. 0: no end.
        namespace: empty for one of the operation's own.
    """

    templates: Sequence[Template]
    recreate: bool
    number: int
    seconds: float
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class CreateAny:
    """Objects of any kind that the API server serves; no namespace for kinds that have none."""

    template: Template
    count: int = 1
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class UpdateAny:
    """Writes existing objects and their status again, so many a second, or at once for 0."""

    template: Template
    count: int = 1
    namespace: str = ""
    per_second: int = 0
    subresources: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Barrier:
    """Waits for the pods that were not waited for. No namespaces: all that have such pods."""

    namespaces: Sequence[str] = ()
    labels: Labels = field(default_factory=dict)
    stage: SchedulingStage = SchedulingStage.SCHEDULED


@dataclass(frozen=True, slots=True)
class Sleep:
    """Waits so many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class StartCollectingMetrics:
    """From here on bindings of pods in these namespaces with these labels are measured."""

    namespaces: Sequence[str]
    labels: Labels = field(default_factory=dict)
    name: str = ""


@dataclass(frozen=True, slots=True)
class StopCollectingMetrics:
    """Until here."""


Operation = (
    CreateNodes
    | CreateNamespaces
    | CreatePods
    | DeletePods
    | Churn
    | CreateAny
    | UpdateAny
    | Barrier
    | Sleep
    | StartCollectingMetrics
    | StopCollectingMetrics
)


@dataclass(frozen=True, slots=True)
class PerfWorkload:
    """One workload that can be run.

    Attributes:
        name: `TestCase/workload`, as upstream's reports name it.
        operations: one after the other.
        gates: feature gates that the API server and kube-scheduler are started with.
        labels: of the test case and the workload, upstream's and without meaning here but for choosing.
        threshold: upstream's published floor in pods a second, where there is one; 0 without.
        default_pod: what pods are made from where an operation names no template.
        hostnames: whether nodes get the label `kubernetes.io/hostname`, as later versions of upstream's harness set it.
    """

    name: str
    operations: Sequence[Operation]
    gates: Mapping[str, bool] = field(default_factory=dict)
    labels: Sequence[str] = ()
    threshold: float = 0.0
    default_pod: Template | None = None
    hostnames: bool = True

    @property
    def nodes(self) -> int:
        """How many it creates."""
        return sum(each.count for each in self.operations if isinstance(each, CreateNodes))

    @property
    def pods(self) -> int:
        """The number of pods that it creates, without churn."""
        return sum(each.count for each in self.operations if isinstance(each, CreatePods))


@dataclass(frozen=True, slots=True)
class LeftOutWorkload:
    """A workload that is not run, and the thing in it that is unknown or missing."""

    name: str
    why: str
