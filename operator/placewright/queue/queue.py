"""The scheduling queue: every unscheduled pod of ours is in exactly one of active, backoff, unschedulable, gated, in flight.

A pod enters with `add`, is handed out by `pop`, and leaves with `done` (placed) or `delete` (gone), or comes back with
`return_unschedulable`. `move` tells the queue what happened in the cluster; only pods whose rejecting plugins care are looked at.

Everything here runs on one thread; only `wait_for_pod` waits. Facts: kube-scheduler's `backend/queue/scheduling_queue.go`, v1.36.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
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
from placewright.framework.podchanges import pod_update_events, same_version
from placewright.queue.hints import EventHints, Requeue, Timed
from placewright.queue.inflight import InFlightPods
from placewright.queue.nominator import Nominator
from placewright.queue.policy import Policies
from placewright.queue.profilequeue import Making, ProfileQueue, ProfileQueues, Sizes
from placewright.queue.queued import QueuedPod, QueuedPodGroups, SubQueue
from placewright.queue.room import STATED_SIZES, RoomPlace, RoomSizes
from placewright.queue.suspectpods import SuspectPods
from placewright.queue.sweeps import EventSweeps

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
#: Hears of (sub-queue, label of the event) whenever a pod enters one.
Incoming = Callable[[str, str], None]


class AlreadyQueuedError(ValueError):
    """A pod was returned that is waiting in the queue already."""


class SchedulingQueue:
    """Pods that wait for a node, of all profiles.

    Args:
        policies: the profile of a scheduler name, or None; asked when a name is first seen and in `reprioritise`.
        clock: seconds, monotonic.
        on_incoming: called for active, backoff, unschedulable and gated.
        timed: takes the time of hints.
        slices: an event that concerns more waiting pods than this is told to them in slices, by `sweeps.run`; None: all at once.
        sizes: of each profile's room.

    Attributes:
        nominator: which pods are nominated to which node.
        pod_groups: groups that are placed together.
        in_flight: the attempts under way.
        sweeps: what tells waiting pods of events.
        suspects: pods that are tried after all others.
    """

    def __init__(
        self, policies: Policies, clock: Callable[[], float], on_incoming: Incoming | None = None, timed: Timed | None = None,
        slices: int | None = None, sizes: RoomSizes = STATED_SIZES,
    ) -> None:  # fmt: skip
        self.nominator = Nominator()
        self.pod_groups = QueuedPodGroups()
        self._policies = policies
        self._clock = clock
        self._on_incoming = on_incoming
        self._ready = asyncio.Event()
        self._pods: dict[str, QueuedPod] = {}
        self._uids: dict[PodKey, str] = {}
        self._queues = ProfileQueues(policies, Making(sizes, self._ready.set, timed))
        self.in_flight = InFlightPods()
        self._slices = slices
        self.sweeps = EventSweeps(self._queues, self.pod_groups, self._requeue, slices)
        self.suspects = SuspectPods(self._queues, self.in_flight, self._requeue, clock)

    # --- pods come, change and go ------------------------------------------------------------------------------------------------

    def add(self, pod: PodInfo) -> None:
        """Take a pod in, or a newer version of it; a known pod is tried again if that helps it.

        A namesake with another uid is replaced, unless it was created later.
        """
        queued = self._pods.get(pod.uid)
        if queued is None:
            self._take_in(pod)
        else:
            self._change(queued, pod)

    #: A watch's news of a pod may be the first that is heard of it, and its addition may be heard twice, so these are one.
    update = add

    def _take_in(self, pod: PodInfo) -> None:
        namesake = self._uids.get(pod.key)
        if namesake is not None:
            if self._latest(namesake).created > pod.created:
                return
            self.delete(namesake)
        flight = self.in_flight.get(pod.uid)
        if flight is None:
            queued = QueuedPod(pod, self._clock())
            self._join(queued)
            # Whoever joins a group that backs off waits with it, so that a group cannot be tried again and again by adding pods.
            backs_off = queued.pod_group is not None and queued.pod_group.failed_at is not None
            how = Requeue.AFTER_BACKOFF if backs_off else Requeue.IMMEDIATELY
            self._requeue(self._queues.of(pod.scheduler_name), queued, how, POD_ADD)
        else:  # deleted and back again while it is being tried
            queued, flight.gone = flight.queued, False
            self.in_flight.update(flight, pod)
        self._register(pod, queued)
        self.nominator.add(pod)

    def _change(self, queued: QueuedPod, pod: PodInfo) -> None:
        old = self._latest(pod.uid)
        if same_version(old, pod):
            return
        if (old.key, old.scheduler_name) != (pod.key, pod.scheduler_name):  # cannot happen to a real pod
            self.delete(pod.uid)
            self._take_in(pod)
            return
        self.nominator.update(old, pod)
        if (flight := self.in_flight.get(pod.uid)) is not None:
            self.in_flight.update(flight, pod)
        else:
            self._change_waiting(queued, old, pod)

    def _change_waiting(self, queued: QueuedPod, old: PodInfo, new: PodInfo) -> None:
        queue = self._queues.of(new.scheduler_name)
        self.sweeps.catch_up(queue, queued)
        queued.pod = new
        queue.changed(queued)
        if queued.pod_group is not None or new.pod_group is not None:
            self._join(queued)
        if not queue.served:
            return
        if queue.place_of(new.uid) in (SubQueue.ACTIVE, SubQueue.BACKOFF):
            queue.resort(queued)
            return
        events = self.sweeps.noted(pod_update_events(old, new), old, new)
        any(self._move(queue, queued, queue.hints.about(event), event.label, old, new) for event in events)  # the first that helps

    def delete(self, uid: str) -> PodInfo | None:
        """Forget a pod; its last version, or None when it is unknown. If it is in flight, its attempt leads nowhere."""
        if (queued := self._pods.get(uid)) is None:
            return None
        pod, pod_group, kept = self._latest(uid), queued.pod_group, self.nominator.node_of(uid)
        flight = self.in_flight.get(uid)
        if flight is not None:
            flight.gone = True
        else:
            queue = self._queues.of(pod.scheduler_name)
            queue.take(uid)
            self._queues.drop_if_idle(queue)
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

        Passed over are pods for which their profile has no room. The pod is in flight until `done` or `return_unschedulable`.
        """
        queue, early = self._queues.next()
        if queue is None:
            return None
        if early:
            self._count(SubQueue.ACTIVE, POP_FROM_BACKOFF)
        queued = queue.pop(early=early)
        self._hand_out(queued, queue)
        return queued

    def take_pod_group(self, popped: QueuedPod) -> list[QueuedPod]:
        """Hand out, with a pod that was popped, the members of its group that may be tried; all of them, highest priority first.

        Wherever they wait: the group is tried as one, when its first member's turn has come. Left out are members of other profiles, those
        that a PreEnqueue plugin keeps back, and those in flight.
        """
        queue, pod_group = self._queues.of(popped.pod.scheduler_name), popped.pod_group
        if pod_group is None:
            return [popped]
        pod_group.tried_at = self._clock() if pod_group.tried_at is None else pod_group.tried_at
        taken = [q for q in pod_group.members.values() if q is popped or self._may_go_with(q, queue)]
        for queued in (member for member in taken if member is not popped):
            queue.take(queued.uid)
            queued.ungate()
            self._hand_out(queued, queue)
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
        while not self._queues.can_hand_out():
            self._ready.clear()
            await self._ready.wait()

    def hold(self, scheduler_name: str) -> None:
        """Hand out no pod of this scheduler name until `release`; the others go on."""
        self._queues.of(scheduler_name).held = True

    def release(self, scheduler_name: str) -> None:
        """End `hold`; harmless where nobody holds."""
        if (queue := self._queues.get(scheduler_name)) is not None and queue.held:
            queue.held = False
            self._ready.set()

    def done(self, uid: str) -> None:
        """End a pod's attempt for good: it has a node. Harmless for a pod that was returned."""
        flight = self.in_flight.end(uid)
        if flight is not None and not flight.gone:
            self._forget(uid, flight.latest.key)

    def return_unschedulable(
        self, queued: QueuedPod, unschedulable_plugins: AbstractSet[str] = NO_PLUGINS, pending_plugins: AbstractSet[str] = NO_PLUGINS,
        *, filtered: bool = False,
    ) -> SubQueue | None:  # fmt: skip
        """End a pod's attempt without a node; where the pod waits now, or None when it was deleted or replaced meanwhile.

        Without plugins the attempt failed by error. With plugins, the events that happened since `pop` are put before them, so that a
        change in mid-attempt is not missed. `filtered`: no node passed the filters. Raises `AlreadyQueuedError` for a pod that waits.
        """
        uid, flight = queued.uid, self.in_flight.get(queued.uid)
        if flight is None and uid in self._pods:
            raise AlreadyQueuedError(f"Pod {queued.key} is already present in the {self.locate(uid)} queue")
        if flight.gone if flight else queued.key in self._uids:
            self.in_flight.end(uid)
            return None
        if flight is not None:
            queued.pod = flight.latest
            self._regroup(queued)
        queued.record_failure(self._clock(), unschedulable_plugins, pending_plugins, filtered=filtered)
        queue = self._queues.of(queued.pod.scheduler_name)
        how = Requeue.AFTER_BACKOFF
        if flight is not None:
            how = queue.after_failure(queued, flight.hints, self.in_flight.missed(flight))
        place = self._requeue(queue, queued, how, ATTEMPT_FAILURE)
        self.in_flight.end(uid)
        self._register(queued.pod, queued)
        return place

    # --- what brings pods back ---------------------------------------------------------------------------------------------------

    def move(
        self, event: ClusterEvent, old: Any = None, new: Any = None, *, except_uid: str = "", up_to_priority: int | None = None
    ) -> int:
        """Something happened in the cluster: try the pods again that it could help; the number of pods moved by now.

        `old` and `new` are the object before and after; pods as `PodInfo`. The pod of `except_uid` is left where it waits, and so are
        those of a priority above `up_to_priority`.
        """
        if event.resource is EventResource.ASSIGNED_POD and isinstance(new, PodInfo) and new.pod_group is not None:
            self._reopen(new.pod_group, event.label)
        if self.in_flight and any(queue.served and queue.hints.wanted(event) for queue in self._queues):
            self.in_flight.record(event, old, new)
        return self.sweeps.tell(event, old, new, except_uid, up_to_priority)

    def activate(self, pods: Iterable[PodInfo]) -> None:
        """Try these pods now, whatever they are waiting for; those in flight are tried again, those unknown are ignored."""
        for pod in pods:
            flight = self.in_flight.get(pod.uid)
            queued = self._pods.get(pod.uid)
            if flight is not None:
                self.in_flight.record(FORCE_ACTIVATE, None, flight.latest)
            elif queued is not None:
                queue = self._queues.of(queued.pod.scheduler_name)
                if queue.served and pod.uid not in queue.active:
                    self._requeue(queue, queued, Requeue.IMMEDIATELY, FORCE_ACTIVATE.label)

    def stir(self, ref: GroupRef) -> None:
        """Try a group again once its backoff is over, whatever its members wait for; one of them brings all.

        When a member is gone, what the others were tried with is not what they would be tried with now.
        """
        pod_group = self.pod_groups.get(ref)
        for queued in () if pod_group is None else pod_group.members.values():
            queue = self._queues.get(queued.pod.scheduler_name)
            if queue is not None and queue.served and queued.uid in queue.unschedulable:
                self._requeue(queue, queued, Requeue.AFTER_BACKOFF, GANG_AGAIN)
                return

    def retry(self, uid: str, label: str = FORCE_ACTIVATE.label) -> None:
        """Try this pod again once its backoff is over; one that is active, in flight or unknown is left alone. `label`: for metrics."""
        if (queued := self._pods.get(uid)) is not None and self.locate(uid) in (SubQueue.UNSCHEDULABLE, SubQueue.GATED):
            self._requeue(self._queues.of(queued.pod.scheduler_name), queued, Requeue.AFTER_BACKOFF, label)

    def lift_gate(self, uid: str) -> bool:
        """Let a gated pod wait for events like a rejected one, if no PreEnqueue plugin keeps it back any longer; True if so."""
        if (queued := self._pods.get(uid)) is None or self.locate(uid) is not SubQueue.GATED:
            return False
        queue = self._queues.of(queued.pod.scheduler_name)
        if not queue.policy.pre_enqueue(queued.pod).ok:
            return False
        queue.enter(queued, Requeue.SKIP, self._clock())
        queued.recalled = True
        return True

    def flush_backoff(self, most: int | None = None) -> int:
        """Make pods active whose backoff is over, so many at most of a profile; their number. To be called at every whole second."""
        now = self._clock()
        moved = sum(queue.end_backoff(now, most) for queue in self._queues if queue.served)
        for _ in range(moved):
            self._count(SubQueue.ACTIVE, BACKOFF_COMPLETE)
            self._ready.set()
        return moved

    def flush_unschedulable(self, max_wait: float = MAX_UNSCHEDULABLE_SECONDS) -> int:
        """Try pods again that have waited longer than `max_wait` seconds for an event; how many moved by now. To be called every 30 s."""
        oldest = self._clock() - max_wait
        late = [(queue, queued) for queue in self._queues if queue.served for queued in queue.waiting_since(oldest)]
        if self._slices is not None and len(late) > self._slices:
            return self.sweeps.flush(oldest)
        for queue, queued in late:
            queued.flushed = True
            self._requeue(queue, queued, Requeue.AFTER_BACKOFF, UNSCHEDULABLE_TIMEOUT.label)
        return len(late)

    @property
    def next_backoff_expiry(self) -> float | None:
        """When `flush_backoff` next has something to do, in seconds of the clock; None while nothing backs off."""
        return self._queues.next_backoff_expiry()

    def reprioritise(self, scheduler_name: str, reconsidered: AbstractSet[str] | None = NO_PLUGINS) -> None:
        """A profile came, changed, was paused, resumed or went: take over its new order, backoff, gates and hints.

        Pods keep their place, but gated ones are checked again, and those that a plugin of `reconsidered` rejected (None: any plugin), or
        only disabled ones did, are tried again after their backoff. Without a profile its pods wait as unschedulable until it is back.
        """
        queue = self._queues.get(scheduler_name)
        if queue is None:
            return
        self.sweeps.sweep_all()  # in view of the hints that were in effect
        anybody = not queue.served or reconsidered is None
        queue.adopt(self._policies(scheduler_name))
        if not queue.served:
            self._queues.drop_if_idle(queue)
            return
        self.sweeps.requeue_all(queue, [*queue.gated, *queue.to_reconsider(None if anybody else reconsidered)], PROFILE_UPDATE)
        self._ready.set()

    # --- who waits where ---------------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._pods)

    def get(self, uid: str) -> QueuedPod | None:
        """The pod of this uid, wherever it is; None when unknown."""
        return self._pods.get(uid)

    def latest(self, uid: str) -> PodInfo | None:
        """The newest version of a pod, also while an older one is being tried; None when unknown."""
        return self._latest(uid) if uid in self._pods else None

    def uid_of(self, key: PodKey) -> str | None:
        """The uid of the pod of this `namespace/name`, or None."""
        return self._uids.get(key)

    def uids(self) -> AbstractSet[str]:
        """All pods the queue answers for; a view."""
        return self._pods.keys()

    def locate(self, uid: str) -> SubQueue | None:
        """Where a pod is, or None when unknown."""
        if (queued := self._pods.get(uid)) is None:
            return None
        if self.in_flight.get(uid) is not None:
            return SubQueue.IN_FLIGHT
        queue = self._queues.get(queued.pod.scheduler_name)
        return queue.place_of(uid) if queue is not None else None

    def pods(self) -> Iterator[tuple[SubQueue, QueuedPod]]:
        """All pods with their places, read from the places themselves."""
        for queue in self._queues:
            yield from queue.waiting()
        yield from ((SubQueue.IN_FLIGHT, flight.queued) for flight in self.in_flight if not flight.gone)

    def profile_queues(self) -> Iterator[ProfileQueue]:
        """The waiting pods by scheduler name, for reading."""
        return iter(self._queues)

    def sizes(self, scheduler_name: str | None = None) -> Sizes:
        """How many pods are where, of one scheduler name or of all."""
        tried = sum(not each.gone and scheduler_name in (None, each.latest.scheduler_name) for each in self.in_flight)
        return self._queues.sizes(scheduler_name, tried)

    def rejections(self, scheduler_name: str) -> Counter[str]:
        """How many unschedulable and gated pods of a scheduler name each plugin holds back."""
        return sum((queue.rejections() for queue in self._queues if queue.name == scheduler_name), Counter())

    def _latest(self, uid: str) -> PodInfo:
        flight = self.in_flight.get(uid)
        return flight.latest if flight is not None else self._pods[uid].pod

    # --- inside ------------------------------------------------------------------------------------------------------------------

    def _requeue(self, queue: ProfileQueue, queued: QueuedPod, how: Requeue, label: str) -> SubQueue:
        """Put a pod, wherever it was in its queue, into the place it belongs to now."""
        was_gated = queued.gated
        if self.suspects or queued.suspicion is not None:
            self.suspects.judge(queued, label)
        place = queue.enter(queued, how, self._clock())
        queued.told = self.sweeps.happened
        if place is not SubQueue.GATED or not was_gated:
            self._count(place, label)
        if place is SubQueue.ACTIVE or place is SubQueue.BACKOFF:
            self._ready.set()
        return place

    def _move(self, queue: ProfileQueue, queued: QueuedPod, hints: EventHints, label: str, old: Any, new: Any) -> bool:
        """True when the event took the pod out of where it was waiting."""
        how = hints.worth(queued, old, new)
        return how is not Requeue.SKIP and self._requeue(queue, queued, how, label) is not SubQueue.GATED

    def _may_go_with(self, queued: QueuedPod, queue: ProfileQueue) -> bool:
        """Whether this pod of a group may be handed out with another one of this queue."""
        at_hand = self.in_flight.get(queued.uid) is None and queued.pod.scheduler_name == queue.name
        return at_hand and queue.policy.pre_enqueue(queued.pod).ok

    def _hand_out(self, queued: QueuedPod, queue: ProfileQueue) -> None:
        queued.attempts += 1
        queued.seen = self.sweeps.recent.noted
        if queued.initial_attempt_timestamp is None:
            queued.initial_attempt_timestamp = self._clock()
        self.in_flight.begin(queued, queue.hints, RoomPlace(queue.room, queue.lane_of(queued)))

    def _regroup(self, queued: QueuedPod) -> None:
        """List the pod, as it is now, with the group that it names."""
        if queued.pod.pod_group is not None or queued.pod_group is not None:
            self._join(queued)

    def _join(self, queued: QueuedPod) -> None:
        """Note which group the pod belongs to; all its members' turns change when its first one does."""
        joined = None if queued.pod.pod_group is None else self.pod_groups.get(queued.pod.pod_group)
        before = None if joined is None else joined.first
        self.pod_groups.join(queued, self._clock())
        pod_group = queued.pod_group
        if pod_group is None or before is None or pod_group.first is before:
            return
        for member in pod_group.members.values():
            queue = self._queues.get(member.pod.scheduler_name)
            if queue is not None and queue.served:
                queue.resort(member)

    def _reopen(self, ref: GroupRef, label: str) -> None:
        """A member stands on a node: others may have been kept back only because too few were known."""
        pod_group = self.pod_groups.get(ref)
        for queued in () if pod_group is None else tuple(pod_group.gated.values()):
            queue = self._queues.of(queued.pod.scheduler_name)
            if not queue.served or self._requeue(queue, queued, Requeue.AFTER_BACKOFF, label) is SubQueue.GATED:
                return

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
