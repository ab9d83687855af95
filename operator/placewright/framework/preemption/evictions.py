"""The recent evictions that preemption asked for, of all profiles, and the clocks of its rules.

Two rules need them. One bounds the pods that a profile displaces within a minute. The other counts victims that a disruption budget's
status may not show yet. Nothing is kept while no profile has such rules. The record belongs to one replica: a new leader starts with an
empty one.

Victims that leave together: members of a group that cannot do without each other are all evicted, or none is.

The group's own `disruptionMode` counts first: `Pod` lets single members go, `PodGroup` only all of them. Without it, members may go one by
one as long as enough remain for the group to be of use. One more takes all others along.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

from placewright.api.boundedcache import cleared_at_beats
from placewright.api.counts import take_out
from placewright.api.objects import NodeName
from placewright.api.podgroups import Disruption, GroupRef, PodGroup
from placewright.api.pods import PodInfo
from placewright.api.workloads import PodDisruptionBudget
from placewright.cluster.cluster import Cluster
from placewright.cluster.objects import PodGroups
from placewright.framework.ports import Seconds

MINUTE: Final = 60.0
#: After this an eviction counts against no budget any more, although the budget's status was never written since. The disruption controller
#: writes it when pods that the budget selects are fewer, or fewer are healthy; an hour without it says that neither is the case.
SHOWN_AT_LATEST: Final = 3600.0
#: Until then the status of a budget may have been computed before the victim left, although it was written afterwards.
SHOWN_AT_EARLIEST: Final = 5.0
#: Evictions kept at most, of all namespaces; some hundred bytes each.
MOST_KEPT: Final = 10_000
_POD_SCHEDULED: Final = "PodScheduled"
_GATED: Final = "SchedulingGated"


@dataclass(frozen=True, slots=True)
class Eviction:
    """A victim that was told to leave.

    Attributes:
        uid: the victim's.
        namespace: the victim's.
        name: the victim's.
        labels: the victim's.
        at: when it was told, seconds on the record's clock.
        versions: the resourceVersions at that time of the budgets in its namespace, by their uid.
    """

    uid: str
    namespace: str
    name: str
    labels: Mapping[str, str]
    at: Seconds
    versions: Mapping[str, str]


@dataclass(eq=False)
class Evictions:
    """The record of evictions of one scheduler.

    Attributes:
        cluster: the cluster of the evicted pods.
        clock: seconds, monotonic; the queue's.
        since_1970: seconds since 1970; None if no time passes, and then every wait is over.
        first_tried: when a pod could first be tried, by its uid, on `clock`; None for a pod that never could, or is unknown.

    Attributes:
        cluster: the cluster of the evicted pods.
        needed: whether any profile has rules; nothing is kept before.
    """

    cluster: Cluster
    clock: Callable[[], Seconds] = lambda: 0.0
    since_1970: Callable[[], Seconds] | None = None
    first_tried: Callable[[str], Seconds | None] = lambda _uid: None

    def __post_init__(self) -> None:
        self.needed = False
        #: Evictions within a minute, by profile: (time, number), oldest first.
        self._minutes: dict[str, deque[tuple[Seconds, int]]] = {}
        #: Evictions by namespace and uid, the oldest first. Only namespaces with budgets have any.
        self._under_way: dict[str, dict[str, Eviction]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._under_way.values()))

    # --- what is asked for -----------------------------------------------------------------------------------------------------------

    def asked_for(self, scheduler_name: str, victims: Iterable[PodInfo]) -> None:
        """Note that these pods are told to leave."""
        if not self.needed:
            return
        now, victims = self.clock(), list(victims)
        self._minutes = {name: minute for name, minute in self._minutes.items() if self.within_a_minute(name)}
        self._minutes.setdefault(scheduler_name, deque()).append((now, len(victims)))
        for namespace in {victim.namespace for victim in victims}:
            self._note([victim for victim in victims if victim.namespace == namespace], namespace, now)

    def failed(self, victim: PodInfo) -> None:
        """Note that a victim stays. It still counts as asked for."""
        self._under_way.get(victim.namespace, {}).pop(victim.uid, None)

    def _note(self, victims: Iterable[PodInfo], namespace: str, now: Seconds) -> None:
        budgets = self.cluster.objects.disruption_budgets.values()
        shown = {each.metadata.uid: each.metadata.resource_version for each in budgets if each.metadata.namespace == namespace}
        known = self._under_way.pop(namespace, {}).values()
        as_it_was = {each.uid for each in known if not shown.items().isdisjoint(each.versions.items())}
        kept = {each.uid: each for each in known if self._counts(each, now, as_it_was=each.uid in as_it_was)}
        if shown:
            kept |= {each.uid: Eviction(each.uid, namespace, each.name, each.labels, now, shown) for each in victims}
        if kept:
            self._under_way[namespace] = kept  # behind all others, as it was used last
        while len(self) > MOST_KEPT:
            longest_unused = next(iter(self._under_way))
            take_out(self._under_way, longest_unused, next(iter(self._under_way[longest_unused])))

    # --- how many --------------------------------------------------------------------------------------------------------------------

    def within_a_minute(self, scheduler_name: str) -> int:
        """Count the pods that a profile's pods displaced in the last minute."""
        minute, now = self._minutes.get(scheduler_name, deque()), self.clock()
        while minute and minute[0][0] <= now - MINUTE:
            minute.popleft()
        return sum(number for _, number in minute)

    def until_fewer(self, scheduler_name: str) -> Seconds:
        """Return the seconds until the last minute has fewer evictions than now; a minute if it has none."""
        minute = self._minutes.get(scheduler_name)
        return max(minute[0][0] + MINUTE - self.clock(), 0.0) if minute else MINUTE

    # --- which budgets do not show it yet ----------------------------------------------------------------------------------------------

    def not_shown_by(self, budget: PodDisruptionBudget) -> Iterator[Eviction]:
        """Find evictions in the budget's namespace that its status may not show yet.

        Yields:
            The evictions, whether or not the budget selects the victim.
        """
        now, meta = self.clock(), budget.metadata
        for eviction in self._under_way.get(meta.namespace, {}).values():
            if self._counts(eviction, now, as_it_was=eviction.versions.get(meta.uid) == meta.resource_version):
                yield eviction

    def _counts(self, eviction: Eviction, now: Seconds, *, as_it_was: bool) -> bool:
        """Whether a status may not show the eviction: it is as it was, or was written too early."""
        age, place = now - eviction.at, self.cluster.placement(eviction.uid)
        early = age < SHOWN_AT_EARLIEST or not (place is None or place.pod.terminating)
        return age < SHOWN_AT_LATEST and (as_it_was or early)

    # --- how long ------------------------------------------------------------------------------------------------------------------------

    def waited(self, pod: PodInfo) -> Seconds:
        """Return how long a pod has waited for a node, from when it could first be tried.

        The queue of this replica knows, and after a change of leader the pod's condition does. Where neither says it, it is the pod's age.
        """
        if self.since_1970 is None:
            return math.inf
        tried, told, now = self.first_tried(pod.uid), _told_at(pod), self.since_1970()
        known = [] if tried is None else [self.clock() - tried]
        known += [] if told is None else [now - told]
        return max(known, default=now - (seconds_of(pod.created) or now))

    @property
    def now(self) -> Seconds:
        """Seconds since 1970; infinite if no time passes."""
        return math.inf if self.since_1970 is None else self.since_1970()


