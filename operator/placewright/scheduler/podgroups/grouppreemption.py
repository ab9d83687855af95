"""Preemption for a whole group: either enough members have a node once others leave, or nobody leaves.

PostFilter is run member by member, with what earlier members take and their victims' leaving supposed. Each looks for itself, so together
they may have chosen more victims than the group needs. At the end every victim, or every group of victims that leaves as a whole, is let
back if the members whose nodes it stands on find other seats.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field

from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.cluster.dryrun import DryRunCluster
from placewright.framework.preemption.budgets import Budgets
from placewright.framework.preemption.eligibility import NEVER
from placewright.framework.preemption.together import Unit, units_of
from placewright.framework.runtime.evaluation import Evaluation
from placewright.scheduler.attempts import Attempt
from placewright.scheduler.cycle import FitError, make_room
from placewright.scheduler.podgroups.domainchoice import DomainChoice
from placewright.scheduler.podgroups.domains import Domain
from placewright.scheduler.podgroups.group import Group, MemberCycle
from placewright.scheduler.podgroups.seats import Seating


@dataclass(slots=True)
class GroupRoom:
    """What came of looking for room.

    Attributes:
        nodes: by uid, each member's node and who leaves it; empty where no eviction makes room for enough members.
        withdraws: whether earlier nominations of the members are pointless.
        why: what PostFilter said of the member for which there is no room; empty when it had nothing to say.
    """

    nodes: dict[str, tuple[NodeName, tuple[PodInfo, ...]]] = field(default_factory=dict)
    withdraws: bool = False
    why: str = ""


@dataclass(frozen=True, slots=True)
class GroupPreemption:
    """Finds whom a group could make leave. Nothing is changed: the caller evicts and nominates."""

    members: MemberCycle
    choosing: DomainChoice

    def search(self, group: Group) -> GroupRoom:
        """Where the group would fit if others left.

        A group that requires one domain is tried in a few of them, those with the most room first: each costs as much as trying all nodes.
        """
        if not group.evaluator.runtime.post_filter:
            return GroupRoom()
        if any(attempt.pod.pod.spec.preemption_policy == "Never" for attempt in group.attempts):
            return GroupRoom(why=f"preemption: {NEVER}")
        where: list[Domain | None] = [None]
        if group.pod_group.topology_key and group.pod_group.topology_required:
            found = sorted(self.choosing.domains(group), key=lambda domain: (-domain.room, domain.value))
            where = list(found[: group.settings.domains_to_compare])
        room = GroupRoom()
        for domain in where:
            room = _Search(self.members, group, domain).run()
            if room.nodes:
                break
        return room


class _Search:
    """One search, in one domain or anywhere."""

    def __init__(self, members: MemberCycle, group: Group, domain: Domain | None) -> None:
        self._members = members
        self._group = group
        self._within = None if domain is None else domain.names
        self._room = GroupRoom()
        self._uids = {attempt.uid for attempt in group.attempts}
        #: By the member's uid, who leaves for its sake.
        self._victims: dict[str, tuple[PodInfo, ...]] = {}

    def run(self) -> GroupRoom:
        """Go through the members until enough have a node, or one that is needed can have none."""
        nominator = self._members.queue.nominator
        with ExitStack() as undone, self._members.cluster.dry_run(journalled=True) as dry_run:
            for attempt in self._group.attempts:  # where they were nominated to before is open again
                node = nominator.node_of(attempt.uid)
                if node is not None:
                    nominator.delete(attempt.uid)
                    undone.callback(nominator.add, attempt.pod, node)
            seating = Seating(self._members, self._group.evaluator, self._within, dry_run)
            try:
                if self._seated(seating, dry_run):
                    self._reprieve(seating, dry_run)
                    self._room.nodes = {uid: (seat.node, self._victims.get(uid, ())) for uid, seat in seating.seats.items()}
            finally:
                seating.give_back()
        return self._room

    def _seated(self, seating: Seating, dry_run: DryRunCluster) -> bool:
        misfits = 0
        for attempt in self._group.attempts:
            if len(seating.seats) == self._group.needed:
                break
            misfits += not self._seat(attempt, seating, dry_run)
            if len(self._group.attempts) - misfits < self._group.needed:
                return False
        return len(seating.seats) == self._group.needed

    def _seat(self, attempt: Attempt, seating: Seating, dry_run: DryRunCluster) -> bool:
        """Give a member a node, with or without evictions."""
        try:
            evaluation = seating.evaluate(attempt)
            if not evaluation.count:
                return self._evict(attempt, evaluation, seating, dry_run)
            seating.take(attempt, evaluation)
        except FitError:
            return False
        return True

    def _evict(self, attempt: Attempt, evaluation: Evaluation, seating: Seating, dry_run: DryRunCluster) -> bool:
        evaluator, cluster = self._group.evaluator, self._members.cluster
        result = make_room(evaluator.runtime, evaluation, evaluator.diagnose(evaluation))
        self._room.withdraws |= result.nominated_node == ""
        row = cluster.row(result.nominated_node) if result.status.ok and result.nominated_node else None
        if row is None or result.nominated_node is None or any(victim.uid in self._uids for victim in result.victims):
            self._room.why = self._room.why or result.status.message
            return False
        dry_run.remove([move for unit in units_of(cluster, result.victims) for move in unit.moves])
        seating.seat_in_dry_run(attempt, result.nominated_node, row)
        self._victims[attempt.uid] = result.victims
        return True

    # --- who need not leave after all --------------------------------------------------------------------------------------------

    def _reprieve(self, seating: Seating, dry_run: DryRunCluster) -> None:
        """Let back whom the group does not need to leave: those that break a budget first, then the most important."""
        cluster = self._members.cluster
        victims = [victim for pods in self._victims.values() for victim in pods]
        units = sorted(units_of(cluster, victims), key=lambda unit: unit.rank)
        if len(units) == 1:
            return  # somebody had to leave
        violations = Budgets(cluster.objects.disruption_budgets.values()).violations(unit.pods for unit in units)
        back: set[str] = set()
        for unit, _ in sorted(zip(units, violations, strict=True), key=lambda each: not each[1]):
            dry_run.add(unit.moves)
            lifted = list(seating.seats.values()) if self._look_around(unit) else seating.on({row for row, _ in unit.moves})
            if seating.moved(lifted):
                back.update(pod.uid for pod in unit.pods)
            else:
                dry_run.remove(unit.moves)
                seating.restore(lifted)
        self._victims = {uid: tuple(pod for pod in pods if pod.uid not in back) for uid, pods in self._victims.items()}

    def _look_around(self, unit: Unit) -> bool:
        """Whether pods on other nodes may matter to the members, or the members to these."""
        pods = [*unit.pods, *(attempt.pod for attempt in self._group.attempts)]
        return any(pod.pod.spec.affinity is not None or pod.pod.spec.topology_spread_constraints for pod in pods)
