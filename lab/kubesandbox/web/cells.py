"""Special cells of tables: times in kubectl's short form, and readiness, state and restarts of a pod."""

from __future__ import annotations

import calendar
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from kubesandbox.edits.shapes import Object

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


def pod_restarts(pod: Object, ago: Callable[[Any], str]) -> str:
    """Return the restarts of all containers and the last time: `3 (5m ago)`. `ago` writes a time."""
    statuses = (pod.get("status") or {}).get("containerStatuses") or []
    count = sum(int(each.get("restartCount", 0)) for each in statuses)
    ends = [((each.get("lastState") or {}).get("terminated") or {}).get("finishedAt") for each in statuses]
    last = max(filter(None, ends), default=None)
    return f"{count} ({ago(last)} ago)" if count and last else str(count)


def _gated(condition: Mapping[str, Any]) -> bool:
    return condition.get("type") == "PodScheduled" and condition.get("reason") == "SchedulingGated"


def _container_word(status: Mapping[str, Any]) -> str:
    """Return the reason of the first container that waits or has ended, or nothing."""
    states = [each.get("state") or {} for each in status.get("containerStatuses") or []]
    reasons = ((state.get(kind) or {}).get("reason") for state in states for kind in ("waiting", "terminated"))
    return str(next(filter(None, reasons), ""))
