"""Alibaba's trace of GPU-disaggregated recommendation models, as Kubernetes manifests.

It is one CSV file of instances (cluster-trace-gpu-v2025):

- `app_name` becomes the pod label `app`. `role` (CN: CPU node, HN: GPU node) becomes the pod label `dlrm/role` and a node selector on it.
- `cpu_request` (vCPUs), `memory_request` and `disk_request` (GiB) become requests. `gpu_request` becomes the extended resource `dlrm/gpu`,
  and `rdma_request` (percent of a network card) becomes `dlrm/rdma`.
- `max_instance_per_node` becomes the annotation of the plugin DomainLimit. -1, no limit, becomes nothing. Without the plugin in the profile
  the annotation changes nothing.
- The trace has no nodes. They come from other files, with the label `dlrm/role` and these resources.
- `read_times` reads the times, apart from the pods. An instance without a creation time was there before the trace began.
"""

from __future__ import annotations

import re
from typing import Final

from placewright.api.annotations import DOMAIN_LIMITS
from placewright.api.bad_input import bad_field
from placewright.offline.kinds import Manifest
from placewright_lab.readers.openb import TraceNames, TraceRow, TraceTimes, header, trace_pod, trace_rows

ROLE_LABEL: Final = "dlrm/role"
APP_LABEL: Final = "app"
GPU: Final = "dlrm/gpu"
RDMA: Final = "dlrm/rdma"
COLUMNS: Final = (
    "instance_sn", "role", "app_name", "cpu_request", "gpu_request", "rdma_request", "memory_request", "disk_request",
    "max_instance_per_node",
)  # fmt: skip
TIME_COLUMNS: Final = ("creation_time", "scheduled_time", "deletion_time")

_HOSTNAME: Final = "kubernetes.io/hostname"
_ROLES: Final = ("CN", "HN")
_UNLIMITED: Final = "-1"
_MOST_GPUS: Final = 1024
_MILLI: Final = 1000
_MIB: Final = 1024
#: Decimals of times in the file.
_AMOUNT: Final = re.compile(r"[0-9]{1,9}(\.[0-9]{1,20})?", re.ASCII)
#: Texts of times before the beginning or after the end of the trace.
_OUTSIDE: Final = ("", "nan")


def is_dlrm(text: str) -> bool:
    """Return True if the first line is the header of such a file."""
    return {"instance_sn", "max_instance_per_node"} <= set(header(text))


def read_pods(text: str, file: str) -> list[Manifest]:
    """Return the instances in the form of a POST. Raises `InputError` with file, line and column."""
    names = TraceNames("instance_sn")
    return [_pod(row, names) for row in trace_rows(text, file, COLUMNS)]


def read_times(text: str, file: str) -> dict[str, TraceTimes]:
    """Return when each pod came and left, by its name, if the file has times. Raises `InputError` with file, line and column."""
    if not set(TIME_COLUMNS) <= set(header(text)):
        return {}
    names = TraceNames("instance_sn")
    return {names.take(row): _times(row) for row in trace_rows(text, file, (*COLUMNS, *TIME_COLUMNS))}


def _pod(row: TraceRow, names: TraceNames) -> Manifest:
    role = row.cells["role"].strip()
    if role not in _ROLES:
        raise bad_field(row.at("role"), role, " or ".join(_ROLES))
    app = row.label_value("app_name", row.cells["app_name"].strip())
    devices = {GPU: row.number("gpu_request", most=_MOST_GPUS), RDMA: row.number("rdma_request")}
    extended = {name: str(amount) for name, amount in devices.items() if amount}
    requests = {
        "cpu": f"{_amount(row, 'cpu_request', _MILLI)}m",
        "memory": f"{_amount(row, 'memory_request', _MIB)}Mi",
        "ephemeral-storage": f"{_amount(row, 'disk_request', _MIB)}Mi",
    }
    pod = trace_pod(names.take(row), requests | extended, extended, {APP_LABEL: app, ROLE_LABEL: role})
    pod["spec"]["nodeSelector"] = {ROLE_LABEL: role}
    if row.cells["max_instance_per_node"].strip() != _UNLIMITED:
        most = row.number("max_instance_per_node", least=1)
        pod["metadata"]["annotations"] = {DOMAIN_LIMITS: f"{most} per {_HOSTNAME} of {APP_LABEL}"}
    return pod


def _amount(row: TraceRow, column: str, unit: int) -> int:
    """Return a decimal number from a cell, as a whole number of parts. A unit has `unit` parts."""
    text = row.cells[column].strip()
    if not _AMOUNT.fullmatch(text):
        raise bad_field(row.at(column), row.cells[column], "a number such as 120 or 937.5")
    return round(float(text) * unit)


def _times(row: TraceRow) -> TraceTimes:
    created, scheduled, deleted = (_time(row, column) for column in TIME_COLUMNS)
    if deleted is None:
        return TraceTimes(created or 0, None, None)
    began = scheduled or 0
    if deleted < began:
        raise bad_field(row.at("deletion_time"), row.cells["deletion_time"], f"a time not before the scheduled_time {began}")
    known = scheduled is not None or created is None
    return TraceTimes(created or 0, deleted, deleted - began if known else None)


def _time(row: TraceRow, column: str) -> int | None:
    """Return whole seconds of the trace, or None outside of it."""
    return None if row.cells[column].strip().lower() in _OUTSIDE else _amount(row, column, 1)
