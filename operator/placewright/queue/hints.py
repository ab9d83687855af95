"""Queueing hints: is a rejected pod worth another try after this event? Only the plugins that rejected the pod are asked.

Facts: kube-scheduler's `isPodWorthRequeuing` in `backend/queue/scheduling_queue.go`, v1.36.
"""

from __future__ import annotations

import enum
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from placewright.api.pods import PodInfo
from placewright.framework.assignedpods import wanted_nearby
from placewright.framework.errors import PluginError
from placewright.framework.events import (
    WILDCARD,
    Action,
    ClusterEvent,
    ClusterEventWithHint,
    EventKeys,
    EventResource,
    Narrowing,
    QueueingHint,
    QueueingHintFn,
    always,
)
from placewright.queue.queued import QueuedPod

_log: Final = logging.getLogger(__name__)

_ANY: Final = (always,)
_UNKNOWN: Final = (ClusterEventWithHint(WILDCARD, narrow=wanted_nearby),)
Asked = tuple[QueueingHintFn, ...]
#: Wraps a plugin's hint for a kind of event in one that gives the same answer and reports how long the hint took.
Timed = Callable[[str, ClusterEvent, QueueingHintFn], QueueingHintFn]


class Requeue(enum.Enum):
    """The effect of an event on a waiting pod."""

    SKIP = "leave it where it is"
    AFTER_BACKOFF = "try it again once its backoff is over"
    IMMEDIATELY = "try it again now"


class EventHints:
    """The hints of one profile for one kind of event, looked up once and asked about thousands of pods.

    Args:
        interests: by plugin, the events that it registered; None for "any event".
        event: any event of the kind.
        timed: wraps each hint; None leaves hints as they are.
    """

    __slots__ = ("_by_plugin", "_event", "_interests", "_keys", "_narrowings", "_timed")

    def __init__(
        self, interests: Mapping[str, Sequence[ClusterEventWithHint] | None], event: ClusterEvent, timed: Timed | None = None
    ) -> None:
        self._interests = interests
        self._event = event
        self._timed = timed
        self._by_plugin: dict[str, Asked] = {}
        self._narrowings: dict[str, Narrowing | None] = {}
        self._keys: dict[str, tuple[EventKeys, ...]] = {}

    def asked(self, plugin: str) -> Asked:
        """Return a plugin's hints for this kind of event.

        Args:
            plugin: its name.

        Returns:
            Hint functions; none when the plugin did not register for the event.
        """
        found = self._by_plugin.get(plugin)
        if found is None:
            found = self._by_plugin[plugin] = self._look_up(plugin)
        return found

    def narrowing(self, plugin: str) -> Narrowing | None:
        """Return the test that chooses which of a plugin's rejected pods are asked about.

        A plugin that the profile no longer runs has no table of events, so kube-scheduler's rule for pods added beside affinity
        holds for its pods.

        Args:
            plugin: its name.

        Returns:
            The test; None when all pods are asked about.
        """
        if plugin not in self._narrowings:
            table = self._interests.get(plugin, _UNKNOWN)
            found = [each.narrow for each in table or () if self._event.concerns(each.event)]
            narrows = tuple(narrow for narrow in found if narrow is not None)
            self._narrowings[plugin] = partial(_any_of, plugin, narrows) if len(narrows) == len(found) > 0 else None
        return self._narrowings[plugin]

    def keys(self, plugin: str) -> tuple[EventKeys, ...]:
        """Return the keys that find a plugin's rejected pods for the event.

        Args:
            plugin: its name.

        Returns:
            The keys; none when all its pods have to be asked about.
        """
        known = self._keys.get(plugin)
        if known is None:
            table = self._interests.get(plugin)
            found = [each.keys for each in table or () if self._event.concerns(each.event)]
            keys = tuple(each for each in found if each is not None)
            known = self._keys[plugin] = keys if len(keys) == len(found) else ()
        return known

    def wanted(self) -> bool:
        """Return False when the event can help no pod of this profile."""
        return self._event.wildcard or any(self.asked(plugin) for plugin in self._interests)

    def worth(self, queued: QueuedPod, old: Any, new: Any) -> Requeue:
        """Return the effect of an event of this kind on this pod. A hint that raises counts as QUEUE.

        A pending plugin's QUEUE skips backoff, because the pod waited for exactly this event and did not fail.

        Args:
            queued: a pod that waits for an event or is gated.
            old: the object before the event; None when it appeared.
            new: the object after the event; None when it is gone.

        Returns:
            SKIP to leave the pod where it waits, otherwise when it may be tried again.
        """
        if self._event.wildcard:
            return self._worth_of_anything(queued, new)
        if queued.gated:
            # Being worth a try means another PreEnqueue here: only the gating plugin can lift its gate.
            return Requeue.AFTER_BACKOFF if self._helps(queued.gating_plugin, queued, old, new) else Requeue.SKIP
        if queued.recalled and self.asked(queued.gating_plugin):
            return Requeue.AFTER_BACKOFF
        for plugin in queued.pending_plugins:
            if self._helps(plugin, queued, old, new):
                return Requeue.IMMEDIATELY
        for plugin in queued.unschedulable_plugins:
            if self._helps(plugin, queued, old, new):
                return Requeue.AFTER_BACKOFF
        return Requeue.SKIP if queued.rejected else Requeue.AFTER_BACKOFF

    def _worth_of_anything(self, queued: QueuedPod, new: Any) -> Requeue:
        """Return the effect of a wildcard event: it helps every pod, or only the pod that it is about."""
        about_another = isinstance(new, PodInfo) and new.uid != queued.uid
        return Requeue.SKIP if about_another else Requeue.AFTER_BACKOFF

    def _helps(self, plugin: str, queued: QueuedPod, old: Any, new: Any) -> bool:
        for hint in self._by_plugin.get(plugin) or self.asked(plugin):
            try:
                if hint(queued.pod, old, new) is QueueingHint.QUEUE:
                    return True
            except PluginError as problem:
                _log.warning("%s; pod %s is tried again", problem, queued.key, extra={"about": plugin})
                return True
            except MemoryError:
                raise
            except Exception:  # noqa: BLE001 - one bad hint must not keep other pods from being moved
                _log.warning("Queueing hint of %s failed for pod %s; the pod is tried again.", plugin, queued.key, exc_info=True)
                return True
        return False

    def _look_up(self, plugin: str) -> Asked:
        interests = self._interests.get(plugin)
        if interests is None:
            return _ANY
        heard = [interest for interest in interests if self._event.concerns(interest.event)]
        if self._timed is None:
            return tuple([interest.hint for interest in heard])
        return tuple([i.hint if i.event.wildcard else self._timed(plugin, self._event, i.hint) for i in heard])


