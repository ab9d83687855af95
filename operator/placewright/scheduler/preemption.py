"""Evicts the victims that PostFilter chose for a pod. The pod waits until they are evicted, and lower nominations on its node end.

The order is kube-scheduler's (1.33 and later). All victims but one are evicted at once. Then the pod's gate is lifted, and the
last victim is evicted. So the pod is ready to be tried when the last victim ends. If a victim could not be evicted,
the pod is tried again after its backoff. kube-scheduler tries it at once, again and again while evictions fail.

Victims of one group leave together (decision 24). If some evictions failed, they are repeated at growing intervals, also when the preemptor
no longer waits. The rest of a broken group would hold its nodes for nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from placewright.api.errors import EvictError
from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.cluster.podgrouprules import standing
from placewright.framework.preemption.evictions import Evictions
from placewright.framework.runtime.guard import why
from placewright.queue.queue import SchedulingQueue
from placewright.scheduler.ports import EventRecorder, EventType, Evictor, Lead, StatusWriter

_logger = logging.getLogger(__name__)

PREEMPTED: Final = "Preempted"
_PREEMPTING: Final = "Preempting"
_IN_MEMORY: Final = " (in kube-scheduler memory)."
#: Upstream's word for the node of a group's preemption.
_ANYWHERE: Final = "cluster"
#: Seconds before each repeated eviction of the rest of a broken group; an hour in all. After that an operator has to look.
_AGAIN: Final = (1, 2, 4, 8, 16, 32, *[60] * 59)


class Preemptor(NamedTuple):
    """A pod for which other pods are evicted.

    Attributes:
        pod: the pod that needs the room.
        node: node of all victims.
        plugin: name of the plugin that chose the victims.
    """

    pod: PodInfo
    node: NodeName
    plugin: str


@dataclass(frozen=True, slots=True)
class Preemption:
    """Carries out the evictions that PostFilter chose.

    Attributes:
        cluster: columns in which victims are noted as leaving.
        queue: the queue, in which the preemptor waits.
        roll_back: rolls back a victim whose Binding has not been sent, by uid and preempting plugin; returns False for other pods.
        evictor: evicts victims that are bound.
        events: recorder of the event `Preempted`.
        status: writer that clears nominations.
        lead: tells whether this replica may evict.
        evictions: record of the evictions that are asked for, and of the ones that failed.
        sleep: function that waits so many seconds.
    """

    cluster: Cluster
    queue: SchedulingQueue
    roll_back: Callable[[str, str], bool]
    evictor: Evictor
    events: EventRecorder
    status: StatusWriter
    lead: Lead
    evictions: Evictions
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    def make_room(self, preemptor: Preemptor, victims: Sequence[PodInfo]) -> Coroutine[Any, Any, None]:
        """Note the nomination and the victims at once, before the next pod is decided.

        Args:
            preemptor: the pod that needs the room.
            victims: to be evicted, at least one.

        Returns:
            The evictions, to be awaited beside the decisions.
        """
        nominator = self.queue.nominator
        for other in tuple(nominator.pods_on(preemptor.node)):
            if other.priority < preemptor.pod.priority:
                nominator.delete(other.uid)
                self.status.pod_nominated(other, NodeName(""))
        nominator.making_room_for.add(preemptor.pod.uid)
        self.evictions.asked_for(preemptor.pod.scheduler_name, victims)
        for victim in victims:
            self.cluster.told_to_leave(victim.uid)
        return self._make_room(preemptor, victims)

    async def _make_room(self, preemptor: Preemptor, victims: Sequence[PodInfo]) -> None:
        try:
            await self._evict(preemptor, victims)
        except asyncio.CancelledError:
            for victim in victims:  # some evictions may have been sent; the API server shows the pods that leave
                self.cluster.stays_after_all(victim.uid)
            raise

    async def _evict(self, preemptor: Preemptor, victims: Sequence[PodInfo]) -> None:
        *first, last = victims
        try:
            left = await asyncio.gather(*(self._leaves(victim, preemptor) for victim in first))
        finally:
            self.queue.nominator.making_room_for.discard(preemptor.pod.uid)
        was_gated = self.queue.lift_gate(preemptor.pod.uid)
        left.append(await self._leaves(last, preemptor))
        # The end of a victim that still stands is the event that brings the pod back. If the pod were tried before, it might take another
        # node, and the victims would have left for nothing. After a failure, no such event comes. Nor does it come if all victims ended
        # before the gate was lifted.
        ended = was_gated and not any(self.cluster.placement(victim.uid) for victim in victims)
        if ended or not all(left):
            # With its full backoff, because while evictions are refused the pod would be tried without a pause.
            self.queue.retry(preemptor.pod.uid, full_backoff=not all(left))
        await self._finish(self._torn(victims, left), preemptor)

    def _torn(self, victims: Sequence[PodInfo], left: Sequence[bool]) -> list[PodInfo]:
        """Return the victims that did not leave while others of their group did."""
        broken = {victim.pod_group for victim, gone in zip(victims, left, strict=True) if gone and self._is_bound(victim)}
        return [victim for victim, gone in zip(victims, left, strict=True) if not gone and victim.pod_group in broken]

    def _is_bound(self, pod: PodInfo) -> bool:
        pod_group = None if pod.pod_group is None else self.cluster.pod_groups.get(pod.pod_group)
        return pod_group is not None and not pod_group.goes_apart

    async def _finish(self, torn: Sequence[PodInfo], preemptor: Preemptor) -> None:
        """Evict the rest of broken groups, for as long as it takes."""
        for seconds in _AGAIN:
            if not torn or not self.lead.active:
                return
            await self.sleep(seconds)
            torn = [victim for victim in torn if self._stands(victim)]
            left = await asyncio.gather(*(self._leaves(victim, preemptor) for victim in torn))
            torn = [victim for victim, gone in zip(torn, left, strict=True) if not gone]

    def _stands(self, pod: PodInfo) -> bool:
        place = self.cluster.placement(pod.uid)
        return place is not None and not self.cluster.leaves(place.pod)

    def _by(self, preemptor: Preemptor) -> str:
        """Return kube-scheduler's words for the preemptor. For a group, add the member and its node.

        A group preempts anywhere in the cluster. A member that joins a gang whose other members have nodes preempts as a pod.
        """
        pod, node, _ = preemptor
        pod_group = None if pod.pod_group is None else self.cluster.pod_groups.get(pod.pod_group)
        if pod_group is None or (standing(self.cluster, pod_group.ref) and not pod_group.basic):
            return f"pod {pod.uid} on node {node}"
        member = f"pod {pod.key} of group {pod_group.ref.name} gets node {node}"
        return f"podgroup {pod_group.uid} on node {_ANYWHERE} ({member})"

    async def _leaves(self, victim: PodInfo, preemptor: Preemptor) -> bool:
        """Evict one victim; return True when it is on its way out."""
        note = f"Preempted by {self._by(preemptor)}"
        try:
            if self.roll_back(victim.uid, preemptor.plugin):  # it is not bound yet: giving its room back is enough
                note += _IN_MEMORY
            else:
                await self.evictor.evict(victim, preemptor.pod, preemptor.node)
        except MemoryError:
            raise
        except Exception as problem:
            self.cluster.stays_after_all(victim.uid)
            self.evictions.failed(victim)
            said = "pod %s, a victim of pod %s, is still on node %s: %s"
            told = (victim.key, preemptor.pod.key, preemptor.node, why(problem))
            _logger.log(logging.ERROR, said, *told, exc_info=None if isinstance(problem, EvictError) else problem)
            return False
        self.events.record(victim, EventType.NORMAL, PREEMPTED, _PREEMPTING, note)
        return True
