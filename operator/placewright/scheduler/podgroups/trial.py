"""A trial gives the members of a group seats, one after the other. If too few fit, it takes the seats back.

A tree of groups is tried leaf after leaf. As soon as a group can stand no more, all seats below it are taken back. No further member
below it is tried.

The decision assumes and reserves the members. So their ports, volumes, devices and spread count as they do for single pods. A large group
is placed in turns (`turns`). Before another pod is decided, the trial is suspended, so that no decision counts its members. Afterwards each
member is put back on its node if it still fits there. If not, it is tried anew.

The search for victims and the self-check run the same trial in a dry run. So all three agree on whether a group fits. Each states three
conditions: the nodes that are candidates, the holder of members, and whether room is made for members that fit nowhere. The members'
own nominations never count against each other.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Hashable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import KW_ONLY, dataclass, replace
from typing import Final, Self

from placewright.api.objects import NodeName
from placewright.api.podgroups import GroupRef
from placewright.cluster.podgrouptrees import GroupTree, ref_of
from placewright.framework.errors import CycleError
from placewright.framework.runtime.evaluation import Evaluation
from placewright.framework.steps import Steps as Timing
from placewright.scheduler.attempts import Attempt
from placewright.scheduler.cycle import FitError, ScheduleResult, broken
from placewright.scheduler.podgroups.domains import Domain, domains, joined_domains
from placewright.scheduler.podgroups.group import Group, MemberCycle, RoomMaker, Seat, UnplacedMember, depends_on_others, row_of
from placewright.scheduler.turns import Steps

#: Most members that are tried to explain why a group cannot fit.
MOST_UNPLACED: Final = 32
#: Tries for each member of a group: five domains, each in three orders for members of different sizes, and one more.
TRIES_A_MEMBER: Final = 16
#: Least number of tries, for small groups: a data centre's room may have as many racks.
LEAST_TRIES: Final = 256


class TrialBudget:
    """Tries that are left to a group in one attempt, in all topology domains together.

    Tries are counted, and not time, so that a decision is the same on any machine. A group may cost a fixed number of tries for each
    member, however many domains its label has. The next attempt goes on with the domains that were not tried.

    Example:
        budget = TrialBudget(members=8)
        while budget.spend():   # 256 times
            ...                 # try one member on the nodes of one domain

    Args:
        members: number of members.

    Attributes:
        left: number of tries that are left.
    """

    __slots__ = ("left",)

    def __init__(self, members: int) -> None:
        self.left = max(TRIES_A_MEMBER * members, LEAST_TRIES)

    def spend(self, tries: int = 1) -> bool:
        """Take tries off; return False, and leave none, if there are not as many."""
        enough = tries <= self.left
        self.left = self.left - tries if enough else 0
        return enough


@dataclass(eq=False)
class GroupTrial:
    """One way to place a group. Implements `turns.Suspendable`.

    Attributes:
        members: the tools that place one member.
        group: the group.
        domain: domain of all members; None for any nodes.
        room: makes room for members that fit nowhere; None if no pod leaves.
        budget: number of tries that the trial may cost; None for a trial that is never stopped.
        compared: whether every member is scored, because the caller compares trials.
        seats: seats by the member's uid, in the order in which they were taken.
        unplaced: members that no node could hold.
        elsewhere: names of plugins that kept the group out of other domains. Their events may help it, too.
        looked: True if members were only looked at by themselves, and no member was placed.
        domains_tried: domains that were tried, in this attempt and before it, if other domains are left for the next attempt.
        domains_left: number of domains that are left.
        possible: members that have a seat or may get one, by the group that they name.
        staying: groups that may still stand, or do stand at the end, with all groups above them.
    """

    members: MemberCycle
    group: Group
    domain: Domain | None = None
    room: RoomMaker | None = None
    _: KW_ONLY
    budget: TrialBudget | None = None
    compared: bool = False

    #: Watches may see members on trial, as they see assumed pods.
    hidden: Final = False

    def __post_init__(self) -> None:
        self.unplaced: list[UnplacedMember] = []
        self.elsewhere: frozenset[str] = frozenset()
        self.looked = False
        self.domains_tried: frozenset[str] = frozenset()
        self.domains_left = 0
        self.seats: dict[str, Seat] = {}
        self.possible = Counter(ref_of(attempt.pod) for attempt in self.group.attempts)
        #: Members with a seat, by the group that they name.
        self._seated: Counter[GroupRef] = Counter()
        self.staying: AbstractSet[GroupRef] = self.group.tree.staying(self.possible)
        parent = self.group.pod_group.parent
        outer = None if parent is None else joined_domains(self.members.cluster, parent)
        #: The nodes that are left by the domain of the trial, and by the groups above the tree.
        self._within = within(None if self.domain is None else self.domain.names, outer)
        #: The nodes of each group in the tree that requires a domain.
        self._domains: dict[GroupRef, frozenset[NodeName] | None] = {}
        #: Members that are still to be tried.
        self._waiting = deque(self.group.attempts)
        #: Seats that were suspended and are still to be taken again, in the order in which they were taken.
        self._suspended: deque[Seat] = deque()

    @property
    def placed(self) -> list[tuple[Attempt, ScheduleResult]]:
        """The members with a node, in the order in which they got one."""
        return [(seat.attempt, seat.result) for seat in self.seats.values()]

    def fits(self) -> bool:
        """Return whether enough members have a node."""
        return self.group.tree.stands(self._seated)

    @property
    def hopeless(self) -> bool:
        """True when too few members could have a node, even if all members that were not tried fit."""
        return not self.group.tree.stands(self.possible)

    @property
    def likely(self) -> int:
        """The number of members that have a node. If they were only looked at, it is the number that could have one."""
        return len(self.group.attempts) - len(self.unplaced) if self.looked else len(self.seats)

    def look(self) -> Steps[Self]:
        """Look at each member by itself, and place none, until too few could have a node.

        Members that are alike have one answer. Members that depend on other pods, claims or nominations count as fitting, because earlier
        members may help them.

        Returns:
            This trial. It is `hopeless` if the group fits nowhere.
        """
        cycle, evaluator, nominator = self.members.cycle, self.group.evaluator, self.members.queue.nominator
        self.looked = True
        answers: dict[Hashable, FitError | None] = {}
        for attempt in self.group.attempts:
            signature = evaluator.runtime.sign(attempt.pod)
            if signature is None or depends_on_others(attempt.pod) or nominator.node_of(attempt.uid) is not None:
                continue
            alike = (attempt.pod.priority, signature)
            if alike not in answers:
                if self.hopeless and len(self.unplaced) >= MOST_UNPLACED:
                    break
                yield from evaluator.preparation(attempt.pod)
                attempt.steps.forget()
                with nominator.trying(self._refs):
                    evaluation = cycle.evaluate(evaluator, attempt.pod, attempt.steps)
                answers[alike] = None if evaluation.count else cycle.refusal(evaluator, evaluation)
                yield None
            failure = answers[alike]
            if failure is not None:
                self._refused(attempt, failure)
        return self

    @property
    def rejected_by(self) -> frozenset[str]:
        """The plugins that rejected members without a node."""
        return frozenset[str]().union(*(member.failure.unschedulable_plugins for member in self.unplaced))

    @property
    def score(self) -> int:
        """The sum of the members' scores: the value of the whole group's placement."""
        return sum(seat.result.score for seat in self.seats.values())

    def run(self, *, to_the_end: bool = True, spares: bool = True) -> Steps[Self]:
        """Try the members, one a step. When something breaks, everything is taken back before the exception passes on.

        Once the trial is hopeless, at most `MOST_UNPLACED` members are tried to explain it. A group may have hundreds, and other pods
        wait.

        Args:
            to_the_end: whether a hopeless trial is explained; otherwise it ends at once.
            spares: whether the members beyond the needed number are tried, too.

        Returns:
            This trial.
        """
        try:
            while self._suspended or (self._waiting and (spares or not self.fits())):
                if self._suspended:
                    seat = self._suspended.popleft()
                    if not self._is_tree or ref_of(seat.attempt.pod) in self.staying:
                        self._put_back(seat)
                elif self.hopeless and (self._is_tree or len(self.unplaced) >= MOST_UNPLACED or not to_the_end):
                    break
                elif self._is_tree and ref_of(self._waiting[0].pod) not in self.staying:
                    self._waiting.popleft()
                    continue
                else:
                    yield from self._prepared(self._waiting[0])
                    if self._suspended:
                        continue
                    if self.budget is not None and not self.budget.spend():
                        break
                    attempt = self._waiting.popleft()
                    if self.is_gone(attempt):
                        self._lost(attempt)
                    else:
                        self._try(attempt)
                yield from self._step()
            self.prune()
        except BaseException:
            self.take_back()
            raise
        return self

    def prune(self) -> None:
        """Take the members of a fitting tree back whose groups do not stand with the members that have seats."""
        if self._is_tree and self.fits():
            self._keep(self.group.tree.staying(self._seated))

    def _keep(self, staying: AbstractSet[GroupRef]) -> None:
        self.staying = staying
        for seat in reversed(tuple(self.seats.values())):
            if ref_of(seat.attempt.pod) not in staying:
                self.drop(seat.attempt)
                if self.room is not None:
                    self.room.give_up(seat.attempt.uid)

    def _lost(self, attempt: Attempt) -> None:
        """Note that a member gets no seat any more. If its group can stand no more, the other members of the group get none, either."""
        self.possible[ref_of(attempt.pod)] -= 1
        if self._is_tree and not self.looked and not self.hopeless:
            self._keep(self.group.tree.staying(self.possible))

    async def run_with_extenders(self) -> Self:
        """Try all members, with questions to extenders in between."""
        try:
            while self._waiting:
                attempt = self._waiting.popleft()
                if ref_of(attempt.pod) not in self.staying and self._is_tree:
                    continue
                try:
                    await self._seat_with_extenders(attempt)
                except FitError as failure:
                    self._refused(attempt, failure)
            self.prune()
        except BaseException:
            self.take_back()
            raise
        return self

    def try_again(self, attempt: Attempt) -> None:
        """Try a member again that has lost its seat, after the others."""
        self._waiting.append(attempt)

    @property
    def settled(self) -> bool:
        """Implements `Suspendable.settled`."""
        return not self._suspended

    def suspend(self) -> None:
        """Implement `Suspendable.suspend`."""
        self._suspended.extendleft(reversed(self.seats.values()))
        self._give_back()

    def resume(self) -> None:
        """Implement `Suspendable.resume`: `run` puts one member back in each step."""

    def _put_back(self, seat: Seat) -> None:
        """Put a member back on its node. If the node cannot hold it any more, let it be tried anew."""
        if self.is_gone(seat.attempt):
            self._lost(seat.attempt)
            return
        row = self.members.cluster.row(seat.node)
        try:
            with self.members.queue.nominator.trying(self._refs):
                holds = row is not None and self.group.evaluator.checker.check_row(seat.result.pod, row).ok
            if row is not None and holds:
                self.sit(replace(seat, row=row))
                return
        except (CycleError, FitError):
            pass  # the member is tried anew, and says then why it has no node
        self._waiting.appendleft(seat.attempt)

    def take_back(self) -> None:
        """Take back all members, the last one first, and forget the seats that were suspended."""
        self._suspended.clear()
        self._give_back()

    def drop_lost(self) -> None:
        """Take back members that were deleted, or whose node was deleted, while other work had its turn.

        A member whose node was deleted becomes unplaced with an error.
        """
        for attempt, result in self.placed:
            if self.members.queue.get(attempt.uid) is None:
                self.drop(attempt)
            elif self.members.cluster.row(result.node) is None:
                self.drop(attempt)
                self.unplaced.append(UnplacedMember(attempt, broken(f"node {result.node} was deleted while the pod's group was decided")))

    def drop(self, dropped: Attempt) -> None:
        """Take back one member."""
        self.rise(self.seats[dropped.uid])
        self.possible[ref_of(dropped.pod)] -= 1

    def _prepared(self, attempt: Attempt) -> Steps[None]:
        """Prepare a member as single pods are prepared, so that no step of a group takes longer."""
        if self.room is None:  # a search for room follows a trial, which has prepared the members
            for _ in self.group.evaluator.preparation(attempt.pod):
                yield self

    def _step(self) -> Steps[None]:
        if self.room is None:
            yield self
        else:
            yield from self.room.step()

    def _try(self, attempt: Attempt) -> None:
        """Give a member a seat beside the members that have one, or note why it has none."""
        attempt.steps.forget()  # only the times of the last try are kept, because a member may be tried in hundreds of domains
        try:
            refused = self._tried(attempt, attempt.steps, self.room)
            if refused is not None:
                raise self.members.cycle.refusal(self.group.evaluator, refused)
        except FitError as failure:
            self._refused(attempt, failure)

    async def _seat_with_extenders(self, attempt: Attempt) -> None:
        """Give a member a seat that its profile's extenders agree to. A member that leaves while they are asked gets no seat."""
        attempt.steps.forget()
        extended = self.members.extended
        assert extended is not None  # only groups with extenders are seated like this
        with self.members.queue.nominator.trying(self._refs):
            result = await extended.place(self.group.evaluator, attempt.pod, attempt.steps, self._nodes_for(attempt), alone=False)
        if not self.is_gone(attempt):
            self.sit(self._seat_at(attempt, result))

    def _refused(self, attempt: Attempt, failure: FitError) -> None:
        if failure.internal:
            raise failure
        self.unplaced.append(UnplacedMember(attempt, failure))
        self._lost(attempt)

    def _nodes_for(self, attempt: Attempt) -> frozenset[NodeName] | None:
        """Return the nodes that the groups of a member allow, each within the domain of the group above it; None for all nodes."""
        names = self._within
        for tree in self.group.tree.path_to(ref_of(attempt.pod))[1:]:
            if tree.group.topology_key and tree.group.topology_required:
                if tree.group.ref not in self._domains:
                    self._domains[tree.group.ref] = self._smallest_domain(tree, names)
                names = self._domains[tree.group.ref]
        return names

    def _smallest_domain(self, tree: GroupTree, names: frozenset[NodeName] | None) -> frozenset[NodeName] | None:
        """Return the nodes of the domain for a group below the root: the smallest one with room for it, else the roomiest."""
        refs = {leaf.ref for leaf in tree.leaves()}
        pods = [attempt.pod for attempt in self.group.attempts if attempt.pod.pod_group in refs]
        found = domains(self.members.cluster, tree.group.topology_key, pods, tree.needed)
        allowed = (within(domain.names, names) for domain in found)
        return next((each for each in allowed if each), frozenset())

    @property
    def _refs(self) -> AbstractSet[GroupRef]:
        return self.possible.keys()

    @property
    def _is_tree(self) -> bool:
        return not self.group.tree.is_leaf

    # --- seats ---------------------------------------------------------------------------------------------------------------------

    def is_gone(self, attempt: Attempt) -> bool:
        """Return whether a member was deleted, or placed by another scheduler, while other work had its turn."""
        return self.members.queue.get(attempt.uid) is None or self.members.cluster.placement(attempt.uid) is not None

    def sit(self, seat: Seat) -> None:
        """Take a seat.

        Raises:
            FitError: a Reserve plugin refused.
        """
        seat.holder.take(seat.result)
        seat.attempt.chose(seat.result)
        self.seats[seat.attempt.uid] = seat
        self._seated[ref_of(seat.attempt.pod)] += 1

    def rise(self, seat: Seat) -> None:
        """Give a seat back."""
        del self.seats[seat.attempt.uid]
        self._seated[ref_of(seat.attempt.pod)] -= 1
        seat.attempt.schedule_result = None
        seat.holder.give_back(seat.result)

    def on(self, rows: Collection[int]) -> list[Seat]:
        """Return the seats on these rows, in the order in which they were taken."""
        return [seat for seat in self.seats.values() if seat.row in rows]

    def moved(self, lifted: Sequence[Seat]) -> bool:
        """Give these members other seats that need no eviction.

        Returns:
            False when one fits nowhere. Then none of them has a seat, and the caller lets them sit again.
        """
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
        cycle, evaluator = self.members.cycle, self.group.evaluator
        with self.members.queue.nominator.trying(self._refs):
            evaluation = cycle.evaluate(evaluator, attempt.pod, timing, self._nodes_for(attempt))
            if evaluation.count:
                found = self._seat_at(attempt, cycle.chosen(evaluator, evaluation, compared=self.compared))
            else:
                made = None if room is None else room.make_room(attempt, evaluation)
                if made is None:
                    return evaluation
                found = made
        self.sit(found)
        return None

    def _seat_at(self, attempt: Attempt, result: ScheduleResult) -> Seat:
        return Seat(attempt, result, row_of(self.members.cluster, result), self.members.holder)

    def _give_back(self) -> None:
        """Give back all seats, the last one first."""
        for seat in reversed(tuple(self.seats.values())):
            self.rise(seat)


def within(names: frozenset[NodeName] | None, outer: frozenset[NodeName] | None) -> frozenset[NodeName] | None:
    """Return the nodes that are in both sets; None stands for all nodes."""
    return outer if names is None else names if outer is None else names & outer
