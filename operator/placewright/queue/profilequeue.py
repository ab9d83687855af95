"""The waiting pods of one scheduler name: the places they can be in, and moving between them.

Each profile has a queue of its own, so that pausing, removing or changing a profile touches its pods alone. A queue whose profile does not
exist parks all its pods as unschedulable until there is one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, Final, NamedTuple

from placewright.api.pods import PodInfo
from placewright.framework.events import ClusterEvent, Narrowing
from placewright.queue.heap import KeyedHeap, LanedHeap
from placewright.queue.hints import Hints, Requeue, Timed
from placewright.queue.inflight import InFlightEvent
from placewright.queue.policy import Policies, QueuePolicy, SortKey
from placewright.queue.queued import WINDOW_SECONDS, QueuedPod, SubQueue, window_of
from placewright.queue.room import Lane, ProfileRoom, RoomSizes
from placewright.queue.suspects import Suspicion
from placewright.queue.unschedulablepods import UnschedulablePods


class Making(NamedTuple):
    """What all profiles' queues are made with.

    Attributes:
        sizes: of each profile's room.
        ready: called when a pod may be handed out that could not be before.
        timed: takes the time of hints.
    """

    sizes: RoomSizes
    ready: Callable[[], None]
    timed: Timed | None


class Sizes(NamedTuple):
    """How many pods are in each place."""

    active: int
    backoff: int
    unschedulable: int
    gated: int
    in_flight: int


class Reached(NamedTuple):
    """Pods that an event may concern, by uid; `narrow`: where there is one, it says which (see `ClusterEventWithHint.narrow`)."""

    pods: Mapping[str, QueuedPod]
    narrow: Narrowing | None

    def chosen(self, old: Any, new: Any) -> Mapping[str, QueuedPod]:
        """Those whose hints are to be asked."""
        narrow = self.narrow
        return self.pods if narrow is None else {uid: queued for uid, queued in self.pods.items() if narrow(queued.pod, old, new)}


class NoPolicy(RuntimeError):
    """A queue was asked for something that only a profile can say, while it has none."""


class ProfileQueue:
    """Pods of one scheduler name that are not in flight; each is in exactly one of the six structures.

    Attributes:
        name: the scheduler name.
        room: how many of the profile's pods may be on their way at once, and whose.
        active: pods to be tried, in the profile's order.
        backoff: pods that a plugin rejected, by the window in which their backoff ends, then in the profile's order.
        error_backoff: pods that came back because of an error; never tried early.
        suspects: pods that are let in when nothing else is to be done (see `queue.suspects`), by when their wait is over.
        unschedulable: pods waiting for an event, by rejecting plugin.
        gated: pods kept out by a PreEnqueue plugin, by that plugin.
        held: True while no pod is handed out, because one of the queue is being decided and others would not know of it.
    """

    __slots__ = (
        "_policy", "_ready", "_timed", "active", "backoff", "error_backoff", "gated", "held", "hints", "name", "room", "suspects",
        "unschedulable",
    )  # fmt: skip

    def __init__(self, name: str, policy: QueuePolicy | None, made: Making) -> None:
        self.name: Final = name
        self._timed = made.timed
        self._ready = made.ready
        self.room: Final = ProfileRoom(made.sizes, self._has_room)
        self.active: LanedHeap[QueuedPod, Lane] = LanedHeap(self.lane_of, self.room.may_enter, lambda: self.room.full)
        self.backoff: KeyedHeap[QueuedPod] = KeyedHeap()
        self.error_backoff: KeyedHeap[QueuedPod] = KeyedHeap()
        self.suspects: KeyedHeap[QueuedPod] = KeyedHeap()
        self.held = False
        self._policy = policy
        self.hints = Hints(policy.interests if policy else {}, made.timed)
        self.unschedulable = UnschedulablePods(self.hints.keys_of)
        self.gated = UnschedulablePods(self.hints.keys_of)

    @property
    def served(self) -> bool:
        """True while a profile claims this scheduler name."""
        return self._policy is not None

    @property
    def open(self) -> bool:
        """True while pods may be handed out: there is a profile, it is not paused, and nobody holds the queue."""
        return self._policy is not None and not self._policy.paused and not self.held

    @property
    def policy(self) -> QueuePolicy:
        """The profile; raises `NoPolicy` while there is none."""
        if self._policy is None:
            raise NoPolicy(f"no profile claims schedulerName {self.name!r}; its pods wait")
        return self._policy

    def adopt(self, policy: QueuePolicy | None) -> None:
        """Use another profile from now on: active and backing-off pods are sorted anew, or all are parked when there is none."""
        if policy is not None:
            self._policy = policy
            self.active.rekey(lambda queued: queued.turn(policy))
            for heap in (self.backoff, self.error_backoff):
                heap.rekey(lambda queued: _backoff_key(queued, policy))
        self._policy = policy
        self.hints = Hints(policy.interests if policy else {}, self._timed)
        for waiting in (self.unschedulable, self.gated):
            waiting.index_anew(self.hints.keys_of)
        if policy is None:
            for _, queued in list(self.waiting()):
                self._park(queued)

    def pop(self, *, early: bool) -> QueuedPod:
        """Hand out the first active pod that there is room for, or (`early`) the one whose backoff ends next; there has to be one."""
        queued = self.backoff.pop() if early else self.active.pop()
        assert queued is not None  # else nobody asks
        return queued

    def lane_of(self, queued: QueuedPod) -> Lane:
        """With whom the pod stands still."""
        pod, policy = queued.pod, self._policy
        return Lane(pod.namespace, "" if policy is None else policy.binding_extender(pod))

    def _has_room(self) -> None:
        """Somebody left a place: who waits for one may have it."""
        if self.active or self.backoff:
            self.active.reopen()
            self._ready()

    @property
    def may_try_early(self) -> bool:
        """Whether the pod whose backoff ends next may be handed out before that."""
        queued = self.backoff.first()
        return queued is not None and not self.room.full and self.room.may_enter(self.lane_of(queued))

    def __len__(self) -> int:
        heaps = len(self.active) + len(self.backoff) + len(self.error_backoff) + len(self.suspects)
        return heaps + len(self.unschedulable) + len(self.gated)

    def waiting(self) -> Iterator[tuple[SubQueue, QueuedPod]]:
        """All pods with their places."""
        yield from ((SubQueue.ACTIVE, queued) for queued in self.active)
        yield from ((SubQueue.BACKOFF, queued) for queued in self.backoff)
        yield from ((SubQueue.BACKOFF, queued) for queued in self.error_backoff)
        yield from ((SubQueue.BACKOFF, queued) for queued in self.suspects)
        yield from ((SubQueue.UNSCHEDULABLE, queued) for queued in self.unschedulable)
        yield from ((SubQueue.GATED, queued) for queued in self.gated)

    def place_of(self, uid: str) -> SubQueue | None:
        """Where a pod waits, or None when it is not here."""
        if uid in self.active:
            return SubQueue.ACTIVE
        if uid in self.backoff or uid in self.error_backoff or uid in self.suspects:
            return SubQueue.BACKOFF
        if uid in self.unschedulable:
            return SubQueue.UNSCHEDULABLE
        return SubQueue.GATED if uid in self.gated else None

    def waits(self, queued: QueuedPod) -> bool:
        """True for a pod that waits for an event, or is gated."""
        return self.unschedulable.get(queued.uid) is queued or self.gated.get(queued.uid) is queued

    def take(self, uid: str) -> QueuedPod | None:
        """Take a pod out of wherever it is."""
        return (  # thousands leave at once where pods wait for events, so those places come first
            self.unschedulable.remove(uid)
            or self.gated.remove(uid)
            or self.active.remove(uid)
            or self.backoff.remove(uid)
            or self.error_backoff.remove(uid)
            or self.suspects.remove(uid)
        )

    def enter(self, queued: QueuedPod, how: Requeue, now: float) -> SubQueue:
        """Put a pod, wherever it was, into the place it belongs to now.

        The policy is asked before anything is touched: if it raises, the pod is still where it was.
        """
        if how is Requeue.SKIP or self._policy is None:
            self._park(queued)
            return SubQueue.UNSCHEDULABLE
        status = self._policy.pre_enqueue(queued.pod)
        if not status.ok:
            self._gate(queued, status.plugin)
            return SubQueue.GATED
        if queued.suspicion is not None:
            self._set_apart(queued, queued.suspicion)
            return SubQueue.BACKOFF
        window = queued.backing_off_until(self._policy.backoff, now) if how is Requeue.AFTER_BACKOFF else None
        if window is not None:
            self._back_off(queued, (window, queued.turn(self._policy)))
            return SubQueue.BACKOFF
        self._make_active(queued, self._policy, now)
        return SubQueue.ACTIVE

    def sizes(self) -> tuple[int, int, int, int]:
        """How many are active, back off, are unschedulable and gated."""
        backing_off = len(self.backoff) + len(self.error_backoff) + len(self.suspects)
        return len(self.active), backing_off, len(self.unschedulable), len(self.gated)

    def rejections(self) -> Counter[str]:
        """How many unschedulable and gated pods each plugin holds back."""
        return Counter({plugin: len(pods.held_by(plugin)) for pods in (self.unschedulable, self.gated) for plugin in pods.plugins()})

    def waiting_since(self, oldest: float) -> list[QueuedPod]:
        """Pods that have waited for an event since before this time."""
        return [queued for queued in self.unschedulable if queued.timestamp < oldest]

    def to_reconsider(self, plugins: AbstractSet[str] | None) -> list[QueuedPod]:
        """Unschedulable pods that one of these plugins rejected (None: any plugin), or only disabled ones did."""
        waiting = self.unschedulable
        if plugins is None:
            return list(waiting)
        return [queued for queued in waiting if not self.speaks_for(queued) or not queued.rejecting_plugins.isdisjoint(plugins)]

    def speaks_for(self, queued: QueuedPod) -> bool:
        """False when every plugin that rejected this pod has been disabled since."""
        return any(self.hints.knows(plugin) for plugin in queued.rejecting_plugins)

    def after_failure(self, queued: QueuedPod, began_under: Hints, missed: Iterable[InFlightEvent]) -> Requeue:
        """What a failed pod is to do, in view of what happened during its attempt.

        An attempt that began under another generation says little about this one, so it is repeated. A rejection by a plugin that the same
        profile does not list is waited out like any other: to retry it at once could go on forever.
        """
        if not queued.rejected:
            return Requeue.AFTER_BACKOFF
        how = Requeue.SKIP if self.hints is began_under else Requeue.AFTER_BACKOFF
        for event, old, new in missed:
            answer = self.hints.about(event).worth(queued, old, new)
            if answer is Requeue.IMMEDIATELY:
                return answer
            if answer is Requeue.AFTER_BACKOFF:
                how = answer
        return how

    def resort(self, queued: QueuedPod) -> None:
        """Give an active or backing-off pod its turn anew, after the pod changed."""
        if queued.uid in self.active:
            self.active.push(queued.uid, queued.turn(self.policy), queued)
            return
        for heap in (self.backoff, self.error_backoff):
            if queued.uid in heap:
                heap.push(queued.uid, _backoff_key(queued, self.policy), queued)

    def end_backoff(self, now: float, most: int | None = None) -> int:
        """Make pods active whose backoff is over, so many at most; their number. They passed PreEnqueue when they began to back off."""
        moved, window = 0, window_of(now)
        for heap in (self.backoff, self.error_backoff):
            while moved != most and (key := heap.first_key()) is not None and key[0] < window:
                queued = heap.first()
                assert queued is not None  # it has a key
                self._make_active(queued, self.policy, now)
                moved += 1
        return moved

    def next_backoff_expiry(self) -> float | None:
        """When the next backoff ends, in seconds; None when nothing backs off."""
        keys = [key for key in (self.backoff.first_key(), self.error_backoff.first_key()) if key is not None]
        return float(min(key[0] for key in keys) + 1) * WINDOW_SECONDS if keys else None

    def reach(self, event: ClusterEvent, old: Any, new: Any, *, keyed: bool = True) -> list[Reached]:
        """Waiting pods whose rejecting or gating plugin cares about this event, by plugin; a pod may be in several of them.

        Without `keyed`, those that an event of this kind may concern, whatever it is about.
        """
        hints, found = self.hints.about(event), list[Reached]()
        narrowed = event.frees_nothing and isinstance(new, PodInfo)
        if event.wildcard:
            found.append(Reached({queued.uid: queued for queued in self.unschedulable}, None))
        for waiting in (self.unschedulable, self.gated):
            for plugin in waiting.plugins():
                if hints.asked(plugin):
                    keys = hints.keys(plugin) if keyed else ()
                    pods = waiting.concerned(plugin, keys, old, new) if keys else waiting.held_by(plugin)
                    found.append(Reached(pods, hints.narrowing(plugin) if narrowed else None))
        return found

    def concerns(self, queued: QueuedPod, event: ClusterEvent, old: Any, new: Any) -> bool:
        """Whether this waiting pod's rejecting or gating plugin cares about the event: the same for one pod."""
        if event.wildcard and not queued.gated:
            return True
        hints, narrowed = self.hints.about(event), event.frees_nothing and isinstance(new, PodInfo)
        rejected_by = (*queued.unschedulable_plugins, *queued.pending_plugins)
        for plugin in (queued.gating_plugin,) if queued.gated else rejected_by:
            if hints.asked(plugin):
                narrow = hints.narrowing(plugin) if narrowed else None
                if narrow is None or narrow(queued.pod, old, new):
                    return True
        return False

    def changed(self, queued: QueuedPod) -> None:
        """A pod that waits here changed."""
        self.unschedulable.put_anew(queued.uid)
        self.gated.put_anew(queued.uid)

    def _make_active(self, queued: QueuedPod, policy: QueuePolicy, now: float) -> None:
        key = queued.turn(policy)
        self.take(queued.uid)
        queued.ungate()
        if queued.initial_attempt_timestamp is None:
            queued.initial_attempt_timestamp = now
        self.active.push(queued.uid, key, queued)

    def _back_off(self, queued: QueuedPod, key: SortKey) -> None:
        self.take(queued.uid)
        queued.ungate()
        heap = self.backoff if queued.rejected else self.error_backoff
        heap.push(queued.uid, key, queued)

    def _set_apart(self, queued: QueuedPod, suspicion: Suspicion) -> None:
        self.take(queued.uid)
        queued.ungate()
        self.suspects.push(queued.uid, (suspicion.not_before,), queued)

    def _park(self, queued: QueuedPod) -> None:
        self.take(queued.uid)
        queued.ungate()
        self.unschedulable.put(queued, queued.rejecting_plugins)

    def _gate(self, queued: QueuedPod, plugin: str) -> None:
        self.take(queued.uid)
        queued.gate(plugin)
        self.gated.put(queued, (plugin,))


