"""Suspects: waiting pods that resemble a pod in whose decision a process ended. They are tried last, and then rarely (decision 34).

After one death a suspect is tried when no pod is active, being decided, or being bound. After more deaths it first waits ten
minutes, then twice as long each time, up to an hour. It is tried all the same if no quiet moment comes within `LONGEST_QUIET`
seconds after its wait. A decision that ends clears it.

A pod is a suspect by its spec, with any uid, name and controller. If the spec is heavy, images do not count either. A pod whose decision
is heavy is a suspect by its controller, too. Once a namespace cost more than one process, all its heavy pods are suspects: a tenant may
vary its specs, but stays in its namespace. Other pods of the namespace are not suspects.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from placewright.api.decisionmarks import DecisionMark, MarkedPod, PodKeys, heavy_work, keys_of
from placewright.api.pods import PodInfo
from placewright.queue.hints import Requeue
from placewright.queue.inflight import InFlightPods
from placewright.queue.profilequeue import ProfileQueues, RequeuePod
from placewright.queue.queued import LET_IN, SET_APART, QueuedPod, QueuedPodGroup, SubQueue, Suspicion

#: Seconds after the first death: long enough for a new leader to place the ordinary pods in its queue first.
FIRST_WAIT: Final = 10.0
#: Seconds after the second death, doubled with each further one up to `LONGEST_WAIT`.
LONG_WAIT: Final = 600.0
LONGEST_WAIT: Final = 3600.0
#: Seconds that other pods may keep a suspect from being tried after its wait is over.
LONGEST_QUIET: Final = 300.0
_MAX_DOUBLINGS: Final = 10


def wait_after(deaths: int) -> float:
    """Return the seconds that a suspect waits after one death or more."""
    if deaths <= 1:
        return FIRST_WAIT
    return min(LONG_WAIT * 2.0 ** min(deaths - 2, _MAX_DOUBLINGS), LONGEST_WAIT)


class _Death(NamedTuple):
    """A mark with deaths, and the time of the last of them on the queue's clock."""

    mark: DecisionMark
    at: float


class DeathMarks:
    """The marks that count deaths, and their meaning for a pod. False while there are none, which is nearly always."""

    def __init__(self) -> None:
        self._deaths: dict[str, dict[str, _Death]] = {}

    def __bool__(self) -> bool:
        return bool(self._deaths)

    def __iter__(self) -> Iterator[DecisionMark]:
        """Iterate over the marks, by namespace."""
        return (death.mark for deaths in self._deaths.values() for death in deaths.values())

    def adopt(self, marks: Iterable[tuple[DecisionMark, float]]) -> None:
        """Replace the known marks.

        Args:
            marks: each mark, with the time of its last death in seconds on the queue's clock. Marks without a death are
                dropped.
        """
        found: defaultdict[str, dict[str, _Death]] = defaultdict(dict)
        for mark, at in marks:
            if mark.deaths:
                found[mark.pod.namespace][mark.pod.name] = _Death(mark, at)
        self._deaths = dict(found)

    def clear(self, namespace: str, name: str) -> bool:
        """Remove the mark of this name, because a decision of such a pod ended.

        Returns:
            True when the mark had deaths.
        """
        deaths = self._deaths.get(namespace)
        if deaths is None or deaths.pop(name, None) is None:
            return False
        if not deaths:
            del self._deaths[namespace]
        return True

    def older_than(self, at: float) -> list[DecisionMark]:
        """Find marks without a recent death.

        Args:
            at: seconds on the queue's clock.

        Returns:
            The marks whose last death was before this time.
        """
        return [death.mark for deaths in self._deaths.values() for death in deaths.values() if death.at < at]

    def of(self, pod: PodInfo) -> Suspicion | None:
        """Compare a pod with the marks of its namespace.

        Args:
            pod: waiting.

        Returns:
            The suspicion against it; None for nearly all pods, at the cost of one lookup.
        """
        deaths = self._deaths.get(pod.namespace)
        if deaths is None:
            return None
        count, last = self._alike(pod, deaths.values())
        return Suspicion(count, last + wait_after(count)) if count > 0 else None

    def speaking_for(self, pod: PodInfo) -> list[DecisionMark]:
        """Find the marks of the pod's own spec or group. A decision of this pod that ends proves them wrong.

        Args:
            pod: decided.
        """
        deaths = self._deaths.get(pod.namespace, {})
        keys = keys_of(pod) if deaths else None
        return [] if keys is None else [death.mark for death in deaths.values() if _is_same(death.mark.pod, keys)]

    def _alike(self, pod: PodInfo, deaths: Iterable[_Death]) -> tuple[int, float]:
        """Return how many deaths speak against this pod, and the time of the last of them."""
        keys, heavy = keys_of(pod), heavy_work(pod) > 0
        own, by_controller, in_namespace, last = 0, 0, 0, 0.0
        for death in deaths:
            known, count = death.mark.pod, death.mark.deaths
            same = _is_same(known, keys)
            related = heavy and known.heavy
            own = max(own, count * same)
            by_controller += count * (related and known.controller != "" and known.controller == keys.controller)
            in_namespace += count * related
            if same or related:
                last = max(last, death.at)
        # One less, because a namespace becomes suspect with its second death.
        return max(own, by_controller, in_namespace - 1), last


