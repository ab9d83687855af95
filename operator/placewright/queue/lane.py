"""The waiting pods of one scheduler name: the places they can be in, and moving between them.

Each profile has a lane of its own, so that pausing, removing or changing a profile touches its pods alone. A lane whose profile does not
exist parks all its pods as unschedulable until there is one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from placewright.api.pods import PodInfo
from placewright.framework.events import ClusterEvent
from placewright.queue.heap import KeyedHeap
from placewright.queue.hints import Hints, Requeue, Timed
from placewright.queue.inflight import Happening
from placewright.queue.policy import QueuePolicy, SortKey
from placewright.queue.queued import WINDOW_SECONDS, QueuedPod, SubQueue, window_of
from placewright.queue.waiting import WaitingPods


class NoPolicy(RuntimeError):
    """A lane was asked for something that only a profile can say, while it has none."""


class Lane:
    """Pods of one scheduler name that are not in flight; each is in exactly one of the five structures.

    Attributes:
        name: the scheduler name.
        active: pods to be tried, in the profile's order.
        backoff: pods that a plugin rejected, by the window in which their backoff ends, then in the profile's order.
        error_backoff: pods that came back because of an error; never tried early.
        unschedulable: pods waiting for an event, by rejecting plugin.
        gated: pods kept out by a PreEnqueue plugin, by that plugin.
        held: True while no pod is handed out, because one of the lane is being decided and others would not know of it.
    """

    __slots__ = ("_policy", "_timed", "active", "backoff", "error_backoff", "gated", "held", "hints", "name", "unschedulable")

    def __init__(self, name: str, policy: QueuePolicy | None, timed: Timed | None = None) -> None:
        self.name: Final = name
        self._timed = timed
        self.active: KeyedHeap[QueuedPod] = KeyedHeap()
        self.backoff: KeyedHeap[QueuedPod] = KeyedHeap()
        self.error_backoff: KeyedHeap[QueuedPod] = KeyedHeap()
        self.unschedulable = WaitingPods()
        self.gated = WaitingPods()
        self.held = False
        self._policy = policy
        self.hints = Hints(policy.interests if policy else {}, timed)

    @property
    def served(self) -> bool:
        """True while a profile claims this scheduler name."""
        return self._policy is not None

    @property
    def open(self) -> bool:
        """True while pods may be handed out: there is a profile, it is not paused, and nobody holds the lane."""
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
            self.active.rekey(lambda queued: queued.turn(policy))
            for heap in (self.backoff, self.error_backoff):
                heap.rekey(lambda queued: _backoff_key(queued, policy))
        self._policy = policy
        self.hints = Hints(policy.interests if policy else {}, self._timed)
        if policy is None:
            for _, queued in list(self.waiting()):
                self._park(queued)

    def __len__(self) -> int:
        heaps = len(self.active) + len(self.backoff) + len(self.error_backoff)
        return heaps + len(self.unschedulable) + len(self.gated)

    def waiting(self) -> Iterator[tuple[SubQueue, QueuedPod]]:
        """All pods with their places."""
        yield from ((SubQueue.ACTIVE, queued) for queued in self.active)
        yield from ((SubQueue.BACKOFF, queued) for queued in self.backoff)
        yield from ((SubQueue.BACKOFF, queued) for queued in self.error_backoff)
        yield from ((SubQueue.UNSCHEDULABLE, queued) for queued in self.unschedulable)
        yield from ((SubQueue.GATED, queued) for queued in self.gated)

    def place_of(self, uid: str) -> SubQueue | None:
        """Where a pod waits, or None when it is not here."""
        if uid in self.active:
            return SubQueue.ACTIVE
        if uid in self.backoff or uid in self.error_backoff:
            return SubQueue.BACKOFF
        if uid in self.unschedulable:
            return SubQueue.UNSCHEDULABLE
        return SubQueue.GATED if uid in self.gated else None

    def waits(self, queued: QueuedPod) -> bool:
        """True for a pod that waits for an event, or is gated."""
        return queued.uid in self.unschedulable or queued.uid in self.gated

    def take(self, uid: str) -> QueuedPod | None:
        """Take a pod out of wherever it is."""
        return (  # thousands leave at once where pods wait for events, so those places come first
            self.unschedulable.remove(uid)
            or self.gated.remove(uid)
            or self.active.remove(uid)
            or self.backoff.remove(uid)
            or self.error_backoff.remove(uid)
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
        window = queued.backing_off_until(self._policy.backoff, now) if how is Requeue.AFTER_BACKOFF else None
        if window is not None:
            self._back_off(queued, (window, queued.turn(self._policy)))
            return SubQueue.BACKOFF
        self._make_active(queued, self._policy, now)
        return SubQueue.ACTIVE

    def speaks_for(self, queued: QueuedPod) -> bool:
        """False when every plugin that rejected this pod has been disabled since."""
        return any(self.hints.knows(plugin) for plugin in queued.rejecting_plugins)

    def after_failure(self, queued: QueuedPod, began_under: Hints, missed: Iterable[Happening]) -> Requeue:
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

    def end_backoff(self, now: float) -> int:
        """Make the pods active whose backoff is over; the number of them. They passed PreEnqueue when they began to back off."""
        moved, window = 0, window_of(now)
        for heap in (self.backoff, self.error_backoff):
            while (key := heap.first_key()) is not None and key[0] < window:
                queued = heap.first()
                assert queued is not None  # it has a key
                self._make_active(queued, self.policy, now)
                moved += 1
        return moved

    def next_backoff_expiry(self) -> float | None:
        """When the next backoff ends, in seconds; None when nothing backs off."""
        keys = [key for key in (self.backoff.first_key(), self.error_backoff.first_key()) if key is not None]
        return float(min(key[0] for key in keys) + 1) * WINDOW_SECONDS if keys else None

    def candidates(self, event: ClusterEvent, old: Any, new: Any) -> list[QueuedPod]:
        """Waiting pods whose rejecting or gating plugin cares about this event, each once; see `ClusterEventWithHint.narrow`."""
        hints, found = self.hints.about(event), dict[str, QueuedPod]()
        narrowed = event.frees_nothing and isinstance(new, PodInfo)
        if event.wildcard:
            found.update((queued.uid, queued) for queued in self.unschedulable)
        for waiting in (self.unschedulable, self.gated):
            for plugin in waiting.plugins():
                if hints.asked(plugin):
                    narrow = hints.narrowing(plugin) if narrowed else None
                    held = waiting.held_by(plugin)
                    found.update(held if narrow is None else {uid: q for uid, q in held.items() if narrow(q.pod, old, new)})
        return list(found.values())

    def _make_active(self, queued: QueuedPod, policy: QueuePolicy, now: float) -> None:
        key = queued.turn(policy)
        self.take(queued.uid)
        queued.gated = False
        if queued.initial_attempt_timestamp is None:
            queued.initial_attempt_timestamp = now
        self.active.push(queued.uid, key, queued)

    def _back_off(self, queued: QueuedPod, key: SortKey) -> None:
        self.take(queued.uid)
        queued.gated = False
        heap = self.backoff if queued.rejected else self.error_backoff
        heap.push(queued.uid, key, queued)

    def _park(self, queued: QueuedPod) -> None:
        self.take(queued.uid)
        queued.gated = False
        self.unschedulable.put(queued, queued.rejecting_plugins)

    def _gate(self, queued: QueuedPod, plugin: str) -> None:
        self.take(queued.uid)
        queued.gated, queued.gating_plugin = True, plugin
        queued.unschedulable_plugins |= {plugin}
        self.gated.put(queued, (plugin,))


def _backoff_key(queued: QueuedPod, policy: QueuePolicy) -> SortKey:
    return (queued.backoff_window(policy.backoff) or 0, queued.turn(policy))