class ProfileQueues:
    """The profile queues by scheduler name; each is made when its first pod comes."""

    __slots__ = ("_by_name", "_making", "_policies")

    def __init__(self, policies: Policies, making: Making) -> None:
        self._by_name: dict[str, ProfileQueue] = {}
        self._policies = policies
        self._making = making

    def __iter__(self) -> Iterator[ProfileQueue]:
        """All of them, in order of creation."""
        return iter(self._by_name.values())

    def get(self, scheduler_name: str) -> ProfileQueue | None:
        """The queue of this scheduler name, if there is one."""
        return self._by_name.get(scheduler_name)

    def of(self, scheduler_name: str) -> ProfileQueue:
        """The queue of this scheduler name; a new one asks for its policy."""
        queue = self._by_name.get(scheduler_name)
        if queue is None:
            queue = self._by_name[scheduler_name] = ProfileQueue(scheduler_name, self._policies(scheduler_name), self._making)
        return queue

    def drop_if_idle(self, queue: ProfileQueue) -> None:
        """Scheduler names that no profile claims are other people's; do not keep them all."""
        if not queue.served and not len(queue):
            del self._by_name[queue.name]

    def can_hand_out(self) -> bool:
        """Whether a pod that may be tried is in one of them."""
        return any(queue.open and (queue.active.first_key() is not None or queue.may_try_early) for queue in self)

    def next(self) -> tuple[ProfileQueue | None, bool]:
        """Among the profiles that hand out pods, the one whose first pod comes first, and whether that is one whose backoff goes on."""
        queue = self._first(lambda queue: queue.active.first_key())
        if queue is not None:
            return queue, False
        return self._first(lambda queue: queue.backoff.first_key() if queue.may_try_early else None), True

    def _first(self, key_of: Callable[[ProfileQueue], SortKey | None]) -> ProfileQueue | None:
        best, best_key = None, None
        for queue in self._by_name.values():
            key = key_of(queue) if queue.open else None
            if key is not None and (best_key is None or key < best_key):
                best, best_key = queue, key
        return best

    def next_backoff_expiry(self) -> float | None:
        """When the next backoff of any profile ends, in seconds; None when nothing backs off."""
        expiries = (queue.next_backoff_expiry() for queue in self)
        return min((expiry for expiry in expiries if expiry is not None), default=None)

    def sizes(self, scheduler_name: str | None, in_flight: int) -> Sizes:
        """Those of one scheduler name, or of all."""
        each = [queue.sizes() for queue in self if scheduler_name in (None, queue.name)]
        active, backoff, unschedulable, gated = (sum(column) for column in zip((0,) * 4, *each, strict=True))
        return Sizes(active, backoff, unschedulable, gated, in_flight)


def _backoff_key(queued: QueuedPod, policy: QueuePolicy) -> SortKey:
    return (queued.backoff_window(policy.backoff) or 0, queued.turn(policy))
