"""The waiting pods of one scheduler name: its sub-queues, and the moves between them.

Each profile has a queue of its own, so that pausing, removing or changing a profile touches only its pods. A queue without a
profile parks all its pods as unschedulable until a profile claims the name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from itertools import chain
from typing import Any, Final

from placewright.api.pods import PodInfo
from placewright.framework.events import ClusterEvent
from placewright.queue.fairheap import FairHeap
from placewright.queue.givingup import WaitLimit
from placewright.queue.hints import Hints, Reached, Requeue, Timed, UnschedulablePods
from placewright.queue.inflight import InFlightEvent, Lane, ProfileRoom, RoomSizes
from placewright.queue.order import KeyedHeap, LanedHeap, Order, OrderTransition
from placewright.queue.policy import BackoffPolicy, NoPolicy, Policies, QueuePolicy, SortKey, TenantPolicy
from placewright.queue.queued import WINDOW_SECONDS, ChangedPods, QueuedPod, Sizes, SubQueue, window_of


class ProfileQueue:
    """Pods of one scheduler name that are not in flight; each is in exactly one of six structures.

    Args:
        name: the scheduler name.
        policy: the profile; None parks all pods as unschedulable.
        queues: the queues of all profiles, this one among them.

    Attributes:
        name: the scheduler name.
        room: places for the profile's pods on their way to nodes, by namespace.
        active: pods to be tried, in the profile's order, or with fairness in the order of its tenants' turns.
        backoff: pods that a plugin rejected, by the window in which their backoff ends, then in the profile's order.
        error_backoff: pods that came back because of an error; never tried early.
        suspects: pods that are tried only when no other pod is active (`queue.suspects`), by the end of their wait.
        unschedulable: pods that wait for an event, by rejecting plugin.
        gated: pods that a PreEnqueue plugin gates, by that plugin.
        fair: the tenants' turns, which `active` is or becomes; None without fairness.
        held: True while no pod is handed out, because the next decision would not know of a decision under way.
        sifted: False while no pod is handed out, because the profile's new generation still has pods to gate.
        hints: the profile's queueing hints.
        wait_limit: limit after which waiting pods are given up; None if the profile gives up no pod.
        parts: the structures that hold the pods, with their sub-queues.
    """

    __slots__ = (
        "_policy", "_queues", "_sorted_by", "active", "backoff", "error_backoff", "fair", "gated", "held", "hints", "name", "parts",
        "room", "sifted", "suspects", "unschedulable", "wait_limit",
    )  # fmt: skip

    def __init__(self, name: str, policy: QueuePolicy | None, queues: ProfileQueues) -> None:
        self.name: Final = name
        self._queues = queues
        self._policy: QueuePolicy | None = None
        self._sorted_by: tuple[Hashable, BackoffPolicy | None] = (None, None)
        self.held, self.sifted = False, True
        self.room: Final = ProfileRoom(queues.places, self._has_room)
        self.backoff: KeyedHeap[QueuedPod] = KeyedHeap()
        self.error_backoff: KeyedHeap[QueuedPod] = KeyedHeap()
        self.suspects: KeyedHeap[QueuedPod] = KeyedHeap()
        self.hints = Hints({})
        self.unschedulable = UnschedulablePods(self.hints.keys_of)
        self.gated = UnschedulablePods(self.hints.keys_of)
        self.wait_limit: WaitLimit | None = None
        self.fair: FairHeap | None = None
        self._order_by(self._new_order(None))
        self.adopt(policy)

    @property
    def served(self) -> bool:
        """True while a profile claims this scheduler name."""
        return self._policy is not None

    @property
    def open(self) -> bool:
        """True while pods may be handed out: an active profile claims the name, and the queue is sifted and not held."""
        return self._policy is not None and not self._policy.paused and not self.held and self.sifted

    @property
    def policy(self) -> QueuePolicy:
        """The profile.

        Raises:
            NoPolicy: no profile claims this scheduler name.
        """
        if self._policy is None:
            raise NoPolicy(f"no profile claims schedulerName {self.name!r}; its pods wait")
        return self._policy

    def adopt(self, policy: QueuePolicy | None) -> None:
        """Replace the profile; without a profile (None) all pods are parked.

        If the order changes, pods in backoff are sorted anew, and active pods begin to move to it: see `sort_some`.
        """
        self._policy = policy
        if policy is not None:
            self._adopt_order(policy)
        self.hints = Hints(policy.interests if policy else {}, self._queues.timed)
        for waiting in (self.unschedulable, self.gated):
            waiting.index_anew(self.hints.keys_of)
        if policy is None:
            for _, queued in list(self.waiting()):
                self._wait(queued, SubQueue.UNSCHEDULABLE)
            return
        if self.wait_limit is None and policy.give_up_after is not None:
            self.wait_limit = WaitLimit(self.name)
        if self.wait_limit is not None:
            self.wait_limit.change(policy.give_up_after, chain(self.unschedulable, self.gated))

    def _adopt_order(self, policy: QueuePolicy) -> None:
        (keys, backoff), tenants, before = self._sorted_by, policy.tenants, self.fair
        self._sorted_by = (policy.order, policy.backoff)
        if keys != policy.order or backoff != policy.backoff:
            for heap in (self.backoff, self.error_backoff):
                heap.rekey(lambda queued: _backoff_key(queued, policy))
        if keys != policy.order or (before and before.policy.by) != (tenants and tenants.by):
            then = self._new_order(tenants)
            self._order_by(OrderTransition(self.active, then, lambda queued: queued.sort_key(policy)) if len(self.active) else then)
        elif before is not None and tenants is not None:
            before.policy = tenants

    def _new_order(self, tenants: TenantPolicy | None) -> Order:
        """Make the order of the profile's active pods, without pods, and note it in `fair` if tenants take turns."""
        self.fair, room = None, self.room
        if tenants is None:
            return LanedHeap(self.lane_of, room.may_enter, lambda: room.full)
        self.fair = FairHeap(tenants, self.lane_of, room.may_enter, lambda: room.full, self._queues.clock)
        return self.fair

    def _order_by(self, active: Order) -> None:
        self.active = active
        self.parts = (
            (SubQueue.ACTIVE, active),
            (SubQueue.BACKOFF, self.backoff),
            (SubQueue.BACKOFF, self.error_backoff),
            (SubQueue.BACKOFF, self.suspects),
            (SubQueue.UNSCHEDULABLE, self.unschedulable),
            (SubQueue.GATED, self.gated),
        )

    def sort_some(self, most: int | None = None) -> int:
        """Move active pods, at most `most`, to the order of the present profile; return how many were looked at, 0 when all are in it."""
        moving = self.active
        if not isinstance(moving, OrderTransition):
            return 0
        looked_at = moving.move(most)
        if not looked_at or most is None:
            self._order_by(moving.then)
        return looked_at

    def pop_early(self) -> tuple[QueuedPod, Lane]:
        """Hand out the pod whose backoff ends next, with its lane; the caller knows that there is one."""
        queued = self.backoff.pop()
        assert queued is not None  # the caller has seen that there is one
        if self.fair is not None:
            self.fair.charge(queued)
        return queued, self.lane_of(queued)

    def lane_of(self, queued: QueuedPod) -> Lane:
        """Find the lane of a pod of this profile."""
        pod, policy = queued.pod, self._policy
        return Lane(pod.namespace, "" if policy is None else policy.binding_extender(pod), pod.pod_group is not None)

    def _has_room(self) -> None:
        """Let pods of lanes that found no place be handed out again, after a place was left."""
        if self.active or self.backoff:
            self.active.reopen()
            self._queues.ready()

    @property
    def may_try_early(self) -> bool:
        """True when the pod whose backoff ends next may be handed out before that."""
        queued = self.backoff.first()
        return queued is not None and not self.room.full and self.room.may_enter(self.lane_of(queued))

    def __len__(self) -> int:
        return sum(len(part) for _, part in self.parts)

    def waiting(self) -> Iterator[tuple[SubQueue, QueuedPod]]:
        """Iterate over all pods with their sub-queues."""
        return ((place, queued) for place, part in self.parts for queued in part)

    def move(self, queued: QueuedPod, place: SubQueue | None) -> None:
        """Take a pod out of the structure that holds it, if any, on its way to a sub-queue."""
        self._queues.changed.note(queued.uid)
        for each, part in self.parts:
            if each is queued.place:
                part.remove(queued.uid)
        queued.goes_to(place)

    def take_along(self, queued: QueuedPod) -> Lane:
        """Take out a pod that goes with the pod of its group whose turn it is, and return its lane. Its tenant is charged."""
        self.move(queued, SubQueue.IN_FLIGHT)
        if self.fair is not None:
            self.fair.charge(queued)
        return self.lane_of(queued)

    def enter(self, queued: QueuedPod, how: Requeue, now: float) -> SubQueue:
        """Put a pod into the sub-queue that it belongs to now, out of the structure that held it.

        PreEnqueue is asked before anything is changed: if it raises, the pod is still where it was.

        Args:
            queued: a pod of this scheduler name, not in flight.
            how: whether the pod waits for an event, backs off first, or is tried at once.
            now: seconds on the queue's clock.
        """
        policy = self._policy
        if how is Requeue.SKIP or policy is None:
            return self._wait(queued, SubQueue.UNSCHEDULABLE)
        status = policy.pre_enqueue(queued.pod)
        if not status.ok:
            queued.gating_plugin = status.plugin
            queued.unschedulable_plugins |= {status.plugin}
            return self._wait(queued, SubQueue.GATED)
        if queued.suspicion is not None:
            return self._put(queued, SubQueue.BACKOFF, self.suspects, (queued.suspicion.not_before,))
        window = queued.backing_off_until(policy.backoff, now) if how is Requeue.AFTER_BACKOFF else None
        if window is not None:
            heap = self.backoff if queued.rejected and not queued.full_backoff else self.error_backoff
            return self._put(queued, SubQueue.BACKOFF, heap, (window, queued.sort_key(policy)))
        return self._make_active(queued, policy, now)

    def _put(self, queued: QueuedPod, place: SubQueue, heap: Order | KeyedHeap[QueuedPod], key: SortKey) -> SubQueue:
        self.move(queued, place)
        heap.push(queued.uid, key, queued)
        return place

    def _make_active(self, queued: QueuedPod, policy: QueuePolicy, now: float) -> SubQueue:
        if queued.initial_attempt_timestamp is None:
            queued.initial_attempt_timestamp = now
        return self._put(queued, SubQueue.ACTIVE, self.active, queued.sort_key(policy))

    def _wait(self, queued: QueuedPod, place: SubQueue) -> SubQueue:
        """Let a pod wait for events of the plugins that rejected it, or of the plugin that gates it."""
        self.move(queued, place)
        if place is SubQueue.GATED:
            self.gated.put(queued, (queued.gating_plugin,))
        else:
            self.unschedulable.put(queued, queued.rejecting_plugins)
        if self.wait_limit is not None:
            self.wait_limit.note(queued)
        return place

    def sizes(self) -> tuple[int, int, int, int]:
        """Return the number of active, backing off, unschedulable and gated pods."""
        backing_off = len(self.backoff) + len(self.error_backoff) + len(self.suspects)
        return len(self.active), backing_off, len(self.unschedulable), len(self.gated)

    def reach(self, event: ClusterEvent, old: Any, new: Any, *, keyed: bool = True) -> list[Reached]:
        """Find the waiting pods whose rejecting or gating plugin listens for an event; a pod of several plugins several times.

        Args:
            event: its kind and label.
            old: the event's object before; None when it appeared.
            new: the event's object after; None when it is gone.
            keyed: choose by keys. Without, the result covers every event of this kind, whichever object it is about.

        Returns:
            The pods of each plugin; after a wildcard event all unschedulable pods first.
        """
        hints = self.hints.about(event)
        found = [Reached({queued.uid: queued for queued in self.unschedulable}, None)] if event.wildcard else []
        for waiting in (self.unschedulable, self.gated):
            found += waiting.reach(hints, old, new, keyed=keyed)
        return found

    def concerns(self, queued: QueuedPod, event: ClusterEvent, old: Any, new: Any) -> bool:
        """Return whether `reach` would find this one pod.

        Args:
            queued: waits in this queue.
            event: its kind and label.
            old: the event's object before; None when it appeared.
            new: the event's object after; None when it is gone.

        Returns:
            True when a plugin that rejected or gates the pod listens for the event.
        """
        if event.wildcard and not queued.gated:
            return True
        hints = self.hints.about(event)
        rejected_by = (queued.gating_plugin,) if queued.gated else (*queued.unschedulable_plugins, *queued.pending_plugins)
        listening = [of for plugin in rejected_by if (of := hints[plugin]).asked]
        return any(of.narrow is None or not isinstance(new, PodInfo) or of.narrow(queued.pod, old, new) for of in listening)

    def rejections(self) -> Counter[str]:
        """Count the unschedulable and gated pods by the plugin that holds them back."""
        return Counter({plugin: len(pods.held_by(plugin)) for pods in (self.unschedulable, self.gated) for plugin in pods.plugins()})

    def waiting_since(self, oldest: float) -> list[QueuedPod]:
        """Find pods that have waited long for an event.

        Args:
            oldest: seconds on the queue's clock.

        Returns:
            Pods that have waited since before this time, except pods that are given up.
        """
        return [queued for queued in self.unschedulable if queued.timestamp < oldest and queued.given_up_at is None]

    def to_reconsider(self, plugins: AbstractSet[str] | None) -> list[QueuedPod]:
        """Find unschedulable pods whose rejection may not hold any longer.

        Args:
            plugins: plugins whose rejections are in doubt; None for any plugin.

        Returns:
            Pods that one of these plugins or only disabled plugins rejected.
        """
        waiting = self.unschedulable
        if plugins is None:
            return list(waiting)
        doubted = {plugin for plugin in waiting.plugins() if plugin in plugins or not self.hints.knows(plugin)}
        if not doubted:
            return []  # for most changes of a profile, and thousands of pods may wait
        return [queued for queued in waiting if queued.rejecting_plugins & plugins or queued.rejecting_plugins <= doubted]

    def after_failure(self, queued: QueuedPod, began_under: Hints, missed: Iterable[InFlightEvent]) -> Requeue:
        """Return what a failed pod does next, in view of the events during its attempt.

        An attempt under an earlier generation of the profile says little about this generation, so the pod is tried again. A pod that a
        plugin rejected waits for events even if the profile does not list the plugin. An immediate retry could go on forever.

        Args:
            queued: just rejected, or failed by an error.
            began_under: the profile's hints when the attempt began.
            missed: events during the attempt, oldest first.

        Returns:
            AFTER_BACKOFF after an error; otherwise the earliest retry that a hint asks for.
        """
        if not queued.rejected:
            return Requeue.AFTER_BACKOFF
        how = Requeue.SKIP if self.hints is began_under else Requeue.AFTER_BACKOFF
        for event, old, new in missed:
            answer = self.hints.about(event).effect_on(queued, old, new)
            if answer is Requeue.IMMEDIATELY:
                return answer
            if answer is Requeue.AFTER_BACKOFF:
                how = answer
        return how

    def resort(self, queued: QueuedPod) -> None:
        """Give an active or backing-off pod its sort key anew, after the pod changed."""
        if queued.uid in self.active:
            self.active.push(queued.uid, queued.sort_key(self.policy), queued)
            return
        for heap in (self.backoff, self.error_backoff):
            if queued.uid in heap:
                heap.push(queued.uid, _backoff_key(queued, self.policy), queued)

    def end_backoff(self, now: float, most: int | None = None) -> int:
        """Make pods active whose backoff is over. PreEnqueue is not asked again: the pods passed it when they began to back off.

        Args:
            now: seconds on the queue's clock.
            most: pods at most; None for all.

        Returns:
            The number of pods that became active.
        """
        moved, window = 0, window_of(now)
        for heap in (self.backoff, self.error_backoff):
            while moved != most and (key := heap.first_key()) is not None and key[0] < window:
                queued = heap.first()
                assert queued is not None  # it has a key
                self._make_active(queued, self.policy, now)
                moved += 1
        return moved

    def changed(self, queued: QueuedPod) -> None:
        """Index a waiting pod anew, after the pod changed."""
        self._queues.changed.note(queued.uid)
        self.unschedulable.put_anew(queued.uid)
        self.gated.put_anew(queued.uid)


