"""Reports pods that are given up (`queue.givingup`): a condition on the pod, one event, and the same on the object of its group.

The condition is the mark: a leader that finds it on a pod writes no second event. At the begin of a term the leader looks at all waiting
pods once, for marks that are missing or no longer true. Pods are reported at a bounded pace, because a shorter limit may give up thousands
of them at once; they are treated as given up from the first moment.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final

from placewright.api.givenup import given_up_condition, is_given_up, taken_back_condition
from placewright.api.objects import Condition
from placewright.api.podgroups import GroupRef
from placewright.api.pods import PodInfo
from placewright.cluster.podgroups import PodGroups
from placewright.framework.runtime.evaluation import Evaluator
from placewright.queue.events import A_SLICE
from placewright.queue.queue import SchedulingQueue
from placewright.queue.queued import QueuedPod
from placewright.scheduler.messages import go_duration
from placewright.scheduler.ports import Clock, EventType, Lead, StatusChannels

#: Seconds between two looks for pods that have waited too long.
BEAT_SECONDS: Final = 1.0
#: Pods that are reported at a beat, and pods whose marks are looked at when a term begins.
REPORTED_AT_ONCE: Final = 100
LOOKED_AT_ONCE: Final = 2_000
#: Reason of the event.
EVENT_REASON: Final = "GivenUp"


class GiveUpReports:
    """Tells the owners of pods that are given up, or no longer are.

    Args:
        queue: has the waiting pods.
        pod_groups: the groups as their objects declare them.
        profiles: the evaluator of a schedulerName, or None.
        channels: write to pods and groups.
        lead: whether this replica may report.
        clock: the queue's; seconds, monotonic.

    Attributes:
        counts: pods that were given up and reported, by name of their profile.
    """

    def __init__(
        self,
        queue: SchedulingQueue,
        pod_groups: PodGroups,
        profiles: Callable[[str], Evaluator | None],
        channels: StatusChannels,
        lead: Lead,
        clock: Clock,
    ) -> None:
        self.counts: Counter[str] = Counter()
        self._queue = queue
        self._pod_groups = pod_groups
        self._profiles = profiles
        self._channels = channels
        self._lead = lead
        self._clock = clock
        #: Uids of pods, and groups, that this replica has reported as given up; dropped when they leave or are taken back.
        self._reported: set[str] = set()
        self._reported_groups: set[GroupRef] = set()
        self._leads = False
        self._unlooked: Iterator[str] = iter(())

    async def run(self) -> None:
        """Judge and report at every beat, until cancelled."""
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            await self._judge_in_slices()
            self.report()

    async def _judge_in_slices(self) -> None:
        looked_at = A_SLICE
        while looked_at >= A_SLICE:
            looked_at = self._queue.giving_up.step(A_SLICE)
            await asyncio.sleep(0)

    def beat(self) -> None:
        """Judge all waiting pods now, and report."""
        self._queue.giving_up.step()
        self.report()

    def report(self) -> None:
        """Report pods whose standing has changed, up to `REPORTED_AT_ONCE` of them, while this replica leads."""
        if not self._lead.active:
            self._leads = False
            return
        if not self._leads:
            self._leads = True
            self._unlooked = iter(tuple(self._queue.uids()))
        for uid in islice(self._unlooked, LOOKED_AT_ONCE):
            self._look_at(uid)
        news = self._queue.giving_up.news
        for uid in tuple(islice(news, REPORTED_AT_ONCE)):
            self._report(news.pop(uid))
        self._drop_departed()

    # --- whom ------------------------------------------------------------------------------------------------------------------------

    def _look_at(self, uid: str) -> None:
        """Find a mark that an earlier leader left and that is not true any more, or a pod that lacks its mark."""
        queued = self._queue.get(uid)
        if queued is None:
            return
        marked = is_given_up(queued.pod)
        if marked != (queued.given_up_at is not None) and (not marked or self._may_wait_on(queued)):
            self._queue.giving_up.news[uid] = queued
            if marked:
                self._reported.add(uid)

    def _may_wait_on(self, queued: QueuedPod) -> bool:
        """Return whether the pod's profile allows it a longer wait. A profile that is not there yet says nothing."""
        evaluator = self._profiles(queued.pod.scheduler_name)
        if evaluator is None:
            return False
        after = evaluator.runtime.profile.settings.give_up_after_seconds
        return after is None or self._queue.giving_up.began(queued) + after > self._clock()

    def _drop_departed(self) -> None:
        given_up = sum(len(queue.wait_limit.given_up) for queue in self._queue.profile_queues() if queue.wait_limit is not None)
        if len(self._reported) > 2 * given_up + REPORTED_AT_ONCE:
            self._reported &= self._queue.uids()
        if self._reported_groups:
            known = ((ref, self._queue.pod_groups.get(ref)) for ref in self._reported_groups)
            self._reported_groups = {ref for ref, group in known if group is not None and group.given_up}

    # --- what is written ---------------------------------------------------------------------------------------------------------------

    def _report(self, queued: QueuedPod) -> None:
        pod, evaluator = self._queue.latest(queued.uid), self._profiles(queued.pod.scheduler_name)
        if pod is None or evaluator is None:
            return
        profile = evaluator.runtime.profile
        after = profile.settings.give_up_after_seconds
        if queued.given_up_at is None:
            self._report_taken_back(queued, pod, _longer(profile.name, after))
        elif after is not None and not is_given_up(pod):
            self._report_given_up(queued, pod, profile.name, after)
        else:
            self._reported.add(queued.uid)

    def _report_given_up(self, queued: QueuedPod, pod: PodInfo, profile: str, after: float) -> None:
        waited = max(self._clock() - self._queue.giving_up.began(queued), after)
        message = (
            f"waited {_whole(waited)}, and profile {profile} gives up after {_whole(after)}; {_rejection(queued)}; "
            "tried again after a change that may help"
        )
        condition = given_up_condition(message)
        self._channels.events.record(pod, EventType.WARNING, EVENT_REASON, "Scheduling", message)
        self._channels.status.pod_condition(pod, condition)
        self.counts[profile] += 1
        self._reported.add(pod.uid)
        ref = pod.pod_group
        if ref is not None and ref not in self._reported_groups:
            self._reported_groups.add(ref)
            self._report_group(ref, condition)

    def _report_taken_back(self, queued: QueuedPod, pod: PodInfo, message: str) -> None:
        if pod.uid not in self._reported and not is_given_up(pod):
            return  # taken back before it was reported
        self._reported.discard(pod.uid)
        condition = taken_back_condition(message)
        self._channels.status.pod_condition(pod, condition)
        if queued.pod.pod_group is not None:
            self._report_group(queued.pod.pod_group, condition)

    def _report_group(self, ref: GroupRef, condition: Condition) -> None:
        declared = self._pod_groups.get(ref)
        if declared is not None:
            self._channels.groups.group_given_up(declared, condition)


def _whole(seconds: float) -> str:
    return go_duration(round(seconds)) if seconds >= 1 else go_duration(seconds)


def _rejection(queued: QueuedPod) -> str:
    if queued.gated:
        return f"gated by {queued.gating_plugin}"
    return f"rejected last by {', '.join(sorted(queued.rejecting_plugins))}"


def _longer(profile: str, after: float | None) -> str:
    return f"profile {profile} gives up no pod now" if after is None else f"profile {profile} gives up after {_whole(after)} now"
