"""Reservations keep nodes for groups that wait long, so that smaller pods cannot overtake them forever (decision 23).

A group of many members needs much room at once. While pods come and go, small pods take each part of it that becomes free. So a group that
waits long gets a plan, with a node for every member that it needs. The members are nominated to these nodes, in memory only. The
cycle's two-pass filter leaves other pods of equal or lower priority only the room beside the members. Pods that fit there are still placed.
Running pods end some day, no pod may fill their room, and the group gets it.

Groups cannot block each other. A reservation takes nothing that another group has, because all members are placed or none. So no group
holds room while it waits for more. Reservations are few, and ordered by priority, then age. Each is planned beside the nominations of the
earlier ones, so that all plans can come true, in any order. When no place is left, a group that comes earlier replaces the last
reservation. So every reservation waits for running pods only, and never for another reservation. The first in order is never taken back for
another group. If a group has two plans, the plan is kept for which less has to leave. No pod of equal or lower priority can increase that
amount, so a plan lasts.

No tenant can close the cluster (decision 58). Nodes are kept up to a share of all nodes. Groups of one namespace get a smaller share. Only
nodes are kept whose pods will all end. A reservation ends after a time, however long its group waits. If the group was not
placed, its namespace gets no reservation for as long as nodes were kept. So it gains nothing by making the group anew.

A plan has a node for every member of a group. It is made as if every pod that will end had ended.

Only nodes are chosen whose pods will all end, except pods that belong to their node. A pod will end if its restartPolicy is not
Always, as in every Job, or if it has activeDeadlineSeconds. So no plan waits for a service, or keeps a node that a service uses.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import numpy as np

from placewright.api.objects import NodeName
from placewright.api.podgroups import GroupRef
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.cluster.dryrun import DryRunCluster
from placewright.cluster.podgrouprules import standing
from placewright.framework.errors import CycleError
from placewright.framework.events import ASSIGNED_POD_DELETE
from placewright.framework.interface import BoolColumn, PodGroupSettings, Rows, Seconds
from placewright.framework.ports import KeptFor
from placewright.framework.runtime.podcolumns import rows_named
from placewright.queue.queue import SchedulingQueue
from placewright.scheduler.podgroups.domainchoice import DomainChoice
from placewright.scheduler.podgroups.domains import Domain
from placewright.scheduler.podgroups.group import Group
from placewright.scheduler.ports import Clock

#: Most nodes that are looked at for one member. If these cannot hold it even when empty, others hardly can.
_MOST_ROWS: Final = 64
#: Most looks at nodes for all members and domains of one plan. They take some tenths of a second, in which nothing else is decided.
_MOST_LOOKS: Final = 1024
_ALWAYS: Final = "Always"
_MIRROR: Final = "kubernetes.io/config.mirror"


@dataclass(frozen=True, slots=True)
class Plan:
    """Nodes for as many members as the group needs.

    Attributes:
        nodes: names of nodes by the member's uid.
        to_free: amount that has to leave first, in nodes. It is the sum of the shares by which each member's node is too full.
    """

    nodes: Mapping[str, NodeName]
    to_free: float


@dataclass(slots=True)
class _Search:
    """The search for one group's plans.

    Attributes:
        group: group of the plans.
        most_nodes: number of nodes that a plan may keep.
        open: rows on which no pod has been seen that will not end; shape (size,).
        again: True if the nodes were chosen earlier. Then the plan holds beside pods that came since and will not end.
        looks: number of looks at rows that are left.
    """

    group: Group
    most_nodes: int
    open: BoolColumn
    again: bool = False
    looks: int = _MOST_LOOKS


@dataclass(frozen=True, slots=True)
class Planner:
    """Makes plans, and changes no state. The caller withdraws the group's own nominations first.

    Attributes:
        cluster: columns, which dry runs use.
        choosing: finder of the domains of the group's label.
    """

    cluster: Cluster
    choosing: DomainChoice

    def best(self, group: Group, most_nodes: int) -> Plan | None:
        """Find the plan for which least has to leave.

        Args:
            group: a group without nominations.
            most_nodes: number of nodes that it may keep.

        Returns:
            The plan; None when so many nodes could not hold the group even if every pod that will end had ended.
        """
        search = _Search(group, most_nodes, self.cluster.present.copy())
        plans = [plan for domain in self.choosing.roomiest(group) if (plan := self._plan(search, domain)) is not None]
        return min(plans, key=lambda plan: plan.to_free, default=None)

    def again(self, group: Group, plan: Plan, most_nodes: int) -> Plan | None:
        """Evaluate an earlier plan's nodes as the cluster is now.

        Args:
            group: group of the plan.
            plan: plan that was made earlier.
            most_nodes: number of nodes that the group may keep.

        Returns:
            The same nodes with the present `to_free`; None when they cannot hold the group any more.
        """
        if not plan.nodes.keys() <= {attempt.uid for attempt in group.attempts} or len(plan.nodes) != group.needed:
            return None
        return self._plan(_Search(group, most_nodes, self.cluster.present, again=True), None, plan.nodes)

    def _plan(self, search: _Search, domain: Domain | None, fixed: Mapping[str, NodeName] | None = None) -> Plan | None:
        cluster, group, nodes, to_free = self.cluster, search.group, dict[str, NodeName](), 0.0
        ordered = (group.largest_first() if group.mixed else group).attempts
        pods = [attempt.pod for attempt in ordered if fixed is None or attempt.uid in fixed]
        with cluster.dry_run() as dry_run:
            for index, pod in enumerate(pods):
                if len(nodes) + len(pods) - index < group.needed:
                    return None
                if len(nodes) == group.needed:
                    break
                within = domain.names if domain is not None else None
                if fixed is not None:
                    within = frozenset({fixed[pod.uid]})
                kept = frozenset(nodes.values())
                if len(kept) >= search.most_nodes:
                    within = kept if within is None else within & kept
                found = self._row_for(search, pod, within, dry_run)
                if found is None:
                    continue  # the group may have enough members without this one
                row, shortage = found
                dry_run.add([(row, pod)])
                name = cluster.names[row]
                assert name is not None  # it is a candidate
                nodes[pod.uid] = name
                to_free += shortage
        return Plan(nodes, to_free) if len(nodes) == group.needed else None

    def _row_for(
        self, search: _Search, pod: PodInfo, within: frozenset[NodeName] | None, dry_run: DryRunCluster
    ) -> tuple[int, float] | None:
        """Return the row of the least overfull node that could hold the pod, and the share that must leave."""
        looked = 0
        for row, shortage in self._by_shortage(search, pod, within):
            name = self.cluster.names[row]
            there = () if name is None else self.cluster.pods_on(name)
            placed = [each for each in there if self.cluster.placement(each.uid) is not None and not _belongs_to_its_node(each)]
            movable = [(row, each) for each in placed if _has_an_end(each)]
            if len(movable) < len(placed) and not search.again:
                search.open[row] = False
                continue
            if looked == _MOST_ROWS or not search.looks:
                return None
            looked, search.looks = looked + 1, search.looks - 1
            dry_run.remove(movable)
            try:
                if search.group.evaluator.checker.check_row(pod, row).ok:
                    return row, shortage
            except CycleError:
                return None
            finally:
                dry_run.add(movable)
        return None

    def _by_shortage(self, search: _Search, pod: PodInfo, within: frozenset[NodeName] | None) -> Iterator[tuple[int, float]]:
        """Iterate over rows that are large enough, with the share that would have to be freed, the least first."""
        cluster = self.cluster
        rows: Rows = np.flatnonzero(search.open if within is None else search.open & rows_named(cluster, within))
        short = np.maximum(cluster.pod_count[rows] + 1 - cluster.pod_limit[rows], 0) / np.maximum(cluster.pod_limit[rows], 1)
        large = cluster.pod_limit[rows] > 0
        for name, amount in pod.requests.items():
            column = cluster.resources.column(name)
            offered = column.allocatable[rows]
            large &= offered >= amount
            short = short + np.maximum(column.requested[rows] + amount - offered, 0) / np.maximum(offered, 1)
        order = np.lexsort((rows, short))
        order = order[large[order]]
        yield from zip(rows[order].tolist(), short[order].tolist(), strict=True)


def _has_an_end(pod: PodInfo) -> bool:
    spec = pod.pod.spec
    return pod.terminating or spec.active_deadline_seconds is not None or (spec.restart_policy or _ALWAYS) != _ALWAYS


def _belongs_to_its_node(pod: PodInfo) -> bool:
    """Return True for pods that stay with the node: pods of a DaemonSet, and static pods, which a kubelet reads from a file."""
    meta = pod.pod.metadata
    if _MIRROR in (meta.annotations or {}):
        return True
    return any(owner.kind == "DaemonSet" for owner in meta.owner_references or ())


#: The order of groups, lowest first: minus the priority, the time of the first member, the name.
_Order = tuple[int, float, GroupRef]


@dataclass(frozen=True, slots=True)
class _Held:
    """A reservation: the plan of a group, its place in the order, and the time at which it began."""

    order: _Order
    plan: Plan
    scheduler_name: str
    since: Seconds
    kept_for: KeptFor


class Reservations:
    """The reservations of one scheduler.

    Args:
        cluster: columns, which are only read.
        queue: queue in which members are nominated.
        clock: seconds, monotonic.
        planning: maker of plans.
        since_1970: clock in seconds since 1970, for messages.
    """

    def __init__(self, cluster: Cluster, queue: SchedulingQueue, clock: Clock, planning: Planner, since_1970: Clock) -> None:
        self._cluster = cluster
        self._queue = queue
        self._clock = clock
        self._planning = planning
        self._since_1970 = since_1970
        self._held: dict[GroupRef, _Held] = {}
        #: Times until which namespaces get no reservation, in seconds of the clock.
        self._rests: dict[str, Seconds] = {}

    def __len__(self) -> int:
        return len(self._held)

    def plan_of(self, ref: GroupRef) -> Plan | None:
        """Return the plan that is kept for a group; None without a reservation."""
        held = self._held.get(ref)
        return None if held is None else held.plan

    def consider(self, group: Group) -> None:
        """Give a group that did not fit a reservation if its turn has come, or review the one it has. The group waits in the queue."""
        self.review()
        ref, order = group.pod_group.ref, self._order(group)
        if order is None or not self._admitted(ref, order, group.settings.reservations):
            return
        most_nodes = self._nodes_left_for(ref, group.settings)
        before = self._held.get(ref)
        if before is not None:
            # The group's own nominations would make its nodes look full to the planner.
            self._withdraw(before.plan)
        best = self._planning.best(group, most_nodes)
        kept = None if before is None else self._planning.again(group, before.plan, most_nodes)
        plan = best if kept is None or (best is not None and best.to_free < kept.to_free) else kept
        if plan is None:
            self._forget(ref)
        else:
            since, kept_for = self._begun(ref, group.settings) if before is None else (before.since, before.kept_for)
            self._held[ref] = _Held(order, plan, group.scheduler_name, since, kept_for)
            self._nominate(plan, kept_for)
        if before is not None:
            self._tell(before.plan, plan)

    def came_true(self, ref: GroupRef) -> None:
        """End the reservation, if any, of a group that has been placed. Its namespace may have another reservation at once."""
        self._end(self._held.pop(ref, None))

    def end(self, ref: GroupRef) -> None:
        """End the reservation, if any, of a group that has not been placed."""
        self._end(self._forget(ref))

    def _end(self, held: _Held | None) -> None:
        if held is not None:
            self._withdraw(held.plan)
            self._tell(held.plan, None)

    def review(self) -> None:
        """End reservations whose time is over, and reservations that their groups cannot use.

        Too few members may be left, a member may have a node, or no object may declare the group.
        """
        now = self._clock()
        self._rests = {namespace: end for namespace, end in self._rests.items() if end > now}
        for ref, held in tuple(self._held.items()):
            waiting = self._queue.pod_groups.get(ref)
            alive = waiting is not None and held.plan.nodes.keys() <= waiting.members.keys() and self._may_be_tried(held)
            if not alive or held.kept_for.ends <= now or self._cluster.pod_groups.get(ref) is None or standing(self._cluster, ref):
                self.end(ref)

    def _may_be_tried(self, held: _Held) -> bool:
        """Return False for a group of a profile that is paused or gone."""
        lane = next((lane for lane in self._queue.profile_queues() if lane.name == held.scheduler_name), None)
        return lane is None or (lane.served and not lane.policy.paused)  # without a queue, all pods of the profile are in flight

    # --- whose turn ------------------------------------------------------------------------------------------------------------

    def _order(self, group: Group) -> _Order | None:
        """Return the group's place in the order of reservations; None for a group that has not waited long enough."""
        waiting = self._queue.pod_groups.get(group.pod_group.ref)
        if waiting is None or waiting.tried_at is None:
            return None
        if self._clock() - waiting.tried_at < group.settings.reservation_after_seconds:
            return None
        return -group.priority, waiting.since, group.pod_group.ref

    def _admitted(self, ref: GroupRef, order: _Order, places: int) -> bool:
        if ref in self._held:
            return True
        if ref.namespace in self._rests:
            return False
        if places > 0 and len(self._held) >= places:
            last = max(self._held, key=lambda held: self._held[held].order)
            if self._held[last].order < order:
                return False
            self.end(last)
        return places > 0

    def _nodes_left_for(self, ref: GroupRef, settings: PodGroupSettings) -> int:
        """Return the number of nodes that may be kept for a group: what other groups leave of the shares."""
        others = [(other.namespace, len(set(held.plan.nodes.values()))) for other, held in self._held.items() if other != ref]
        nodes = self._cluster.node_count
        of_all = max(nodes * settings.reservation_percent // 100, 1) - sum(kept for _, kept in others)
        of_namespace = max(nodes * settings.reservation_percent_of_namespace // 100, 1)
        return min(of_all, of_namespace - sum(kept for namespace, kept in others if namespace == ref.namespace))

    def _begun(self, ref: GroupRef, settings: PodGroupSettings) -> tuple[Seconds, KeptFor]:
        now = self._clock()
        until = datetime.fromtimestamp(self._since_1970() + settings.reservation_seconds, UTC)
        told = f"group {ref.name_in_words} until {until:%Y-%m-%dT%H:%M:%SZ}"
        return now, KeptFor(ref, now + settings.reservation_seconds, told)

    def _forget(self, ref: GroupRef) -> _Held | None:
        """Take a group's reservation out. Its namespace gets no other one for as long as the reservation lasted."""
        held = self._held.pop(ref, None)
        if held is not None:
            now = self._clock()
            self._rests[ref.namespace] = max(self._rests.get(ref.namespace, now), 2 * now - held.since)
        return held

    # --- nominations -----------------------------------------------------------------------------------------------------------

    def _nominate(self, plan: Plan, kept_for: KeptFor) -> None:
        for uid, node in plan.nodes.items():
            pod = self._queue.latest(uid)
            if pod is not None:
                self._queue.nominator.add(pod, node, kept_for)

    def _withdraw(self, plan: Plan) -> None:
        nominator = self._queue.nominator
        for uid, node in plan.nodes.items():
            if nominator.node_of(uid) == node:
                nominator.delete(uid)

    def _tell(self, before: Plan, now: Plan | None) -> None:
        """Report room that is no longer kept as free, to pods that took it for occupied."""
        for uid, node in before.nodes.items():
            member = self._queue.latest(uid)
            stays = now is not None and now.nodes.get(uid) == node
            placement = self._cluster.placement(uid)
            if member is not None and not stays and (placement is None or placement.node != node):
                self._queue.move(ASSIGNED_POD_DELETE, member.on(node), None, except_uid=uid, up_to_priority=member.priority)
