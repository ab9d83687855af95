"""Gives up pods that waited longer than their profile allows. They are tried again only after an event that may help them.

Such a pod stays in the sub-queue where it waits, and its hints are asked as before. Only the timeout that tries every unschedulable pod
again passes it over. A pod whose last attempt ended in an error is not given up, because no event would bring it back.

The time counts from the pod's creation, so that a new leader goes on where the earlier one was. A pod has not waited while it had a
scheduling gate. No field tells when the last gate went, because PodScheduled keeps the time of the creation. A pod whose spec has changed
since then (generation above 1) may have had a gate. Its time counts from when this queue first saw it ready to be tried. If its condition
says that a leader has given it up, its time counts from the creation all the same.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from placewright.api.givenup import is_given_up
from placewright.framework.preemption.evictions import seconds_of
from placewright.queue.order import KeyedHeap
from placewright.queue.queued import QueuedPod

#: Seconds after which a pod is judged again that waits for other members of its group.
_LATER_SECONDS: Final = 1.0


class WaitLimit:
    """The limit after which a profile gives up waiting pods (`spec.giveUpAfterSeconds`), with the pods that it concerns.

    A pod is noted when it begins to wait. In slices, noted pods are listed by the time at which they began. The limit is the same for all
    pods of the profile, so another limit keeps the order. Pods that are given up are noted, too, when the limit changes. A pod leaves
    with `forget`.

    Args:
        name: the scheduler name of the pods.

    Attributes:
        after: seconds that a pod may wait; None while the profile states no limit.
        given_up: pods that are given up, by uid, in that order.
    """

    __slots__ = ("_listed", "_name", "_noted", "after", "given_up")

    def __init__(self, name: str) -> None:
        self.after: float | None = None
        self.given_up: dict[str, QueuedPod] = {}
        self._name = name
        # Ordered, because it is emptied from the front, which costs a plain dict the square of its size.
        self._noted: OrderedDict[str, QueuedPod] = OrderedDict()
        self._listed: KeyedHeap[QueuedPod] = KeyedHeap()

    @property
    def settled(self) -> bool:
        """True when no limit is stated and every pod has been taken back."""
        return self.after is None and not self.given_up

    def change(self, after: float | None, waiting: Iterable[QueuedPod]) -> None:
        """Take over another limit. Pods that are given up are judged by it in slices.

        Args:
            after: seconds; None for no limit.
            waiting: the profile's pods that wait already; read only where there was no limit before.
        """
        if after == self.after:
            return
        if self.after is None:
            self._noted = OrderedDict((queued.uid, queued) for queued in waiting if queued.pod.may_be_tried)
        elif after is None:
            self._noted, self._listed = OrderedDict(), KeyedHeap()
        self.after = after
        self._noted |= self.given_up

    def note(self, queued: QueuedPod) -> None:
        """Note a pod that begins to wait. A pod with a scheduling gate, or that is being deleted, does not wait for a node."""
        uid = queued.uid
        if self.after is not None and uid not in self.given_up and uid not in self._listed and queued.pod.may_be_tried:
            self._noted[uid] = queued

    def forget(self, queued: QueuedPod) -> None:
        """Drop a pod that has left the queue."""
        self._noted.pop(queued.uid, None)
        self._listed.remove(queued.uid)
        self.given_up.pop(queued.uid, None)

    def next_deadline(self) -> float | None:
        """Return when a pod may have to be given up next, in seconds on the queue's clock; None when none waits."""
        if self._noted:
            return 0.0
        key = self._listed.first_key()
        return None if key is None or self.after is None else float(key[0]) + self.after

    def step(self, most: float, now: float, by: GivingUp) -> int:
        """Judge pods by the limit.

        Args:
            most: about so many pods at most.
            now: seconds on the queue's clock.
            by: tells when a pod began to wait, and hears of pods that are given up or taken back.

        Returns:
            The number of pods looked at.
        """
        done = 0
        while done < most and self._noted:
            uid, queued = self._noted.popitem(last=False)
            if uid in self.given_up:
                done += self._judge_anew(queued, now, by)
                continue
            done += 1
            if queued.waits:
                # A member that joins a group that is given up is given up, too.
                joins = queued.pod_group is not None and queued.pod_group.given_up
                self._listed.push(uid, (-math.inf if joins else by.began(queued),), queued)
        while done < most and self.after is not None and (key := self._listed.first_key()) is not None and key[0] + self.after <= now:
            done += self._judge(self._listed.take_first()[1], now, by)
        return done

    def _judge_anew(self, queued: QueuedPod, now: float, by: GivingUp) -> int:
        """Take a pod back that may wait longer now, with all members of its group; return the number of pods looked at."""
        together = [each for each in self._together(queued) if each.given_up_at is not None]
        for each in together:
            self._noted.pop(each.uid, None)
        if self.after is None or min(by.began(each) for each in together) + self.after > now:
            for each in together:
                del self.given_up[each.uid]
                each.given_up_at = None
                self.note(each)
                by.tell(each)
            if queued.pod_group is not None:
                queued.pod_group.given_up = False
        return len(together)

    def _judge(self, queued: QueuedPod, now: float, by: GivingUp) -> int:
        """Give up a pod that has waited too long, with all members of its group; return the number of pods looked at.

        If a member is in flight, or about to be, the group is judged again later.
        """
        if not queued.pod.may_be_tried:
            return 1
        together = self._together(queued)
        if all(each.waits for each in together):
            for each in together:
                if each.given_up_at is None:
                    self._noted.pop(each.uid, None)
                    self._listed.remove(each.uid)
                    each.given_up_at = now
                    self.given_up[each.uid] = each
                    by.tell(each)
            if queued.pod_group is not None:
                queued.pod_group.given_up = True
        elif queued.waits:
            self._listed.push(queued.uid, (now + _LATER_SECONDS - (self.after or 0.0),), queued)
        return len(together)

    def _together(self, queued: QueuedPod) -> list[QueuedPod]:
        """List the pod, and the members of its group that wait for a node in the same profile."""
        members = {} if queued.pod_group is None else queued.pod_group.members
        others = (each for each in members.values() if each.pod.may_be_tried and each.pod.scheduler_name == self._name)
        return [queued, *(each for each in others if each is not queued)]


