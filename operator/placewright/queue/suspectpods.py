"""Suspects in the queue: waiting apart from the others, and let in among the active pods one at a time, when nothing else is to be done."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, Protocol

from placewright.queue.hints import Requeue
from placewright.queue.inflight import InFlightPods
from placewright.queue.profilequeue import ProfileQueue, ProfileQueues
from placewright.queue.queued import QueuedPod, QueuedPodGroup, SubQueue
from placewright.queue.suspects import LONGEST_QUIET, Suspects, Suspicion

#: Labels of moves, as metrics name them.
SET_APART: Final = "SuspectSetApart"
LET_IN: Final = "SuspectLetIn"


class Put(Protocol):
    """Puts a pod into the place that it belongs to now."""

    def __call__(self, queue: ProfileQueue, queued: QueuedPod, how: Requeue, label: str) -> SubQueue:
        """Where that is."""


class SuspectPods:
    """Says of each pod that enters the queue whether it is set apart. False while no marks are known: then nobody is asked.

    Attributes:
        marks: what is known of earlier deaths; changed by whoever reads and writes marks, which then calls `anew`.
    """

    def __init__(self, queues: ProfileQueues, in_flight: InFlightPods, put: Put, clock: Callable[[], float]) -> None:
        self.marks = Suspects()
        self._queues = queues
        self._in_flight = in_flight
        self._put = put
        self._clock = clock
        #: Grows whenever other marks are known: what was judged before says nothing.
        self._epoch = 0

    def __bool__(self) -> bool:
        return bool(self.marks)

    def __len__(self) -> int:
        """How many pods are set apart."""
        return sum(len(queue.suspects) for queue in self._queues)

    def __iter__(self) -> Iterator[QueuedPod]:
        """The pods that are set apart."""
        for queue in self._queues:
            yield from queue.suspects

    def accuses(self, queued: QueuedPod) -> bool:
        """Whether a pod, or a member of its group, is a suspect, also while it is let in."""
        group = queued.pod_group
        if group is not None and group.judged_in == self._epoch and group.suspicion is not None:
            return True
        return self.marks.of(queued.pod) is not None

    def judge(self, queued: QueuedPod, label: str) -> None:
        """Note on a pod that enters the queue whether it is a suspect; one that is being let in is none for that time.

        A group is decided with all its members, so a suspect among them makes suspects of all.
        """
        found = self.marks.of(queued.pod)
        if queued.pod_group is not None:
            found = self._of_group(queued.pod_group, queued, found)
        queued.suspicion = None if label == LET_IN else found

    def _of_group(self, group: QueuedPodGroup, judged: QueuedPod, own: Suspicion | None) -> Suspicion | None:
        """What is known against any member by now; when it becomes worse, members that may be tried soon are set apart, too."""
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
        """Other marks are known than before: pods that may be tried soon are judged by these; all others once they enter."""
        self._epoch += 1
        if not (self.marks or len(self)):
            return
        for queue in self._queues:
            for queued in (*queue.active, *queue.backoff, *queue.error_backoff, *queue.suspects):
                if queued.suspicion is not None or self.marks.of(queued.pod) is not None:
                    self._put_anew(queued)

    def let_in(self) -> bool:
        """Make a suspect active whose wait is over, if no pod is active, or in flight; True if so. To be called every second."""
        waiting = [(key, queue) for queue in self._queues if queue.open and (key := queue.suspects.first_key()) is not None]
        if not waiting:
            return False
        (due, *_), queue = min(waiting, key=lambda each: each[0])
        now = self._clock()
        quiet = not self._in_flight and not any(each.active for each in self._queues if each.open)
        if now < due or not (quiet or now >= due + LONGEST_QUIET):
            return False
        queued = queue.suspects.first()
        assert queued is not None  # it has a key
        self._put(queue, queued, Requeue.IMMEDIATELY, LET_IN)
        return True

    def _put_anew(self, queued: QueuedPod) -> None:
        queue = self._queues.get(queued.pod.scheduler_name)
        if queue is None or not queue.served:
            return
        if queue.place_of(queued.uid) in (SubQueue.ACTIVE, SubQueue.BACKOFF):
            self._put(queue, queued, Requeue.AFTER_BACKOFF, SET_APART)

