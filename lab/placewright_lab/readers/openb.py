"""Traces in CSV files: rows with their place for messages, cells as numbers and names, and the times of pods.

The public openb trace format (two CSV files: nodes and pods) as Kubernetes manifests.

Some of it has no native form, and the mapping loses information:

- GPUs become one extended resource, `openb/gpu-milli`: a thousand for each GPU of a node, `num_gpu * gpu_milli` for a pod. A share of a GPU
  has no native form. So the sum over a node's GPUs stays, but not the GPU of each pod. Two halves on two GPUs look like one free GPU. The
  plugin DeviceFragmentation tells the GPUs apart again.
- `model` becomes the node label `openb/gpu-model`. `gpu_spec` (`A|B`) becomes required node affinity on that label.
- `qos` becomes the pod label `openb/qos`.
- The trace does not tell how many pods a node takes, so every node takes `PODS_PER_NODE`.
- `read_times` reads the times, apart from the pods. Phases are not used.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from placewright.api.bad_input import InputError, bad_field
from placewright.api.requests import is_extended_resource
from placewright.offline.kinds import Manifest

#: A kubelet's default limit of pods on a node, because traces have no limit.
PODS_PER_NODE: Final = 110
#: The namespace of a trace's pods.
NAMESPACE: Final = "default"
IMAGE: Final = "registry.k8s.io/pause:3.10"

_LARGEST: Final = 10**12
_LABEL_VALUE: Final = re.compile(r"([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?")


class TraceTimes(NamedTuple):
    """The times of a pod, in seconds of the trace.

    Attributes:
        created: time at which it came.
        deleted: time at which it left, or None.
        runs: seconds for which it ran; None for a pod that was never scheduled, or never left.
    """

    created: int
    deleted: int | None
    runs: int | None


class TraceRow(NamedTuple):
    """One line of a CSV file, with its place for error messages."""

    file: str
    line: int
    cells: Mapping[str, str]

    def at(self, column: str) -> str:
        """Return the place of a cell for a message."""
        return f"{self.file}: line {self.line}, column {column}"

    def number(self, column: str, *, least: int = 0, most: int = _LARGEST) -> int:
        """Return a whole number from a cell. Raises `InputError` for other text."""
        text = self.cells[column].strip()
        value = int(text) if text.isascii() and text.isdigit() and len(text) < 20 else least - 1
        if not least <= value <= most:
            raise bad_field(self.at(column), self.cells[column], f"a whole number from {least} to {most}")
        return value

    def label_value(self, column: str, text: str) -> str:
        """Return text that can be a label's value. Raises `InputError` for other text."""
        if not _LABEL_VALUE.fullmatch(text):
            raise bad_field(self.at(column), text, "at most 63 letters, digits, '-', '_' and '.', as in a label")
        return text


class TraceNames:
    """Object names from the trace's names, each used once."""

    def __init__(self, column: str) -> None:
        self._column = column
        self._line_of: dict[str, int] = {}

    def take(self, row: TraceRow) -> str:
        """Return the DNS-safe name of this row. Raises `InputError` if it is empty, too long or taken."""
        text = row.cells[self._column]
        name = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
        if not name or len(name) > 63:
            raise bad_field(row.at(self._column), text, "a name of 1 to 63 characters with at least one letter or digit")
        if (line := self._line_of.setdefault(name, row.line)) != row.line:
            raise bad_field(row.at(self._column), text, f"a name used once; line {line} has it (as {name})")
        return name


def header(text: str) -> list[str]:
    """Return the columns that the first line names."""
    first = text.removeprefix("\ufeff").lstrip().partition("\n")[0]
    return [cell.strip() for cell in first.split(",")]


def trace_rows(text: str, file: str, columns: Sequence[str]) -> Iterator[TraceRow]:
    """Read the lines under the header. Raises `InputError` for a missing column, or a line with more or fewer cells."""
    reader = csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""), strict=True)
    wanted = "a first line with the columns " + ",".join(columns)
    try:
        named = [cell.strip() for cell in next(reader, [])]
        if missing := [c for c in columns if c not in named]:
            raise bad_field(f"{file}: line 1, column {missing[0]}", ",".join(named) or None, wanted)
        count = 0
        for cells in reader:
            if not cells:
                continue
            if len(cells) != len(named):
                raise bad_field(f"{file}: line {reader.line_num}", f"{len(cells)} columns", f"{len(named)}, as in line 1")
            count += 1
            yield TraceRow(file, reader.line_num, dict(zip(named, cells, strict=True)))
    except csv.Error as error:
        raise InputError(f"{file}: line {reader.line_num}: not CSV: {error}") from None
    if not count:
        raise bad_field(f"{file}: line 2", None, "at least one row under the header")


def trace_pod(name: str, requests: Mapping[str, str], limits: Mapping[str, str], labels: Mapping[str, str]) -> dict[str, Any]:
    """Return a pod of one container in the form of a POST."""
    resources: dict[str, Any] = {"requests": dict(requests)}
    if limits:
        resources["limits"] = dict(limits)
    spec: dict[str, Any] = {"containers": [{"name": "main", "image": IMAGE, "resources": resources}]}
    metadata = {"name": name, "namespace": NAMESPACE, "labels": dict(labels)}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


GPU_MILLI: Final = "openb/gpu-milli"
GPU_MODEL_LABEL: Final = "openb/gpu-model"
QOS_LABEL: Final = "openb/qos"
NODE_COLUMNS: Final = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
POD_COLUMNS: Final = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec", "qos")
TIME_COLUMNS: Final = ("creation_time", "deletion_time", "scheduled_time")

