"""Room is made for a pod: lower nominations on its node end, its victims leave, and meanwhile it is not tried.

The order is kube-scheduler's (1.33 and later): all victims but one at once, then the gate is lifted, then the last one. So whatever the
last victim's end brings back finds the pod ready to be tried. Unlike there, a pod whose victim could not be evicted is tried again after
its backoff, not at once: where evictions are refused, that would go on without a pause.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Final

from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.queue.queue import SchedulingQueue
from placewright.queue.queued import Place
from placewright.scheduler.binding import BindingCycle
from placewright.scheduler.ports import EventRecorder, EventType, Evictor, StatusWriter
from placewright.scheduler.waiting import WaitingPods

_logger = logging.getLogger(__name__)

PREEMPTED: Final = "Preempted"
_PREEMPTING: Final = "Preempting"
_PLUGIN: Final = "DefaultPreemption"
_IN_MEMORY: Final = " (in kube-scheduler memory)."


@dataclass(frozen=True, slots=True)
class Preemption:
    """Carries out what PostFilter found."""

    queue: SchedulingQueue
    waiting: WaitingPods
    binding: BindingCycle
    evictor: Evictor
    events: EventRecorder
    status: StatusWriter

    def make_room(self, preemptor: PodInfo, node: NodeName, victims: Sequence[PodInfo]) -> Coroutine[Any, Any, None]:
        """What must be true before the next pod is tried is done at once; the evictions are in what is returned."""
        nominator = self.queue.nominator
        for other in tuple(nominator.pods_on(node)):
            if other.priority < preemptor.priority:
                nominator.delete(other.uid)
                self.status.nomination_cleared(other)
        nominator.making_room_for.add(preemptor.uid)
        return self._evict(preemptor, node, victims)

    async def _evict(self, preemptor: PodInfo, node: NodeName, victims: Sequence[PodInfo]) -> None:
        *first, last = victims
        try:
            left = await asyncio.gather(*(self._leaves(victim, preemptor, node) for victim in first))
        finally:
            self.queue.nominator.making_room_for.discard(preemptor.uid)
        left.append(await self._leaves(last, preemptor, node))
        # A pod that was gated in the meantime has no event to wait for but this one, and after a failure there may be none at all.
        if not all(left) or self.queue.locate(preemptor.uid) is Place.GATED:
            self.queue.retry(preemptor.uid)

    async def _leaves(self, victim: PodInfo, preemptor: PodInfo, node: NodeName) -> bool:
        """True when the victim is on its way out."""
        note = f"Preempted by pod {preemptor.uid} on node {node}"
        waiting = self.waiting.get(victim.uid)
        try:
            if waiting is not None:
                # It is not bound yet: giving its room back is enough.
                waiting.reject(_PLUGIN, "preempted")
                note += _IN_MEMORY
            elif self.binding.preempt(victim.uid):
                note += _IN_MEMORY
            else:
                await self.evictor.evict(victim, preemptor, node)
        except Exception:
            _logger.exception("pod %s, a victim of pod %s, is still on node %s", victim.key, preemptor.key, node)
            return False
        self.events.record(victim, EventType.NORMAL, PREEMPTED, _PREEMPTING, note)
        return True
