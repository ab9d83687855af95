"""The scheduling queue: every unscheduled pod of ours is in exactly one of active, backoff, unschedulable, gated, in flight.

A pod enters with `add` and is handed out by `pop`. It leaves with `done` (placed) or `delete` (gone), or comes back with
`return_unschedulable`. `move` reports an event in the cluster, and only pods whose rejecting plugins listen for it are looked at.

All methods run on one thread, and only `wait_for_pod` waits. Facts: kube-scheduler's `backend/queue/scheduling_queue.go`, v1.36.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Any, Final

from placewright.api.objects import NodeName, PodKey
from placewright.api.podgroups import GroupRef
from placewright.api.pods import PodInfo
from placewright.framework.events import ASSIGNED_POD_DELETE, FORCE_ACTIVATE, ClusterEvent, EventResource
from placewright.framework.podchanges import pod_update_events, same_version
from placewright.queue import queued as labels
from placewright.queue.events import Alarms, EventSweeps
from placewright.queue.fairheap import FairTurn
from placewright.queue.givingup import GivingUp
from placewright.queue.hints import Requeue, Timed
from placewright.queue.inflight import STATED_SIZES, InFlightPods, Lane, RoomPlace, RoomSizes
from placewright.queue.nominator import Nominator
from placewright.queue.policy import Policies
from placewright.queue.profilequeue import ProfileQueue, ProfileQueues
from placewright.queue.queued import QueuedPod, QueuedPodGroups, Sizes, SubQueue
from placewright.queue.suspects import SuspectPods

#: Seconds after which a pod is tried again although no event helped it; kube-scheduler's five minutes.
MAX_UNSCHEDULABLE_SECONDS: Final = 300.0

NO_PLUGINS: Final[AbstractSet[str]] = frozenset()
#: Called with (sub-queue, label of the event) whenever a pod enters a sub-queue.
Incoming = Callable[[str, str], None]


class AlreadyQueuedError(ValueError):
    """A pod was returned that is waiting in the queue already."""


class SchedulingQueue:
    """Pods that wait for a node, of all profiles.

    Readers get the facts from the sub-queues themselves, so that a figure in a metric cannot disagree with the pods.

    Example:
        queue.add(pod)                                                         # active
        queued = queue.pop()                                                   # in flight
        queue.return_unschedulable(queued, frozenset({"NodeResourcesFit"}))    # unschedulable
        queue.move(NODE_ADD, None, node)                                       # its hint says QUEUE: backoff

    Args:
        policies: the profile of a scheduler name, or None; asked when a name is first seen and in `reprioritise`.
        clock: seconds, monotonic.
        on_incoming: called when a pod enters active, backoff, unschedulable or gated.
        timed: wraps hints to report how long they take.
        slices: an event that concerns more waiting pods than this is told to them in slices, by `sweeps.run`; None tells all at
            once.
        sizes: places in each profile's room.
        wall: the time of day, seconds since 1970, by which a pod's wait counts from its creation; None counts from its arrival here.

    Attributes:
        in_flight: the attempts under way.
        nominator: the pods that are nominated to each node.
        pod_groups: groups that are placed together.
        changed: the pods that came, moved, or went, for one reader.
        sweeps: tells waiting pods of events.
        alarms: events that happen at a stated time.
        suspects: pods that are tried after all others.
        giving_up: pods that have waited longer than their profile allows.
        wake_ups: the times at which pods are tried again, by uid; nearly always there are none.
        hand_out_groups: method of `ProfileQueues`.
    """

    def __init__(
        self, policies: Policies, clock: Callable[[], float], on_incoming: Incoming | None = None, timed: Timed | None = None,
        slices: int | None = None, sizes: RoomSizes = STATED_SIZES, wall: Callable[[], float] | None = None,
    ) -> None:  # fmt: skip
        self._ready = asyncio.Event()
        self._queues = ProfileQueues(policies, sizes, self._ready.set, clock, timed)
        self._pods: dict[str, QueuedPod] = {}
        self._uids: dict[PodKey, str] = {}
        self._policies = policies
        self._clock = clock
        self._on_incoming = on_incoming
        self.in_flight = InFlightPods()
        self.nominator = Nominator()
        self.pod_groups = QueuedPodGroups()
        self.changed = self._queues.changed
        self.hand_out_groups = self._queues.hand_out_groups
        self.sweeps = EventSweeps(self._queues, self.pod_groups, self._requeue, slices, self._ready.set, clock)
        self.suspects = SuspectPods(self._queues, self.in_flight, self._requeue, clock)
        self.alarms = Alarms(clock, self.move)
        self.giving_up = GivingUp(self._queues.wait_limits, self.changed.note, clock, wall)
        self.wake_ups = Alarms(clock, self.move)

    # --- pods come, change and go ------------------------------------------------------------------------------------------------

    def add(self, pod: PodInfo) -> None:
        """Take a pod in, or its newer version. A waiting pod is tried again if the change helps it.

        A pod of the same name with another uid is replaced if it is older. Watches may show an older pod late.
        """
        queued = self._pods.get(pod.uid)
        if queued is None:
            self._take_in(pod)
        else:
            self._change(queued, pod)

    #: The same as `add`: a watch may report a change of a pod that is new to us, and an addition twice.
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
            # A pod that joins a group in backoff waits with it. Otherwise a controller could have the group tried with every pod it adds.
            backs_off = queued.pod_group is not None and queued.pod_group.failed_at is not None
            how = Requeue.AFTER_BACKOFF if backs_off else Requeue.IMMEDIATELY
            self._requeue(self._queues[pod.scheduler_name], queued, how, labels.POD_ADD)
        else:  # deleted and back again while it is being tried
            queued, flight.gone = flight.queued, False
            self.changed.note(pod.uid)
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
        queue = self._queues[new.scheduler_name]
        self.sweeps.catch_up(queue, queued)
        queued.take_version(new, self._clock())
        queue.changed(queued)
        moved = self._join(queued)
        if not queue.served:
            return
        if not queued.waits:
            queue.resort(queued)
            return
        events = pod_update_events(old, new)
        if moved:  # its rejection was about the former group
            self._requeue(queue, queued, Requeue.AFTER_BACKOFF, events[0].label)
        else:
            self.sweeps.tell_changes(queue, queued, events, old)

    def delete(self, uid: str) -> PodInfo | None:
        """Remove a pod and return its last version; None when the queue does not hold it. An attempt under way ends without effect."""
        if (queued := self._pods.get(uid)) is None:
            return None
        pod, pod_group, kept = self._latest(uid), queued.pod_group, self.nominator.node_of(uid)
        flight = self.in_flight.get(uid)
        if flight is not None:
            flight.gone = True
        else:
            queue = self._queues[pod.scheduler_name]
            queue.move(queued, None)
            self.wake_ups.remove(uid)
            self._queues.drop_if_idle(queue)
        self._forget(uid, pod.key)
        if pod_group is not None:
            self.retry_group(pod_group.ref)
        if kept is not None and not pod.nominated_node:
            # The nomination was in memory only, so no watch will report that its room is free.
            self.move(ASSIGNED_POD_DELETE, pod.on(kept), None, up_to_priority=pod.priority)
        return pod

    def nominate(self, pod: PodInfo, node: NodeName | None = None) -> None:
        """Nominate a pod to a node; ignored for a pod that has left the queue.

        Args:
            pod: a pod in the queue, in its present version.
            node: the node; None takes the node in the pod's status, "" withdraws the nomination.
        """
        if pod.uid in self._pods:
            self.nominator.add(pod, node)

    # --- attempts ----------------------------------------------------------------------------------------------------------------

    def pop(self) -> QueuedPod | None:
        """Hand out the first active pod, or else the pod whose backoff ends next. Return None when no pod may be tried now.

        The pod is in flight until `done` or `return_unschedulable`. A backoff after an error is never cut short. Pods whose lane is full
        in their profile's room are passed over.
        """
        queue, early = self._queues.next()
        if queue is None:
            return None
        if early:
            # While no pod is active, a pod in backoff costs no other its turn (upstream's SchedulerPopFromBackoffQ, 1.33).
            self._count(SubQueue.ACTIVE, labels.POP_FROM_BACKOFF)
        found = queue.pop_early() if early else queue.active.pop()
        assert found is not None  # `next` has seen that there is one
        queued, lane = found
        self._hand_out(queued, queue, lane)
        return queued

    def take_pod_group(self, popped: QueuedPod, beside: Iterable[GroupRef] = ()) -> list[QueuedPod]:
        """Hand out the members of a popped pod's group that may be tried, in whichever sub-queue they wait.

        The group is tried as one when its first member's turn has come. Members of other profiles, gated members and members in
        flight stay.

        Args:
            popped: just handed out by `pop`.
            beside: further groups whose members are tried with it.

        Returns:
            `popped` and the members taken along, highest priority first; only `popped` for a pod without a group.
        """
        queue, pod_group = self._queues[popped.pod.scheduler_name], popped.pod_group
        if pod_group is None:
            return [popped]
        further = (self.pod_groups.get(ref) for ref in beside if ref != pod_group.ref)
        groups = [pod_group, *(group for group in further if group is not None)]
        for group in groups:
            group.tried_at = self._clock() if group.tried_at is None else group.tried_at
        taken = [q for group in groups for q in group.members.values() if q is popped or self._may_go_with(q, queue)]
        for queued in (member for member in taken if member is not popped):
            self._hand_out(queued, queue, queue.take_along(queued))
        return sorted(taken, key=lambda q: -q.pod.priority)

    def pod_group_failed(self, ref: GroupRef, lacks: str = "", *, filtered: bool = False, tried: frozenset[str] = frozenset()) -> None:
        """Note that a group was tried as one without success. Its members, which are returned next, back off together.

        Args:
            ref: the group.
            lacks: its shortage, in words.
            filtered: no node passed the filters for some member.
            tried: topology domains that the next attempt need not begin with.
        """
        if (pod_group := self.pod_groups.get(ref)) is not None:
            pod_group.failed(self._clock(), lacks, filtered=filtered, domains_tried=tried)

    def pod_group_placed(self, ref: GroupRef) -> None:
        """Note that a group has the nodes it needs: members left in the queue are single pods from now on."""
        if (pod_group := self.pod_groups.get(ref)) is not None:
            pod_group.placed()

    async def wait_for_pod(self) -> None:
        """Return as soon as `pop` can hand out a pod."""
        while self._queues.next()[0] is None:
            self._ready.clear()
            await self._ready.wait()

    def hold(self, scheduler_name: str) -> None:
        """Hand out no pod of this scheduler name until `release`; other names are not affected."""
        self._queues[scheduler_name].held = True

    def release(self, scheduler_name: str) -> None:
        """End `hold`; harmless for a name that is not held."""
        if (queue := self._queues.get(scheduler_name)) is not None and queue.held:
            queue.held = False
            self._ready.set()

    def done(self, uid: str) -> None:
        """End the attempt of a pod that has a node, and remove the pod; harmless for a pod that was returned."""
        flight = self.in_flight.end(uid)
        if flight is not None and not flight.gone:
            self._forget(uid, flight.latest.key)

    def return_unschedulable(
        self, queued: QueuedPod, unschedulable_plugins: AbstractSet[str] = NO_PLUGINS, pending_plugins: AbstractSet[str] = NO_PLUGINS,
        *, filtered: bool = False,
    ) -> SubQueue | None:  # fmt: skip
        """End a pod's attempt without a node, and put the pod where it waits.

        If no plugin is named, the attempt failed by error, and the pod backs off. Otherwise the plugins' hints are asked about the
        events since `pop`. So a change during the attempt is not missed.

        Args:
            queued: handed out by `pop`.
            unschedulable_plugins: the plugins that rejected the pod.
            pending_plugins: the plugins that rejected it with PENDING.
            filtered: no node passed the filters.

        Returns:
            The pod's sub-queue; None when the pod was deleted or replaced during the attempt.

        Raises:
            AlreadyQueuedError: the pod waits in the queue already.
        """
        uid, flight = queued.uid, self.in_flight.get(queued.uid)
        if flight is None and uid in self._pods:
            raise AlreadyQueuedError(f"Pod {queued.key} is already present in the {self.locate(uid)} queue")
        if flight.gone if flight else queued.key in self._uids:
            self.in_flight.end(uid)
            return None
        moved = False
        if flight is not None:
            queued.pod = flight.latest
            moved = self._join(queued)
        queued.record_failure(self._clock(), unschedulable_plugins, pending_plugins, filtered=filtered)
        queue = self._queues[queued.pod.scheduler_name]
        how = Requeue.AFTER_BACKOFF
        if flight is not None and not moved:
            how = queue.after_failure(queued, flight.hints, self.in_flight.missed(flight))
        place = self._requeue(queue, queued, how, labels.ATTEMPT_FAILURE)
        self.in_flight.end(uid)
        self._register(queued.pod, queued)
        return place

    # --- events and timeouts ------------------------------------------------------------------------------------------------------

    def move(
        self, event: ClusterEvent, old: Any = None, new: Any = None, *, except_uid: str = "", up_to_priority: int | None = None
    ) -> int:
        """Report an event in the cluster: waiting pods that it could help are tried again.

        Args:
            event: its kind and label.
            old: the object before, pods as `PodInfo`; None when it appeared.
            new: the object after; None when it is gone.
            except_uid: this pod is not told.
            up_to_priority: pods above this priority are not told; None tells all.

        Returns:
            The number of pods moved at once. Pods that are told in slices are not counted.
        """
        # A `PodGroupPlugin` registers no event for members that get a node: it would search all gated pods, and here only the
        # group's own are tried.
        if event.resource is EventResource.ASSIGNED_POD and isinstance(new, PodInfo) and new.pod_group is not None:
            self._reopen(new.pod_group, event.label)
        if self.in_flight and any(queue.served and queue.hints.about(event).wanted for queue in self._queues.values()):
            self.in_flight.record(event, old, new)
        return self.sweeps.tell(event, old, new, except_uid, up_to_priority)

    def activate(self, pods: Iterable[PodInfo]) -> None:
        """Try these pods now, also pods that wait for an event; a pod in flight after its attempt. Unknown pods are ignored."""
        for pod in pods:
            flight = self.in_flight.get(pod.uid)
            queued = self._pods.get(pod.uid)
            if flight is not None:
                self.in_flight.record(FORCE_ACTIVATE, None, flight.latest)
            elif queued is not None:
                queue = self._queues[queued.pod.scheduler_name]
                if queue.served and pod.uid not in queue.active:
                    self._requeue(queue, queued, Requeue.IMMEDIATELY, FORCE_ACTIVATE.label)

    def retry_group(self, ref: GroupRef) -> None:
        """Try a group again after its backoff; one member is enough, because it takes the others along.

        Called when the last attempt says little about the next one, as after a member was deleted.
        """
        pod_group = self.pod_groups.get(ref)
        for queued in () if pod_group is None else pod_group.members.values():
            queue = self._queues.serving(queued.pod.scheduler_name)
            if queue is not None and queued.place is SubQueue.UNSCHEDULABLE:
                self._requeue(queue, queued, Requeue.AFTER_BACKOFF, labels.GANG_AGAIN)
                return

    def retry(self, uid: str, label: str = FORCE_ACTIVATE.label, *, full_backoff: bool = False) -> None:
        """Try a pod again after its backoff. A pod that is active, in flight or unknown is left alone.

        Args:
            uid: the pod.
            label: the event that metrics name.
            full_backoff: not before the backoff ends, even while no pod is active.
        """
        if (queued := self._pods.get(uid)) is not None and queued.waits:
            queued.full_backoff = full_backoff
            self._requeue(self._queues[queued.pod.scheduler_name], queued, Requeue.AFTER_BACKOFF, label)

    def retry_after(self, uid: str, seconds: float) -> None:
        """Try a waiting pod again at a stated time, if it is not tried before; other pods are ignored.

        Its rejection may end by time alone (`FitError.retry_after`). For example, a pod may preempt once a new minute allows more
        evictions. So a pod that is given up is tried again, too.

        Args:
            uid: uid of the pod.
            seconds: seconds from now; the pod's backoff goes on meanwhile.
        """
        if uid in self._pods and self.in_flight.get(uid) is None:
            self.wake_ups.after(max(seconds, 0.0), partial(self._wake, uid), uid)

    def _wake(self, uid: str) -> None:
        queued = self._pods[uid]  # its alarm goes when it is tried or leaves
        queue = self._queues.serving(queued.pod.scheduler_name)
        if queue is not None and queued.place is SubQueue.UNSCHEDULABLE:
            self._requeue(queue, queued, Requeue.AFTER_BACKOFF, labels.TIME_HAS_COME)

    def lift_gate(self, uid: str) -> bool:
        """Let a gated pod wait for events like a rejected pod, if no PreEnqueue plugin gates it any longer; return True if so."""
        if (queued := self._pods.get(uid)) is None or not queued.gated:
            return False
        queue = self._queues[queued.pod.scheduler_name]
        if not queue.policy.pre_enqueue(queued.pod).ok:
            return False
        queue.enter(queued, Requeue.SKIP, self._clock())
        queued.recalled = True
        return True

    def flush_backoff(self, most: int | None = None) -> int:
        """Make pods active whose backoff is over, at most `most` of each profile, and return their number. Called at every whole second."""
        self.wake_ups.ring()
        self.alarms.ring()
        moved = sum(queue.end_backoff(self._clock(), most) for queue in self._queues.values() if queue.served)
        for _ in range(moved):
            self._count(SubQueue.ACTIVE, labels.BACKOFF_COMPLETE)
            self._ready.set()
        return moved

    def flush_unschedulable(self, max_wait: float = MAX_UNSCHEDULABLE_SECONDS) -> int:
        """Try pods again that have waited over `max_wait` seconds for an event. Called every 30 s; returns how many moved at once."""
        return self.sweeps.flush(self._clock() - max_wait)

    def reprioritise(self, scheduler_name: str, reconsidered: AbstractSet[str] | None = NO_PLUGINS) -> None:
        """Read a profile anew that came, changed, was paused, was resumed or went: its order, backoff, gates and hints.

        Pods keep their sub-queue, with two exceptions. Gated pods are checked again. Pods that a plugin of `reconsidered` or only disabled
        plugins rejected are tried again after their backoff. Pods of a profile that is gone wait as
        unschedulable until it returns.

        Args:
            scheduler_name: the name that the profile claims.
            reconsidered: plugins whose rejections no longer hold; None for every plugin.
        """
        queue = self._queues.get(scheduler_name)
        if queue is None:
            return
        self.sweeps.sweep_all()  # events so far are judged by the hints that were in effect when they happened
        anybody = not queue.served or reconsidered is None
        queue.adopt(self._policies(scheduler_name))
        self.sweeps.sort(queue)  # many pods move to another order in slices
        if not queue.served:
            self._queues.drop_if_idle(queue)
            return
        self.sweeps.requeue_all(queue, [*queue.gated, *queue.to_reconsider(None if anybody else reconsidered)], labels.PROFILE_UPDATE)
        self._ready.set()

    # --- reading ------------------------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._pods)

    def get(self, uid: str) -> QueuedPod | None:
        """Find a pod in any sub-queue; None when the queue does not hold it."""
        return self._pods.get(uid)

    def latest(self, uid: str) -> PodInfo | None:
        """Return the newest version of a pod, also while an older one is being tried; None when the queue does not hold the pod."""
        return self._latest(uid) if uid in self._pods else None

    def uid_of(self, key: PodKey) -> str | None:
        """Find the uid of a pod by name; None when the queue does not hold the pod."""
        return self._uids.get(key)

    def uids(self) -> AbstractSet[str]:
        """Return the uids of all pods in the queue; a view."""
        return self._pods.keys()

    def locate(self, uid: str) -> SubQueue | None:
        """Find the sub-queue of a pod; None when the queue does not hold the pod."""
        queued = self._pods.get(uid)
        return None if queued is None else queued.place

    def turn_of(self, uid: str) -> FairTurn | None:
        """Return when an active pod's turn comes; None when the pod is not active, or its profile has no fairness."""
        queued = self._pods.get(uid)
        queue = None if queued is None else self._queues.get(queued.pod.scheduler_name)
        return None if queue is None or queue.fair is None else queue.fair.turn_of(uid)

    def pods(self) -> Iterator[tuple[SubQueue, QueuedPod]]:
        """Iterate over all pods with their sub-queues, read from the sub-queues themselves."""
        for queue in self._queues.values():
            yield from queue.waiting()
        yield from ((SubQueue.IN_FLIGHT, flight.queued) for flight in self.in_flight if not flight.gone)

    def profile_queues(self) -> Iterator[ProfileQueue]:
        """Iterate over the waiting pods by scheduler name, for reading."""
        return iter(self._queues.values())

    def sizes(self, scheduler_name: str | None = None) -> Sizes:
        """Count the pods of each sub-queue, of one profile or of all."""
        tried = sum(not each.gone and scheduler_name in (None, each.latest.scheduler_name) for each in self.in_flight)
        return self._queues.sizes(scheduler_name, tried)

    def rejections(self, scheduler_name: str) -> Counter[str]:
        """Count a profile's unschedulable and gated pods by plugin; a pod counts for each plugin that rejected it."""
        queue = self._queues.get(scheduler_name)
        return Counter() if queue is None else queue.rejections()

    def _latest(self, uid: str) -> PodInfo:
        flight = self.in_flight.get(uid)
        return flight.latest if flight is not None else self._pods[uid].pod

    def first_tried(self, uid: str) -> float | None:
        """Return when a pod could first be tried, in seconds of the clock.

        None for a pod that has been gated since it came, or that the queue does not hold.
        """
        queued = self._pods.get(uid)
        return None if queued is None else queued.initial_attempt_timestamp

    @property
    def next_backoff_expiry(self) -> float | None:
        """When `flush_backoff` next has a pod to move, in seconds of the clock; None while no pod backs off or has a stated time."""
        times = (self._queues.next_backoff_expiry(), self.wake_ups.next)
        return min((time for time in times if time is not None), default=None)

    # --- inside ------------------------------------------------------------------------------------------------------------------

    def _requeue(self, queue: ProfileQueue, queued: QueuedPod, how: Requeue, label: str) -> SubQueue:
        """Put a waiting pod of this queue into the sub-queue that it belongs to now."""
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

    def _may_go_with(self, queued: QueuedPod, queue: ProfileQueue) -> bool:
        """Return whether this member of a group may be handed out with another pod of this queue."""
        at_hand = queued.place is not SubQueue.IN_FLIGHT and queued.pod.scheduler_name == queue.name
        return at_hand and queue.policy.pre_enqueue(queued.pod).ok

    def _hand_out(self, queued: QueuedPod, queue: ProfileQueue, lane: Lane) -> None:
        self.changed.note(queued.uid)
        queued.place = SubQueue.IN_FLIGHT
        queued.attempts += 1
        queued.full_backoff = False
        queued.seen = self.sweeps.recent.noted
        if self.wake_ups:
            self.wake_ups.remove(queued.uid)
        if queued.initial_attempt_timestamp is None:
            queued.initial_attempt_timestamp = self._clock()
        self.in_flight.begin(queued, queue.hints, RoomPlace(queue.room, lane))

    def _join(self, queued: QueuedPod) -> bool:
        """List the pod, in its present version, with the group that it names. A new first member changes the turns of all members.

        Returns:
            True for a pod that was in another group, or in none, before.
        """
        former = queued.pod_group
        if queued.pod.pod_group is None and former is None:
            return False
        joined = None if queued.pod.pod_group is None else self.pod_groups.get(queued.pod.pod_group)
        before = None if joined is None else joined.first
        self.pod_groups.join(queued, self._clock())
        pod_group = queued.pod_group
        if pod_group is not None and before is not None and pod_group.first is not before:
            for member in pod_group.members.values():
                if (queue := self._queues.serving(member.pod.scheduler_name)) is not None:
                    queue.resort(member)
        if pod_group is former:
            return False
        if former is not None:
            self.retry_group(former.ref)
        return True

    def _reopen(self, ref: GroupRef, label: str) -> None:
        """Try gated members of a group again after a member got a node. They may have been gated as too few."""
        pod_group = self.pod_groups.get(ref)
        for queued in () if pod_group is None else tuple(pod_group.gated.values()):
            queue = self._queues[queued.pod.scheduler_name]
            if not queue.served or self._requeue(queue, queued, Requeue.AFTER_BACKOFF, label) is SubQueue.GATED:
                return

    def _register(self, pod: PodInfo, queued: QueuedPod) -> None:
        self._join(queued)
        self._pods[pod.uid] = queued
        self._uids[pod.key] = pod.uid

    def _forget(self, uid: str, key: PodKey) -> None:
        self.changed.note(uid)
        queued = self._pods.pop(uid)
        if self.giving_up.news:
            self.giving_up.news.pop(uid, None)
        queue = self._queues.get(queued.pod.scheduler_name)
        if queue is not None and queue.wait_limit is not None:
            queue.wait_limit.forget(queued)
        self.pod_groups.leave(queued)
        del self._uids[key]
        self.nominator.delete(uid)

    def _count(self, place: SubQueue, label: str) -> None:
        if self._on_incoming is not None:
            self._on_incoming(place.value, label)