@dataclass(eq=False)
class GivingUp:
    """Gives pods up, and takes them back when their profile allows a longer wait.

    Pods of a profile that is gone stay as they are, given up or not, until the profile returns.

    Attributes:
        limits: limits of the profiles that state one.
        note_changed: called with the uid of a pod that is given up or taken back.
        clock: seconds, monotonic; the queue's clock.
        wall: time of day, seconds since 1970; None counts from the time at which a pod came to the queue.
        news: pods that were given up or taken back and whose owners have not been told, by uid.
    """

    limits: Callable[[], Iterable[WaitLimit]]
    note_changed: Callable[[str], None]
    clock: Callable[[], float]
    wall: Callable[[], float] | None
    news: dict[str, QueuedPod] = field(default_factory=dict, init=False)

    def step(self, most: int | None = None) -> int:
        """Judge waiting pods by their profiles' limits.

        Args:
            most: about so many pods of each profile at most; None for all.

        Returns:
            The number of pods looked at; less than `most` when all have been judged.
        """
        most_of_each = math.inf if most is None else most
        return sum(limit.step(most_of_each, self.clock(), self) for limit in self.limits())

    def next_deadline(self) -> float | None:
        """Return when `step` next has a pod to give up, in seconds on the queue's clock; None when no profile gives up a waiting pod."""
        deadlines = (limit.next_deadline() for limit in self.limits())
        return min((deadline for deadline in deadlines if deadline is not None), default=None)

    def began(self, queued: QueuedPod) -> float:
        """Return when a pod began to wait, in seconds on the queue's clock.

        Returns:
            A time that may lie before the start of this process.
        """
        if queued.ungated_at is not None:
            return queued.ungated_at
        first_seen = queued.timestamp if queued.initial_attempt_timestamp is None else queued.initial_attempt_timestamp
        pod = queued.pod
        if pod.pod.metadata.generation > 1 and not is_given_up(pod):
            return first_seen
        return min(first_seen, self._at(seconds_of(pod.created)))

    def tell(self, queued: QueuedPod) -> None:
        """Note that a pod was given up or taken back."""
        self.news[queued.uid] = queued
        self.note_changed(queued.uid)

    def _at(self, moment: float | None) -> float:
        """Convert seconds since 1970 to the queue's clock; infinite for no moment."""
        return math.inf if moment is None or self.wall is None else self.clock() - (self.wall() - moment)
