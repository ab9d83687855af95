"""The queue's records: a pod with the history of its attempts, and the group of pods that it is placed with.

A group has no sub-queue. Each member waits in the sub-queue of its own rejection. The first member that is handed out takes the others
along (`SchedulingQueue.take_pod_group`). So any event that brings one member back brings the group back once.
"""

from __future__ import annotations

import enum
import math
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from placewright.api.objects import PodKey
from placewright.api.podgroups import FORM_OF, CompositePodGroup, Form, GroupObject, GroupRef, NativePodGroup, parent_of
from placewright.api.pods import PodInfo
from placewright.queue.policy import BackoffPolicy, QueuePolicy, SortKey

#: Seconds. Backoff ends at whole seconds of the clock, so that pods that failed together come back in order of priority.
WINDOW_SECONDS: Final = 1

# --- labels of moves between sub-queues that no event in the cluster causes ------------------------------------------------------

# The metric `scheduler_queue_incoming_pods_total` counts pods by sub-queue and label. Moves by an event have the event's label
# (`framework.events`). The first four labels here are kube-scheduler's, word for word, so that its dashboards go on working. The
# others name moves that kube-scheduler does not have.

#: The watch of unscheduled pods shows a pod for the first time. `scheduler_event_handling_duration_seconds` has the time that this
#: takes under the same label.
POD_ADD: Final = "UnscheduledPodAdd"

#: An attempt ended without a node.
ATTEMPT_FAILURE: Final = "ScheduleAttemptFailure"

#: A pod's backoff is over.
BACKOFF_COMPLETE: Final = "BackoffComplete"

#: A pod is handed out before its backoff is over, because no pod is active. kube-scheduler does so since 1.33, behind the feature
#: gate `SchedulerPopFromBackoffQ`.
POP_FROM_BACKOFF: Final = "PopFromBackoffQ"

# --- ours --------------------------------------------------------------------------------------------------------------------

#: A profile changed: its gated pods, and pods whose rejection may not hold any longer, are tried again.
PROFILE_UPDATE: Final = "ProfileUpdate"

#: A group lost a member, or its barrier expired: one of its members is tried again and takes the others along.
GANG_AGAIN: Final = "GangAgain"

#: A pod resembles a pod in whose decision a process ended (`queue.suspects`), and is set apart.
SET_APART: Final = "SuspectSetApart"

#: A suspect is made active, because no other pod is.
LET_IN: Final = "SuspectLetIn"

#: A pod whose rejection ends by time alone is tried again at that time (`queue.events`).
TIME_HAS_COME: Final = "TimeHasCome"

# --- records ---------------------------------------------------------------------------------------------------------------------

#: The object that declares groups: form, namespace, name. An empty name stands for all trees of the namespace.
_Declarer = tuple[Form, str, str]


class SubQueue(enum.StrEnum):
    """The part of the queue that an unscheduled pod is in: exactly one. The values are kube-scheduler's names in metrics.

    ACTIVE: the pod is tried as soon as its turn comes.
    BACKOFF: the pod failed and waits a few seconds, so that it cannot crowd out others.
    UNSCHEDULABLE: the pod waits for an event that could help it, or for its profile to come back.
    GATED: a PreEnqueue plugin keeps the pod from being tried.
    IN_FLIGHT: `pop` handed the pod out, and it is neither returned nor done yet.
    """

    ACTIVE = "active"
    BACKOFF = "backoff"
    UNSCHEDULABLE = "unschedulable"
    GATED = "gated"
    IN_FLIGHT = "in-flight"


class Sizes(NamedTuple):
    """How many pods each sub-queue holds."""

    active: int
    backoff: int
    unschedulable: int
    gated: int
    in_flight: int


@dataclass(frozen=True, slots=True)
class Suspicion:
    """Why a pod is tried last.

    Attributes:
        deaths: number of processes that ended in the decision of a pod like it.
        not_before: when it may be tried again, if no other pod is active then; seconds on the queue's clock.
    """

    deaths: int
    not_before: float


