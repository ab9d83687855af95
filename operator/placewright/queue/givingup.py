"""Giving up: a rejected pod that has waited longer than its profile allows is tried again only after an event that may help it.

Such a pod stays in the sub-queue where it waits, and its hints are asked as before. Only the timeout that tries every unschedulable pod
again passes it over. A pod whose last attempt ended in an error is not given up, because no event would bring it back.

The time counts from the pod's creation, so that a new leader goes on where the earlier one was. A pod has not waited while it had a
scheduling gate. No field tells when the last gate went: the time of PodScheduled stays that of the creation. A pod whose spec has changed
since then (generation above 1) may have had one, and counts from the time at which this queue first saw it ready to be tried, unless its
condition says that a leader has given it up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from placewright.api.givenup import is_given_up
from placewright.framework.preemption.evictions import seconds_of
from placewright.queue.profilequeue import ProfileQueue, ProfileQueues
from placewright.queue.queued import QueuedPod
from placewright.queue.waitlimit import WaitLimit


class GivingUp:
    """Gives pods up, and takes them back when their profile allows a longer wait.

    Args:
        queues: the waiting pods by scheduler name.
        clock: the queue's; seconds, monotonic.
        wall: the time of day, seconds since 1970; None counts from the time at which a pod came to the queue.

    Attributes:
        news: pods that were given up or taken back and whose owners have not been told, by uid.
    """

    def __init__(self, queues: ProfileQueues, clock: Callable[[], float], wall: Callable[[], float] | None) -> None:
        self.news: dict[str, QueuedPod] = {}
        self._queues = queues
        self._clock = clock
        self._wall = wall

    def step(self, most: int | None = None) -> int:
        """Judge waiting pods by their profiles' limits.

        Args:
            most: about so many pods of each profile at most; None for all.

        Returns:
            The number of pods looked at; less than `most` when all have been judged.
        """
        limit = math.inf if most is None else most
        return sum(self._step(queue, wait_limit, limit) for queue, wait_limit in tuple(self._limited()))

    def next_deadline(self) -> float | None:
        """Return when `step` next has a pod to give up, in seconds on the queue's clock; None when no profile gives up a waiting pod."""
        deadlines = (wait_limit.next_deadline() for _, wait_limit in self._limited())
        return min((deadline for deadline in deadlines if deadline is not None), default=None)

    def began(self, queued: QueuedPod) -> float:
        """Return when a pod began to wait, in seconds on the queue's clock.

        Args:
            queued: in the queue.

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

    def forget(self, queued: QueuedPod) -> None:
        """Drop a pod that has left the queue."""
        self.news.pop(queued.uid, None)
        if queued.wait_limit is not None:
            queued.wait_limit.forget(queued)

    def _limited(self) -> Iterator[tuple[ProfileQueue, WaitLimit]]:
        """Iterate over the profiles that give up. Pods of a profile that is gone keep their standing until it returns."""
        return ((queue, queue.wait_limit) for queue in self._queues if queue.served and queue.wait_limit is not None)

    def _at(self, moment: float | None) -> float:
        """Convert seconds since 1970 to the queue's clock; infinite for no moment."""
        return math.inf if moment is None or self._wall is None else self._clock() - (self._wall() - moment)

    def _step(self, queue: ProfileQueue, wait_limit: WaitLimit, most: float) -> int:
        done, now = 0, self._clock()
        while done < most and (queued := wait_limit.in_question()) is not None:
            done += self._judge_anew(queue, wait_limit, queued, now)
        if wait_limit.settled:
            queue.wait_limit = None
            return done
        done += wait_limit.note_waiting(most - done, queue.waits)
        done += wait_limit.list_noted(most - done, self._listed_at)
        while done < most and (queued := wait_limit.overdue(now)) is not None:
            done += self._judge(queue, wait_limit, queued, now)
        return done

    def _listed_at(self, queued: QueuedPod) -> float:
        """Return the time by which a pod is listed. A member that joins a group that is given up shares the group's standing."""
        group = queued.pod_group
        return -math.inf if group is not None and group.given_up else self.began(queued)

    def _judge_anew(self, queue: ProfileQueue, wait_limit: WaitLimit, queued: QueuedPod, now: float) -> int:
        """Take a pod back that may wait longer now, with all members of its group; return the number of pods looked at."""
        together = [each for each in _together(queued, queue) if each.given_up_at is not None]
        wait_limit.answered(together)
        if wait_limit.after is None or min(self.began(each) for each in together) + wait_limit.after > now:
            for each in together:
                wait_limit.take_back(each)
                self._tell(each)
            if queued.pod_group is not None:
                queued.pod_group.given_up = False
        return len(together)

    def _judge(self, queue: ProfileQueue, wait_limit: WaitLimit, queued: QueuedPod, now: float) -> int:
        """Give up a pod that has waited too long, with all members of its group; return the number of pods looked at.

        A pod that is about to be tried, or is being tried, is noted again when it comes back, and its group waits for that.
        """
        if not queued.pod.may_be_tried:
            return 1
        together = _together(queued, queue)
        if all(queue.waits(each) for each in together):
            for each in together:
                if each.given_up_at is None:
                    wait_limit.give_up(each, now)
                    self._tell(each)
            if queued.pod_group is not None:
                queued.pod_group.given_up = True
        elif queue.waits(queued):
            wait_limit.put_off(queued, now)
        return len(together)

    def _tell(self, queued: QueuedPod) -> None:
        self.news[queued.uid] = queued
        self._queues.changed.note(queued.uid)


def _together(queued: QueuedPod, queue: ProfileQueue) -> list[QueuedPod]:
    """The pod, and the members of its group that wait for a node in the same profile."""
    members = {} if queued.pod_group is None else queued.pod_group.members
    others = (each for each in members.values() if each.pod.may_be_tried and each.pod.scheduler_name == queue.name)
    return [queued, *(each for each in others if each is not queued)]
