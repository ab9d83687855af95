"""What is queued: a pod with the history of its attempts, and the group of pods that it is placed with.

A group has no sub-queue of its own. Its members wait where each of them belongs, and when one is handed out, the others go with it (see
`SchedulingQueue.take_gang`). So whatever brings one member back brings the group back, once.
"""

from __future__ import annotations

import enum
import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Final

from placewright.api.objects import PodKey
from placewright.api.podgroups import FORM_OF, Form, GroupObject, GroupRef
from placewright.api.pods import PodInfo
from placewright.queue.policy import BackoffPolicy, QueuePolicy, SortKey
from placewright.queue.suspects import Suspicion

#: Backoff ends at whole seconds of the clock, so that pods that failed together come back together and in order of priority.
WINDOW_SECONDS: Final = 1

#: The object that declares groups: form, namespace, name.
_Declarer = tuple[Form, str, str]


class SubQueue(enum.StrEnum):
    """Where an unscheduled pod is; it is in exactly one of these. The values are the queue's names in metrics.

    ACTIVE: will be tried as soon as its turn comes.
    BACKOFF: failed a while ago and waits a little, so that it cannot crowd out others.
    UNSCHEDULABLE: waits for an event that could help it, or for its profile to come back.
    GATED: a PreEnqueue plugin keeps it from being tried.
    IN_FLIGHT: handed out by `pop`, and neither returned nor done yet.
    """

    ACTIVE = "active"
    BACKOFF = "backoff"
    UNSCHEDULABLE = "unschedulable"
    GATED = "gated"
    IN_FLIGHT = "in-flight"


@dataclass(slots=True, eq=False)
class QueuedPod:
    """A pod with its history. Only the queue changes it.

    Attributes:
        pod: the latest version known when the pod was last handed out or updated.
        timestamp: when the pod entered the queue or last came back after a failed attempt, seconds on the queue's clock.
        initial_attempt_timestamp: when it first became active; None for a pod that was gated ever since.
        attempts: how often it was handed out.
        unschedulable_count: how often plugins rejected it.
        consecutive_errors: how often in a row it came back without any plugin having rejected it.
        unschedulable_plugins, pending_plugins: who rejected it last; pending ones bring it back without backoff.
        filtered: True when it waits because no node passed PreFilter and Filter; False where something else failed.
        seen: how many events had been noted (`RecentEvents.noted`) when it was last handed out.
        gating_plugin: who keeps it gated; meaningful only in `SubQueue.GATED`.
        gated: True while it is in `SubQueue.GATED`.
        told: as long as it waits, the number of the last event that it was told of, or need not be told of (see `queue.sweeps`).
        recalled: True after an event that was worth another try found it gated: what its gating plugin listens to is worth one, too.
        flushed: True when only the long timeout brought it back: no event did, which hints at a missing queueing hint.
        gang: the group that the pod is placed with, as the queue knows it; None for most pods.
        suspicion: why it is tried after all others; None for nearly all pods.
    """

    pod: PodInfo
    timestamp: float
    initial_attempt_timestamp: float | None = None
    attempts: int = 0
    unschedulable_count: int = 0
    consecutive_errors: int = 0
    unschedulable_plugins: AbstractSet[str] = frozenset()
    pending_plugins: AbstractSet[str] = frozenset()
    filtered: bool = False
    seen: int = 0
    gating_plugin: str = ""
    gated: bool = False
    told: int = 0
    recalled: bool = False
    flushed: bool = False
    pod_group: QueuedPodGroup | None = field(default=None, repr=False)
    suspicion: Suspicion | None = None

    @property
    def uid(self) -> str:
        """The pod's uid: its identity in every structure of the queue."""
        return self.pod.uid

    @property
    def key(self) -> PodKey:
        """`namespace/name`."""
        return self.pod.key

    @property
    def rejecting_plugins(self) -> AbstractSet[str]:
        """Everybody who has to be asked whether an event helps; empty after an error."""
        return self.unschedulable_plugins | self.pending_plugins

    @property
    def rejected(self) -> bool:
        """True when plugins rejected the pod, False after an error."""
        return bool(self.unschedulable_plugins or self.pending_plugins)

    def gate(self, plugin: str) -> None:
        """This PreEnqueue plugin keeps it back."""
        self.gated, self.gating_plugin = True, plugin
        self.unschedulable_plugins |= {plugin}
        if self.pod_group is not None:
            self.pod_group.gated[self.uid] = self

    def ungate(self) -> None:
        """It is let go; harmless for a pod that was not gated."""
        if self.gated:
            self.gated = False
            if self.pod_group is not None:
                self.pod_group.gated.pop(self.uid, None)

    def record_failure(
        self, now: float, unschedulable: AbstractSet[str], pending: AbstractSet[str], *, filtered: bool = False
    ) -> None:
        """Note a failed attempt: a rejection when plugins are named, otherwise an error."""
        self.timestamp = now
        self.filtered = filtered
        self.flushed = self.recalled = False
        self.unschedulable_plugins, self.pending_plugins = frozenset(unschedulable), frozenset(pending)
        if unschedulable or pending:
            self.unschedulable_count += 1
            self.consecutive_errors = 0
        else:
            self.consecutive_errors += 1

    def turn(self, policy: QueuePolicy) -> SortKey:
        """The pod's place in the order of pods to be tried: a group's members all come when its first is due, by the group's age."""
        pod_group = self.pod_group
        return policy.sort_key(self.pod, self.timestamp) if pod_group is None else policy.sort_key(pod_group.first.pod, pod_group.since)

    def backoff_window(self, policy: BackoffPolicy) -> int | None:
        """The window (whole seconds of the clock) in which backoff ends; None when there is nothing to wait for.

        Members of a group that failed as one wait until the same time.
        """
        if self.pod_group is not None and self.pod_group.failed_at is not None:
            return _window_after(self.pod_group.failed_at, policy.duration(self.pod_group.failures))
        return _window_after(self.timestamp, policy.duration(self.consecutive_errors or self.unschedulable_count))

    def backing_off_until(self, policy: BackoffPolicy, now: float) -> int | None:
        """The window in which backoff ends; None once that is over, or when there is nothing to wait for."""
        window = self.backoff_window(policy)
        return window if window is not None and window >= window_of(now) else None