def _told_at(pod: PodInfo) -> Seconds | None:
    """Return when the pod was first told that it has no node, in seconds since 1970; None if that is not known.

    The API server dates the condition of a gated pod, and the time stays while the status does. So the time says nothing of a pod whose
    spec has changed, for example because it lost its gates.
    """
    if pod.pod.metadata.generation > 1:
        return None
    for condition in pod.pod.status.conditions or ():
        if condition.type == _POD_SCHEDULED and condition.status == "False" and condition.reason != _GATED:
            return seconds_of(condition.last_transition_time)
    return None


def seconds_of(stated: str | None) -> Seconds | None:
    """Read a time of the API.

    Args:
        stated: RFC 3339; empty or None for no time.

    Returns:
        Seconds since 1970; None for no time, or an illegible one.
    """
    if not stated:
        return None
    try:
        found = datetime.fromisoformat(stated)
    except ValueError:
        return None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


#: A pod with the row that it stands on.
Move = tuple[int, PodInfo]
#: Later than any start: the start time of pods that have not reported one. kube-scheduler takes "now" for these.
NOT_STARTED: Final = math.inf


@dataclass(frozen=True, slots=True)
class VictimUnit:
    """Pods that leave together, or stay together.

    Attributes:
        pods: most important first; of a group also those on other nodes.
        moves: the same with their rows; those on nodes that are not there are left out.
        priority: the unit's.
        ref: the group that would be broken; None for a pod that leaves alone.
    """

    pods: tuple[PodInfo, ...]
    moves: tuple[Move, ...]
    priority: int
    ref: GroupRef | None = None

    @property
    def rank(self) -> tuple[int, bool, int, float]:
        """Sorts the most important first: by priority, groups before pods, larger groups before smaller ones, then the oldest."""
        oldest = min(start_time(pod) for pod in self.pods)
        return -self.priority, self.ref is None, 0 if self.ref is None else -len(self.pods), oldest