def _any_of(plugin: str, narrows: tuple[Narrowing, ...], pod: PodInfo, old: Any, new: Any) -> bool:
    try:
        return any(narrow(pod, old, new) for narrow in narrows)
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - then the hint says it
        _log.warning("A narrowing of the events of %s failed for pod %s; its hint is asked.", plugin, pod.key, exc_info=True)
        return True


class Hints:
    """The hints of one profile, by kind of event.

    Any event helps a pod whose rejecting plugin registered no table or is unknown to the profile: otherwise the pod would wait
    for an event that no plugin listens for.

    Args:
        interests: by plugin, the events that it registered; None for "any event".
        timed: wraps each hint; None leaves hints as they are.
    """

    __slots__ = ("_by_event", "_interests", "_keys", "_timed", "_wanted")

    def __init__(self, interests: Mapping[str, Sequence[ClusterEventWithHint] | None], timed: Timed | None = None) -> None:
        self._interests = interests
        self._timed = timed
        keys = {plugin: dict.fromkeys(each.keys for each in table or () if each.keys is not None) for plugin, table in interests.items()}
        self._keys = {plugin: tuple(each) for plugin, each in keys.items() if each}
        self._by_event: dict[tuple[EventResource | str, Action], EventHints] = {}
        self._wanted: dict[tuple[EventResource | str, Action], bool] = {}

    def knows(self, plugin: str) -> bool:
        """Return True for a plugin that the profile has enabled."""
        return plugin in self._interests

    def keys_of(self, plugin: str) -> Sequence[EventKeys]:
        """Return the keys under which a plugin's rejected pods are listed.

        Args:
            plugin: its name.

        Returns:
            The keys; none for a plugin without.
        """
        return self._keys.get(plugin, ())

    def about(self, event: ClusterEvent) -> EventHints:
        """Return the hints for a kind of event.

        Args:
            event: any event of the kind.

        Returns:
            The same object for the same kind.
        """
        kind = (event.resource, event.action)
        found = self._by_event.get(kind)
        if found is None:
            found = self._by_event[kind] = EventHints(self._interests, event, self._timed)
        return found

    def wanted(self, event: ClusterEvent) -> bool:
        """Return False when no plugin of this profile could be helped by this event."""
        kind = (event.resource, event.action)
        known = self._wanted.get(kind)
        if known is None:
            known = self._wanted[kind] = self.about(event).wanted()
        return known