@dataclass(slots=True, eq=False)
class QueuedPod:
    """A pod with the history of its attempts. Only the queue changes it.

    Attributes:
        pod: the newest version known when the pod was last handed out or updated.
        timestamp: when the pod entered the queue or last came back after a failed attempt; seconds on the queue's clock.
        initial_attempt_timestamp: when the pod first became active; None for a pod that has been gated since it came.
        attempts: number of times that the pod was handed out.
        unschedulable_count: number of rejections by plugins.
        consecutive_errors: number of returns in a row without a rejecting plugin.
        unschedulable_plugins: the plugins that rejected it last and let it back off.
        pending_plugins: the plugins that rejected it last with PENDING; their events bring it back without backoff.
        filtered: True when no node passed PreFilter and Filter; False when something after them failed.
        seen: `RecentEvents.noted` when the pod was last handed out.
        place: the sub-queue that the pod is in; None before it enters one, and after it was taken out.
        gating_plugin: the PreEnqueue plugin that gates the pod; meaningful only in `SubQueue.GATED`.
        told: number of the last event that the waiting pod was told of or need not be told of (`queue.events`).
        recalled: True after an event that was worth another try met the pod while it was gated. An event of its gating plugin
            is then worth one, too.
        flushed: True when only the long timeout brought the pod back, which hints at a missing queueing hint.
        full_backoff: True when the pod waits out its backoff even while no pod is active, because an earlier attempt would fail.
        pod_group: the group that the pod is placed with, as the queue knows it; None for most pods.
        suspicion: why the pod is tried after all others; None for nearly all pods.
        ungated_at: when its last scheduling gate was seen to go; None for a pod that had none since it came.
        given_up_at: when it was given up (`queue.givingup`), in seconds on the queue's clock; None while it is not.
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
    place: SubQueue | None = None
    gating_plugin: str = ""
    told: int = 0
    recalled: bool = False
    flushed: bool = False
    full_backoff: bool = False
    pod_group: QueuedPodGroup | None = field(default=None, repr=False)
    suspicion: Suspicion | None = None
    ungated_at: float | None = None
    given_up_at: float | None = None

    @property
    def uid(self) -> str:
        """The pod's uid: its identity in every structure of the queue."""
        return self.pod.uid

    @property
    def key(self) -> PodKey:
        """`namespace/name` of the pod."""
        return self.pod.key

    @property
    def rejecting_plugins(self) -> AbstractSet[str]:
        """The plugins that are asked whether an event helps the pod; empty after an error."""
        return self.unschedulable_plugins | self.pending_plugins

    @property
    def rejected(self) -> bool:
        """True when plugins rejected the pod, False after an error."""
        return bool(self.unschedulable_plugins or self.pending_plugins)

    def take_version(self, pod: PodInfo, now: float) -> None:
        """Replace the pod by its newer version, and note the time at which its last scheduling gate went.

        Args:
            pod: the newer version.
            now: seconds on the queue's clock.
        """
        if self.pod.pod.spec.scheduling_gates and not pod.pod.spec.scheduling_gates:
            self.ungated_at = now
        self.pod = pod

    @property
    def gated(self) -> bool:
        """True while a PreEnqueue plugin gates the pod."""
        return self.place is SubQueue.GATED

    @property
    def waits(self) -> bool:
        """True while the pod waits for an event or is gated."""
        return self.place is SubQueue.UNSCHEDULABLE or self.place is SubQueue.GATED

    def goes_to(self, place: SubQueue | None) -> None:
        """Note the next sub-queue of the pod."""
        if self.pod_group is not None:
            self.pod_group.gated.pop(self.uid, None)
            if place is SubQueue.GATED:
                self.pod_group.gated[self.uid] = self
        self.place = place

    def record_failure(self, now: float, unschedulable: AbstractSet[str], pending: AbstractSet[str], *, filtered: bool = False) -> None:
        """Note a failed attempt: a rejection when plugins are named, otherwise an error.

        Args:
            now: seconds on the queue's clock.
            unschedulable: plugins that rejected the pod.
            pending: plugins that rejected the pod with PENDING.
            filtered: no node passed the filters.
        """
        self.timestamp = now
        self.filtered = filtered
        self.flushed = self.recalled = False
        self.unschedulable_plugins, self.pending_plugins = frozenset(unschedulable), frozenset(pending)
        if unschedulable or pending:
            self.unschedulable_count += 1
            self.consecutive_errors = 0
        else:
            self.consecutive_errors += 1

    def sort_key(self, policy: QueuePolicy) -> SortKey:
        """Compute the pod's sort key.

        All members of a group have the key of the group's first member, so that the group comes as one.
        """
        if (pod_group := self.pod_group) is None:
            return policy.sort_key(self.pod, self.timestamp)
        # As for a pod, the turn counts from when the group came or its last attempt failed.
        return policy.sort_key(pod_group.first.pod, pod_group.since if pod_group.failed_at is None else pod_group.failed_at)

    def backoff_window(self, policy: BackoffPolicy) -> int | None:
        """Compute when backoff ends. Members of a group that failed as one wait until the same window.

        Returns:
            The window (whole seconds of the clock); None when the pod need not back off.
        """
        if self.pod_group is not None and self.pod_group.failed_at is not None:
            return _window_after(self.pod_group.failed_at, policy.duration(self.pod_group.failures))
        return _window_after(self.timestamp, policy.duration(self.consecutive_errors or self.unschedulable_count))

    def backing_off_until(self, policy: BackoffPolicy, now: float) -> int | None:
        """Return the window in which backoff ends; None when backoff is over or was never needed.

        Args:
            policy: the profile's backoff.
            now: seconds on the queue's clock.

        Returns:
            A window as `window_of` counts them.
        """
        window = self.backoff_window(policy)
        return window if window is not None and window >= window_of(now) else None


