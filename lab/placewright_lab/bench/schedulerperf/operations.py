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
        path: path of the file.
        text: one YAML document, with or without template actions.
    """

    path: Path
    text: str


@dataclass(frozen=True, slots=True)
class NodePreparation:
    """Additions to all nodes of one operation, besides their template. Upstream's strategies exclude each other.

    Attributes:
        allocatable: more allocatable resources, by name.
        csi_drivers: `spec.drivers[].allocatable` of each node's CSINode, by driver; None for no CSINode.
        migrated_plugins: names of in-tree plugins that the CSINode calls migrated.
        label_key, label_values: label with these values in turn.
        unique_label_key: label with another value on each node.
    """

    allocatable: Mapping[str, str] = field(default_factory=dict)
    csi_drivers: Mapping[str, Any] | None = None
    migrated_plugins: Sequence[str] = ()
    label_key: str = ""
    label_values: Sequence[str] = ()
    unique_label_key: str = ""


@dataclass(frozen=True, slots=True)
class CreateNodes:
    """Creates nodes, from a template or upstream's default (4 CPUs, 32 GiB, 110 pods)."""

    count: int
    template: Template | None = None
    preparation: NodePreparation = NodePreparation()


@dataclass(frozen=True, slots=True)
class CreateNamespaces:
    """Creates namespaces, named by a prefix and a number."""

    count: int
    prefix: str
    template: Template | None = None


@dataclass(frozen=True, slots=True)
class CreatePods:
    """Creates pods, as fast as the server accepts them.

    Attributes:
        namespace: namespace of the pods; empty for one of the operation's own.
        measured: True to measure the bindings of these pods.
        waits: True to wait until as many pods of the namespace are on nodes.
        volume, claim: templates of each pod's PersistentVolume and PersistentVolumeClaim, which are bound to each other.
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
    """Deletes the pods of a namespace, all at once or so many a second. `waits` means the same as in `CreatePods`."""

    namespace: str
    labels: Labels
    per_second: int = 0
    waits: bool = True


@dataclass(frozen=True, slots=True)
class Churn:
    """Creates objects every so many seconds beside the operations that follow. `recreate` deletes them again.

    Attributes:
        number: number of rounds, after which `recreate` deletes the oldest round; 0 for no end.
        namespace: namespace of the objects; empty for one of the operation's own.
    """

    templates: Sequence[Template]
    recreate: bool
    number: int
    seconds: float
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class CreateAny:
    """Creates objects of any served kind. A kind outside namespaces names no namespace."""

    template: Template
    count: int = 1
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class UpdateAny:
    """Writes existing objects and their status again, so many a second, or all at once for 0."""

    template: Template
    count: int = 1
    namespace: str = ""
    per_second: int = 0
    subresources: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Barrier:
    """Waits for pods that no operation has waited for. Without namespaces, it waits in all of them."""

    namespaces: Sequence[str] = ()
    labels: Labels = field(default_factory=dict)
    stage: SchedulingStage = SchedulingStage.SCHEDULED


@dataclass(frozen=True, slots=True)
class Sleep:
    """Waits so many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class StartCollectingMetrics:
    """Begins to measure the bindings of pods in these namespaces with these labels."""

    namespaces: Sequence[str]
    labels: Labels = field(default_factory=dict)
    name: str = ""


@dataclass(frozen=True, slots=True)
class StopCollectingMetrics:
    """Ends the measurement."""


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
    """A workload that can run.

    Attributes:
        name: `TestCase/workload`, the name in upstream's reports.
        operations: steps in their order.
        gates: feature gates of the API server and kube-scheduler.
        labels: upstream's labels of the test case and the workload, which only serve to choose workloads.
        threshold: upstream's published floor in pods a second; 0 if there is none.
        default_pod: template of pods for operations that name none.
        hostnames: True for nodes with the label `kubernetes.io/hostname`, like in later versions of upstream's harness.
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
        """Number of nodes that it creates."""
        return sum(each.count for each in self.operations if isinstance(each, CreateNodes))

    @property
    def pods(self) -> int:
        """Number of pods that it creates, without churn."""
        return sum(each.count for each in self.operations if isinstance(each, CreatePods))


@dataclass(frozen=True, slots=True)
class LeftOutWorkload:
    """A workload that does not run, and the thing in it that is unknown or missing."""

    name: str
    why: str
