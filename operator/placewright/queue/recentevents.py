"""What happened lately, in few words: enough to say which event should have brought a forgotten pod back.

Noted only while pods wait for events. No object is kept: of each event its kind, and the names of what it was about. Beyond the latest
`KEPT_EVENTS` only the kinds are known of what happened since a pod's attempt.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Final, NamedTuple

from placewright.api.pods import PodInfo
from placewright.framework.events import ClusterEvent, EventResource

#: Events of which the names are known; some 300 bytes each.
KEPT_EVENTS: Final = 1024


class RecentEvent(NamedTuple):
    """An event in few words.

    Attributes:
        number: how many were noted before it, and itself.
        about: the object's name, with its namespace where it has one; empty where only the kind is known any more.
        node: the node that it is, or that the pod stands on; empty for all else.
    """

    number: int
    event: ClusterEvent
    about: str = ""
    node: str = ""


class RecentEvents:
    """The latest events.

    Attributes:
        noted: how many there were; what a pod's attempt began with is kept as `QueuedPod.seen`.
    """

    __slots__ = ("_kinds", "_latest", "noted")

    def __init__(self, keep: int = KEPT_EVENTS) -> None:
        self.noted = 0
        self._latest: deque[RecentEvent] = deque(maxlen=keep)
        #: By label, the last one of its kind, without names.
        self._kinds: dict[str, RecentEvent] = {}

    def note(self, event: ClusterEvent, old: Any, new: Any) -> None:
        """Note that this happened."""
        self.noted += 1
        about, node = _names(event, old if new is None else new)
        self._latest.append(RecentEvent(self.noted, event, about, node))
        self._kinds[event.label] = RecentEvent(self.noted, event)

    def since(self, seen: int) -> list[RecentEvent]:
        """What happened after the event of this number, the latest first; where that is too long ago, then kinds without names."""
        named = [each for each in reversed(self._latest) if each.number > seen]
        oldest = named[-1].number if named else self.noted + 1
        return [*named, *(each for each in self._kinds.values() if seen < each.number < oldest)]


def _names(event: ClusterEvent, item: Any) -> tuple[str, str]:
    if isinstance(item, PodInfo):
        return item.key, item.node_name
    meta = getattr(item, "metadata", None)
    if meta is None:
        return "", ""
    about = f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name
    return about, meta.name if event.resource is EventResource.NODE else ""
