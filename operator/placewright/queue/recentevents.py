"""A short memory of events: enough to name the event that should have brought a forgotten pod back (decision 37).

Events are noted only while pods wait for events. Of each event its kind and two names are kept, and no object, because objects
have the size that tenants give them. Of events older than the latest `KEPT_EVENTS` only the last number of each kind is known.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Final, NamedTuple

from placewright.api.pods import PodInfo
from placewright.framework.events import ClusterEvent, EventResource

#: Events whose names are known; about 300 bytes each.
KEPT_EVENTS: Final = 1024


class RecentEvent(NamedTuple):
    """The kind of an event, and the names of its object.

    Attributes:
        number: the count of noted events up to and including this one.
        event: its kind and label.
        about: the object's name, as `namespace/name` where it has a namespace; empty when only the kind is known.
        node: the name of the node that changed, or that the pod stands on; empty for all other objects.
    """

    number: int
    event: ClusterEvent
    about: str = ""
    node: str = ""


class RecentEvents:
    """The latest events.

    Args:
        keep: events whose names are kept.

    Attributes:
        noted: count of all events so far. `QueuedPod.seen` holds the count at the start of a pod's attempt.
    """

    __slots__ = ("_kinds", "_latest", "noted")

    def __init__(self, keep: int = KEPT_EVENTS) -> None:
        self.noted = 0
        self._latest: deque[RecentEvent] = deque(maxlen=keep)
        #: By label, the last one of its kind, without names.
        self._kinds: dict[str, RecentEvent] = {}

    def note(self, event: ClusterEvent, old: Any, new: Any) -> None:
        """Note an event.

        Args:
            event: its kind and label.
            old: the object before; None when it appeared.
            new: the object after; None when it is gone.
        """
        self.noted += 1
        about, node = _names(event, old if new is None else new)
        self._latest.append(RecentEvent(self.noted, event, about, node))
        self._kinds[event.label] = RecentEvent(self.noted, event)

    def since(self, seen: int) -> list[RecentEvent]:
        """Return the events since a pod's attempt.

        Args:
            seen: `noted` at that time.

        Returns:
            The events, the latest first. Events that are too old to have names follow once for each kind.
        """
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