class SuspectPods:
    """Decides for each pod that enters the queue whether it is set apart. False while no marks are known, and then no pod is judged.

    Args:
        queues: the waiting pods.
        in_flight: the attempts under way.
        requeue: moves a pod between sub-queues.
        clock: seconds, monotonic.

    Attributes:
        marks: the known marks of earlier deaths. The code that reads and writes marks changes them and then calls `anew`.
    """

    def __init__(self, queues: ProfileQueues, in_flight: InFlightPods, requeue: RequeuePod, clock: Callable[[], float]) -> None:
        self.marks = DeathMarks()
        self._queues = queues
        self._in_flight = in_flight
        self._requeue = requeue
        self._clock = clock
        #: Grows whenever marks change: a group's suspicion of an earlier epoch is not valid.
        self._epoch = 0

    def __bool__(self) -> bool:
        return bool(self.marks)

    def __len__(self) -> int:
        """Return the number of pods that are set apart."""
        return sum(len(queue.suspects) for queue in self._queues.values())

    def __iter__(self) -> Iterator[QueuedPod]:
        """Iterate over the pods that are set apart."""
        for queue in self._queues.values():
            yield from queue.suspects

    def accuses(self, queued: QueuedPod) -> bool:
        """Return whether a pod, or a member of its group, is a suspect, also while it is let in."""
        group = queued.pod_group
        if group is not None and group.judged_in == self._epoch and group.suspicion is not None:
            return True
        return self.marks.of(queued.pod) is not None

    def judge(self, queued: QueuedPod, label: str) -> None:
        """Note on a pod that enters a sub-queue whether it is a suspect. A pod that is being let in is none for that time.

        A group is decided with all its members, so one suspect makes suspects of all.

        Args:
            queued: enters a sub-queue.
            label: the event that brings it.
        """
        found = self.marks.of(queued.pod)
        if queued.pod_group is not None:
            found = self._of_group(queued.pod_group, queued, found)
        queued.suspicion = None if label == LET_IN else found

    def _of_group(self, group: QueuedPodGroup, judged: QueuedPod, own: Suspicion | None) -> Suspicion | None:
        """Return the worst suspicion against any member. When it grows worse, members that may be tried soon are set apart, too."""
        if group.judged_in != self._epoch:
            group.judged_in, group.suspicion = self._epoch, None
        before = group.suspicion
        if own is not None and (before is None or before.deaths < own.deaths):
            group.suspicion = own
            for member in tuple(group.members.values()):
                if member is not judged:
                    self._put_anew(member)
        return group.suspicion

    def anew(self) -> None:
        """Judge pods that may be tried soon by the marks as they are now. Other pods are judged when they enter a sub-queue."""
        self._epoch += 1
        if not (self.marks or len(self)):
            return
        for queue in self._queues.values():
            for queued in (*queue.active, *queue.backoff, *queue.error_backoff, *queue.suspects):
                if queued.suspicion is not None or self.marks.of(queued.pod) is not None:
                    self._put_anew(queued)

    def let_in(self) -> bool:
        """Make a suspect active whose wait is over, if no pod is active or in flight; return True if so. Called every second."""
        waiting = [(key, queue) for queue in self._queues.values() if queue.open and (key := queue.suspects.first_key()) is not None]
        if not waiting:
            return False
        (due, *_), queue = min(waiting, key=lambda each: each[0])
        now = self._clock()
        # If this decision ends the process as well, no other pod's Binding is on its way at that moment.
        quiet = not self._in_flight and not any(each.active for each in self._queues.values() if each.open)
        if now < due or not (quiet or now >= due + LONGEST_QUIET):
            return False
        queued = queue.suspects.first()
        assert queued is not None  # it has a key
        self._requeue(queue, queued, Requeue.IMMEDIATELY, LET_IN)
        return True

    def _put_anew(self, queued: QueuedPod) -> None:
        queue = self._queues.serving(queued.pod.scheduler_name)
        if queue is not None and queued.place in (SubQueue.ACTIVE, SubQueue.BACKOFF):
            self._requeue(queue, queued, Requeue.AFTER_BACKOFF, SET_APART)


def _is_same(known: MarkedPod, keys: PodKeys) -> bool:
    return known.spec == (keys.shape if known.heavy else keys.spec) or (known.group != "" and known.group == keys.group)
