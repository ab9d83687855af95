"""Which waiting pods an event may concern, before any hint is asked.

Hints cost a call for each pod, and thousands of pods may wait. So pods are first chosen by the plugin that rejected them, then
by keys or by a narrowing test that the plugin registered with the event.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from placewright.api.pods import PodInfo
from placewright.framework.events import ClusterEvent, Narrowing
from placewright.queue.profilequeue import ProfileQueue
from placewright.queue.queued import QueuedPod


class Reached(NamedTuple):
    """Waiting pods that an event may concern.

    Attributes:
        pods: by uid.
        narrow: a further test of each pod (`ClusterEventWithHint.narrow`); None when all are asked about.
    """

    pods: Mapping[str, QueuedPod]
    narrow: Narrowing | None

    def chosen(self, old: Any, new: Any) -> Mapping[str, QueuedPod]:
        """Return the pods whose hints are to be asked.

        Args:
            old: the event's object before; None when it appeared.
            new: the event's object after; None when it is gone.

        Returns:
            The pods that pass `narrow`, by uid.
        """
        narrow = self.narrow
        return self.pods if narrow is None else {uid: queued for uid, queued in self.pods.items() if narrow(queued.pod, old, new)}


def reach(queue: ProfileQueue, event: ClusterEvent, old: Any, new: Any, *, keyed: bool = True) -> list[Reached]:
    """Find the waiting pods whose rejecting or gating plugin listens for this event.

    Args:
        queue: the pods of one profile.
        event: its kind and label.
        old: the event's object before; None when it appeared.
        new: the event's object after; None when it is gone.
        keyed: choose by keys. Without, the result covers every event of this kind, whichever object it is about.

    Returns:
        The pods, once for each plugin; a pod that several plugins rejected is in several of them.
    """
    hints, found = queue.hints.about(event), list[Reached]()
    narrowed = event.frees_nothing and isinstance(new, PodInfo)
    if event.wildcard:
        found.append(Reached({queued.uid: queued for queued in queue.unschedulable}, None))
    for waiting in (queue.unschedulable, queue.gated):
        for plugin in waiting.plugins():
            if hints.asked(plugin):
                keys = hints.keys(plugin) if keyed else ()
                pods = waiting.concerned(plugin, keys, old, new) if keys else waiting.held_by(plugin)
                found.append(Reached(pods, hints.narrowing(plugin) if narrowed else None))
    return found


def concerns(queue: ProfileQueue, queued: QueuedPod, event: ClusterEvent, old: Any, new: Any) -> bool:
    """Return whether `reach` would find this one pod.

    Args:
        queue: the pod's profile.
        queued: waits in `queue`.
        event: its kind and label.
        old: the event's object before; None when it appeared.
        new: the event's object after; None when it is gone.

    Returns:
        True when a plugin that rejected or gates the pod listens for the event.
    """
    if event.wildcard and not queued.gated:
        return True
    hints, narrowed = queue.hints.about(event), event.frees_nothing and isinstance(new, PodInfo)
    rejected_by = (*queued.unschedulable_plugins, *queued.pending_plugins)
    for plugin in (queued.gating_plugin,) if queued.gated else rejected_by:
        if hints.asked(plugin):
            narrow = hints.narrowing(plugin) if narrowed else None
            if narrow is None or narrow(queued.pod, old, new):
                return True
    return False
