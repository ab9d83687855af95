"""Preemption for a whole group: either enough members have a node once others leave, or nobody leaves.

PostFilter is run member by member, with what earlier members take and their victims' leaving supposed. Members that fit as it is are
assumed and reserved meanwhile; so what they use is not offered twice.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field

from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.cluster.supposition import Supposition
from placewright.framework.evaluation import Evaluation
from placewright.scheduler.attempts import Attempt
from placewright.scheduler.cycle import NoPlacement, make_room
from placewright.scheduler.gangs.choosing import Choosing
from placewright.scheduler.gangs.domains import Domain
from placewright.scheduler.gangs.group import Group, Surroundings


@dataclass(slots=True)
class Room:
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
class Evicting:
    """Finds whom a group could make leave. Nothing is changed: the caller evicts and nominates."""

    around: Surroundings
    choosing: Choosing

    def search(self, group: Group) -> Room:
        """Where the group would fit if others left.

        A group that requires one domain is tried in a few of them, those with the most room first: each costs as much as trying all nodes.
        """
        if not group.evaluator.runtime.post_filter:
            return Room()
        where: list[Domain | None] = [None]
        if group.gang.topology_key and group.gang.topology_required:
            found = sorted(self.choosing.domains(group), key=lambda domain: (-domain.room, domain.value))
            where = list(found[: group.settings.domains_to_compare])
        room = Room()
        for domain in where:
            room = _Search(self.around, group, domain).run()
            if room.nodes:
                break
        return room


class _Search:
    """One search, in one domain or anywhere."""

    def __init__(self, around: Surroundings, group: Group, domain: Domain | None) -> None:
        self._around = around
        self._group = group
        self._within = None if domain is None else domain.names
        self._room = Room()
        self._members = {attempt.uid for attempt in group.attempts}

    def run(self) -> Room:
        """Go through the members until enough have a node, or one that is needed can have none."""
        misfits = 0
        nominator = self._around.queue.nominator
        with ExitStack() as taken, self._around.cluster.supposing(journalled=True) as supposition:
            for attempt in self._group.attempts:  # where they were nominated to before is open again
                node = nominator.node_of(attempt.uid)
                if node is not None:
                    nominator.delete(attempt.uid)
                    taken.callback(nominator.add, attempt.pod, node)
            for attempt in self._group.attempts:
                if len(self._room.nodes) == self._group.needed:
                    break
                misfits += not self._seat(attempt, supposition, taken)
                if len(self._group.attempts) - misfits < self._group.needed:
                    break
        if len(self._room.nodes) < self._group.needed:
            self._room.nodes.clear()
        return self._room

    def _seat(self, attempt: Attempt, supposition: Supposition, taken: ExitStack) -> bool:
        """Give a member a node, with or without evictions."""
        cycle, evaluator = self._around.cycle, self._group.evaluator
        try:
            evaluation = cycle.evaluate(evaluator, attempt.pod, None, self._within)
            if not evaluation.count:
                return self._evict(attempt.pod, evaluation, supposition)
            placement = cycle.chosen(evaluator, evaluation)
            self._around.reserving.take(placement)
        except NoPlacement:
            return False
        taken.callback(self._around.reserving.give_back, placement)
        self._room.nodes[attempt.uid] = (placement.node, ())
        return True

    def _evict(self, pod: PodInfo, evaluation: Evaluation, supposition: Supposition) -> bool:
        evaluator, cluster = self._group.evaluator, self._around.cluster
        result = make_room(evaluator.runtime, evaluation, evaluator.diagnose(evaluation))
        self._room.withdraws |= result.nominated_node == ""
        row = cluster.row(result.nominated_node) if result.status.ok and result.nominated_node else None
        if row is None or result.nominated_node is None or any(victim.uid in self._members for victim in result.victims):
            self._room.why = self._room.why or result.status.message
            return False
        supposition.remove([(row, victim) for victim in result.victims])
        supposition.add([(row, pod)])
        self._room.nodes[pod.uid] = (result.nominated_node, result.victims)
        return True
