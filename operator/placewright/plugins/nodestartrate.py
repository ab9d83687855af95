"""NodeStartRate: limits how many pods start at the same time on a node, rack or zone. Implements Filter.

A node that gets fifty pods at once pulls fifty images and runs fifty probes. All of them are late. The plugin counts pods of the
profile that are bound and not Ready yet (`StartingPods`). If there are `maxStarting`, the next one goes elsewhere or waits. It
waits until one of them becomes Ready, leaves, or has been bound for `startSeconds`. Evicting pods cannot help, because it starts no pod
sooner.

Pods that were placed a short while ago and are not Ready yet, counted by row for each schedulerName.

A pod counts from its assumption until it is Ready, is terminating, or has left. It also stops counting `seconds` after its Binding, because
a pod that never becomes Ready must not count for ever. If a pod was bound before this process knew it, its condition `PodScheduled` has the
time.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.api.podstart import bound_at, may_be_starting
from placewright.cluster.cluster import Cluster
from placewright.cluster.dryrun import Moves
from placewright.cluster.journal import Log
from placewright.cluster.podfollowers import PodFollower
from placewright.cluster.resources import grown
from placewright.framework.constraints import Problem, not_empty, within
from placewright.framework.events import (
    Action,
    ClusterEvent,
    ClusterEventWithHint,
    EventKeys,
    EventResource,
    QueueingHint,
    event_with_hint,
)
from placewright.framework.filters import RowwiseRule, RuleJudge
from placewright.framework.interface import (
    ROUNDING_SECONDS,
    BoolColumn,
    CycleState,
    Handle,
    IntColumn,
    Reads,
    Rejection,
    Rows,
)
from placewright.framework.memory import NodeMemory
from placewright.framework.rowwise import RowwiseFilter
from placewright.framework.status import Status, unresolvable
from placewright.framework.topology import MISSING, Codes, domains, first_broken, obey

_FIRST_ROOM: Final = 64
#: Most changes that are kept. A reader reads them at each attempt, and few pods start or become Ready in between.
_KEPT_CHANGES: Final = 1024
#: Most ends in the heap for each starting pod. Beyond that, ends of pods that stopped counting are removed.
_STALE: Final = 2


class StartingPods(PodFollower):
    """The starting pods of a cluster.

    Invariant: a row counts its pods in `_since` with that schedulerName, and the changes of dry runs.

    Args:
        cluster: cluster to follow from now on.
        seconds: longest time for which a pod counts.
        now: returns the seconds since 1970.

    Attributes:
        changes: (schedulerName, row, 1 or -1) for each change of a count, in order; without nodes that come or go.
    """

    def __init__(self, cluster: Cluster, seconds: float, now: Callable[[], float]) -> None:
        self.changes: Log[tuple[str, int, int]] = Log(_KEPT_CHANGES)
        self._cluster = cluster
        self._seconds = seconds
        self._now = now
        self._counts: dict[str, NDArray[np.int64]] = {}
        #: The time at which each starting pod was bound, by uid.
        self._since: dict[str, float] = {}
        #: (end of the time for which a pod counts, its uid); also of pods that stopped counting before.
        self._ends: list[tuple[float, str]] = []
        cluster.pod_followers.add(self)

    # --- reading -------------------------------------------------------------------------------------------------------------

    def on_rows(self, scheduler_name: str) -> NDArray[np.int64]:
        """Return the starting pods of a schedulerName by row, shape (size,); not to be written.

        The first call counts the pods that stand there already.
        """
        counts = self._counts.get(scheduler_name)
        if counts is None:
            counts = self._counts[scheduler_name] = np.zeros(max(self._cluster.size, _FIRST_ROOM), np.int64)
            for pod, node, _ in tuple(self._cluster.placements()):
                if pod.scheduler_name == scheduler_name and may_be_starting(pod):
                    self._begin(pod, self._cluster.row(node))
        size = self._cluster.size
        if len(counts) < size:
            counts = self._widened(scheduler_name, size)
        return counts[:size]

    def expire(self) -> None:
        """Stop counting pods whose time has passed, and journal their rows. Does nothing in a dry run, which reverts by pod."""
        if not self.may_expire(now := self._now()) or self._cluster.dry_run_rows():
            return
        while self._ends and self._ends[0][0] <= now:
            _, uid = heapq.heappop(self._ends)
            since = self._since.get(uid)
            if since is not None and since + self._seconds <= now:
                self._end_of(uid)

    def may_expire(self, now: float) -> bool:
        """Return whether `expire` may have something to do; cheap, because each attempt asks."""
        return bool(self._ends) and self._ends[0][0] <= now

    def next_end(self) -> float | None:
        """Return when the next pod stops counting unless it is Ready before, in seconds since 1970; None without starting pods."""
        while self._ends and self._since.get(self._ends[0][1], -np.inf) + self._seconds != self._ends[0][0]:
            heapq.heappop(self._ends)
        return self._ends[0][0] if self._ends else None

    def _end_of(self, uid: str) -> None:
        del self._since[uid]
        standing = self._cluster.placement(uid)
        row = None if standing is None else self._cluster.row(standing.node)
        if standing is not None and row is not None:
            self._add(standing.pod.scheduler_name, row, -1)
            self._cluster.pod_journal.append(row)

    # --- following -----------------------------------------------------------------------------------------------------------

    def pod_enters(self, pod: PodInfo, row: int | None) -> None:
        """Count a pod that may be starting."""
        if pod.scheduler_name in self._counts and may_be_starting(pod):
            self._begin(pod, row)

    def pod_changes(self, old: PodInfo, new: PodInfo, row: int | None) -> None:
        """Count or drop a pod that changed. A pod that is no longer Ready may still be starting."""
        if new.scheduler_name not in self._counts:
            return
        if new.uid not in self._since:
            if may_be_starting(new):
                self._begin(new, row)
        elif not may_be_starting(new):
            self._drop(new, row)

    def pod_leaves(self, pod: PodInfo, row: int | None) -> None:
        """Drop a pod that was counted."""
        if pod.uid in self._since:
            self._drop(pod, row)

    def row_appears(self, row: int, pods: Iterable[PodInfo]) -> None:
        """Count the starting pods of a new row."""
        for pod in pods:
            if pod.uid in self._since:
                self._add(pod.scheduler_name, row, 1)

    def row_ends(self, row: int, node: NodeName) -> None:
        """Set the counts of a deleted row to 0."""
        for counts in self._counts.values():
            if row < len(counts):
                counts[row] = 0

    def dry_run_counts(self, pods: Moves, sign: int) -> None:
        """Change counts in a dry run. A pod that stands nowhere yet would start where it is added."""
        for row, pod in pods:
            if pod.scheduler_name in self._counts and (pod.uid in self._since or self._cluster.placement(pod.uid) is None):
                self._add(pod.scheduler_name, row, sign)

    def _begin(self, pod: PodInfo, row: int | None) -> None:
        now = since = self._now()
        if pod.pod.status.conditions:  # an assumed pod has none
            since = min(now, bound_at(pod) or now)
            if since + self._seconds <= now:
                return
        self._since[pod.uid] = since
        heapq.heappush(self._ends, (since + self._seconds, pod.uid))
        if row is not None:
            self._add(pod.scheduler_name, row, 1)

    def _drop(self, pod: PodInfo, row: int | None) -> None:
        del self._since[pod.uid]
        if row is not None:
            self._add(pod.scheduler_name, row, -1)
        if len(self._ends) > _STALE * len(self._since) + _FIRST_ROOM:
            self._ends = [(since + self._seconds, uid) for uid, since in self._since.items()]
            heapq.heapify(self._ends)

    def _add(self, scheduler_name: str, row: int, delta: int) -> None:
        self.changes.append((scheduler_name, row, delta))
        counts = self._counts[scheduler_name]
        if row >= len(counts):
            counts = self._widened(scheduler_name, row + 1)
        counts[row] += delta

    def _widened(self, scheduler_name: str, rows: int) -> NDArray[np.int64]:
        counts = grown(self._counts[scheduler_name], max(rows, 2 * len(self._counts[scheduler_name])))
        self._counts[scheduler_name] = counts
        return counts


NAME: Final = "NodeStartRate"
#: Event that a pod has been bound for so long that it no longer counts.
TIME_PASSED: Final = ClusterEvent(NAME, Action.UPDATE, "NodeStartTimePassed")
_MOST_STARTING: Final = 10_000
_LONGEST_START: Final = 86_400


class StartDomain(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A limit for all nodes that share a label's value."""

    topology_key: Annotated[str, not_empty("the key of a node's label")]
    max_starting: Annotated[int, within(1, _MOST_STARTING)]


