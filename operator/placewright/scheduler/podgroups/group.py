"""A group that is being decided, or a tree of groups, with its members. Also the tools that place a member.

Seats are the nodes of a group's members while the group is tried (`trial`).
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from placewright.api.objects import NodeName
from placewright.api.podgroups import GroupRef, PodGroup
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.cluster.dryrun import DryRunCluster
from placewright.cluster.podgrouptrees import GroupTree, ref_of
from placewright.framework.interface import PodGroupPlugin, PodGroupSettings
from placewright.framework.runtime.evaluation import Evaluation, Evaluator
from placewright.queue.queue import SchedulingQueue
from placewright.scheduler.attempts import Attempt
from placewright.scheduler.cycle import FitError, ScheduleResult, SchedulingCycle
from placewright.scheduler.extendedcycle import ExtendedCycle
from placewright.scheduler.turns import Steps


class SeatHolder(Protocol):
    """Counts members on their nodes while a group is tried. `binding.Reserver` assumes and reserves them."""

    def take(self, result: ScheduleResult) -> None:
        """Count the member on its node.

        Args:
            result: decision on the columns as they are now.

        Raises:
            FitError: a Reserve plugin refused; nothing is counted.
        """

    def give_back(self, result: ScheduleResult) -> None:
        """Undo `take`."""


@dataclass(frozen=True, slots=True)
class MemberCycle:
    """The tools that place members one after the other.

    Attributes:
        cluster: columns in which members are counted.
        queue: queue of the members and their nominations.
        cycle: the scheduling cycle.
        holder: counts members on their nodes.
        extended: the scheduling cycle with extenders; None if no extender is asked.
    """

    cluster: Cluster
    queue: SchedulingQueue
    cycle: SchedulingCycle
    holder: SeatHolder
    extended: ExtendedCycle | None = None


@dataclass(slots=True)
class Group:
    """A group whose members were handed out together: one PodGroup, or a tree of them.

    Attributes:
        tree: the groups that are decided in one turn.
        plugin: plugin of the profile that has members decided together.
        evaluator: evaluator of the profile.
        attempts: attempts of the members, group by group in the order of the tree, then by priority and age.
        decided: time at which its members' nodes were known, in seconds on the scheduler's clock; None before.
    """

    tree: GroupTree
    plugin: PodGroupPlugin
    evaluator: Evaluator
    attempts: list[Attempt] = field(default_factory=list)
    decided: float | None = None

    @property
    def pod_group(self) -> PodGroup:
        """Declaration of the group at the root of the tree."""
        return self.tree.group

    @property
    def refs(self) -> list[GroupRef]:
        """The groups that the members name, in the order in which they are tried."""
        return [leaf.ref for leaf in self.tree.leaves()]

    @property
    def tried(self) -> AbstractSet[GroupRef]:
        """The groups with members in this attempt."""
        return {ref_of(attempt.pod) for attempt in self.attempts}

    @property
    def needed(self) -> int:
        """The fewest members that may be placed."""
        return self.tree.needed

    def in_order(self, attempts: Sequence[Attempt]) -> Group:
        """Return the same group, with these attempts group by group."""
        order = {ref: place for place, ref in enumerate(self.refs)}
        ordered = sorted(attempts, key=lambda attempt: order.get(ref_of(attempt.pod), len(order)))
        return Group(self.tree, self.plugin, self.evaluator, ordered)

    @property
    def mixed(self) -> bool:
        """True when the members request different amounts."""
        return mixed(self.attempts)

    def largest_first(self) -> Group:
        """Return the same group, with the members that request most first."""
        return self.in_order(largest_first(self.attempts))

    @property
    def settings(self) -> PodGroupSettings:
        """The profile's settings for groups."""
        return self.plugin.settings

    @property
    def scheduler_name(self) -> str:
        """The scheduler name of all members."""
        return self.attempts[0].pod.scheduler_name

    @property
    def priority(self) -> int:
        """The highest priority of its members."""
        return max((attempt.pod.priority for attempt in self.attempts), default=0)


@dataclass(frozen=True, slots=True)
class UnplacedMember:
    """A member that no node could hold beside the members placed before it.

    Attributes:
        attempt: attempt of the member.
        failure: failure of the attempt.
    """

    attempt: Attempt
    failure: FitError


class Member(Protocol):
    """A record of a member."""

    @property
    def pod(self) -> PodInfo:
        """The member."""


_M = TypeVar("_M", bound=Member)


def depends_on_others(pod: PodInfo) -> bool:
    """Return whether the nodes of other pods decide where a pod fits, not only by the room that they take.

    This holds for a pod with affinity to pods, spread constraints, claims or volumes.
    """
    spec = pod.pod.spec
    return bool(pod.pairwise_key.affinity or spec.topology_spread_constraints or spec.resource_claims or pod.volumes)


def mixed(members: Sequence[Member]) -> bool:
    """Return whether the requests of the members of a group differ."""
    return any(member.pod.requests != members[0].pod.requests for member in members)


def largest_first(members: Sequence[_M]) -> list[_M]:
    """Sort the members of a group by their largest request, the largest first.

    A request counts as a share of the largest request of any member for that resource.
    """
    # Relative to the largest request of each resource, because milli-CPU and bytes do not compare.
    most: dict[str, int] = {}
    for member in members:
        for name, amount in member.pod.requests.items():
            most[name] = max(most.get(name, 1), amount)

    def size(member: _M) -> float:
        return max((amount / most[name] for name, amount in member.pod.requests.items()), default=0.0)

    return sorted(members, key=size, reverse=True)


@dataclass(frozen=True, slots=True)
class Seat:
    """A member's node.

    Attributes:
        attempt: attempt of the member.
        result: decision for the node.
        row: row of the node.
        holder: counts the member on the node.
    """

    attempt: Attempt
    result: ScheduleResult
    row: int
    holder: SeatHolder

    @property
    def node(self) -> NodeName:
        """Name of the node."""
        return self.result.node


@dataclass(frozen=True, slots=True)
class DryRunSeatHolder:
    """Holds members in a dry run, without Reserve. Victims have not left the room yet, or the self-check may change no state.

    Attributes:
        cluster: columns that know the nodes' rows.
        dry_run: dry run in which members are counted.
    """

    cluster: Cluster
    dry_run: DryRunCluster

    def take(self, result: ScheduleResult) -> None:
        """Implement `SeatHolder.take`."""
        self.dry_run.add([(row_of(self.cluster, result), result.pod)])

    def give_back(self, result: ScheduleResult) -> None:
        """Implement `SeatHolder.give_back`."""
        self.dry_run.remove([(row_of(self.cluster, result), result.pod)])


class RoomMaker(Protocol):
    """Makes room in a dry run for members that fit nowhere."""

    def make_room(self, attempt: Attempt, evaluation: Evaluation) -> Seat | None:
        """Let pods leave in the dry run.

        Args:
            attempt: attempt of the member.
            evaluation: evaluation that found no feasible node.

        Returns:
            The seat that becomes free; None when no eviction helps the member.
        """

    def give_up(self, uid: str) -> None:
        """Let the pods back that left for a member, because the member's group does not stand."""

    def step(self) -> Steps[None]:
        """End a step of the trial."""


def row_of(cluster: Cluster, result: ScheduleResult) -> int:
    """Return the row of the chosen node."""
    row = cluster.row(result.node)
    assert row is not None  # the node was chosen in this turn of the event loop
    return row