def _window_after(failed_at: float, seconds: float) -> int | None:
    return window_of(failed_at + seconds) if seconds else None


def window_of(seconds: float) -> int:
    """Return the ordering window of a time in seconds."""
    return math.floor(seconds / WINDOW_SECONDS)


class ByUid:
    """Counts and finds items by uid. The subclass keeps them in `_of`, in order of arrival."""

    __slots__ = ()
    _of: dict[Any, Any]

    def __len__(self) -> int:
        return len(self._of)

    def __contains__(self, uid: Hashable) -> bool:
        return uid in self._of

    def uids(self) -> list[Any]:
        """Return the uids of all items as they are now, in order of arrival."""
        return list(self._of)


@dataclass(slots=True, eq=False, repr=False)
class QueuedPodGroup:
    """A group with members that have no node yet. Only the queue changes it.

    The first member, the gated members and the number that may be tried are needed for each member. They are kept up to date as
    members come, change and go, because a group may have thousands.

    Attributes:
        ref: the name by which members refer to the group.
        since: when its first member came, in seconds on the queue's clock. It is the group's age, which failures do not change.
        domains_tried: topology domains that the next attempt need not begin with; empty once all domains have been tried.
        members: all members by uid, in order of arrival, members in flight included.
        gated: the members that a PreEnqueue plugin gates.
        ready: number of members that may be tried, by scheduler name, without terminating members and members with a scheduling gate.
        tried_at: when the group was first tried as one; None before.
        failed_at: when it last failed as one; None once it is placed, and from then on its members are single pods.
        failures: number of failures in a row as one.
        lacks: the shortage at the last attempt, in words.
        filtered: whether no node passed the filters for some member at the last attempt.
        given_up: True while its members are given up.
        suspicion: the worst suspicion against any member, as of the marks of `judged_in`; kept for `queue.suspects` alone.
        judged_in: the version of the marks that `suspicion` was read from.
    """

    ref: GroupRef
    since: float
    members: dict[str, QueuedPod] = field(default_factory=dict)
    gated: dict[str, QueuedPod] = field(default_factory=dict)
    ready: Counter[str] = field(default_factory=Counter)
    tried_at: float | None = None
    failed_at: float | None = None
    failures: int = 0
    lacks: str = ""
    domains_tried: frozenset[str] = frozenset()
    filtered: bool = False
    given_up: bool = False
    suspicion: Suspicion | None = None
    judged_in: int = 0
    #: The version of each member that `ready` and `first` know.
    _counted: dict[str, PodInfo] = field(default_factory=dict)
    _first: QueuedPod | None = None

    @property
    def first(self) -> QueuedPod:
        """The member with the highest priority. The whole group is tried at this member's turn."""
        if self._first is None:
            self._first = max(self.members.values(), key=lambda queued: queued.pod.priority)
        return self._first

    def failed(self, now: float, lacks: str = "", *, filtered: bool = False, domains_tried: frozenset[str] = frozenset()) -> None:
        """Note that the group was tried as one and got no nodes.

        Args:
            now: seconds on the queue's clock.
            lacks: the group's shortage, in words.
            filtered: no node passed the filters for some member.
            domains_tried: topology domains that the next attempt need not begin with.
        """
        self.failed_at = now
        self.lacks = lacks
        self.filtered = filtered
        self.domains_tried = domains_tried
        self.failures += 1

    def placed(self) -> None:
        """Note that the group has the nodes it needs: members that are left over wait as single pods."""
        self.failed_at, self.failures, self.tried_at = None, 0, None
        self.lacks, self.filtered, self.given_up, self.domains_tried = "", False, False, frozenset()

    def put(self, queued: QueuedPod) -> None:
        """Add a member, or replace it by its newer version."""
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
        # The group's first member is searched for only when it may have changed: a search at each arrival made a group of n
        # members cost n².
        if before is not None:
            self._first = self._first if before.priority == now.priority else None
        elif self._first is not None and now.priority > self._first.pod.priority:
            self._first = queued

    def remove(self, queued: QueuedPod) -> None:
        """Remove a member; harmless for a pod that is not one."""
        if self.members.pop(queued.uid, None) is None:
            return
        self._uncount(self._counted.pop(queued.uid))
        self.gated.pop(queued.uid, None)
        if self._first is queued:
            self._first = None

    def ready_beside(self, pod: PodInfo) -> Counter[str]:
        """Count the members that may be tried, as if this version of a member were the known one.

        PreEnqueue judges a pod before the queue takes it in. So the pod counts here before it is in `members`.

        Returns:
            Counts by scheduler name.
        """
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
            self.ready += Counter()  # drops names without members