def _window_after(failed_at: float, seconds: float) -> int | None:
    return window_of(failed_at + seconds) if seconds else None


def window_of(seconds: float) -> int:
    """The ordering window that a time falls into."""
    return math.floor(seconds / WINDOW_SECONDS)


class QueuedPodGroup:
    """A group with members that have no node yet. Only the queue changes it.

    What is asked for each member's sake (how many may be tried, who comes first, who is gated) is kept as members come, change and go:
    a group may have thousands.

    Attributes:
        ref: what members call it.
        since: when its first member came, seconds on the queue's clock: the group's age, which its failures do not touch.
        members: by uid, in order of arrival; those in flight included.
        gated: those of them that a PreEnqueue plugin keeps back.
        ready: how many of them may be tried, by scheduler name: those that are neither leaving nor have a scheduling gate.
        tried_at: when it was first tried as a group; None before.
        failed_at: when it last failed as a group; None once it is placed, and then its members are pods like any other.
        failures: how often in a row.
        lacks: what it lacked then, in words.
        suspicion: the worst that is known against any member, as of the marks of `judged_in`; for `queue.suspectpods` alone.
    """

    __slots__ = (
        "_counted", "_first", "failed_at", "failures", "gated", "judged_in", "lacks", "members", "ready", "ref", "since", "suspicion",
        "tried_at",
    )  # fmt: skip

    def __init__(self, ref: GroupRef, since: float) -> None:
        self.ref = ref
        self.since = since
        self.members: dict[str, QueuedPod] = {}
        self.gated: dict[str, QueuedPod] = {}
        self.ready: Counter[str] = Counter()
        #: The version of each member that `ready` and `first` know.
        self._counted: dict[str, PodInfo] = {}
        self.tried_at: float | None = None
        self.failed_at: float | None = None
        self.failures = 0
        self.lacks = ""
        self.suspicion: Suspicion | None = None
        self.judged_in = 0
        self._first: QueuedPod | None = None

    @property
    def first(self) -> QueuedPod:
        """The member of the highest priority; the whole group is tried when it is this one's turn."""
        if self._first is None:
            self._first = max(self.members.values(), key=lambda queued: queued.pod.priority)
        return self._first

    def failed(self, now: float, lacks: str = "") -> None:
        """The group was tried as one, and stays without nodes."""
        self.failed_at = now
        self.lacks = lacks
        self.failures += 1

    def placed(self) -> None:
        """The group has what it needs: members that are left over wait each for itself."""
        self.failed_at, self.failures, self.tried_at = None, 0, None
        self.lacks = ""

    def put(self, queued: QueuedPod) -> None:
        """A member came, or there is a newer version of it."""
        before, now = self._counted.get(queued.uid), queued.pod
        if before is now:
            return
        self._uncount(before)
        self.members[queued.uid] = queued
        self._counted[queued.uid] = now
        if now.may_be_tried:
            self.ready[now.scheduler_name] += 1
        if queued.gated:
            self.gated[queued.uid] = queued
        if before is not None:
            self._first = self._first if before.priority == now.priority else None
        elif self._first is not None and now.priority > self._first.pod.priority:
            self._first = queued

    def remove(self, queued: QueuedPod) -> None:
        """A member left; harmless for a pod that was none."""
        if self.members.pop(queued.uid, None) is None:
            return
        self._uncount(self._counted.pop(queued.uid))
        self.gated.pop(queued.uid, None)
        if self._first is queued:
            self._first = None

    def ready_beside(self, pod: PodInfo) -> Counter[str]:
        """`ready`, with this member as it is here."""
        known = self._counted.get(pod.uid)
        if known is pod:
            return self.ready
        counts = self.ready.copy()
        if known is not None:
            counts[known.scheduler_name] -= known.may_be_tried
        counts[pod.scheduler_name] += pod.may_be_tried
        return +counts

    def _uncount(self, pod: PodInfo | None) -> None:
        if pod is not None and pod.may_be_tried:
            self.ready[pod.scheduler_name] -= 1
            self.ready += Counter()  # names of which none is left go


