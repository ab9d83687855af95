"""NodeStartRate: limits how many pods start at the same time on a node, rack or zone. Implements Filter.

A node that gets fifty pods at once pulls fifty images and runs fifty probes. All of them are late. The plugin counts pods of the
profile that are bound and not Ready yet (`plugins/startingpods.py`). If there are `maxStarting`, the next one goes elsewhere or waits. It
waits until one of them becomes Ready, leaves, or has been bound for `startSeconds`. Evicting pods cannot help, because it starts no pod
sooner.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Final, NamedTuple

import msgspec
import numpy as np

from placewright.api.pods import PodInfo
from placewright.api.podstart import may_be_starting
from placewright.cluster.cluster import Cluster
from placewright.framework.constraints import not_empty, within
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
from placewright.plugins.startingpods import StartingPods

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

    def validate(self) -> list[tuple[str, str, str]]:
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