@dataclass(frozen=True, slots=True)
class GroupAllowance:
    """The bond of a group, as things stand: how many members may go before all must.

    Attributes:
        members: those on nodes that are not leaving yet, most important first.
        spare: so many of them may go while the others stay.
        whole: all of them as a unit; None if the preemptor may not evict all.
    """

    members: tuple[PodInfo, ...]
    spare: int
    whole: VictimUnit | None


@dataclass(slots=True)
class EvictablePods:
    """The pods that may leave one node.

    Attributes:
        singles: pods that leave by themselves, each of lower priority than the preemptor.
        bonds: allowance of each group whose members here may leave only within bounds.
        members: members here that may leave, by group.
    """

    singles: list[PodInfo] = field(default_factory=list)
    bonds: dict[GroupRef, GroupAllowance] = field(default_factory=dict)
    members: dict[GroupRef, list[PodInfo]] = field(default_factory=dict)


def priority_of(pod_groups: PodGroups, pod: PodInfo) -> int:
    """Return the priority with which a pod evicts others: its group's own priority, if the group has one.

    Returns:
        A priority; higher evicts lower.
    """
    pod_group = None if pod.pod_group is None else pod_groups.get(pod.pod_group)
    return pod.priority if pod_group is None or pod_group.priority is None else pod_group.priority


def may_preempt(pod_groups: PodGroups, pod: PodInfo) -> bool:
    """Return whether a pod may evict others. Its group's own `preemptionPolicy` precedes the pod's, if the group has one."""
    pod_group = None if pod.pod_group is None else pod_groups.get(pod.pod_group)
    policy = "" if pod_group is None else pod_group.preemption_policy
    return (policy or pod.pod.spec.preemption_policy) != "Never"


class VictimUnits:
    """Tells which pods would leave together for one preemptor, on the cluster as it stands or in a dry run.

    Args:
        cluster: the columns.
        preemptor: the pod for which room is to be made.
        keeps: tells whether a rule keeps a pod where it is; None if there are no rules.

    Attributes:
        priority: the one with which the preemptor evicts; see `priority_of`.
    """

    def __init__(self, cluster: Cluster, preemptor: PodInfo, keeps: Callable[[PodInfo], bool] | None = None) -> None:
        self._cluster = cluster
        self._preemptor = preemptor
        self._keeps = keeps
        self._bonds: dict[GroupRef, GroupAllowance | None] = {}
        self.priority = priority_of(cluster.pod_groups, preemptor)

    @property
    def pointless(self) -> bool:
        """True when no pod in the cluster has a lower priority: the common case of a full cluster without priorities."""
        lowest, own = self._cluster.lowest_priority, self._cluster.pod_groups.lowest_priority()
        return (lowest is None or lowest >= self.priority) and (lowest is None or own is None or own >= self.priority)

    def on(self, node: NodeName) -> EvictablePods:
        """List the pods that may leave a node.

        Returns:
            Pods that may leave by themselves, and members of groups with the bond of each group.
        """
        found = EvictablePods()
        for pod in self._cluster.pods_on(node):
            ref = self._unit_of(pod)
            bond = None if ref is None else self._bond(ref)
            if ref is None or bond is None or self._cluster.leaves(pod):
                if pod.priority < self.priority and not self._stays(pod):
                    found.singles.append(pod)
            elif (pod.priority < self.priority if bond.spare else bond.whole is not None) and not self._stays(pod):
                found.bonds[ref] = bond
                found.members.setdefault(ref, []).append(pod)
        for ref in tuple(found.bonds):
            self._loosen(found, ref)
        return found

    def _stays(self, pod: PodInfo) -> bool:
        return self._keeps is not None and self._keeps(pod)

    def completed(self, pods: Iterable[PodInfo]) -> tuple[PodInfo, ...]:
        """Add to victims the pods that have to leave with them.

        Returns:
            These and the members of groups that they would break; most important first.
        """
        chosen = {pod.uid: pod for pod in pods}
        for ref in {ref for pod in chosen.values() if (ref := self._unit_of(pod)) is not None}:
            bond = self._bond(ref)
            if bond is not None and sum(member.uid in chosen for member in bond.members) > bond.spare:
                chosen.update({member.uid: member for member in bond.members})
        return tuple(sorted(chosen.values(), key=importance))

    def rank_of(self, pod: PodInfo) -> int:
        """Return the priority that a victim counts with.

        Returns:
            The priority of the group with which it leaves as a whole, else its own.
        """
        ref = self._unit_of(pod)
        bond = None if ref is None else self._bond(ref)
        return pod.priority if bond is None or bond.whole is None or bond.spare else bond.whole.priority

    def _loosen(self, found: EvictablePods, ref: GroupRef) -> None:
        """Let members leave by themselves if no more stand here than may go.

        If the group as a whole may not go, the least important members may leave, as many as are spare.
        """
        bond, members = found.bonds[ref], sorted(found.members[ref], key=importance)
        loose = bond.whole is None or len(members) <= bond.spare
        if loose:
            del found.bonds[ref], found.members[ref]
            found.singles += members[max(len(members) - bond.spare, 0) :]
        else:
            found.members[ref] = members

    # --- groups ----------------------------------------------------------------------------------------------------------------

    def _unit_of(self, pod: PodInfo) -> GroupRef | None:
        """Return the group that bounds which members may leave: the pod's own, or a group of groups that is evicted as a whole."""
        return None if pod.pod_group is None else self._cluster.pod_groups.evicted_with(pod.pod_group)

    def _bond(self, ref: GroupRef) -> GroupAllowance | None:
        """Return the bond of a group; None if each of its members may go by itself."""
        if ref not in self._bonds:
            pod_group = self._cluster.pod_groups.get(ref)
            self._bonds[ref] = None if pod_group is None or pod_group.goes_apart else self._bound(pod_group)
        return self._bonds[ref]

    def _bound(self, pod_group: PodGroup) -> GroupAllowance:
        standing = [self._cluster.stands(uid) for uid in self._cluster.pod_groups.placed(pod_group.ref)]
        places = sorted(
            (place for place in standing if place is not None and not self._cluster.leaves(place.pod)),
            key=lambda place: (importance(place.pod), place.pod.uid),
        )
        members = tuple(place.pod for place in places)
        spare = 0 if pod_group.disruption is Disruption.POD_GROUP else max(len(members) - pod_group.min_member, 0)
        priority = pod_group.priority if pod_group.priority is not None else max((pod.priority for pod in members), default=0)
        if pod_group.ref == self._unit_of(self._preemptor) or priority >= self.priority or not members or any(map(self._stays, members)):
            return GroupAllowance(members, spare, None)
        rows = [(self._cluster.row(place.node), place.pod) for place in places]
        moves = tuple((row, pod) for row, pod in rows if row is not None)
        return GroupAllowance(members, spare, VictimUnit(members, moves, priority, pod_group.ref))


