"""The columns of each kind in `kubectl get`, and the computation of a cell from an object.

Kinds in the documentation have the real server's columns. All others have name and age.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from kubesandbox.edits.shapes import Object
from kubesandbox.web.cells import age, pod_ready, pod_restarts, pod_status
from kubesandbox.web.jsonpath import JsonPath, JsonPathError

#: Function that computes a cell from an object and the present time (seconds since the epoch).
Cell = Callable[[Object, float], Any]

NONE: Final = "<none>"


@dataclass(frozen=True, slots=True)
class Column:
    """One column. Only `-o wide` shows `priority` 1."""

    name: str
    cell: Cell
    kind: str = "string"
    priority: int = 0
    format: str = ""
    description: str = ""

    def definition(self) -> Object:
        """Return the column in the form of a Table."""
        return {
            "name": self.name,
            "type": self.kind,
            "format": self.format,
            "description": self.description or self.name,
            "priority": self.priority,
        }


def columns_of(kind: str, printer_columns: Sequence[Mapping[str, Any]] | None) -> Sequence[Column]:
    """Return the columns of a kind. `printer_columns` are the additionalPrinterColumns of a custom resource."""
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
    """Return a value in a column of the declared type, or nothing for a value of another type."""
    if kind == "date":
        return age(value, now)
    if kind in ("integer", "number"):
        return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None
    if kind == "boolean":
        return value if isinstance(value, bool) else None
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def _at(path: str, default: Any = "") -> Cell:
    """Return a cell with the value at a path: `status.phase`."""

    def cell(obj: Object, _now: float) -> Any:
        value: Any = obj
        for name in path.split("."):
            value = value.get(name) if isinstance(value, dict) else None
        return default if value is None else value

    return cell


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


def _gates(obj: Object, _now: float) -> str:
    gates = [gate.get("conditionType") for gate in (obj.get("spec") or {}).get("readinessGates") or []]
    conditions = (obj.get("status") or {}).get("conditions") or []
    met = [c for c in conditions if c.get("type") in gates and c.get("status") == "True"]
    return f"{len(met)}/{len(gates)}" if gates else NONE


def _ready_replicas(obj: Object, now: float) -> str:
    return f"{_at('status.readyReplicas', 0)(obj, now)}/{_at('spec.replicas', 1)(obj, now)}"


def _wide(name: str, cell: Cell, kind: str = "string", format: str = "") -> Column:  # noqa: A002  as `Column` calls it
    return Column(name, cell, kind, 1, format)


_NAME: Final = Column("Name", _at("metadata.name"), format="name")
_AGE: Final = Column("Age", lambda obj, now: age(_at("metadata.creationTimestamp")(obj, now), now))
_DEFAULT: Final = (_NAME, _AGE)
_BUILTIN: Final[Mapping[str, Sequence[Column]]] = MappingProxyType(
    {
        "Pod": (
            _NAME,
            Column("Ready", lambda obj, _: pod_ready(obj)),
            Column("Status", lambda obj, _: pod_status(obj)),
            Column("Restarts", lambda obj, now: pod_restarts(obj, lambda then: age(then, now))),
            _AGE,
            _wide("IP", _at("status.podIP", NONE)),
            _wide("Node", _at("spec.nodeName", NONE)),
            _wide("Nominated Node", lambda obj, now: _at("status.nominatedNodeName")(obj, now) or NONE),
            _wide("Readiness Gates", _gates),
        ),
        "Node": (
            _NAME,
            Column("Status", _node_status),
            Column("Roles", _node_roles),
            _AGE,
            Column("Version", _at("status.nodeInfo.kubeletVersion")),
            _wide("Internal-IP", _address("InternalIP")),
            _wide("External-IP", _address("ExternalIP")),
            _wide("OS-Image", _at("status.nodeInfo.osImage", "<unknown>")),
            _wide("Kernel-Version", _at("status.nodeInfo.kernelVersion", "<unknown>")),
            _wide("Container-Runtime", _at("status.nodeInfo.containerRuntimeVersion", "<unknown>")),
        ),
        "Event": (
            Column("Last Seen", _event_seen),
            Column("Type", _at("type")),
            Column("Reason", _at("reason")),
            Column("Object", _event_object),
            _wide("Source", _event_source),
            Column("Message", _event_message),
            _wide("Count", _at("count", 1), "integer"),
            _wide("Name", _NAME.cell, format="name"),
        ),
        "Deployment": (
            _NAME,
            Column("Ready", _ready_replicas),
            Column("Up-to-date", _at("status.updatedReplicas", 0), "integer"),
            Column("Available", _at("status.availableReplicas", 0), "integer"),
            _AGE,
        ),
        "ConfigMap": (_NAME, Column("Data", lambda obj, _: len(obj.get("data") or {}) + len(obj.get("binaryData") or {}), "integer"), _AGE),
        "Lease": (_NAME, Column("Holder", _at("spec.holderIdentity")), _AGE),
        "CustomResourceDefinition": (_NAME, Column("Created At", _at("metadata.creationTimestamp"))),
        "ResourceClaim": (_NAME, Column("State", _claim_state), _AGE),
        "ResourceSlice": (
            _NAME,
            Column("Node", _at("spec.nodeName")),
            Column("Driver", _at("spec.driver")),
            Column("Pool", _at("spec.pool.name")),
            _AGE,
        ),
    }
)
