"""The columns of each kind in `kubectl get`, and the computation of a cell from an object.

Kinds in the documentation have the real server's columns. All others have name and age.

Special cells of tables: times in kubectl's short form, and readiness, state and restarts of a pod.
"""

from __future__ import annotations

import calendar
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from kubesandbox.resources import Object
from kubesandbox.web.jsonpath import JsonPath, JsonPathError

UNKNOWN: Final = "<unknown>"
_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86_400, 365 * 86_400
#: Limits in seconds, the unit of shorter times, and a smaller unit beside it.
_SPANS: Final = (
    (2 * _MINUTE, 1, "s", 0, ""),
    (10 * _MINUTE, _MINUTE, "m", 1, "s"),
    (3 * _HOUR, _MINUTE, "m", 0, ""),
    (8 * _HOUR, _HOUR, "h", _MINUTE, "m"),
    (2 * _DAY, _HOUR, "h", 0, ""),
    (8 * _DAY, _DAY, "d", _HOUR, "h"),
    (2 * _YEAR, _DAY, "d", 0, ""),
    (8 * _YEAR, _YEAR, "y", _DAY, "d"),
)


def seconds_of(timestamp: object) -> float | None:
    """Convert an RFC 3339 time in UTC to whole seconds since the epoch. Return None for other text."""
    try:
        return calendar.timegm(time.strptime(str(timestamp).partition(".")[0].rstrip("Z"), "%Y-%m-%dT%H:%M:%S"))
    except ValueError:
        return None


def age(timestamp: object, now: float) -> str:
    """Return the time since then in kubectl's short form (`5m30s`, `3d4h`)."""
    then = seconds_of(timestamp)
    if then is None:
        return UNKNOWN
    return duration(max(0, int(now - then)))


def duration(seconds: int) -> str:
    """Return a duration with one or two units, less exact the longer it is."""
    for limit, large, letter, small, small_letter in _SPANS:
        if seconds < limit:
            rest = seconds % large // small if small else 0
            return f"{seconds // large}{letter}" + (f"{rest}{small_letter}" if rest else "")
    return f"{seconds // _YEAR}y"


def pod_ready(pod: Object) -> str:
    """Return the number of ready containers of all containers: `1/2`."""
    statuses = (pod.get("status") or {}).get("containerStatuses") or []
    total = len((pod.get("spec") or {}).get("containers") or [])
    running = [each for each in statuses if each.get("ready") and "running" in (each.get("state") or {})]
    return f"{len(running)}/{total}"


def pod_status(pod: Object) -> str:
    """Return the most important word: the phase, or a word about a container, a gate or a deletion."""
    status = pod.get("status") or {}
    word = str(status.get("reason") or status.get("phase") or "Unknown")
    if any(_gated(condition) for condition in status.get("conditions") or []):
        word = "SchedulingGated"
    word = _container_word(status) or word
    if (pod.get("metadata") or {}).get("deletionTimestamp"):
        return word if status.get("phase") in ("Succeeded", "Failed") else "Terminating"
    return word


def pod_restarts(pod: Object) -> str:
    """Return the restarts of all containers."""
    return str(sum(int(each.get("restartCount", 0)) for each in (pod.get("status") or {}).get("containerStatuses") or []))


def _gated(condition: Mapping[str, Any]) -> bool:
    return condition.get("type") == "PodScheduled" and condition.get("reason") == "SchedulingGated"


def _container_word(status: Mapping[str, Any]) -> str:
    """Return the reason of the first container that waits or has ended, or nothing."""
    states = [each.get("state") or {} for each in status.get("containerStatuses") or []]
    reasons = ((state.get(kind) or {}).get("reason") for state in states for kind in ("waiting", "terminated"))
    return str(next(filter(None, reasons), ""))


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
            Column("Restarts", lambda obj, _: pod_restarts(obj)),
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
