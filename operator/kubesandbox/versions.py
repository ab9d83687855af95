"""One stored object, shown in each version and group that serves it.

Custom resources convert as with strategy `None`: only apiVersion changes. Events are stored as core events and shown
in `events.k8s.io` under that group's field names.
"""

from __future__ import annotations

from kubesandbox.resources import GroupResource, ResourceType
from kubesandbox.status import Object

_EVENTS: GroupResource = ("", "events")
_CORE_TO_EVENTS = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
_EVENTS_TO_CORE = {shown: stored for stored, shown in _CORE_TO_EVENTS.items()}


def to_stored(resource: ResourceType, sent: Object) -> Object:
    """`sent`, an object of `resource`, in the version in which its type is stored."""
    if resource.key == _EVENTS and resource.group:
        return {**_renamed(sent, _EVENTS_TO_CORE), "apiVersion": "v1"}
    if resource.custom and sent["apiVersion"] != resource.stored_version:
        return {**sent, "apiVersion": resource.stored_version}
    return sent


def presented(resource: ResourceType, stored: Object) -> Object:
    """`stored` as `resource` shows it; the same dict when nothing differs."""
    if stored.get("apiVersion") == resource.api_version:
        return stored
    if resource.key == _EVENTS and resource.group:
        return {**_renamed(stored, _CORE_TO_EVENTS), "apiVersion": resource.api_version}
    return {**stored, "apiVersion": resource.api_version}


def _renamed(content: Object, names: dict[str, str]) -> Object:
    return {names.get(key, key): value for key, value in content.items()}
