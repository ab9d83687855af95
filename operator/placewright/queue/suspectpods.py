"""Suspects in the queue: set apart from other pods, and let in one at a time when no other pod is active."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from placewright.queue.hints import Requeue
from placewright.queue.inflight import InFlightPods
from placewright.queue.movelabels import LET_IN, SET_APART
from placewright.queue.profilequeue import ProfileQueue, ProfileQueues
from placewright.queue.queued import QueuedPod, QueuedPodGroup, SubQueue
from placewright.queue.suspects import LONGEST_QUIET, Suspects, Suspicion


class Put(Protocol):
    """Puts a pod into the sub-queue that it belongs to now."""

    def __call__(self, queue: ProfileQueue, queued: QueuedPod, how: Requeue, label: str) -> SubQueue:
        """Put a pod into its sub-queue.

        Args:
            queue: the pod's profile.
            queued: in this queue.
            how: whether the pod backs off first or is tried at once.
            label: the event that metrics name.

        Returns:
            The sub-queue.
        """


class SuspectPods:
    """Decides for each pod that enters the queue whether it is set apart. False while no marks are known, and then no pod is judged.

    Args:
        queues: the waiting pods.
        in_flight: the attempts under way.
        put: moves a pod between sub-queues.
        clock: seconds, monotonic.

    Attributes:
        marks: the known marks of earlier deaths. The code that reads and writes marks changes them and then calls `anew`.
    """

    def __init__(self, queues: ProfileQueues, in_flight: InFlightPods, put: Put, clock: Callable[[], float]) -> None:
        self.marks = Suspects()
        self._queues = queues
        self._in_flight = in_flight
        self._put = put
        self._clock = clock
        #: Grows whenever marks change: a group's suspicion of an earlier epoch is not valid.
        self._epoch = 0

    def __bool__(self) -> bool:
        return bool(self.marks)

    def __len__(self) -> int:
        """Number of pods that are set apart."""
        return sum(len(queue.suspects) for queue in self._queues)

    def __iter__(self) -> Iterator[QueuedPod]:
        """Iterate over the pods that are set apart."""
        for queue in self._queues:
            yield from queue.suspects

    def accuses(self, queued: QueuedPod) -> bool:
        """Tell whether a pod is a suspect, also while it is let in.

        Args:
            queued: in the queue.

        Returns:
            True when it, or a member of its group, is one.
        """
        group = queued.pod_group
        if group is not None and group.judged_in == self._epoch and group.suspicion is not None:
            return True
        return self.marks.of(queued.pod) is not None

    def judge(self, queued: QueuedPod, label: str) -> None:
        """Note on a pod that enters the queue whether it is a suspect. A pod that is being let in is not one for that time.

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
        for queue in self._queues:
            for queued in (*queue.active, *queue.backoff, *queue.error_backoff, *queue.suspects):
                if queued.suspicion is not None or self.marks.of(queued.pod) is not None:
                    self._put_anew(queued)

    def let_in(self) -> bool:
        """Make a suspect active whose wait is over, if no pod is active or in flight; return True if so. Called every second."""
        waiting = [(key, queue) for queue in self._queues if queue.open and (key := queue.suspects.first_key()) is not None]
        if not waiting:
            return False
        (due, *_), queue = min(waiting, key=lambda each: each[0])
        now = self._clock()
        # If this decision ends the process as well, no other pod's Binding is on its way at that moment.
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