_MOST_GPUS: Final = 1024


def is_openb(text: str) -> bool:
    """Return True if the first line looks like the header of an openb file rather than like YAML."""
    first = text.removeprefix("\ufeff").lstrip().partition("\n")[0]
    return "," in first and ":" not in first and {"cpu_milli", "memory_mib", "sn"} & set(header(text)) != set()


def read_nodes(text: str, file: str) -> list[Manifest]:
    """Return the nodes of `openb_node_list_*.csv` in the form of a POST. Raises `InputError` with file, line and column."""
    names = TraceNames("sn")
    return [_node(row, names) for row in trace_rows(text, file, NODE_COLUMNS)]


def read_pods(text: str, file: str) -> list[Manifest]:
    """Return the pods of `openb_pod_list_*.csv` in the form of a POST. Raises `InputError` with file, line and column."""
    names = TraceNames("name")
    return [_pod(row, names) for row in trace_rows(text, file, POD_COLUMNS)]


def is_node_list(text: str) -> bool:
    """Return whether this file of a trace's two files has the nodes."""
    return "sn" in header(text)


def read_times(text: str, file: str) -> dict[str, TraceTimes]:
    """Return when each pod came and left, by its name, if the file has times. Raises `InputError` with file, line and column."""
    if not set(TIME_COLUMNS) <= set(header(text)):
        return {}
    names = TraceNames("name")
    return {names.take(row): _times(row) for row in trace_rows(text, file, (*POD_COLUMNS, *TIME_COLUMNS))}


def node_manifest(name: str, *, cpu_milli: int, memory_mib: int, gpus: int = 0, model: str = "") -> Manifest:
    """Return a ready node with these resources. `gpus` are whole GPUs."""
    labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    resources = {"cpu": f"{cpu_milli}m", "memory": f"{memory_mib}Mi", "pods": str(PODS_PER_NODE)}
    if model:
        labels[GPU_MODEL_LABEL] = model
    if gpus:
        resources[GPU_MILLI] = str(gpus * 1000)
    status = {"capacity": resources, "allocatable": dict(resources), "conditions": [{"type": "Ready", "status": "True"}]}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": status}


def pod_manifest(
    name: str, *, cpu_milli: int, memory_mib: int, gpu_milli: int = 0, models: Sequence[str] = (), labels: Mapping[str, str]
) -> Manifest:
    """Return a pod of one container. `gpu_milli` counts thousandths of a GPU, and `models` are the accepted GPU models."""
    devices = {GPU_MILLI: str(gpu_milli)} if gpu_milli else {}
    pod = trace_pod(name, {"cpu": f"{cpu_milli}m", "memory": f"{memory_mib}Mi", **devices}, devices, labels)
    if models:
        pod["spec"]["affinity"] = {"nodeAffinity": _require_model(models)}
    return pod


def _require_model(models: Sequence[str]) -> Manifest:
    expression = {"key": GPU_MODEL_LABEL, "operator": "In", "values": list(models)}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    return {"requiredDuringSchedulingIgnoredDuringExecution": terms}


def _times(row: TraceRow) -> TraceTimes:
    created = row.number("creation_time")
    deleted, scheduled = (
        row.number(column, least=created) if row.cells[column].strip() else None for column in ("deletion_time", "scheduled_time")
    )
    if deleted is None or scheduled is None:
        return TraceTimes(created, deleted, None)
    return TraceTimes(created, deleted, row.number("deletion_time", least=scheduled) - scheduled)


def _node(row: TraceRow, names: TraceNames) -> Manifest:
    model = row.cells["model"].strip()
    return node_manifest(
        names.take(row),
        cpu_milli=row.number("cpu_milli"),
        memory_mib=row.number("memory_mib"),
        gpus=row.number("gpu", most=_MOST_GPUS),
        model=row.label_value("model", model),
    )


def _pod(row: TraceRow, names: TraceNames) -> Manifest:
    name = names.take(row)
    qos = row.label_value("qos", row.cells["qos"].strip())
    return pod_manifest(
        name,
        cpu_milli=row.number("cpu_milli"),
        memory_mib=row.number("memory_mib"),
        gpu_milli=_gpu_milli(row),
        models=_models(row),
        labels={"app": "openb", **({QOS_LABEL: qos} if qos else {})},
    )


def _gpu_milli(row: TraceRow) -> int:
    count = row.number("num_gpu", most=_MOST_GPUS)
    if count == 0:
        return row.number("gpu_milli", most=0)
    return count * row.number("gpu_milli", least=1, most=1000)


def _models(row: TraceRow) -> list[str]:
    spec = row.cells["gpu_spec"].strip()
    if not spec:
        return []
    models = [row.label_value("gpu_spec", part.strip()) for part in spec.split("|")]
    if "" in models:
        raise bad_field(row.at("gpu_spec"), spec, "GPU models with | between them, as in A|B, or nothing")
    return list(dict.fromkeys(models))


# --- which resources are GPUs, in this trace and elsewhere ---


def is_gpu(resource: str) -> bool:
    """Return whether a resource counts GPUs, such as `nvidia.com/gpu` or `gpu.intel.com/xe`. The names have no more in common."""
    return is_extended_resource(resource) and "gpu" in resource


def whole_gpus(resource: str, amount: float) -> float:
    """Convert the trace's thousandths of GPUs to whole ones, the unit of all other inputs."""
    return amount / 1000 if resource == GPU_MILLI else amount


def gpus_in(amounts: Mapping[str, int]) -> float:
    """Return the number of GPUs in these amounts by resource."""
    return sum(whole_gpus(resource, amount) for resource, amount in amounts.items() if is_gpu(resource))
