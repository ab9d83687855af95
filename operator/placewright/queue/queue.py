"""The scheduling queue: every unscheduled pod of ours is in exactly one of active, backoff, unschedulable, gated, in flight.

A pod enters with `add`, is handed out by `pop`, and leaves with `done` (placed) or `delete` (gone), or comes back with
`return_unschedulable`. `move` tells the queue what happened in the cluster; only pods whose rejecting plugins care are looked at.

Everything here runs on one thread and never blocks; `wait_for_pod` is the one coroutine. Facts: kube-scheduler's
`backend/queue/scheduling_queue.go`, v1.36.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from typing import Any, Final

from placewright.api.objects import NodeName, PodKey
from placewright.api.podgroups import GroupRef
from placewright.api.pods import PodInfo
from placewright.framework.events import (
    ASSIGNED_POD_DELETE,
    FORCE_ACTIVATE,
    UNSCHEDULABLE_TIMEOUT,
    ClusterEvent,
    EventResource,
)
from placewright.queue.heap import KeyedHeap
from placewright.queue.hints import EventHints, Requeue, Timed
from placewright.queue.inflight import Flight
from placewright.queue.lane import Lane
from placewright.queue.nominator import Nominator
from placewright.queue.podchanges import pod_update_events, same_version
from placewright.queue.policy import Policies
from placewright.queue.queued import QueuedPod, SubQueue
from placewright.queue.view import QueueView

#: Seconds after which a pod is tried again although no event spoke for it.
MAX_UNSCHEDULABLE_SECONDS: Final = 300.0

#: Labels of moves that are not cluster events, as metrics name them.
POD_ADD: Final = "UnscheduledPodAdd"
ATTEMPT_FAILURE: Final = "ScheduleAttemptFailure"
BACKOFF_COMPLETE: Final = "BackoffComplete"
POP_FROM_BACKOFF: Final = "PopFromBackoffQ"
PROFILE_UPDATE: Final = "ProfileUpdate"
GANG_AGAIN: Final = "GangAgain"

NO_PLUGINS: Final[AbstractSet[str]] = frozenset()


class AlreadyQueuedError(ValueError):
    """A pod was returned that is waiting in the queue already."""


class SchedulingQueue(QueueView):
    """Pods that wait for a node, of all profiles.

    Args:
        policies: the profile of a scheduler name, or None; asked when a name is first seen and in `reprioritise`.
        clock: seconds, monotonic.
        on_incoming: called with (queue, event label) whenever a pod enters active, backoff, unschedulable or gated.
        timed: takes the time of hints.

    Attributes:
        nominator: which pods are nominated to which node.
    """

    def __init__(
        self,
        policies: Policies,
        clock: Callable[[], float],
        on_incoming: Callable[[str, str], None] | None = None,
        timed: Timed | None = None,
    ) -> None:
        super().__init__()
        self.nominator = Nominator()
        self._policies = policies
        self._clock = clock
        self._on_incoming = on_incoming
        self._timed = timed
        self._ready = asyncio.Event()

    # --- pods come, change and go ------------------------------------------------------------------------------------------------

    def add(self, pod: PodInfo) -> None:
        """Take a pod in. A known pod is updated; a namesake with another uid is replaced, unless it was created later."""
        if pod.uid in self._pods:
            self.update(pod)
            return
        namesake = self._uids.get(pod.key)
        if namesake is not None:
            if self._latest(namesake).created > pod.created:
                return
            self.delete(namesake)
        flight = self._flights.get(pod.uid)
        if flight is None:
            queued = QueuedPod(pod, self._clock())
            self._join(queued)
            # Whoever joins a group that backs off waits with it, so that a group cannot be tried again and again by adding pods.
            how = Requeue.IMMEDIATELY if queued.pod_group is None or queued.pod_group.failed_at is None else Requeue.AFTER_BACKOFF
            self._requeue(self._lane(pod.scheduler_name), queued, how, POD_ADD)
        else:  # deleted and back again while it is being tried
            queued, flight.gone = flight.queued, False
            self._change_in_flight(flight, pod)
        self._register(pod, queued)
        self.nominator.add(pod)

    def update(self, pod: PodInfo) -> None:
        """Take over a newer version of a pod, and try it again if that helps it. An unknown pod is added."""
        queued = self._pods.get(pod.uid)
        if queued is None:
            self.add(pod)
            return
        old = self._latest(pod.uid)
        if same_version(old, pod):
            return
        if (old.key, old.scheduler_name) != (pod.key, pod.scheduler_name):  # cannot happen to a real pod
            self.delete(pod.uid)
            self.add(pod)
            return
        self.nominator.update(old, pod)
        flight = self._flights.get(pod.uid)
        if flight is not None:
            self._change_in_flight(flight, pod)
        else:
            self._change_waiting(queued, old, pod)

    def delete(self, uid: str) -> PodInfo | None:
        """Forget a pod; its last version, or None when it is unknown. If it is in flight, its attempt leads nowhere."""
        if uid not in self._pods:
            return None
        pod, pod_group, kept = self._latest(uid), self._pods[uid].pod_group, self.nominator.node_of(uid)
        flight = self._flights.get(uid)
        if flight is not None:
            flight.gone = True
        else:
            self._take_from_lane(uid, pod.scheduler_name)
        self._forget(uid, pod.key)
        if pod_group is not None:
            self.stir(pod_group.ref)
            if kept is not None and not pod.nominated_node:
                # Kept in memory only, so nobody else will tell those who took the room for taken.
                self.move(ASSIGNED_POD_DELETE, pod.on(kept), None, up_to_priority=pod.priority)
        return pod

    def nominate(self, pod: PodInfo, node: NodeName | None = None) -> None:
        """Nominate a pod to a node (see `Nominator.add`); ignored for a pod that has left the queue."""
        if pod.uid in self._pods:
            self.nominator.add(pod, node)

    # --- attempts ----------------------------------------------------------------------------------------------------------------

    def pop(self) -> QueuedPod | None:
        """Hand out the next pod, or None: the first active one, else the one whose backoff ends next; never one after an error.

        The pod is in flight until `done` or `return_unschedulable`.
        """
        heap = self._first(lambda lane: lane.active)
        if heap is None:
            heap = self._first(lambda lane: lane.backoff)
            if heap is not None:
                self._count(SubQueue.ACTIVE, POP_FROM_BACKOFF)
        queued = heap.pop() if heap is not None else None
        if queued is not None:
            self._hand_out(queued, self._lane(queued.pod.scheduler_name))
        return queued

    def take_pod_group(self, popped: QueuedPod) -> list[QueuedPod]:
        """Hand out, with a pod that was popped, the members of its group that may be tried; all of them, highest priority first.

        Wherever they wait: the group is tried as one, when its first member's turn has come. Left out are members of other profiles, those
        that a PreEnqueue plugin keeps back, and those in flight.
        """
        lane, pod_group = self._lane(popped.pod.scheduler_name), popped.pod_group
        if pod_group is None:
            return [popped]
        pod_group.tried_at = self._clock() if pod_group.tried_at is None else pod_group.tried_at
        taken = [q for q in pod_group.members.values() if q is popped or self._may_go_with(q, lane)]
        for queued in taken:
            if queued is not popped:
                lane.take(queued.uid)
                queued.gated = False
                self._hand_out(queued, lane)
        return sorted(taken, key=lambda q: -q.pod.priority)

    def pod_group_failed(self, ref: GroupRef, lacks: str = "") -> None:
        """A group was tried as one, and stays without nodes, as it `lacks` something: its members, returned next, back off together."""
        if (pod_group := self.pod_groups.get(ref)) is not None:
            pod_group.failed(self._clock(), lacks)

    def pod_group_placed(self, ref: GroupRef) -> None:
        """A group has what it needs: what is left of it in the queue are pods like any other."""
        if (pod_group := self.pod_groups.get(ref)) is not None:
            pod_group.placed()

    async def wait_for_pod(self) -> None:
        """Return as soon as `pop` has something to hand out."""
        while not any(lane.open and (lane.active or lane.backoff) for lane in self._lanes.values()):
            self._ready.clear()
            await self._ready.wait()

    def hold(self, scheduler_name: str) -> None:
        """Hand out no pod of this scheduler name until `release`; the others go on."""
        self._lane(scheduler_name).held = True

    def release(self, scheduler_name: str) -> None:
        """End `hold`; harmless where nobody holds."""
        lane = self._lanes.get(scheduler_name)
        if lane is not None and lane.held:
            lane.held = False
            self._ready.set()

    def done(self, uid: str) -> None:
        """End a pod's attempt for good: it has a node. Harmless for a pod that was returned."""
        flight = self._flights.end(uid)
        if flight is not None and not flight.gone:
            self._forget(uid, flight.latest.key)

    def return_unschedulable(
        self,
        queued: QueuedPod,
        unschedulable_plugins: AbstractSet[str] = NO_PLUGINS,
        pending_plugins: AbstractSet[str] = NO_PLUGINS,
    ) -> SubQueue | None:
        """End a pod's attempt without a node; where the pod waits now, or None when it was deleted or replaced meanwhile.

        Without plugins the attempt failed by error. With plugins, the events that happened since `pop` are put before them, so that a
        change in mid-attempt is not missed. Raises `AlreadyQueuedError` for a pod that is not in flight but waiting.
        """
        uid = queued.uid
        flight = self._flights.get(uid)
        if flight is None and uid in self._pods:
            raise AlreadyQueuedError(f"Pod {queued.key} is already present in the {self.locate(uid)} queue")
        if flight.gone if flight else queued.key in self._uids:
            self._flights.end(uid)
            return None
        if flight is not None and flight.latest is not queued.pod:
            queued.pod = flight.latest
            self._regroup(queued)
        queued.record_failure(self._clock(), unschedulable_plugins, pending_plugins)
        lane = self._lane(queued.pod.scheduler_name)
        how = Requeue.AFTER_BACKOFF
        if flight is not None:
            how = lane.after_failure(queued, flight.hints, self._flights.missed(flight))
        place = self._requeue(lane, queued, how, ATTEMPT_FAILURE)
        self._flights.end(uid)
        self._register(queued.pod, queued)
        return place

    # --- what brings pods back ---------------------------------------------------------------------------------------------------

    def move(
        self,
        event: ClusterEvent,
        old: Any = None,
        new: Any = None,
        *,
        except_uid: str = "",
        up_to_priority: int | None = None,
    ) -> int:
        """Something happened in the cluster: try the pods again that it could help; the number of pods moved.

        `old` and `new` are the object before and after; pods as `PodInfo`. The pod of `except_uid` is left where it waits, and so are
        those of a priority above `up_to_priority`.
        """
        lanes = [lane for lane in self._lanes.values() if lane.served]
        if event.resource is EventResource.ASSIGNED_POD and isinstance(new, PodInfo) and new.pod_group is not None:
            self._reopen(new.pod_group, event.label)
        if self._flights and any(lane.hints.wanted(event) for lane in lanes):
            self._flights.record(event, old, new)
        moved = 0
        for lane in lanes:
            hints = lane.hints.about(event)
            for queued in self._within_reach(lane, event, old, new):
                if queued.uid != except_uid and (up_to_priority is None or queued.pod.priority <= up_to_priority):
                    moved += self._move(lane, queued, hints, event.label, old, new)
        return moved

    def activate(self, pods: Iterable[PodInfo]) -> None:
        """Try these pods now, whatever they are waiting for; those in flight are tried again, those unknown are ignored."""
        for pod in pods:
            flight = self._flights.get(pod.uid)
            queued = self._pods.get(pod.uid)
            if flight is not None:
                self._flights.record(FORCE_ACTIVATE, None, flight.latest)
            elif queued is not None:
                lane = self._lane(queued.pod.scheduler_name)
                if lane.served and pod.uid not in lane.active:
                    self._requeue(lane, queued, Requeue.IMMEDIATELY, FORCE_ACTIVATE.label)

    def stir(self, ref: GroupRef) -> None:
        """Try a group again once its backoff is over, whatever its members wait for; one of them brings all.

        When a member is gone, what the others were tried with is not what they would be tried with now.
        """
        pod_group = self.pod_groups.get(ref)
        for queued in () if pod_group is None else pod_group.members.values():
            lane = self._lanes.get(queued.pod.scheduler_name)
            if lane is not None and lane.served and queued.uid in lane.unschedulable:
                self._requeue(lane, queued, Requeue.AFTER_BACKOFF, GANG_AGAIN)
                return

    def retry(self, uid: str) -> None:
        """Try this pod again once its backoff is over; one that is active, in flight or unknown is left alone."""
        queued = self._pods.get(uid)
        if queued is not None and self.locate(uid) in (SubQueue.UNSCHEDULABLE, SubQueue.GATED):
            self._requeue(self._lane(queued.pod.scheduler_name), queued, Requeue.AFTER_BACKOFF, FORCE_ACTIVATE.label)

    def lift_gate(self, uid: str) -> bool:
        """Let a gated pod wait for events like a rejected one, if no PreEnqueue plugin keeps it back any longer; True if so."""
        queued = self._pods.get(uid)
        if queued is None or self.locate(uid) is not SubQueue.GATED:
            return False
        lane = self._lane(queued.pod.scheduler_name)
        if not lane.policy.pre_enqueue(queued.pod).ok:
            return False
        lane.enter(queued, Requeue.SKIP, self._clock())
        queued.recalled = True
        return True

    def flush_backoff(self) -> int:
        """Make pods active whose backoff is over; their number. To be called at every whole second of the clock."""
        now = self._clock()
        moved = sum(lane.end_backoff(now) for lane in self._lanes.values() if lane.served)
        for _ in range(moved):
            self._count(SubQueue.ACTIVE, BACKOFF_COMPLETE)
        if moved:
            self._ready.set()
        return moved

    def flush_unschedulable(self, max_wait: float = MAX_UNSCHEDULABLE_SECONDS) -> int:
        """Try pods again that have waited longer than `max_wait` seconds for an event; their number. To be called every 30 s."""
        oldest = self._clock() - max_wait
        moved = 0
        for lane in self._lanes.values():
            late = [queued for queued in lane.unschedulable if queued.timestamp < oldest] if lane.served else []
            for queued in late:
                queued.flushed = True
                self._requeue(lane, queued, Requeue.AFTER_BACKOFF, UNSCHEDULABLE_TIMEOUT.label)
            moved += len(late)
        return moved

    @property
    def next_backoff_expiry(self) -> float | None:
        """When `flush_backoff` next has something to do, in seconds of the clock; None while nothing backs off."""
        expiries = (lane.next_backoff_expiry() for lane in self._lanes.values())
        return min((expiry for expiry in expiries if expiry is not None), default=None)

    def reprioritise(self, scheduler_name: str, reconsidered: AbstractSet[str] | None = NO_PLUGINS) -> None:
        """A profile came, changed, was paused, resumed or went: take over its new order, backoff, gates and hints.

        Pods keep their place, but gated ones are checked again, and those that a plugin of `reconsidered` rejected (None: any plugin), or
        only disabled ones did, are tried again after their backoff. Without a profile its pods wait as unschedulable until it is back.
        """
        lane = self._lanes.get(scheduler_name)
        if lane is None:
            return
        returned = not lane.served
        lane.adopt(self._policies(scheduler_name))
        if not lane.served:
            self._drop_if_idle(lane)
            return
        anybody = returned or reconsidered is None
        rejected = [
            q for q in lane.unschedulable if anybody or not lane.speaks_for(q) or not q.rejecting_plugins.isdisjoint(reconsidered or ())
        ]
        for queued in [*lane.gated, *rejected]:
            self._requeue(lane, queued, Requeue.AFTER_BACKOFF, PROFILE_UPDATE)
        self._ready.set()

    # --- inside ------------------------------------------------------------------------------------------------------------------

    def _requeue(self, lane: Lane, queued: QueuedPod, how: Requeue, label: str) -> SubQueue:
        """Put a pod, wherever it was in its lane, into the place it belongs to now."""
        still_gated = queued.gated
        place = lane.enter(queued, how, self._clock())
        if place is SubQueue.GATED and still_gated:
            return place
        self._count(place, label)
        if place is SubQueue.ACTIVE or place is SubQueue.BACKOFF:
            self._ready.set()
        return place

    def _within_reach(self, lane: Lane, event: ClusterEvent, old: Any, new: Any) -> list[QueuedPod]:
        """The pods of a lane whose hints are to be asked."""
        if event.resource is EventResource.POD_GROUP:  # there may be thousands of groups: news of one is no news to the others
            if new is None:
                return []
            return [q for q in self.pod_groups.declared_by(new) if q.pod.scheduler_name == lane.name and lane.waits(q)]
        return lane.candidates(event, old, new)

    def _move(self, lane: Lane, queued: QueuedPod, hints: EventHints, label: str, old: Any, new: Any) -> bool:
        """True when the event took the pod out of where it was waiting."""
        how = hints.worth(queued, old, new)
        return how is not Requeue.SKIP and self._requeue(lane, queued, how, label) is not SubQueue.GATED

    def _may_go_with(self, queued: QueuedPod, lane: Lane) -> bool:
        """Whether this pod of a group may be handed out with another one of this lane."""
        if self._flights.get(queued.uid) is not None or queued.pod.scheduler_name != lane.name:
            return False
        return lane.policy.pre_enqueue(queued.pod).ok

    def _hand_out(self, queued: QueuedPod, lane: Lane) -> None:
        queued.attempts += 1
        if queued.initial_attempt_timestamp is None:
            queued.initial_attempt_timestamp = self._clock()
        self._flights.begin(queued, lane.hints)

    def _regroup(self, queued: QueuedPod) -> None:
        """List the pod with the group that it names now, if it is not."""
        if queued.pod.pod_group != (None if queued.pod_group is None else queued.pod_group.ref):
            self._join(queued)

    def _join(self, queued: QueuedPod) -> None:
        """Note which group the pod belongs to; all its members' turns change when its first one does."""
        before = queued.pod_group.first if queued.pod_group is not None and queued.pod_group.members else None
        self.pod_groups.join(queued, self._clock())
        pod_group = queued.pod_group
        if pod_group is None or len(pod_group.members) == 1 or pod_group.first is before:
            return
        for member in pod_group.members.values():
            lane = self._lanes.get(member.pod.scheduler_name)
            if lane is not None and lane.served:
                lane.resort(member)

    def _reopen(self, ref: GroupRef, label: str) -> None:
        """A member stands on a node: others may have been kept back only because too few were known."""
        pod_group = self.pod_groups.get(ref)
        gated = [queued for queued in pod_group.members.values() if queued.gated] if pod_group is not None else []
        for queued in gated:
            lane = self._lane(queued.pod.scheduler_name)
            if not lane.served or self._requeue(lane, queued, Requeue.AFTER_BACKOFF, label) is SubQueue.GATED:
                return

    def _change_waiting(self, queued: QueuedPod, old: PodInfo, new: PodInfo) -> None:
        queued.pod = new
        if queued.pod_group is not None or new.pod_group is not None:
            self._join(queued)
        lane = self._lane(new.scheduler_name)
        if not lane.served:
            return
        if lane.place_of(new.uid) in (SubQueue.ACTIVE, SubQueue.BACKOFF):
            lane.resort(queued)
            return
        for event in pod_update_events(old, new):
            if self._move(lane, queued, lane.hints.about(event), event.label, old, new):
                return

    def _change_in_flight(self, flight: Flight, new: PodInfo) -> None:
        for event in pod_update_events(flight.latest, new):
            self._flights.record(event, flight.latest, new)
        flight.latest = new

    def _first(self, heap_of: Callable[[Lane], KeyedHeap[QueuedPod]]) -> KeyedHeap[QueuedPod] | None:
        """Among the profiles that hand out pods, the heap whose first pod comes first."""
        best, best_key = None, None
        for lane in self._lanes.values():
            heap = heap_of(lane)
            key = heap.first_key() if lane.open else None
            if key is not None and (best_key is None or key < best_key):
                best, best_key = heap, key
        return best

    def _lane(self, scheduler_name: str) -> Lane:
        lane = self._lanes.get(scheduler_name)
        if lane is None:
            lane = self._lanes[scheduler_name] = Lane(scheduler_name, self._policies(scheduler_name), self._timed)
        return lane

    def _take_from_lane(self, uid: str, scheduler_name: str) -> None:
        lane = self._lane(scheduler_name)
        lane.take(uid)
        self._drop_if_idle(lane)

    def _drop_if_idle(self, lane: Lane) -> None:
        """Scheduler names that no profile claims are other people's; do not keep them all."""
        if not lane.served and not len(lane):
            del self._lanes[lane.name]

    def _register(self, pod: PodInfo, queued: QueuedPod) -> None:
        self._regroup(queued)
        self._pods[pod.uid] = queued
        self._uids[pod.key] = pod.uid

    def _forget(self, uid: str, key: PodKey) -> None:
        self.pod_groups.leave(self._pods.pop(uid))
        del self._uids[key]
        self.nominator.delete(uid)

    def _count(self, place: SubQueue, label: str) -> None:
        if self._on_incoming is not None:
            self._on_incoming(place.value, label)
