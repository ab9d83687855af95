"""Refusals of events that the real server would refuse, because no client would ever read them there.

An event with `eventTime` is of the new form, in either API. It names the reporter, its instance and the action, and its texts have limits.
`events.k8s.io` accepts no other form. Older events must only agree with their object's namespace.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from kubesandbox.resources import ResourceType
from kubesandbox.status import Object, bad_request, invalid

LONGEST_NOTE: Final = 1024
_LONGEST: Final = 128
_MICRO_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(Z|[+-]\d\d:\d\d)")
_DEPRECATED: Final = ("deprecatedCount", "deprecatedFirstTimestamp", "deprecatedLastTimestamp", "deprecatedSource")


def check_event(resource: ResourceType, event: Object) -> None:
    """Raise ApiError 422 with every fault, and 400 for an `eventTime` without its six digits of a second."""
    time = event.get("eventTime")
    if time and not _MICRO_TIME.fullmatch(str(time)):
        raise bad_request(f"Event: eventTime: parsing time {time!r}: wanted is 2006-01-02T15:04:05.000000Z")
    is_new = bool(resource.group)
    faults = [*_namespace_faults(event, with_time=bool(time))]
    if time:
        faults += _text_faults(event, "note" if is_new else "message", "reportingController" if is_new else "reportingComponent")
    if is_new:
        faults += _new_faults(event)
    if faults:
        raise invalid(resource, event["metadata"].get("name", ""), faults)


def _namespace_faults(event: Object, *, with_time: bool) -> Iterator[tuple[str, str]]:
    """Check the namespace. Events about cluster-scoped objects, which name no namespace, are in `default`."""
    regarding = event.get("regarding") or event.get("involvedObject") or {}
    own, its = event["metadata"].get("namespace"), regarding.get("namespace")
    if (not its and own != "default") or (its and its != own and not with_time):
        yield "involvedObject.namespace", f'Invalid value: "{its or ""}": does not match event.namespace'


def _text_faults(event: Object, note: str, controller: str) -> Iterator[tuple[str, str]]:
    for field in (controller, "reportingInstance", "action", "reason"):
        text = event.get(field)
        if not text:
            yield field, "Required value"
        elif _bytes(text) > _LONGEST:
            yield field, f'Invalid value: "": can have at most {_LONGEST} characters'
    if _bytes(event.get(note) or "") > LONGEST_NOTE:
        yield "message", f'Invalid value: "": can have at most {LONGEST_NOTE} characters'


def _new_faults(event: Object) -> Iterator[tuple[str, str]]:
    if not event.get("eventTime"):
        yield "eventTime", "Required value"
    if event.get("type") not in ("Normal", "Warning"):
        yield "type", f'Invalid value: "": has invalid value: {event.get("type", "")}'
    for field in _DEPRECATED:
        if event.get(field):
            yield field, 'Invalid value: "": needs to be unset'
    series = event.get("series") or {}
    if event.get("series") and (series.get("count") or 0) < 2:
        yield "series.count", 'Invalid value: "": should be at least 2'
    if event.get("series") and not series.get("lastObservedTime"):
        yield "series.lastObservedTime", "Required value"


def _bytes(text: Any) -> int:
    return len(str(text).encode())
