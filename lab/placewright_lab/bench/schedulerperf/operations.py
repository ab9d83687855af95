"""The steps of a workload of scheduler_perf, with their parameters filled in. Names and meanings of fields are upstream's.

The fields of one operation of a configuration. Each is read once, and an unread field is refused by name. Pure functions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from placewright.api.bad_input import in_json
from placewright.api.durations import seconds

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


_MOST: Final = 1_000_000


class NotKnown(Exception):
    """A part of a workload is unknown here, or missing. The message is one line, and the workload is left out."""


class Parameters:
    """A workload's values for `$name`. A value that nothing reads is an error, like upstream."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values
        self._used: set[str] = set()

    def get(self, reference: object, where: str) -> object:
        """Return the value of `$name`."""
        name = reference.removeprefix("$") if isinstance(reference, str) else ""
        if not isinstance(reference, str) or not reference.startswith("$") or name not in self._values:
            raise NotKnown(f"{where} is {in_json(reference)}, which names no parameter of the workload")
        self._used.add(name)
        return self._values[name]

    def check(self) -> None:
        """Raise `NotKnown` for unread values."""
        if unused := sorted(self._values.keys() - self._used):
            raise NotKnown(f"the parameter {unused[0]} is not used by any operation")


class TemplateFiles:
    """Reader of templates. Their paths begin in the configuration's folder or, until 1.32, in the folder above."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[str, Template] = {}

    def get(self, path: object, where: str) -> Template:
        """Return the template at this path."""
        if not isinstance(path, str):
            raise NotKnown(f"{where} is {in_json(path)}, which is no path")
        if path not in self._read:
            self._read[path] = self._open(path, where)
        return self._read[path]

    def _open(self, path: str, where: str) -> Template:
        for folder in (self._folder, self._folder.parent):
            file = folder / path
            if file.is_file():
                return Template(file, file.read_text(encoding="utf-8"))
        raise NotKnown(f"{where} names {path}, which is not there")


class OpFields:
    """The fields of one operation, or of an object in one."""

    def __init__(self, fields: object, where: str, parameters: Parameters, files: TemplateFiles) -> None:
        if not isinstance(fields, dict):
            raise NotKnown(f"{where} is {in_json(fields)}, which is no object")
        self._left = dict(fields)
        self._where = where
        self._parameters = parameters
        self._files = files

    def text(self, name: str, default: str | None = None) -> str:
        """Return a text, which must be there if it has no default."""
        found = self._left.pop(name, default)
        if not isinstance(found, str):
            raise self._wrong(name, found, "a text")
        return found

    def flag(self, name: str) -> bool:
        """Return a flag, false if it is missing. `nameParam` may name a parameter instead."""
        found = self._given(name, default=False)
        if not isinstance(found, bool):
            raise self._wrong(name, found, "true or false")
        return found

    def number(self, name: str, default: int | None = None) -> int:
        """Return a whole number, or `nameParam` with a parameter's name."""
        found = self._given(name, default)
        if isinstance(found, float) and found.is_integer():
            found = int(found)
        if isinstance(found, bool) or not isinstance(found, int) or not 0 <= found <= _MOST:
            raise self._wrong(name, found, f"a whole number from 0 to {_MOST}")
        return found

    def duration(self, name: str) -> float:
        """Return the seconds of a duration in Go's form, or of `nameParam`."""
        found = self._given(name, None)
        read = seconds(found) if isinstance(found, str) else None
        if read is None:
            raise self._wrong(name, found, "a duration")
        return read

    def template(self, name: str) -> Template | None:
        """Return the template that the field names, or None."""
        found = self._left.pop(name, None)
        return None if found is None else self._files.get(found, f"{self._where}.{name}")

    def needed_template(self, name: str) -> Template:
        """Return the template that the field must name."""
        return self._files.get(self._left.pop(name, None), f"{self._where}.{name}")

    def templates(self, name: str) -> list[Template]:
        """Return the templates that the field must name, at least one."""
        paths = self._left.pop(name, None)
        if not isinstance(paths, list) or not paths:
            raise self._wrong(name, paths, "a list of paths")
        return [self._files.get(path, f"{self._where}.{name}") for path in paths]

    def texts(self, name: str) -> Sequence[str]:
        """Return a list of texts, empty if it is missing."""
        found = self._left.pop(name, None) or []
        if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
            raise self._wrong(name, found, "a list of texts")
        return tuple(found)

    def mapping(self, name: str) -> dict[str, Any]:
        """Return an object, empty if it is missing."""
        found = self._left.pop(name, None) or {}
        if not isinstance(found, dict):
            raise self._wrong(name, found, "an object")
        return found

    def inner(self, name: str) -> OpFields | None:
        """Return an object's own fields, or None if it is missing."""
        found = self._left.pop(name, None)
        return None if found is None else OpFields(found, f"{self._where}.{name}", self._parameters, self._files)

    def take(self, name: str) -> object:
        """Return a field's value of any type, or None if it is missing."""
        return self._left.pop(name, None)

    def finish(self) -> None:
        """Raise `NotKnown` for unread fields."""
        if self._left:
            raise NotKnown(f"{self._where} has the field {min(self._left)}, which is not known")

    def _given(self, name: str, default: object) -> object:
        """Return the field's value or its parameter's. Like in upstream's code, the parameter comes first."""
        value = self._left.pop(name, default)
        reference = self._left.pop(f"{name}Param", None)
        return value if reference is None else self._parameters.get(reference, f"{self._where}.{name}Param")

    def _wrong(self, name: str, found: object, allowed: str) -> NotKnown:
        return NotKnown(f"{self._where}.{name} is {in_json(found)} where {allowed} should be")