class ChangedPods:
    """The uids of pods that came, moved, or went since they were last taken.

    A reader that shows all waiting pods reads the changed pods, and not all pods again. Pods are noted for one reader, and only while it
    reads, because every decision passes here.

    Example:
        changed.begin()
        ...                     # pods come and go
        uids = changed.take(100)
        changed.end()

    Attributes:
        uids: noted and not taken yet, in order of their first change; None without a reader.
    """

    __slots__ = ("uids",)

    def __init__(self) -> None:
        self.uids: dict[str, None] | None = None

    def begin(self, first: Iterable[str] = ()) -> None:
        """Note changes from now on.

        Args:
            first: uids that are taken before all others: the pods that the reader does not know yet.

        Raises:
            RuntimeError: there is a reader already, which would miss what another one takes.
        """
        if self.uids is not None:
            raise RuntimeError("the changed pods of a queue have one reader")
        self.uids = dict.fromkeys(first)

    def end(self) -> None:
        """Note no more changes; harmless without a reader."""
        self.uids = None

    def note(self, uid: str) -> None:
        """Note a pod, while there is a reader."""
        if self.uids is not None:
            self.uids[uid] = None

    def take(self, most: int) -> list[str]:
        """Take noted pods off, the ones that changed first.

        Args:
            most: pods at most.

        Returns:
            Their uids; none without a reader.
        """
        noted = self.uids
        if not noted:
            return []
        taken = [uid for uid, _ in zip(noted, range(most), strict=False)]
        for uid in taken:
            del noted[uid]
        return taken


