"""The wait limit of one profile (`spec.giveUpAfterSeconds`): which of its waiting pods are given up, and which come next.

A profile queue has a `WaitLimit` only while its profile states the field. Pods are noted when they begin to wait, and listed by the time
at which they began, in slices. The limit is the same for all pods of the profile, so a longer or shorter one leaves the order as it is.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from placewright.queue.heap import KeyedHeap

if TYPE_CHECKING:
    from placewright.queue.queued import QueuedPod

#: Seconds after which a pod is judged again that waits for other members of its group.
_LATER_SECONDS: Final = 1.0
#: Seconds on the queue's clock at which a pod began to wait.
Began = Callable[["QueuedPod"], float]


class WaitLimit:
    """Waiting pods of one profile by the time at which they began to wait, and the pods that are given up.

    A pod is in at most one of three places: noted, listed, or given up. It leaves all of them with `forget`.

    Args:
        after: seconds that a pod may wait.
        waiting: the profile's pods that wait already.

    Attributes:
        after: seconds that a pod may wait; None once the profile states no limit, until every pod has been taken back.
        given_up: pods that are given up, by uid, in that order.
    """

    __slots__ = ("_answered", "_in_question", "_listed", "_noted", "_waiting", "after", "given_up")

    def __init__(self, after: float, waiting: Iterable[QueuedPod]) -> None:
        self.after: float | None = after
        self.given_up: dict[str, QueuedPod] = {}
        # Ordered, because it is emptied from the front: of a plain dict that costs the square of its size.
        self._noted: OrderedDict[str, QueuedPod] = OrderedDict()
        self._in_question: deque[QueuedPod] = deque()
        #: Pods in question that have been judged, as members of the group of another.
        self._answered: set[str] = set()
        self._listed: KeyedHeap[QueuedPod] = KeyedHeap()
        #: Pods that waited when the limit came, and that are noted in slices.
        self._waiting = deque(waiting)

    @property
    def settled(self) -> bool:
        """True when no limit is stated any more and every pod has been taken back."""
        return self.after is None and not self.given_up

    def change(self, after: float | None) -> None:
        """Take over another limit. Pods that are given up are put in question, and are judged by it in slices.

        Args:
            after: seconds; None for no limit.
        """
        if after != self.after:
            self.after = after
            self._in_question = deque(self.given_up.values())
            self._answered.clear()

    def note(self, queued: QueuedPod) -> None:
        """Note a pod that begins to wait. A pod with a scheduling gate, or that is being deleted, does not wait for a node."""
        queued.wait_limit = self
        if queued.uid not in self.given_up and queued.uid not in self._listed and queued.pod.may_be_tried:
            self._noted[queued.uid] = queued

    def note_waiting(self, most: float, waits: Callable[[QueuedPod], bool]) -> int:
        """Note pods that waited already when the limit came.

        Args:
            most: pods at most.
            waits: whether a pod still waits.

        Returns:
            The number of pods looked at.
        """
        looked_at = 0
        while self._waiting and looked_at < most:
            queued = self._waiting.popleft()
            looked_at += 1
            if waits(queued):
                self.note(queued)
        return looked_at

    def list_noted(self, most: float, began: Began) -> int:
        """List noted pods by the time at which they began to wait.

        Args:
            most: pods at most.
            began: that time.

        Returns:
            The number of pods listed.
        """
        listed = 0
        while self._noted and listed < most:
            uid, queued = self._noted.popitem(last=False)
            self._listed.push(uid, (began(queued),), queued)
            listed += 1
        return listed

    def overdue(self, now: float) -> QueuedPod | None:
        """Take the pod off the list that has waited longest, if that is longer than the limit.

        Args:
            now: seconds on the queue's clock.

        Returns:
            The pod; None when no listed pod has waited so long.
        """
        key = self._listed.first_key()
        return self._listed.pop() if key is not None and self.after is not None and key[0] + self.after <= now else None

    def next_deadline(self) -> float | None:
        """Return when a pod may have to be given up next, in seconds on the queue's clock; None when none waits."""
        if self._waiting or self._noted or self._in_question:
            return 0.0
        key = self._listed.first_key()
        return None if key is None or self.after is None else float(key[0]) + self.after

    def give_up(self, queued: QueuedPod, now: float) -> None:
        """Give a pod up.

        Args:
            queued: waits; taken off the list by `overdue`, or still listed or noted as a member of a group that is.
            now: seconds on the queue's clock.
        """
        self._noted.pop(queued.uid, None)
        self._listed.remove(queued.uid)
        queued.given_up_at = now
        self.given_up[queued.uid] = queued

    def in_question(self) -> QueuedPod | None:
        """Return the next pod that was given up under another limit, once; None when there is none."""
        while self._in_question:
            queued = self._in_question.popleft()
            if self.given_up.get(queued.uid) is queued and queued.uid not in self._answered:
                return queued
        self._answered.clear()
        return None

    def answered(self, pods: Iterable[QueuedPod]) -> None:
        """Note that pods in question have been judged."""
        self._answered.update(queued.uid for queued in pods)

    def put_off(self, queued: QueuedPod, now: float) -> None:
        """List a pod again that cannot be given up yet, so that it is overdue a second from now.

        Args:
            queued: taken off the list by `overdue`.
            now: seconds on the queue's clock.
        """
        self._listed.push(queued.uid, (now + _LATER_SECONDS - (self.after or 0.0),), queued)

    def take_back(self, queued: QueuedPod) -> None:
        """Let a pod that was given up wait again as others do."""
        del self.given_up[queued.uid]
        queued.given_up_at = None
        if self.after is not None:
            self.note(queued)

    def forget(self, queued: QueuedPod) -> None:
        """Drop a pod that has left the queue."""
        uid = queued.uid
        self._noted.pop(uid, None)
        self._listed.remove(uid)
        self.given_up.pop(uid, None)