class NodeStartRateArgs(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Arguments of NodeStartRate.

    At most `maxStarting` pods of the profile are bound to a node and not Ready yet. `domains` have limits of their own; a node without the
    label is in no domain. A pod that is not Ready after `startSeconds` no longer counts.
    """

    max_starting: Annotated[int, within(1, _MOST_STARTING)] = 10
    start_seconds: Annotated[int, within(1, _LONGEST_START)] = 300
    domains: tuple[StartDomain, ...] = ()

    def validate(self) -> list[Problem]:
        """Refuse two limits for one label."""
        keys = [domain.topology_key for domain in self.domains]
        return [
            (f"domains[{index}].topologyKey", f'"{key}" a second time', "a label that no other domain has")
            for index, key in enumerate(keys) if key in keys[:index]
        ]  # fmt: skip


class NodeStartRate(RowwiseFilter[NodeStartRateArgs]):
    """Limits how many pods of the profile start on a node, and in a domain, at the same time."""

    name = NAME
    reads = Reads.NODE_AND_ITS_PODS

    def __init__(self, args: NodeStartRateArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._starting = StartingPods(handle.cluster, args.start_seconds, handle.now)
        of_a_node = StartLimit("", args.max_starting, f"node(s) had {_pods(args.max_starting)} starting")
        self._limits = StartLimits(self._starting, (of_a_node, *map(_limit_of, args.domains)))
        self._rings_at = -np.inf
        if args.domains:  # a pod that starts on one node of a rack fills it for all of them
            self.reads = Reads.CLUSTER  # type: ignore[misc]  # nearly all plugins have it on the class

    def sign(self, pod: PodInfo) -> Hashable:
        """Sign the pod by its schedulerName, whose pods are counted. Each attempt begins here, so expired pods stop counting here."""
        now = self.handle.now()
        if self._starting.may_expire(now):
            self._starting.expire()
        if now >= self._rings_at:
            self._wake_in_time(now)
        return pod.scheduler_name

    def fingerprint(self, state: CycleState, cluster: Cluster) -> Hashable:
        """Return how often a node or domain filled or got room again. Most pods that start change neither."""
        return self._limits.crossings(cluster), cluster.node_journal.position

    def filter(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> BoolColumn:
        """Allow rows whose node and domains have fewer starting pods than allowed."""
        if self.reads is not Reads.CLUSTER:
            starting = self._starting.on_rows(pod.scheduler_name)
            if len(rows) == 1:  # after nearly every decision: numpy takes five times as long for one row
                return np.array([starting.item(rows.item()) < self.args.max_starting])
            below: BoolColumn = starting[rows] < self.args.max_starting
            return below
        return obey(self._limits.domains(pod.scheduler_name, cluster), rows)

    def explain(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> list[Rejection]:
        """Name the first limit that is reached: the node's, then the domains' in their order."""
        return first_broken(self._limits.domains(pod.scheduler_name, cluster), rows)

    def judge(self, state: CycleState, pod: PodInfo, cluster: Cluster) -> RuleJudge:
        """Judge rows with their starting pods at call time. Starting pods of other rows are counted now."""
        starting, name = self._starting, pod.scheduler_name
        before = starting.on_rows(name).copy()

        def rule(limit: StartLimit, codes: Codes, counts: IntColumn) -> RowwiseRule:
            def allows(rows: Rows) -> BoolColumn:
                return limit.allowed(codes[rows], counts[codes[rows]] + starting.on_rows(name)[rows] - before[rows])

            return RowwiseRule(codes, limit.status, limit.status, allows)

        found = self._limits.domains(name, cluster)
        return RuleJudge([rule(each.limit, each.codes, each.starting.copy()) for each in found])

    def events(self) -> Sequence[ClusterEventWithHint]:
        """Declare pods of the profile that become Ready or leave, new nodes, time, and with domains node labels."""
        nodes = Action.ADD | Action.DELETE | Action.UPDATE_NODE_LABEL if self.args.domains else Action.ADD
        of_profile = EventKeys(_name_of, _names_that_start_less)
        return (
            event_with_hint(EventResource.ASSIGNED_POD, Action.UPDATE | Action.DELETE, _one_starts_less, keys=of_profile),
            event_with_hint(EventResource.NODE, nodes),
            event_with_hint(NAME, Action.UPDATE),
        )

    def _wake_in_time(self, now: float) -> None:
        """Wake waiting pods when the next pod stops counting. One alarm is enough, because it leads to the next attempt."""
        if (end := self._starting.next_end()) is not None:
            self._rings_at = end
            self.handle.wake_after(end - now + ROUNDING_SECONDS, TIME_PASSED)


class StartLimit:
    """The limit of pods that start at the same time in each domain of a label, or on each node.

    Args:
        topology_key: label; empty for each node by itself.
        most: most pods of one profile in one domain.
        reason: reason for rejecting the nodes of a full domain.

    Attributes:
        most: most pods of one profile in one domain.
        status: rejection of the nodes of a full domain.
    """

    def __init__(self, topology_key: str, most: int, reason: str) -> None:
        self.most = most
        self.status = unresolvable(reason)
        self._topology_key = topology_key
        self._memory = NodeMemory()

    def codes(self, cluster: Cluster) -> Codes:
        """Return the domain of each row, `MISSING` without the label; shape (size,). If each row is a domain, none is missing."""
        return domains(self._memory, cluster, self._topology_key).codes if self._topology_key else cluster.all_rows

    def allowed(self, codes: Codes, counts: IntColumn) -> BoolColumn:
        """Return which domains allow one more pod, given codes of rows and starting pods, each of shape (k,).

        A node without the label is in no domain, and allowed.
        """
        below: BoolColumn = counts < self.most
        return below | (codes == MISSING) if self._topology_key else below


class _Domains(NamedTuple):
    """The domains of one limit, as a `topology.TopologyRule`.

    Attributes:
        limit: limit of the domains.
        codes: domain of each row, shape (size,).
        starting: starting pods of one profile, by code; not to be written.
    """

    limit: StartLimit
    codes: Codes
    starting: IntColumn

    @property
    def denied(self) -> Status:
        """Rejection of the nodes of a full domain."""
        return self.limit.status

    @property
    def missing(self) -> Status:
        """Rejection as in `denied`, because nodes without the label are never rejected."""
        return self.limit.status

    def allows(self, rows: Rows) -> BoolColumn:
        """Allow rows where a further pod of the profile may start; shape (len(rows),)."""
        codes = self.codes[rows]
        return self.limit.allowed(codes, self.starting[codes])


@dataclass(slots=True)
class _Followed:
    """The domains of all limits for one profile, and the position up to which their pods were followed."""

    domains: Sequence[_Domains] = ()
    position: int = -1
    nodes: int = -1
    crossings: int = 0


class StartLimits:
    """All limits of a plugin. It follows their domains together, so that each pod that starts or is Ready is read once.

    Args:
        starting: the pods that are counted.
        limits: limits in the order of their reasons.
    """

    def __init__(self, starting: StartingPods, limits: Sequence[StartLimit]) -> None:
        self._starting = starting
        self._limits = limits
        self._followed: dict[str, _Followed] = {}

    def domains(self, scheduler_name: str, cluster: Cluster) -> Sequence[_Domains]:
        """Return the domains of each limit with the pods of a profile that start there now."""
        followed = self._followed.get(scheduler_name)
        if followed is None:
            self._starting.on_rows(scheduler_name)  # counts the pods there
            followed = self._followed[scheduler_name] = _Followed()
        self._follow(followed, scheduler_name, cluster)
        return followed.domains

    def crossings(self, cluster: Cluster) -> int:
        """Return how often a domain filled or got room again. Equal numbers mean equal answers while no node changes."""
        total = 0
        for name, followed in self._followed.items():
            self._follow(followed, name, cluster)
            total += followed.crossings
        return total

    def _follow(self, followed: _Followed, scheduler_name: str, cluster: Cluster) -> None:
        journal, nodes = self._starting.changes, cluster.node_journal.position
        changes = journal.since(followed.position) if nodes == followed.nodes else None
        if changes is None:
            followed.domains = [self._counted(limit, scheduler_name, cluster) for limit in self._limits]
            followed.nodes, followed.position = nodes, journal.position
            followed.crossings += 1
            return
        followed.position += len(changes)
        for name, row, delta in changes:
            if name == scheduler_name:
                for limit, codes, starting in followed.domains:
                    code = codes.item(row)  # Python's integers: several times as fast as numpy's one by one
                    before = starting.item(code)
                    starting[code] = before + delta
                    followed.crossings += (before < limit.most) != (before + delta < limit.most)

    def _counted(self, limit: StartLimit, scheduler_name: str, cluster: Cluster) -> _Domains:
        codes = limit.codes(cluster)
        counts = self._starting.on_rows(scheduler_name)
        return _Domains(limit, codes, np.bincount(codes, weights=counts, minlength=1).astype(np.int64))


def _pods(number: int) -> str:
    return "1 pod" if number == 1 else f"{number} pods"


def _limit_of(domain: StartDomain) -> StartLimit:
    reason = f"node(s) had {_pods(domain.max_starting)} starting with the same {domain.topology_key}"
    return StartLimit(domain.topology_key, domain.max_starting, reason)


def _name_of(pod: PodInfo) -> Iterable[Hashable]:
    return (pod.scheduler_name,)


def _names_that_start_less(old: PodInfo | None, new: PodInfo | None) -> Iterable[Hashable]:
    """Return the profile that has one starting pod less after the event; none for nearly all events."""
    return (old.scheduler_name,) if old is not None and _starts_less(old, new) else ()


def _starts_less(old: PodInfo, new: PodInfo | None) -> bool:
    return may_be_starting(old) and (new is None or not may_be_starting(new))


def _one_starts_less(pod: PodInfo, old: PodInfo | None, new: PodInfo | None) -> QueueingHint:
    return QueueingHint.when(old is not None and old.scheduler_name == pod.scheduler_name and _starts_less(old, new))
