"""Nodes kept for groups that wait for long, so that they are not overtaken for ever.

A group of many members needs much room at once, and wherever pods come and go, small ones take what gets free. So a group that has been
tried in vain for a while gets a plan (see `planning`): a node for every member it needs. The members are nominated to these nodes, in
memory only. The cycle's two-pass filter then leaves pods of equal or lower priority there only what the members leave; so whatever fits
beside them goes on being placed, and what runs there ends some day. As nobody may fill the room up again, the group's turn comes.

Why groups cannot block each other. A reservation takes nothing that another group has: members are placed all or none, so no group holds
room while it waits for more. Reservations are few and in order: higher priority first, then age. A later one is planned beside the earlier
ones' nominations, so both plans can come true at the same time, in any order; and one that should be earlier takes the place of the last
one where no place is left. So every reservation waits only for pods that run, never for another reservation, and the first in order is
never taken back for another group's sake. Of two plans for the same group the one for which less has to leave is kept; nobody of equal or
lower priority makes that more, so the plan does not wander.
"""

from __future__ import annotations

from dataclasses import dataclass

from placewright.api.podgroups import GroupRef
from placewright.cluster.cluster import Cluster
from placewright.cluster.podgrouprules import standing
from placewright.framework.events import ASSIGNED_POD_DELETE
from placewright.queue.queue import SchedulingQueue
from placewright.scheduler.podgroups.group import Group
from placewright.scheduler.podgroups.plans import Plan, Planner
from placewright.scheduler.ports import Clock

#: Lower is earlier: minus the priority, the group's age, its name.
_Order = tuple[int, float, GroupRef]


@dataclass(frozen=True, slots=True)
class _Held:
    order: _Order
    plan: Plan
    scheduler_name: str


class Reservations:
    """Those of one scheduler."""

    def __init__(self, cluster: Cluster, queue: SchedulingQueue, clock: Clock, planning: Planner) -> None:
        self._cluster = cluster
        self._queue = queue
        self._clock = clock
        self._planning = planning
        self._held: dict[GroupRef, _Held] = {}

    def __len__(self) -> int:
        return len(self._held)

    def plan_of(self, ref: GroupRef) -> Plan | None:
        """What is kept for a group, or None."""
        held = self._held.get(ref)
        return None if held is None else held.plan

    def consider(self, group: Group) -> None:
        """A group did not fit, and waits in the queue: it gets a reservation if it is its turn; the one it has is looked at again."""
        ref, order = group.pod_group.ref, self._order(group)
        if order is None or not self._admitted(ref, order, group.settings.reservations):
            return
        before = self._held.get(ref)
        if before is not None:
            self._withdraw(before.plan)
        best = self._planning.best(group)
        kept = None if before is None or best is None else self._planning.again(group, before.plan)
        plan = best if kept is None or (best is not None and best.to_free < kept.to_free) else kept
        if plan is None:
            self._held.pop(ref, None)
        else:
            self._held[ref] = _Held(order, plan, group.scheduler_name)
            self._nominate(plan)
        if before is not None:
            self._tell(before.plan, plan)

    def end(self, ref: GroupRef) -> None:
        """The group needs no reservation any more; harmless where it has none."""
        held = self._held.pop(ref, None)
        if held is not None:
            self._withdraw(held.plan)
            self._tell(held.plan, None)

    def review(self) -> None:
        """Give up what is kept for groups that cannot use it: too few members are left, or nobody declares the group any more."""
        for ref, held in tuple(self._held.items()):
            waiting = self._queue.pod_groups.get(ref)
            alive = waiting is not None and held.plan.nodes.keys() <= waiting.members.keys() and self._may_be_tried(held)
            if not alive or self._cluster.pod_groups.get(ref) is None or standing(self._cluster, ref):
                self.end(ref)

    def _may_be_tried(self, held: _Held) -> bool:
        """False for pods of a profile that is paused, or gone."""
        lane = next((lane for lane in self._queue.profile_queues() if lane.name == held.scheduler_name), None)
        return lane is None or (lane.served and not lane.policy.paused)  # nobody of it waits: all are being tried

    # --- whose turn ------------------------------------------------------------------------------------------------------------

    def _order(self, group: Group) -> _Order | None:
        """The group's place among those that may have a reservation; None for one that has not waited long enough."""
        waiting = self._queue.pod_groups.get(group.pod_group.ref)
        if waiting is None or waiting.tried_at is None:
            return None
        if self._clock() - waiting.tried_at < group.settings.reservation_after_seconds:
            return None
        return -group.priority, waiting.since, group.pod_group.ref

    def _admitted(self, ref: GroupRef, order: _Order, places: int) -> bool:
        if ref in self._held:
            return True
        if places > 0 and len(self._held) >= places:
            last = max(self._held, key=lambda held: self._held[held].order)
            if self._held[last].order < order:
                return False
            self.end(last)
        return places > 0

    # --- nominations -----------------------------------------------------------------------------------------------------------

    def _nominate(self, plan: Plan) -> None:
        for uid, node in plan.nodes.items():
            pod = self._queue.latest(uid)
            if pod is not None:
                self._queue.nominator.add(pod, node)

    def _withdraw(self, plan: Plan) -> None:
        nominator = self._queue.nominator
        for uid, node in plan.nodes.items():
            if nominator.node_of(uid) == node:
                nominator.delete(uid)

    def _tell(self, before: Plan, now: Plan | None) -> None:
        """Pods took the room for taken; where it is not kept any more, it is for them as if a member had left the node."""
        for uid, node in before.nodes.items():
            member = self._queue.latest(uid)
            stays = now is not None and now.nodes.get(uid) == node
            placement = self._cluster.placement(uid)
            if member is not None and not stays and (placement is None or placement.node != node):
                self._queue.move(ASSIGNED_POD_DELETE, member.on(node), None, except_uid=uid, up_to_priority=member.priority)
