"""A plan has a node for every member of a group. It is made as if every pod that will end had ended.

Only nodes are chosen whose pods will all end, except pods that belong to their node. A pod will end if its restartPolicy is not
Always, as in every Job, or if it has activeDeadlineSeconds. So no plan waits for a service, or keeps a node that a service uses.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.cluster.dryrun import DryRunCluster
from placewright.framework.errors import CycleError
from placewright.framework.interface import BoolColumn, Rows
from placewright.framework.runtime.podcolumns import rows_named
from placewright.scheduler.podgroups.domainchoice import DomainChoice
from placewright.scheduler.podgroups.domains import Domain
from placewright.scheduler.podgroups.group import Group

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