class ProfileQueues(dict[str, ProfileQueue]):
    """The profile queues by scheduler name. Each is made when its first pod comes.

    Args:
        policies: the profile of a scheduler name, or None.
        places: places in each profile's room.
        ready: called when a pod may be handed out that could not be handed out before.
        clock: seconds, monotonic.
        timed: wraps hints to report how long they take; None for no report.

    Attributes:
        changed: notes the pods of all queues that come, move, or go.
    """

    __slots__ = ("_groups_pass", "_policies", "changed", "clock", "places", "ready", "timed")

    def __init__(
        self, policies: Policies, places: RoomSizes, ready: Callable[[], None], clock: Callable[[], float], timed: Timed | None = None
    ) -> None:
        self.places: Final = places
        self.ready: Final = ready
        self.clock: Final = clock
        self.timed: Final = timed
        self.changed: Final = ChangedPods()
        self._policies = policies
        self._groups_pass = True

    def hand_out_groups(self, *, go: bool) -> None:
        """Hand out members of groups, or none of them, because a group is being decided; other pods are not affected."""
        self._groups_pass = go
        for queue in self.values():
            queue.room.groups_pass = go
            queue.active.reopen()
        self.ready()

    def __missing__(self, scheduler_name: str) -> ProfileQueue:
        """Make the queue of a scheduler name, which asks for its profile."""
        queue = self[scheduler_name] = ProfileQueue(scheduler_name, self._policies(scheduler_name), self)
        queue.room.groups_pass = self._groups_pass
        return queue

    def serving(self, scheduler_name: str) -> ProfileQueue | None:
        """Return the queue of this scheduler name if a profile claims the name."""
        queue = self.get(scheduler_name)
        return queue if queue is not None and queue.served else None

    def drop_if_idle(self, queue: ProfileQueue) -> None:
        """Drop an empty queue that no profile claims: other schedulers' names would otherwise collect without end."""
        if not queue.served and not len(queue):
            del self[queue.name]

    def next(self) -> tuple[ProfileQueue | None, bool]:
        """Return the open queue whose first pod comes first.

        Returns:
            (queue, early). `early` is True when the pod is in backoff, which is tried only when no pod is active; the queue is
            None when no pod may be tried.
        """
        first, first_key = None, None
        for queue in self.values():
            if queue.open and (key := queue.active.first_key()) is not None and (first_key is None or key < first_key):
                first, first_key = queue, key
        if first is not None:
            return first, False
        early = [queue for queue in self.values() if queue.open and queue.may_try_early]
        return min(early, key=lambda queue: queue.backoff.first_key() or (), default=None), True

    def wait_limits(self) -> Iterator[WaitLimit]:
        """Iterate over the limits of the profiles that give up pods. A limit is dropped once its last pod has been taken back."""
        for queue in self.values():
            if queue.served and queue.wait_limit is not None:
                yield queue.wait_limit
                if queue.wait_limit.settled:
                    queue.wait_limit = None

    def next_backoff_expiry(self) -> float | None:
        """Return when the next backoff of any profile ends, in seconds; None when no pod backs off."""
        heaps = [heap for queue in self.values() for heap in (queue.backoff, queue.error_backoff)]
        keys = [key for heap in heaps if (key := heap.first_key()) is not None]
        return float(min(key[0] for key in keys) + 1) * WINDOW_SECONDS if keys else None

    def sizes(self, scheduler_name: str | None, in_flight: int) -> Sizes:
        """Count the pods of each sub-queue.

        Args:
            scheduler_name: the profile; None for all profiles.
            in_flight: pods in flight, which the profile queues do not hold.

        Returns:
            The counts, `in_flight` among them.
        """
        each = [queue.sizes() for queue in self.values() if scheduler_name in (None, queue.name)]
        active, backoff, unschedulable, gated = (sum(column) for column in zip((0,) * 4, *each, strict=True))
        return Sizes(active, backoff, unschedulable, gated, in_flight)


#: Puts a waiting pod into the sub-queue that it belongs to now: (queue, pod, how, label of the event).
RequeuePod = Callable[[ProfileQueue, QueuedPod, Requeue, str], SubQueue]


def _backoff_key(queued: QueuedPod, policy: QueuePolicy) -> SortKey:
    return (queued.backoff_window(policy.backoff) or 0, queued.sort_key(policy))