class QueuedPodGroups:
    """All groups with members in the queue. Implements `framework.ports.GangMembers`."""

    __slots__ = ("_declared", "_pod_groups")

    def __init__(self) -> None:
        self._pod_groups: dict[GroupRef, QueuedPodGroup] = {}
        self._declared: dict[_Declarer, dict[GroupRef, None]] = {}

    def __len__(self) -> int:
        return len(self._pod_groups)

    def __iter__(self) -> Iterator[QueuedPodGroup]:
        """Iterate over all groups, in order of arrival."""
        return iter(self._pod_groups.values())

    def get(self, ref: GroupRef) -> QueuedPodGroup | None:
        """Find a group.

        Returns:
            The group; None when no member of it is in the queue.
        """
        return self._pod_groups.get(ref)

    def members(self, ref: GroupRef) -> Collection[PodInfo]:
        """Return the members without a node.

        Returns:
            The members in order of arrival, including members that are being tried or bound.
        """
        pod_group = self._pod_groups.get(ref)
        return () if pod_group is None else [queued.pod for queued in pod_group.members.values()]

    def ready_members(self, ref: GroupRef, beside: PodInfo) -> Mapping[str, int]:
        """Return how many members may be tried, by scheduler name.

        Args:
            ref: the group.
            beside: a pod in the version that is judged. If it names the group, it counts even when the queue does not hold it yet.

        Returns:
            Counts above 0, by `spec.schedulerName`.
        """
        pod_group = self._pod_groups.get(ref)
        if beside.pod_group != ref:
            return Counter() if pod_group is None else pod_group.ready
        return Counter({beside.scheduler_name: 1} if beside.may_be_tried else {}) if pod_group is None else pod_group.ready_beside(beside)

    def concerned_by(self, item: GroupObject) -> Collection[GroupRef]:
        """Return the groups with queued members that a change of this object may concern.

        These are the groups that it declares. If it belongs to a tree, they are all PodGroups of its namespace that may belong to a tree.
        """
        meta = item.metadata
        is_in_tree = isinstance(item, CompositePodGroup) or (isinstance(item, NativePodGroup) and parent_of(item) is not None)
        key = _trees_of(meta.namespace) if is_in_tree else (FORM_OF[type(item)], meta.namespace, meta.name)
        return self._declared.get(key, {}).keys()

    def join(self, queued: QueuedPod, now: float) -> None:
        """List the pod with the group that it names now, and take it off the group that it named before.

        Args:
            queued: a pod in the queue, which may have joined before.
            now: seconds on the queue's clock; the age of a group that begins with this pod.
        """
        ref = queued.pod.pod_group
        if queued.pod_group is not None and queued.pod_group.ref != ref:
            self.leave(queued)
        if ref is None:
            return
        pod_group = self._pod_groups.get(ref)
        if pod_group is None:
            pod_group = self._pod_groups[ref] = QueuedPodGroup(ref, now)
            for key in _declarers(ref):
                self._declared.setdefault(key, {})[ref] = None
        pod_group.put(queued)
        queued.pod_group = pod_group

    def leave(self, queued: QueuedPod) -> None:
        """Take a pod that has a node or is gone off its group; harmless for a pod without a group."""
        pod_group, queued.pod_group = queued.pod_group, None
        if pod_group is None:
            return
        pod_group.remove(queued)
        if not pod_group.members:
            self._pod_groups.pop(pod_group.ref, None)
            for key in _declarers(pod_group.ref):
                drop(self._declared, key, pod_group.ref)


def _declarers(ref: GroupRef) -> list[_Declarer]:
    own = (ref.form, ref.namespace, ref.object_name)
    return [own, _trees_of(ref.namespace)] if ref.form is Form.NATIVE else [own]


def _trees_of(namespace: str) -> _Declarer:
    return Form.COMPOSITE, namespace, ""


def drop(index: dict[Any, dict[Any, Any]], key: Hashable, item: Hashable) -> None:
    """Take an item off an index by key. A key without items is dropped, too."""
    items = index[key]
    del items[item]
    if not items:
        del index[key]