class QueuedPodGroups:
    """All groups with members in the queue. Implements `framework.ports.GangMembers`."""

    __slots__ = ("_declared", "_pod_groups")

    def __init__(self) -> None:
        self._pod_groups: dict[GroupRef, QueuedPodGroup] = {}
        self._declared: dict[_Declarer, dict[GroupRef, None]] = {}

    def __len__(self) -> int:
        return len(self._pod_groups)

    def __iter__(self) -> Iterator[QueuedPodGroup]:
        """All groups, in order of arrival."""
        return iter(self._pod_groups.values())

    def get(self, ref: GroupRef) -> QueuedPodGroup | None:
        """The group, or None when no member of it is in the queue."""
        return self._pod_groups.get(ref)

    def members(self, ref: GroupRef) -> Collection[PodInfo]:
        """The members without a node, in order of arrival, those that are being tried or bound included."""
        pod_group = self._pod_groups.get(ref)
        return () if pod_group is None else [queued.pod for queued in pod_group.members.values()]

    def ready_members(self, ref: GroupRef, beside: PodInfo) -> Mapping[str, int]:
        """How many members may be tried, by scheduler name, with this one as it is here."""
        pod_group = self._pod_groups.get(ref)
        return Counter({beside.scheduler_name: 1} if beside.may_be_tried else {}) if pod_group is None else pod_group.ready_beside(beside)

    def declared_by(self, item: GroupObject) -> Iterator[QueuedPod]:
        """Members of the groups that stand in this object."""
        meta = item.metadata
        for ref in self._declared.get((FORM_OF[type(item)], meta.namespace, meta.name), ()):
            yield from self._pod_groups[ref].members.values()

    def join(self, queued: QueuedPod, now: float) -> None:
        """The pod is in the queue; harmless for one that joined before. One that names another group than before changes over."""
        ref = queued.pod.pod_group
        if queued.pod_group is not None and queued.pod_group.ref != ref:
            self.leave(queued)
        if ref is None:
            return
        pod_group = self._pod_groups.get(ref)
        if pod_group is None:
            pod_group = self._pod_groups[ref] = QueuedPodGroup(ref, now)
            self._declared.setdefault(_declarer(ref), {})[ref] = None
        pod_group.put(queued)
        queued.pod_group = pod_group

    def leave(self, queued: QueuedPod) -> None:
        """The pod has a node, or is gone; harmless for one that belongs to no group."""
        pod_group, queued.pod_group = queued.pod_group, None
        if pod_group is None:
            return
        pod_group.remove(queued)
        if not pod_group.members:
            self._pod_groups.pop(pod_group.ref, None)
            self._undeclare(pod_group.ref)

    def _undeclare(self, ref: GroupRef) -> None:
        refs = self._declared[_declarer(ref)]
        del refs[ref]
        if not refs:
            del self._declared[_declarer(ref)]


def _declarer(ref: GroupRef) -> _Declarer:
    return ref.form, ref.namespace, ref.object_name
