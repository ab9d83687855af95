"""The steps of a workload of scheduler_perf, with their parameters filled in. Names and meanings of fields are upstream's.

A configuration's operations are converted into these structs as they are. A field that a struct lacks is refused by name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec

Labels = Mapping[str, str]
#: Any count of a workload. A larger one is an error of the configuration.
Count = Annotated[int, msgspec.Meta(ge=0, le=1_000_000)]
_USUAL_CHURN: Final = 500


class NotKnown(Exception):
    """A part of a workload is unknown here, or missing. The message is one line, and the workload is left out."""


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


class _Fields(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """An object of a configuration."""


class _Operation(_Fields, frozen=True, tag_field="opcode", tag=lambda name: name[0].lower() + name[1:]):
    """An operation of a configuration, which its `opcode` names."""


class LabelStrategy(_Fields, frozen=True):
    """Labels nodes with these values in turn."""

    label_key: str
    label_values: tuple[str, ...] = ()


class UniqueLabelStrategy(_Fields, frozen=True):
    """Labels each node with another value."""

    label_key: str


class AllocatableStrategy(_Fields, frozen=True):
    """Gives nodes more allocatable resources, and a CSINode.

    Attributes:
        node_allocatable: more allocatable resources, by name.
        csi_node_allocatable: `spec.drivers[].allocatable` of each node's CSINode, by driver.
        migrated_plugins: names of in-tree plugins that the CSINode calls migrated.
    """

    node_allocatable: dict[str, str] = {}
    csi_node_allocatable: dict[str, Any] = {}
    migrated_plugins: tuple[str, ...] = ()


class CreateNodes(_Operation, frozen=True):
    """Creates nodes, from a template or upstream's default (4 CPUs, 32 GiB, 110 pods). The three strategies exclude each other."""

    count: Count
    template: Template | None = msgspec.field(default=None, name="nodeTemplatePath")
    labelled: LabelStrategy | None = msgspec.field(default=None, name="labelNodePrepareStrategy")
    unique: UniqueLabelStrategy | None = msgspec.field(default=None, name="uniqueNodeLabelStrategy")
    allocatable: AllocatableStrategy | None = msgspec.field(default=None, name="nodeAllocatableStrategy")

    def __post_init__(self) -> None:
        if sum(each is not None for each in (self.labelled, self.unique, self.allocatable)) > 1:
            raise NotKnown("nodes are prepared by two strategies, which is not known")


class CreateNamespaces(_Operation, frozen=True):
    """Creates namespaces, named by a prefix and a number."""

    count: Count
    prefix: str
    template: Template | None = msgspec.field(default=None, name="namespaceTemplatePath")


class CreatePods(_Operation, frozen=True):
    """Creates pods, as fast as the server accepts them.

    Attributes:
        namespace: namespace of the pods; empty for one of the operation's own.
        collect_metrics: True to measure the bindings of these pods.
        skip_wait_to_completion: False to wait until as many pods of the namespace are on nodes.
        volume, claim: templates of each pod's PersistentVolume and PersistentVolumeClaim, which are bound to each other.
        duration: seconds of a steady state, without one of no meaning.
    """

    count: Count
    template: Template | None = msgspec.field(default=None, name="podTemplatePath")
    namespace: str = ""
    collect_metrics: bool = False
    skip_wait_to_completion: bool = False
    volume: Template | None = msgspec.field(default=None, name="persistentVolumeTemplatePath")
    claim: Template | None = msgspec.field(default=None, name="persistentVolumeClaimTemplatePath")
    steady_state: bool = False
    duration: float = 0.0

    def __post_init__(self) -> None:
        if self.steady_state:
            raise NotKnown("pods in a steady state (steadyState) are not known")
        if (self.volume is None) != (self.claim is None):
            raise NotKnown("a volume without a claim, or a claim without a volume, is not known")


class CreatePodSets(_Operation, frozen=True):
    """Stands for one `createPods` for each of so many namespaces, which are named by a prefix and a number."""

    count: Count
    create_pods_op: dict[str, Any]
    namespace_prefix: str = ""


class DeletePods(_Operation, frozen=True):
    """Deletes the pods of a namespace, all at once or so many a second, and waits for that or not."""

    namespace: str
    label_selector: dict[str, str] = {}
    delete_pods_per_second: Count = 0
    skip_wait_to_completion: bool = False


class Churn(_Operation, frozen=True):
    """Creates objects again and again beside the operations that follow. The mode `recreate` deletes them again.

    Attributes:
        number: number of rounds, after which `recreate` deletes the oldest round; 0 for no end.
        namespace: namespace of the objects; empty for one of the operation's own.
        interval_milliseconds: time between rounds; 0 for upstream's default.
    """

    mode: Literal["create", "recreate"]
    templates: Annotated[tuple[Template, ...], msgspec.Meta(min_length=1)] = msgspec.field(name="templatePaths")
    number: Count = 0
    namespace: str = ""
    interval_milliseconds: Count = 0

    def __post_init__(self) -> None:
        if self.recreate and not self.number:
            raise NotKnown("churn of mode recreate without a number is not known")

    @property
    def recreate(self) -> bool:
        """Whether each round replaces an older one."""
        return self.mode == "recreate"

    @property
    def seconds(self) -> float:
        """Time between rounds."""
        return (self.interval_milliseconds or _USUAL_CHURN) / 1000


class CreateAny(_Operation, frozen=True):
    """Creates objects of any served kind. A kind outside namespaces names no namespace."""

    template: Template = msgspec.field(name="templatePath")
    count: Count = 1
    namespace: str = ""


class UpdateAny(_Operation, frozen=True):
    """Writes existing objects and their status again, so many a second, or all at once for 0."""

    template: Template = msgspec.field(name="templatePath")
    count: Count = 1
    namespace: str = ""
    update_per_second: Count = 0
    subresources: tuple[str, ...] = ()


class Barrier(_Operation, frozen=True):
    """Waits for pods that no operation has waited for. Without namespaces, it waits in all of them."""

    namespaces: tuple[str, ...] = ()
    label_selector: dict[str, str] = {}
    stage: SchedulingStage = msgspec.field(default=SchedulingStage.SCHEDULED, name="stageRequirement")


class Sleep(_Operation, frozen=True):
    """Waits so many seconds."""

    duration: float


class StartCollectingMetrics(_Operation, frozen=True):
    """Begins to measure the bindings of pods in these namespaces with these labels."""

    namespaces: tuple[str, ...] = ()
    label_selector: dict[str, str] = {}
    name: str = ""


class StopCollectingMetrics(_Operation, frozen=True):
    """Ends the measurement."""


Operation = (
    CreateNodes
    | CreateNamespaces
    | CreatePods
    | CreatePodSets
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
