"""Reservations: nodes kept for groups that wait long, so that smaller pods cannot overtake them forever (decision 23).

A group of many members needs much room at once, and where pods come and go, small pods take each part of it that becomes free.
So a group that has been tried in vain for a while gets a plan (`plans`): a node for every member that it needs. The members are
nominated to these nodes, in memory only. The cycle's two-pass filter then leaves pods of equal or lower priority only the room
beside the members. So pods that fit beside them are still placed, running pods end some day, and the group's turn comes,
because no pod may fill the room again.

Why groups cannot block each other. A reservation takes nothing that another group has: members are placed all or none, so no
group holds room while it waits for more. Reservations are few and ordered by priority, then age. A later one is planned beside
the nominations of the earlier ones, so both plans can come true at the same time, in any order. When no place is left, a group
that comes earlier in this order replaces the last reservation. So every reservation waits for running pods only, never for
another reservation, and the first in order is never taken back for another group. Of two plans for the same group the one is
kept for which less has to leave. No pod of equal or lower priority can increase that amount, so the plan does not wander.
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

#: The order of groups, lowest first: minus the priority, the time of the first member, the name.
_Order = tuple[int, float, GroupRef]


@dataclass(frozen=True, slots=True)
class _Held:
    order: _Order
    plan: Plan
    scheduler_name: str


class Reservations:
    """The reservations of one scheduler.

    Args:
        cluster: only read.
        queue: where members are nominated.
        clock: seconds, monotonic.
        planning: makes plans.
    """

    def __init__(self, cluster: Cluster, queue: SchedulingQueue, clock: Clock, planning: Planner) -> None:
        self._cluster = cluster
        self._queue = queue
        self._clock = clock
        self._planning = planning
        self._held: dict[GroupRef, _Held] = {}

    def __len__(self) -> int:
        return len(self._held)

    def plan_of(self, ref: GroupRef) -> Plan | None:
        """Find the plan that is kept for a group.

        Args:
            ref: the group.

        Returns:
            The plan; None without a reservation.
        """
        held = self._held.get(ref)
        return None if held is None else held.plan

    def consider(self, group: Group) -> None:
        """Give a group that did not fit a reservation if its turn has come, or review the one it has. The group waits in the queue."""
        ref, order = group.pod_group.ref, self._order(group)
        if order is None or not self._admitted(ref, order, group.settings.reservations):
            return
        before = self._held.get(ref)
        if before is not None:
            # The group's own nominations would make its nodes look full to the planner.
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
        """End the reservation of a group; harmless where it has none."""
        held = self._held.pop(ref, None)
        if held is not None:
            self._withdraw(held.plan)
            self._tell(held.plan, None)

    def review(self) -> None:
        """End reservations that cannot be used: too few members are left, a member stands already, or no object declares the group."""
        for ref, held in tuple(self._held.items()):
            waiting = self._queue.pod_groups.get(ref)
            alive = waiting is not None and held.plan.nodes.keys() <= waiting.members.keys() and self._may_be_tried(held)
            if not alive or self._cluster.pod_groups.get(ref) is None or standing(self._cluster, ref):
                self.end(ref)

    def _may_be_tried(self, held: _Held) -> bool:
        """Return False for a group of a profile that is paused or gone."""
        lane = next((lane for lane in self._queue.profile_queues() if lane.name == held.scheduler_name), None)
        return lane is None or (lane.served and not lane.policy.paused)  # without a queue, all pods of the profile are in flight

    # --- whose turn ------------------------------------------------------------------------------------------------------------

    def _order(self, group: Group) -> _Order | None:
        """Return the group's place among groups that may have a reservation; None for one that has not waited long enough."""
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
        """Report rooms that are no longer kept as free, to pods that took them for occupied."""
        for uid, node in before.nodes.items():
            member = self._queue.latest(uid)
            stays = now is not None and now.nodes.get(uid) == node
            placement = self._cluster.placement(uid)
            if member is not None and not stays and (placement is None or placement.node != node):
                self._queue.move(ASSIGNED_POD_DELETE, member.on(node), None, except_uid=uid, up_to_priority=member.priority)
