"""NodeStartRate: a node, and optionally a rack or zone, starts only so many pods at a time. Implements Filter.

A node that gets fifty pods at once pulls fifty images and runs fifty probes, and all of them are late. Pods of the profile that were
bound and are not Ready yet are counted (`cluster/startingpods.py`); where there are `maxStarting`, the next one goes elsewhere or waits.
Pods wait for one of these to become Ready, to leave, or to have been bound for `startSeconds`. Evicting pods cannot help, as it starts no
pod sooner.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Annotated, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from placewright.api.pods import PodInfo
from placewright.api.podstart import may_be_starting
from placewright.cluster.cluster import Cluster
from placewright.cluster.startingpods import StartingPods
from placewright.framework.constraints import not_empty, within
from placewright.framework.events import (
    Action,
    ClusterEvent,
    ClusterEventWithHint,
    EventKeys,
    EventResource,
    QueueingHint,
    interest,
)
from placewright.framework.interface import ROUNDING_SECONDS, BoolColumn, CycleState, Handle, Reads, Rejection, Rows
from placewright.framework.memory import NodeMemory
from placewright.framework.rowwise import RowVerdict, RowwiseFilter
from placewright.framework.status import Status, unresolvable
from placewright.framework.topology import MISSING, Domains, domains

NAME: Final = "NodeStartRate"
#: Happens when a pod has been bound for so long that it does not count any more.
TIME_PASSED: Final = ClusterEvent(NAME, Action.UPDATE, "NodeStartTimePassed")
_MOST_STARTING: Final = 10_000
_LONGEST_START: Final = 86_400

#: (path inside args, what was found, what is allowed)
Problem = tuple[str, str, str]


class StartDomain(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A limit for all nodes that share a label's value."""

    topology_key: Annotated[str, not_empty("the key of a node's label")]
    max_starting: Annotated[int, within(1, _MOST_STARTING)]


