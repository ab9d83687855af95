"""The columns in which `kubectl get` shows each kind, and how a cell is computed from an object."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from kubesandbox.ages import age, duration, seconds_of
from kubesandbox.jsonpath import JsonPath, JsonPathError
from kubesandbox.podcells import pod_ready, pod_restarts, pod_status
from kubesandbox.shapes import Object

Cell = Callable[[Object, float], Any]
"""Computes one cell from an object and the present time (seconds since the epoch)."""

NONE = "<none>"


@dataclass(frozen=True, slots=True)
class Column:
    """One column: `priority` 1 shows it with `-o wide` only."""

    name: str
    cell: Cell
    kind: str = "string"
    priority: int = 0
    format: str = ""
    description: str = ""

    def definition(self) -> Object:
        """The column as a Table declares it."""
        return {
            "name": self.name,
            "type": self.kind,
            "format": self.format,
            "description": self.description or self.name,
            "priority": self.priority,
        }


def columns_of(kind: str, printer_columns: Sequence[Mapping[str, Any]] | None) -> Sequence[Column]:
    """The columns of a kind; `printer_columns` are the additionalPrinterColumns of a custom resource."""
    if printer_columns:
        return (_NAME, *(_printer_column(each) for each in printer_columns))
    return _BUILTIN.get(kind, _DEFAULT)


def _printer_column(declared: Mapping[str, Any]) -> Column:
    kind = str(declared.get("type", "string"))
    try:
        path: JsonPath | None = JsonPath(str(declared.get("jsonPath", "")))
    except JsonPathError:
        path = None

    def cell(obj: Object, now: float) -> Any:
        found = path.find(obj) if path else []
        return _printed(found[0], kind, now) if found else None

    return Column(
        str(declared.get("name", "")),
        cell,
        kind,
        int(declared.get("priority", 0)),
        str(declared.get("format", "")),
        str(declared.get("description", "")),
    )


def _printed(value: Any, kind: str, now: float) -> Any:
    """A value as a column of the declared type shows it; nothing for a value of another type."""
    if kind == "date":
        return age(value, now)
    if kind in ("integer", "number"):
        return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None
    if kind == "boolean":
        return value if isinstance(value, bool) else None
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def _at(*path: str, default: Any = "") -> Cell:
    """A cell with the value found by going down `path`."""

    def cell(obj: Object, _now: float) -> Any:
        value: Any = obj
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        return default if value is None else value

    return cell


def _age_of(*path: str) -> Cell:
    at = _at(*path)
    return lambda obj, now: age(at(obj, now), now)


def _fraction(have: Cell, want: Cell) -> Cell:
    return lambda obj, now: f"{have(obj, now)}/{want(obj, now)}"


def _count(path: str, default: int = 0) -> Cell:
    return _at(*path.split("."), default=default)


def _texts(items: Any, name: str) -> str:
    return ",".join(str(item.get(name, "")) for item in items or [] if isinstance(item, dict)) or NONE


def _labels(labels: Mapping[str, Any] | None) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted((labels or {}).items())) or NONE


def _template(obj: Object) -> list[Object]:
    spec = (obj.get("spec") or {}).get("template") or {}
    return list((spec.get("spec") or {}).get("containers") or [])


def _selector(obj: Object, _now: float) -> str:
    selector = (obj.get("spec") or {}).get("selector") or {}
    shown = _labels(selector.get("matchLabels", selector if "matchExpressions" not in selector else {}))
    more = [
        f"{each.get('key')} {str(each.get('operator')).lower()} ({','.join(each.get('values') or [])})"
        for each in selector.get("matchExpressions") or []
    ]
    return ",".join([*([] if shown == NONE else [shown]), *more]) or NONE


def _node_status(obj: Object, _now: float) -> str:
    conditions = (obj.get("status") or {}).get("conditions") or []
    ready = next((each.get("status") for each in conditions if each.get("type") == "Ready"), None)
    words = ["Unknown" if ready is None else "Ready" if ready == "True" else "NotReady"]
    if (obj.get("spec") or {}).get("unschedulable"):
        words.append("SchedulingDisabled")
    return ",".join(words)


def _node_roles(obj: Object, _now: float) -> str:
    prefix, found = "node-role.kubernetes.io/", set()
    for label, value in ((obj.get("metadata") or {}).get("labels") or {}).items():
        if label.startswith(prefix) and label != prefix:
            found.add(label.removeprefix(prefix))
        elif label == "kubernetes.io/role" and value:
            found.add(value)
    return ",".join(sorted(found)) or NONE


def _address(kind: str) -> Cell:
    def cell(obj: Object, _now: float) -> str:
        addresses = (obj.get("status") or {}).get("addresses") or []
        return next((str(each.get("address")) for each in addresses if each.get("type") == kind), NONE)

    return cell


def _job_status(obj: Object, _now: float) -> str:
    conditions = (obj.get("status") or {}).get("conditions") or []
    holding = {each.get("type") for each in conditions if each.get("status") == "True"}
    if "Complete" in holding or "Failed" in holding:
        return "Complete" if "Complete" in holding else "Failed"
    if (obj.get("metadata") or {}).get("deletionTimestamp"):
        return "Terminating"
    return "Suspended" if "Suspended" in holding else "Running"


def _job_duration(obj: Object, now: float) -> str:
    status = obj.get("status") or {}
    start, end = seconds_of(status.get("startTime")), seconds_of(status.get("completionTime"))
    return "" if start is None else duration(max(0, int((now if end is None else end) - start)))


def _service_ports(obj: Object, _now: float) -> str:
    ports = (obj.get("spec") or {}).get("ports") or []
    shown = (
        f"{port.get('port')}{':' + str(port['nodePort']) if port.get('nodePort') else ''}/{port.get('protocol', 'TCP')}"
        for port in ports
    )
    return ",".join(shown) or NONE


def _event_seen(obj: Object, now: float) -> str:
    series = obj.get("series") or {}
    last = series.get("lastObservedTime") or obj.get("lastTimestamp") or obj.get("eventTime")
    return age(last or (obj.get("metadata") or {}).get("creationTimestamp"), now)


def _event_object(obj: Object, _now: float) -> str:
    target = obj.get("involvedObject") or obj.get("regarding") or {}
    return f"{str(target.get('kind', '')).lower()}/{target.get('name', '')}"


def _event_source(obj: Object, _now: float) -> str:
    source = obj.get("source") or obj.get("deprecatedSource") or {}
    named = source.get("component") or obj.get("reportingComponent") or obj.get("reportingController") or ""
    return ", ".join(filter(None, [named, source.get("host")]))


def _event_message(obj: Object, _now: float) -> str:
    return str(obj.get("message") or obj.get("note") or "").strip()


def _claim_state(obj: Object, _now: float) -> str:
    status, ending = obj.get("status") or {}, bool((obj.get("metadata") or {}).get("deletionTimestamp"))
    words = ["deleted"] if ending else []
    if status.get("allocation"):
        words += ["allocated", "reserved"] if status.get("reservedFor") else ["allocated"]
    elif not ending:
        words.append("pending")
    return ",".join(words)


def _nominated(obj: Object, _now: float) -> str:
    return str((obj.get("status") or {}).get("nominatedNodeName") or NONE)


def _gates(obj: Object, _now: float) -> str:
    gates = [gate.get("conditionType") for gate in (obj.get("spec") or {}).get("readinessGates") or []]
    conditions = (obj.get("status") or {}).get("conditions") or []
    met = [c for c in conditions if c.get("type") in gates and c.get("status") == "True"]
    return f"{len(met)}/{len(gates)}" if gates else NONE


def _data_count(obj: Object, _now: float) -> int:
    return len(obj.get("data") or {}) + len(obj.get("binaryData") or {})


def _wide(*columns: Column) -> tuple[Column, ...]:
    return tuple(Column(c.name, c.cell, c.kind, 1, c.format, c.description) for c in columns)


_NAME = Column("Name", _at("metadata", "name"), format="name")
_AGE = Column("Age", _age_of("metadata", "creationTimestamp"))
_DEFAULT = (_NAME, _AGE)
_WORKLOAD = _wide(
    Column("Containers", lambda obj, _: _texts(_template(obj), "name")),
    Column("Images", lambda obj, _: _texts(_template(obj), "image")),
)
_SELECTOR = _wide(Column("Selector", _selector))
_INFO = ("status", "nodeInfo")
_BUILTIN: Mapping[str, Sequence[Column]] = MappingProxyType(
    {
        "Pod": (
            _NAME,
            Column("Ready", lambda obj, _: pod_ready(obj)),
            Column("Status", lambda obj, _: pod_status(obj)),
            Column("Restarts", lambda obj, now: pod_restarts(obj, lambda then: age(then, now))),
            _AGE,
            *_wide(
                Column("IP", _at("status", "podIP", default=NONE)),
                Column("Node", _at("spec", "nodeName", default=NONE)),
                Column("Nominated Node", _nominated),
                Column("Readiness Gates", _gates),
            ),
        ),
        "Node": (
            _NAME,
            Column("Status", _node_status),
            Column("Roles", _node_roles),
            _AGE,
            Column("Version", _at(*_INFO, "kubeletVersion")),
            *_wide(
                Column("Internal-IP", _address("InternalIP")),
                Column("External-IP", _address("ExternalIP")),
                Column("OS-Image", _at(*_INFO, "osImage", default="<unknown>")),
                Column("Kernel-Version", _at(*_INFO, "kernelVersion", default="<unknown>")),
                Column("Container-Runtime", _at(*_INFO, "containerRuntimeVersion", default="<unknown>")),
            ),
        ),
        "Namespace": (_NAME, Column("Status", _at("status", "phase")), _AGE),
        "Deployment": (
            _NAME,
            Column("Ready", _fraction(_count("status.readyReplicas"), _count("spec.replicas", 1))),
            Column("Up-to-date", _count("status.updatedReplicas"), "integer"),
            Column("Available", _count("status.availableReplicas"), "integer"),
            _AGE,
            *_WORKLOAD,
            *_SELECTOR,
        ),
        "ReplicaSet": (
            _NAME,
            Column("Desired", _count("spec.replicas", 1), "integer"),
            Column("Current", _count("status.replicas"), "integer"),
            Column("Ready", _count("status.readyReplicas"), "integer"),
            _AGE,
            *_WORKLOAD,
            *_SELECTOR,
        ),
        "StatefulSet": (
            _NAME,
            Column("Ready", _fraction(_count("status.readyReplicas"), _count("spec.replicas", 1))),
            _AGE,
            *_WORKLOAD,
        ),
        "DaemonSet": (
            _NAME,
            Column("Desired", _count("status.desiredNumberScheduled"), "integer"),
            Column("Current", _count("status.currentNumberScheduled"), "integer"),
            Column("Ready", _count("status.numberReady"), "integer"),
            Column("Up-to-date", _count("status.updatedNumberScheduled"), "integer"),
            Column("Available", _count("status.numberAvailable"), "integer"),
            Column(
                "Node Selector",
                lambda obj, now: _labels(_at("spec", "template", "spec", "nodeSelector", default={})(obj, now)),
            ),
            _AGE,
            *_WORKLOAD,
            *_SELECTOR,
        ),
        "Job": (
            _NAME,
            Column("Status", _job_status),
            Column("Completions", _fraction(_count("status.succeeded"), _count("spec.completions", 1))),
            Column("Duration", _job_duration),
            _AGE,
            *_WORKLOAD,
            *_SELECTOR,
        ),
        "CronJob": (
            _NAME,
            Column("Schedule", _at("spec", "schedule")),
            Column("Suspend", _at("spec", "suspend", default=False), "boolean"),
            Column("Active", lambda obj, _: len((obj.get("status") or {}).get("active") or []), "integer"),
            _AGE,
        ),
        "Service": (
            _NAME,
            Column("Type", _at("spec", "type", default="ClusterIP")),
            Column("Cluster-IP", _at("spec", "clusterIP", default=NONE)),
            Column("External-IP", lambda obj, _: ",".join((obj.get("spec") or {}).get("externalIPs") or []) or NONE),
            Column("Port(s)", _service_ports),
            _AGE,
            *_SELECTOR,
        ),
        "Event": (
            Column("Last Seen", _event_seen),
            Column("Type", _at("type")),
            Column("Reason", _at("reason")),
            Column("Object", _event_object),
            *_wide(Column("Source", _event_source)),
            Column("Message", _event_message),
            *_wide(Column("Count", _count("count", 1), "integer"), _NAME),
        ),
        "Lease": (_NAME, Column("Holder", _at("spec", "holderIdentity")), _AGE),
        "PriorityClass": (
            _NAME,
            Column("Value", _count("value"), "integer"),
            Column("Global-Default", _at("globalDefault", default=False), "boolean"),
            _AGE,
            Column("PreemptionPolicy", _at("preemptionPolicy")),
        ),
        "PodDisruptionBudget": (
            _NAME,
            Column("Min Available", lambda obj, now: str(_at("spec", "minAvailable", default="N/A")(obj, now))),
            Column("Max Unavailable", lambda obj, now: str(_at("spec", "maxUnavailable", default="N/A")(obj, now))),
            Column("Allowed Disruptions", _count("status.disruptionsAllowed"), "integer"),
            _AGE,
        ),
        "CustomResourceDefinition": (_NAME, Column("Created At", _at("metadata", "creationTimestamp"))),
        "ConfigMap": (_NAME, Column("Data", _data_count, "integer"), _AGE),
        "Secret": (_NAME, Column("Type", _at("type")), Column("Data", _data_count, "integer"), _AGE),
        "ServiceAccount": (
            _NAME,
            Column("Secrets", lambda obj, _: len(obj.get("secrets") or []), "integer"),
            _AGE,
        ),
        "ResourceClaim": (_NAME, Column("State", _claim_state), _AGE),
        "ResourceSlice": (
            _NAME,
            Column("Node", _at("spec", "nodeName")),
            Column("Driver", _at("spec", "driver")),
            Column("Pool", _at("spec", "pool", "name")),
            _AGE,
        ),
        "PersistentVolumeClaim": (
            _NAME,
            Column("Status", _at("status", "phase")),
            Column("Volume", _at("spec", "volumeName")),
            Column("Capacity", _at("status", "capacity", "storage")),
            Column("StorageClass", _at("spec", "storageClassName")),
            _AGE,
        ),
        "PersistentVolume": (
            _NAME,
            Column("Capacity", _at("spec", "capacity", "storage")),
            Column("Reclaim Policy", _at("spec", "persistentVolumeReclaimPolicy")),
            Column("Status", _at("status", "phase")),
            Column("StorageClass", _at("spec", "storageClassName")),
            _AGE,
        ),
        "StorageClass": (
            _NAME,
            Column("Provisioner", _at("provisioner")),
            Column("VolumeBindingMode", _at("volumeBindingMode", default="Immediate")),
            _AGE,
        ),
    }
)
