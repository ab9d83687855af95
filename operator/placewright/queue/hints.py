"""Is it worth trying a rejected pod again after this event? Only the plugins that rejected it are asked."""

from __future__ import annotations

import enum
import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final

from placewright.api.pods import PodInfo
from placewright.framework.events import Action, ClusterEvent, EventInterest, EventResource, Hint, HintFunction, always
from placewright.queue.queued import QueuedPod

_log: Final = logging.getLogger(__name__)

_ANY: Final = (always,)
Asked = tuple[HintFunction, ...]


class Requeue(enum.Enum):
    """What an event does to a waiting pod."""

    SKIP = "leave it where it is"
    AFTER_BACKOFF = "try it again once its backoff is over"
    IMMEDIATELY = "try it again now"


class Hints:
    """The hints of one profile, looked up by event and plugin.

    A plugin without a table, or one that the profile does not know, is taken to be helped by any event: a pod must not be stuck because
    nobody speaks for it.
    """

    __slots__ = ("_asked", "_interests", "_wanted")

    def __init__(self, interests: Mapping[str, Sequence[EventInterest] | None]) -> None:
        self._interests = interests
        self._asked: dict[tuple[str, EventResource, Action], Asked] = {}
        self._wanted: dict[tuple[EventResource, Action], bool] = {}

    def knows(self, plugin: str) -> bool:
        """True for an enabled plugin."""
        return plugin in self._interests

    def asked(self, plugin: str, event: ClusterEvent) -> Asked:
        """The hint functions of this plugin for this event; empty when it does not care."""
        cached = self._asked.get((plugin, event.resource, event.action))
        if cached is None:
            cached = self._asked[plugin, event.resource, event.action] = self._look_up(plugin, event)
        return cached

    def wanted(self, event: ClusterEvent) -> bool:
        """False when no plugin of this profile could be helped by this event."""
        known = self._wanted.get((event.resource, event.action))
        if known is None:
            known = event.wildcard or any(self.asked(plugin, event) for plugin in self._interests)
            self._wanted[event.resource, event.action] = known
        return known

    def worth(self, queued: QueuedPod, event: ClusterEvent, old: Any, new: Any) -> Requeue:
        """What this event does to this pod. A hint that raises counts as QUEUE."""
        if event.wildcard and isinstance(new, PodInfo) and new.uid != queued.uid:
            return Requeue.SKIP
        if queued.gated:
            helped = event.wildcard or self._helps(queued.gating_plugin, queued, event, old, new)
            return Requeue.AFTER_BACKOFF if helped else Requeue.SKIP
        if event.wildcard or not queued.rejecting_plugins:
            return Requeue.AFTER_BACKOFF
        return self._ask_rejecting(queued, event, old, new)

    def _ask_rejecting(self, queued: QueuedPod, event: ClusterEvent, old: Any, new: Any) -> Requeue:
        if any(self._helps(plugin, queued, event, old, new) for plugin in queued.pending_plugins):
            return Requeue.IMMEDIATELY
        if any(self._helps(plugin, queued, event, old, new) for plugin in queued.unschedulable_plugins):
            return Requeue.AFTER_BACKOFF
        return Requeue.SKIP

    def _helps(self, plugin: str, queued: QueuedPod, event: ClusterEvent, old: Any, new: Any) -> bool:
        return any(_answer(plugin, hint, queued, old, new) for hint in self.asked(plugin, event))

    def _look_up(self, plugin: str, event: ClusterEvent) -> Asked:
        interests = self._interests.get(plugin)
        if interests is None:
            return _ANY
        return tuple(interest.hint for interest in interests if event.concerns(interest.event))


def _answer(plugin: str, hint: HintFunction, queued: QueuedPod, old: Any, new: Any) -> bool:
    try:
        return hint(queued.pod, old, new) is Hint.QUEUE
    except Exception:  # noqa: BLE001 - out-of-tree code: one bad hint must not keep other pods from being moved
        _log.warning(
            "Queueing hint of %s failed for pod %s; the pod is tried again.", plugin, queued.key, exc_info=True
        )
        return True