class NodeStartRateArgs(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Arguments of NodeStartRate.

    At most `maxStarting` pods of the profile are bound to a node and not Ready yet, and `domains` have limits of their own; nodes without
    the label are not limited by a domain. A pod that is not Ready after `startSeconds` does not count any longer.
    """

    max_starting: Annotated[int, within(1, _MOST_STARTING)] = 10
    start_seconds: Annotated[int, within(1, _LONGEST_START)] = 300
    domains: tuple[StartDomain, ...] = ()

    def validate(self) -> list[Problem]:
        """No label has two limits."""
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
        self._memory = NodeMemory()
        self._rings_at = -np.inf
        if args.domains:  # a pod that starts on one node of a rack fills it for all of them
            self.reads = Reads.CLUSTER  # type: ignore[misc]  # of nearly all plugins it is the class's

    def sign(self, pod: PodInfo) -> Hashable:
        """The schedulerName, whose pods are counted. Called before each attempt, so pods stop counting here when their time has passed."""
        self._starting.expire()
        self._wake_in_time()
        return pod.scheduler_name

    def fingerprint(self, state: CycleState, cluster: Cluster) -> Hashable:
        """With domains: the counts, and the nodes."""
        return (self._starting.version, cluster.node_journal.position)

    def filter(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> BoolColumn:
        """True where the node and all its domains start fewer pods than they may."""
        passes = np.ones(len(rows), np.bool_)
        for _, allowed in self._verdicts(pod, cluster, rows):
            passes &= allowed
        return passes

    def explain(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> list[Rejection]:
        """Names the first limit that is reached: the node's, then the domains' in their order."""
        return _first_reached(self._verdicts(pod, cluster, rows), rows)

    def judge(self, state: CycleState, pod: PodInfo, cluster: Cluster) -> RowVerdict:
        """Judges rows with the starting pods that are on them at call time."""
        return _StartVerdict(self, pod, cluster)

    def events(self) -> Sequence[ClusterEventWithHint]:
        """A pod of the profile that becomes Ready or leaves; a node that comes; time. With domains also nodes that change their label."""
        nodes = Action.ADD | Action.DELETE | Action.UPDATE_NODE_LABEL if self.args.domains else Action.ADD
        of_profile = EventKeys(_name_of, _names_that_start_less)
        return (
            interest(EventResource.ASSIGNED_POD, Action.UPDATE | Action.DELETE, _one_starts_less, keys=of_profile),
            interest(EventResource.NODE, nodes),
            interest(NAME, Action.UPDATE),
        )

    def _wake_in_time(self) -> None:
        """Have waiting pods woken when the next pod stops counting. One alarm at a time is enough, as it leads to the next attempt."""
        now = self.handle.now()
        if now >= self._rings_at and (end := self._starting.next_end()) is not None:
            self._rings_at = end
            self.handle.wake_after(end - now + ROUNDING_SECONDS, TIME_PASSED)

    def _verdicts(self, pod: PodInfo, cluster: Cluster, rows: Rows) -> Iterator[tuple[Status, BoolColumn]]:
        """Each limit's status, and the rows that it lets pass."""
        counts = self._starting.on_rows(pod.scheduler_name)
        yield self.full_node, counts[rows] < self.args.max_starting
        for domain in self.args.domains:
            place = self.place_of(domain, cluster)
            codes = place.codes[rows]
            yield self.full_domain(domain), (codes == MISSING) | (self.sums(place, counts)[codes] < domain.max_starting)

    # --- what the judge of single rows uses, too ------------------------------------------------------------------------------------

    @property
    def full_node(self) -> Status:
        """The status of nodes that start as many pods as they may."""
        return unresolvable(f"node(s) had {self.args.max_starting} pods starting")

    def full_domain(self, domain: StartDomain) -> Status:
        """The status of nodes whose domain starts as many pods as it may."""
        return unresolvable(f"node(s) had {domain.max_starting} pods starting with the same {domain.topology_key}")

    def place_of(self, domain: StartDomain, cluster: Cluster) -> Domains:
        """The domain's label by row."""
        return domains(self._memory, cluster, domain.topology_key)

    def starting(self, pod: PodInfo) -> NDArray[np.int64]:
        """Pods of the same profile that start, by row; shape (size,), not to be written."""
        return self._starting.on_rows(pod.scheduler_name)

    @staticmethod
    def sums(place: Domains, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Add up counts of rows by code; shape (distinct,)."""
        return np.bincount(place.codes, weights=counts, minlength=place.distinct).astype(np.int64)


class _StartVerdict(RowVerdict):
    """Judges rows for one pod: starting pods of the judged row as they are now, of all others as they were when this was made."""

    def __init__(self, plugin: NodeStartRate, pod: PodInfo, cluster: Cluster) -> None:
        self._plugin = plugin
        self._pod = pod
        self._before = plugin.starting(pod).copy()
        places = [(domain, plugin.place_of(domain, cluster)) for domain in plugin.args.domains]
        self._domains = [(domain, place, plugin.sums(place, self._before)) for domain, place in places]

    def _verdicts(self, rows: Rows) -> Iterator[tuple[Status, BoolColumn]]:
        now = self._plugin.starting(self._pod)[rows]
        yield self._plugin.full_node, now < self._plugin.args.max_starting
        for domain, place, sums in self._domains:
            codes = place.codes[rows]
            around = sums[codes] + now - self._before[rows]
            yield self._plugin.full_domain(domain), (codes == MISSING) | (around < domain.max_starting)

    def passes(self, rows: Rows) -> BoolColumn:
        """Implements `RowVerdict.passes`."""
        passes = np.ones(len(rows), np.bool_)
        for _, allowed in self._verdicts(rows):
            passes &= allowed
        return passes

    def explain(self, rows: Rows) -> list[Rejection]:
        """Implements `RowVerdict.explain`."""
        return _first_reached(self._verdicts(rows), rows)


def _first_reached(verdicts: Iterable[tuple[Status, BoolColumn]], rows: Rows) -> list[Rejection]:
    found: list[Rejection] = []
    remaining = np.ones(len(rows), np.bool_)
    for status, allowed in verdicts:
        reached = remaining & ~allowed
        if reached.any():
            found.append(Rejection(status, rows[reached]))
            remaining &= allowed
    return found


def _name_of(pod: PodInfo) -> Iterable[Hashable]:
    return (pod.scheduler_name,)


def _names_that_start_less(old: PodInfo | None, new: PodInfo | None) -> Iterable[Hashable]:
    """The profile that has one starting pod less after the event; none for nearly all events."""
    return (old.scheduler_name,) if old is not None and _starts_less(old, new) else ()


def _starts_less(old: PodInfo, new: PodInfo | None) -> bool:
    return may_be_starting(old) and (new is None or not may_be_starting(new))


def _one_starts_less(pod: PodInfo, old: PodInfo | None, new: PodInfo | None) -> QueueingHint:
    helps = old is not None and old.scheduler_name == pod.scheduler_name and _starts_less(old, new)
    return QueueingHint.QUEUE if helps else QueueingHint.SKIP
