"""Reports pods that are given up (`queue.givingup`): writes a condition on the pod and on its group's object, and an event.

A leader that finds the condition on a pod writes no second event. When a term begins, the leader looks for conditions of
waiting pods that are missing or no longer true. A shorter limit may give up thousands of pods at once. They are treated as
given up at once, and reported at a bounded pace.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from placewright.api.givenup import given_up_condition, is_given_up, taken_back_condition
from placewright.api.objects import Condition
from placewright.api.podgroups import GroupRef
from placewright.api.pods import PodInfo
from placewright.cluster.objects import PodGroups
from placewright.framework.runtime.evaluation import Evaluator
from placewright.queue.events import A_SLICE
from placewright.queue.queue import SchedulingQueue
from placewright.queue.queued import QueuedPod
from placewright.scheduler.messages import go_duration
from placewright.scheduler.ports import Clock, EventType, Lead, StatusChannels

#: Seconds between two looks for pods that have waited too long.
BEAT_SECONDS: Final = 1.0
#: Pods that are reported at a beat, and pods whose conditions are looked at when a term begins.
REPORTED_AT_ONCE: Final = 100
LOOKED_AT_ONCE: Final = 2_000
#: Reason of the event.
EVENT_REASON: Final = "GivenUp"


@dataclass(eq=False)
class GiveUpReports:
    """Reports to the owners of pods that are given up, or no longer are.

    Attributes:
        queue: queue with the waiting pods.
        pod_groups: groups as their objects declare them.
        profiles: evaluator of a schedulerName, or None.
        channels: writers to pods and groups.
        lead: tells whether this replica may report.
        clock: seconds, monotonic; the queue's clock.
        counts: numbers of pods that were given up and reported, by name of their profile.
    """

    queue: SchedulingQueue
    pod_groups: PodGroups
    profiles: Callable[[str], Evaluator | None]
    channels: StatusChannels
    lead: Lead
    clock: Clock
    counts: Counter[str] = field(default_factory=Counter, init=False)
    #: Uids of pods, and groups, that this replica has reported as given up; dropped when they leave or are taken back.
    _reported: set[str] = field(default_factory=set, init=False)
    _reported_groups: set[GroupRef] = field(default_factory=set, init=False)
    _leads: bool = field(default=False, init=False)
    _unlooked: Iterator[str] = field(default=iter(()), init=False)

    async def run(self) -> None:
        """Judge and report at every beat, until cancelled."""
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            while self.queue.giving_up.step(A_SLICE) >= A_SLICE:  # noqa: ASYNC110 - it judges, and waits for nothing
                await asyncio.sleep(0)
            self.report()

    def beat(self) -> None:
        """Judge all waiting pods now, and report."""
        self.queue.giving_up.step()
        self.report()

    def report(self) -> None:
        """Report pods whose standing has changed, up to `REPORTED_AT_ONCE` of them, while this replica leads."""
        if not self.lead.active:
            self._leads = False
            return
        if not self._leads:
            self._leads = True
            self._unlooked = iter(tuple(self.queue.uids()))
        for uid in islice(self._unlooked, LOOKED_AT_ONCE):
            self._look_at(uid)
        news = self.queue.giving_up.news
        for uid in tuple(islice(news, REPORTED_AT_ONCE)):
            self._report(news.pop(uid))
        self._drop_departed()

    # --- whom ------------------------------------------------------------------------------------------------------------------------

    def _look_at(self, uid: str) -> None:
        """Note a pod whose condition, as an earlier leader wrote it, is missing or no longer true."""
        queued = self.queue.get(uid)
        if queued is None:
            return
        marked = is_given_up(queued.pod)
        if marked != (queued.given_up_at is not None) and (not marked or self._may_wait_on(queued)):
            self.queue.giving_up.news[uid] = queued
            if marked:
                self._reported.add(uid)

    def _may_wait_on(self, queued: QueuedPod) -> bool:
        """Return whether the pod's profile allows it a longer wait. Return False while no profile claims the pod."""
        evaluator = self.profiles(queued.pod.scheduler_name)
        if evaluator is None:
            return False
        after = evaluator.runtime.profile.settings.give_up_after_seconds
        return after is None or self.queue.giving_up.began(queued) + after > self.clock()

    def _drop_departed(self) -> None:
        given_up = sum(len(queue.wait_limit.given_up) for queue in self.queue.profile_queues() if queue.wait_limit is not None)
        if len(self._reported) > 2 * given_up + REPORTED_AT_ONCE:
            self._reported &= self.queue.uids()
        if self._reported_groups:
            known = ((ref, self.queue.pod_groups.get(ref)) for ref in self._reported_groups)
            self._reported_groups = {ref for ref, group in known if group is not None and group.given_up}

    # --- what is written ---------------------------------------------------------------------------------------------------------------

    def _report(self, queued: QueuedPod) -> None:
        pod, evaluator = self.queue.latest(queued.uid), self.profiles(queued.pod.scheduler_name)
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
        waited = max(self.clock() - self.queue.giving_up.began(queued), after)
        message = (
            f"waited {_whole(waited)}, and profile {profile} gives up after {_whole(after)}; {_rejection(queued)}; "
            "tried again after a change that may help"
        )
        condition = given_up_condition(message)
        self.channels.events.record(pod, EventType.WARNING, EVENT_REASON, "Scheduling", message)
        self.channels.status.pod_condition(pod, condition)
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
        self.channels.status.pod_condition(pod, condition)
        if queued.pod.pod_group is not None:
            self._report_group(queued.pod.pod_group, condition)

    def _report_group(self, ref: GroupRef, condition: Condition) -> None:
        declared = self.pod_groups.get(ref)
        if declared is not None:
            self.channels.groups.group_given_up(declared, condition)


def _whole(seconds: float) -> str:
    return go_duration(round(seconds)) if seconds >= 1 else go_duration(seconds)


def _rejection(queued: QueuedPod) -> str:
    if queued.gated:
        return f"gated by {queued.gating_plugin}"
    return f"rejected last by {', '.join(sorted(queued.rejecting_plugins))}"


def _longer(profile: str, after: float | None) -> str:
    return f"profile {profile} gives up no pod now" if after is None else f"profile {profile} gives up after {_whole(after)} now"
