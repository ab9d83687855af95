"""A group that is being decided, with its members, and the tools that place a member.

Seats: the nodes of a group's members while the group is tried. `MemberSeats.seat` is the only function that gives a member a node.

The decision, the search for victims and the self-check try a group by it. Each states three conditions: the nodes that are candidates, the
holder of members, and whether room is made for members that fit nowhere. The members' own nominations never count against each other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from placewright.api.objects import NodeName
from placewright.api.podgroups import PodGroup
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.cluster.dryrun import DryRunCluster
from placewright.framework.interface import PodGroupPlugin, PodGroupSettings
from placewright.framework.runtime.evaluation import Evaluation, Evaluator
from placewright.framework.steps import Steps as Timing
from placewright.queue.queue import SchedulingQueue
from placewright.scheduler.attempts import Attempt
from placewright.scheduler.cycle import FitError, ScheduleResult, SchedulingCycle
from placewright.scheduler.extendedcycle import ExtendedCycle
from placewright.scheduler.podgroups.domains import Domain
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
    """A group whose members were handed out together.

    Attributes:
        pod_group: declaration of the group.
        plugin: plugin of the profile that has members decided together.
        evaluator: evaluator of the profile.
        attempts: attempts of the members, by priority, then by age.
        decided: time at which its members' nodes were known, in seconds on the scheduler's clock; None before.
    """

    pod_group: PodGroup
    plugin: PodGroupPlugin
    evaluator: Evaluator
    attempts: list[Attempt] = field(default_factory=list)
    decided: float | None = None

    @property
    def needed(self) -> int:
        """The fewest members that may be placed."""
        return self.pod_group.min_member

    @property
    def mixed(self) -> bool:
        """True when the members request different amounts."""
        return mixed(self.attempts)

    def largest_first(self) -> Group:
        """Return the same group, with the members that request most first."""
        return Group(self.pod_group, self.plugin, self.evaluator, largest_first(self.attempts))

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
        self.dry_run.add([(_row_of(self.cluster, result), result.pod)])

    def give_back(self, result: ScheduleResult) -> None:
        """Implement `SeatHolder.give_back`."""
        self.dry_run.remove([(_row_of(self.cluster, result), result.pod)])


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

    def step(self) -> Steps[None]:
        """End a step of the trial."""


class MemberSeats:
    """The seats of a group's members, under the conditions of one trial.

    Args:
        members: the tools that place one member.
        group: the group.
        domain: domain whose nodes are candidates; None for all nodes.
        room: makes room for members that fit nowhere; None if no pod leaves.
        compared: whether the node of every member is scored, because the caller compares trials.

    Attributes:
        seats: seats by the member's uid, in the order in which they were taken.
    """

    def __init__(
        self, members: MemberCycle, group: Group, domain: Domain | None = None, room: RoomMaker | None = None, *, compared: bool = False
    ) -> None:
        self.seats: dict[str, Seat] = {}
        self._members = members
        self._group = group
        self._within = None if domain is None else domain.names
        self._room = room
        self._compared = compared

    def seat(self, attempt: Attempt) -> None:
        """Give a member a node beside the members that have one.

        Raises:
            FitError: no node can hold the member, its holder refused, or a plugin broke.
        """
        attempt.steps.forget()  # only the times of the last try are kept, because a member may be tried in hundreds of domains
        refused = self._tried(attempt, attempt.steps, self._room)
        if refused is not None:
            raise self._members.cycle.refusal(self._group.evaluator, refused)

    async def seat_with_extenders(self, attempt: Attempt) -> None:
        """Give a member a node that its profile's extenders agree to. A member that leaves while they are asked gets no seat.

        Raises:
            FitError: as `seat`.
        """
        attempt.steps.forget()
        extended = self._members.extended
        assert extended is not None  # only groups with extenders are seated like this
        with self._members.queue.nominator.trying(self._group.pod_group.ref):
            result = await extended.place(self._group.evaluator, attempt.pod, attempt.steps, self._within, alone=False)
        if not self.is_gone(attempt):
            self.sit(self._seat_at(attempt, result))

    def is_gone(self, attempt: Attempt) -> bool:
        """Return whether a member was deleted, or placed by another scheduler, while other work had its turn."""
        return self._members.queue.get(attempt.uid) is None or self._members.cluster.placement(attempt.uid) is not None

    def sit(self, seat: Seat) -> None:
        """Take a seat.

        Raises:
            FitError: a Reserve plugin refused.
        """
        seat.holder.take(seat.result)
        seat.attempt.chose(seat.result)
        self.seats[seat.attempt.uid] = seat

    def rise(self, seat: Seat) -> None:
        """Give a seat back."""
        del self.seats[seat.attempt.uid]
        seat.attempt.schedule_result = None
        seat.holder.give_back(seat.result)

    def give_back(self) -> None:
        """Give back all seats, the last one first."""
        for seat in reversed(tuple(self.seats.values())):
            self.rise(seat)

    def on(self, rows: Collection[int]) -> list[Seat]:
        """Return the seats on these rows, in the order in which they were taken."""
        return [seat for seat in self.seats.values() if seat.row in rows]

    def moved(self, lifted: Iterable[Seat]) -> bool:
        """Give these members other seats that need no eviction.

        Returns:
            False when one fits nowhere. Then none of them has a seat, and the caller lets them sit again.
        """
        lifted = list(lifted)
        for seat in lifted:
            self.rise(seat)
        before = len(self.seats)
        try:
            # The times of plugins are not noted, because members are moved once for each victim.
            if all(self._tried(seat.attempt, None, None) is None for seat in lifted):
                return True
        except FitError:
            pass  # it cannot be reserved there, so it has no seat
        for seat in reversed(tuple(self.seats.values())[before:]):
            self.rise(seat)
        return False

    def _tried(self, attempt: Attempt, timing: Timing | None, room: RoomMaker | None) -> Evaluation | None:
        """Give a member a node; return the evaluation of a member that gets none."""
        cycle, evaluator = self._members.cycle, self._group.evaluator
        with self._members.queue.nominator.trying(self._group.pod_group.ref):
            evaluation = cycle.evaluate(evaluator, attempt.pod, timing, self._within)
            if evaluation.count:
                found = self._seat_at(attempt, cycle.chosen(evaluator, evaluation, compared=self._compared))
            else:
                made = None if room is None else room.make_room(attempt, evaluation)
                if made is None:
                    return evaluation
                found = made
        self.sit(found)
        return None

    def _seat_at(self, attempt: Attempt, result: ScheduleResult) -> Seat:
        return Seat(attempt, result, _row_of(self._members.cluster, result), self._members.holder)


def _row_of(cluster: Cluster, result: ScheduleResult) -> int:
    row = cluster.row(result.node)
    assert row is not None  # the node was chosen in this turn of the event loop
    return row