def alone(row: int, pod: PodInfo) -> VictimUnit:
    """Make a unit of a pod that leaves by itself."""
    return VictimUnit((pod,), ((row, pod),), pod.priority)


def units_of(cluster: Cluster, victims: Iterable[PodInfo]) -> list[VictimUnit]:
    """Sort victims into units that leave together.

    Returns:
        One unit for each group whose members all leave, and one for every other pod.
    """
    by_group: dict[GroupRef | None, list[PodInfo]] = {}
    for victim in victims:
        unit = None if victim.pod_group is None else cluster.pod_groups.evicted_with(victim.pod_group)
        by_group.setdefault(unit, []).append(victim)
    units: list[VictimUnit] = []
    for ref, pods in by_group.items():
        pod_group = None if ref is None else cluster.pod_groups.get(ref)
        moves = [(row, pod) for pod in pods if (row := _row_of(cluster, pod)) is not None]
        if ref is None or pod_group is None or pod_group.goes_apart or _somebody_stays(cluster, ref, {pod.uid for pod in pods}):
            units += [alone(row, pod) for row, pod in moves]
        else:
            priority = pod_group.priority if pod_group.priority is not None else max(pod.priority for pod in pods)
            units.append(VictimUnit(tuple(sorted(pods, key=importance)), tuple(moves), priority, ref))
    return units


def _row_of(cluster: Cluster, pod: PodInfo) -> int | None:
    place = cluster.placement(pod.uid)
    return None if place is None else cluster.row(place.node)


def _somebody_stays(cluster: Cluster, ref: GroupRef, leaving: AbstractSet[str]) -> bool:
    places = [cluster.placement(uid) for uid in cluster.pod_groups.placed(ref) if uid not in leaving]
    return any(place is not None and not cluster.leaves(place.pod) for place in places)


def start_time(pod: PodInfo) -> Seconds:
    """Read when a pod started.

    Returns:
        Seconds since 1970; `NOT_STARTED` where the kubelet has not said so, or not legibly.
    """
    stated = pod.pod.status.start_time
    return NOT_STARTED if stated is None else _seconds(stated)


@cleared_at_beats
@lru_cache(maxsize=65536)
def _seconds(stated: str) -> Seconds:
    found = seconds_of(stated)
    return NOT_STARTED if found is None else found


def importance(pod: PodInfo) -> tuple[int, Seconds]:
    """Return a sort key that puts the most important pod first: by priority, then by age, kube-scheduler's `MoreImportantPod`."""
    return -pod.priority, start_time(pod)
