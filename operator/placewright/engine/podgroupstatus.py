"""Writes the status of PodGroups, and events about groups and their members.

`GroupStatusKeeper` implements the scheduler's `GroupStatusWriter` and writes at a beat how many members of a group run. `WaitingMembers`
writes why members wait that no decision is made about: a group whose object is wrong or missing, or that has too few members, is never
decided. It waits a moment before it writes, because jobs make their pods one by one. It writes again when the reason changes.

`KeptOutPods` tells pods whose namespace may not use their profile: the PodScheduled condition and an event, once for each pod.

Such a pod is gated and never tried (`framework/runtime/profileruntime.py`), so no attempt tells its owner. Pods are told at a bounded
pace, in turns between namespaces: a namespace that creates ten thousand such pods delays the others by one pod each.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from placewright.api.objects import Condition
from placewright.api.podgroups import COSCHEDULING_GROUP, KIND, NATIVE_GROUP, VOLCANO_GROUP, Form, GroupRef, PodGroup
from placewright.cluster.cluster import Cluster
from placewright.cluster.objects import PodGroups
from placewright.engine.children import in_turns
from placewright.framework.runtime.profileruntime import ALLOWED_NAMESPACES
from placewright.kube.ratelimit import TokenBucket
from placewright.kube.writers.events import HttpEventRecorder, Regarding
from placewright.kube.writers.podgroupstatus import GroupNews, HttpGroupStatusWriter
from placewright.plugins.gangscheduling import NAME
from placewright.queue.policy import Policies
from placewright.queue.profilequeue import ProfileQueue
from placewright.queue.queue import SchedulingQueue
from placewright.queue.queued import QueuedPod, QueuedPodGroup
from placewright.scheduler.attempts import FAILED_SCHEDULING, UNSCHEDULABLE
from placewright.scheduler.giveupreports import EVENT_REASON
from placewright.scheduler.ports import EventRecorder, EventType, StatusChannels, StatusWriter

#: Most pods that are told at once, and pods a second in the long run; as for pods that no profile takes.
BURST: Final = 100
PODS_A_SECOND: Final = 20.0


class KeptOutPods:
    """Tells each kept-out pod why it waits.

    Attributes:
        told: uids of waiting pods that were told. A pod that leaves the gate is forgotten, so there are no more than gated pods.

    Args:
        queue: has the gated pods.
        events: records the event of each pod.
        status: writes its condition.
        clock: seconds, monotonic.
    """

    def __init__(
        self, queue: SchedulingQueue, events: EventRecorder, status: StatusWriter, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._queue = queue
        self._events = events
        self._status = status
        self.told: set[str] = set()
        self._pace = TokenBucket(PODS_A_SECOND, BURST, clock)

    def look(self) -> None:
        """Tell as many kept-out pods as the pace allows."""
        lanes = [lane for lane in self._queue.profile_queues() if lane.served]
        waiting = {queued.uid: (lane, queued) for lane in lanes for queued in lane.gated.held_by(ALLOWED_NAMESPACES).values()}
        self.told &= waiting.keys()
        by_namespace: dict[str, list[tuple[ProfileQueue, QueuedPod]]] = {}
        for uid, found in waiting.items():
            if uid not in self.told:
                by_namespace.setdefault(found[1].pod.namespace, []).append(found)
        for found in in_turns(by_namespace.values()):
            if not self._pace.take_now():
                return
            self._tell(*found)

    def _tell(self, lane: ProfileQueue, queued: QueuedPod) -> None:
        self.told.add(queued.uid)
        message = lane.policy.pre_enqueue(queued.pod).message
        self._events.record(queued.pod, EventType.WARNING, FAILED_SCHEDULING, "Scheduling", message)
        self._status.pod_unscheduled(queued.pod, UNSCHEDULABLE, message, None)


#: Seconds for which a group may be incomplete before its members are told.
PATIENCE_SECONDS: Final = 5.0
#: Groups that are looked at in one go of the event loop.
_AT_ONCE: Final = 50
_REPORTER: Final = "placewright"


@dataclass(eq=False)
class GroupStatusKeeper:
    """Writes the status of groups, and events about them.

    Attributes:
        cluster: knows the groups and their placed members.
        writer: writer of the status.
        events: about groups.
        native_version: the version in which PodGroups of scheduling.k8s.io are read.
        composite_version: the version in which CompositePodGroups are read.
    """

    cluster: Cluster
    writer: HttpGroupStatusWriter
    events: HttpEventRecorder
    native_version: Callable[[], str]
    composite_version: Callable[[], str]

    def group_waits(self, pod_group: PodGroup, placed: int, missing: int, message: str, *, error: bool = False) -> None:
        """Write that a group waits, into its status and as a warning event.

        Args:
            pod_group: the pod group, as its object declares it.
            placed: members that have a node.
            missing: members that it needs besides.
            message: the reason.
            error: whether an error of the scheduler is the reason.
        """
        self.writer.tell(GroupNews(pod_group, placed=False, error=error, message=message))
        self.events.record_about(self._regarding(pod_group), EventType.WARNING, "FailedScheduling", "Scheduling", message)

    def group_placed(self, pod_group: PodGroup, placed: int) -> None:
        """Write that a group has as many placed members as it needs, into its status and as an event.

        Args:
            pod_group: the pod group, as its object declares it.
            placed: members that have a node.
        """
        needed = f"{pod_group.min_member} child groups" if pod_group.ref.form is Form.COMPOSITE else pod_group.min_member
        message = f"{placed} members have a node, {needed} are needed"
        self.writer.tell(GroupNews(pod_group, placed=True, message=message, owners=self._owners(pod_group)))
        self.events.record_about(self._regarding(pod_group), EventType.NORMAL, "Scheduled", "Binding", message)

    def group_given_up(self, pod_group: PodGroup, condition: Condition) -> None:
        """Write that a group is given up, into its status where it has conditions and as a warning event; or that it no longer is.

        Args:
            pod_group: the pod group, as its object declares it.
            condition: the condition, as its members have it.
        """
        self.writer.tell(GroupNews(pod_group, given_up=condition))
        if condition.status == "True":
            self.events.record_about(self._regarding(pod_group), EventType.WARNING, EVENT_REASON, "Scheduling", condition.message)

    def tell_running(self) -> None:
        """Write the number of running members of each group in which it changed."""
        pod_groups = self.cluster.pod_groups
        for ref in pod_groups.take_stirred():
            pod_group = pod_groups.get(ref) if ref.form is Form.COSCHEDULING else None
            if pod_group is not None:
                self.writer.tell(GroupNews(pod_group, running=pod_groups.running(ref), owners=self._owners(pod_group)))

    def _owners(self, pod_group: PodGroup) -> str:
        """Return the owners of one placed member, as all members have the same: `namespace/name`, joined by commas."""
        placements = (self.cluster.placement(uid) for uid in self.cluster.pod_groups.placed(pod_group.ref))
        member = next((placement.pod for placement in placements if placement is not None), None)
        owners = member.pod.metadata.owner_references if member is not None else None
        return ",".join(sorted(f"{pod_group.ref.namespace}/{owner.name}" for owner in owners or ()))

    def _regarding(self, pod_group: PodGroup) -> Regarding:
        ref = pod_group.ref
        api_version, kind = {
            Form.COSCHEDULING: (f"{COSCHEDULING_GROUP}/v1alpha1", KIND),
            Form.NATIVE: (f"{NATIVE_GROUP}/{self.native_version()}", KIND),
            Form.WORKLOAD: (f"{NATIVE_GROUP}/v1alpha1", "Workload"),
            Form.VOLCANO: (f"{VOLCANO_GROUP}/v1beta1", KIND),
            Form.COMPOSITE: (f"{NATIVE_GROUP}/{self.composite_version()}", "CompositePodGroup"),
        }[ref.form]
        return Regarding(api_version, kind, ref.namespace, ref.object_name, pod_group.uid, pod_group.resource_version, _REPORTER)


@dataclass(eq=False)
class WaitingMembers:
    """Writes the PodScheduled condition of members that wait: gated members, and members whose group was last tried when it was larger.

    Attributes:
        queue: has the members that wait.
        declared: the groups as their objects declare them.
        policies: judge why a member is gated.
        channels: write to pods and groups.
        clock: the queue's: seconds, monotonic.
        told: the last message of each group, and the members that were told.
    """

    queue: SchedulingQueue
    declared: PodGroups
    policies: Policies
    channels: StatusChannels
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self.told: dict[GroupRef, tuple[str, frozenset[str]]] = {}

    async def look(self) -> None:
        """Tell the members of each group whose reason is new. After every few groups the event loop runs other tasks."""
        for number, pod_group in enumerate(tuple(self.queue.pod_groups), 1):
            if self.clock() - pod_group.since >= PATIENCE_SECONDS:
                self._look_at(pod_group)
            if number % _AT_ONCE == 0:
                await asyncio.sleep(0)
        for ref in [ref for ref in self.told if self.queue.pod_groups.get(ref) is None]:
            del self.told[ref]

    def _look_at(self, pod_group: QueuedPodGroup) -> None:
        kept = [queued for queued in pod_group.members.values() if _is_kept(queued)]
        message = self._reason(kept)
        if not message:
            self.told.pop(pod_group.ref, None)
            return
        before, heard = self.told.get(pod_group.ref, ("", frozenset()))
        news = [queued for queued in kept if message != before or queued.uid not in heard]
        if news:
            self.told[pod_group.ref] = message, frozenset(queued.uid for queued in kept)
            self._tell(pod_group.ref, news, message)

    def _reason(self, kept: list[QueuedPod]) -> str:
        policy = self.policies(kept[0].pod.scheduler_name) if kept else None
        return "" if policy is None else policy.pre_enqueue(kept[0].pod).message

    def _tell(self, ref: GroupRef, members: list[QueuedPod], message: str) -> None:
        for queued in members:
            self.channels.events.record(queued.pod, EventType.WARNING, "FailedScheduling", "Scheduling", message)
            self.channels.status.pod_unscheduled(queued.pod, "Unschedulable", message, None)
        declared = self.declared.get(ref)
        if declared is not None:
            placed = len(self.declared.placed(ref))
            self.channels.groups.group_waits(declared, placed, max(declared.min_member - placed, 0), message)


def _is_kept(queued: QueuedPod) -> bool:
    """Whether its group holds a member back: gated before an attempt, or rejected by the group's plugin since."""
    return queued.gating_plugin == NAME if queued.gated else NAME in queued.unschedulable_plugins
