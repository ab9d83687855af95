"""Plans: a node for every member of a group, chosen as if every pod that can leave had left, where least has to leave first."""

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
from placewright.framework.interface import Rows
from placewright.framework.runtime.podcolumns import rows_named
from placewright.scheduler.podgroups.domainchoice import DomainChoice
from placewright.scheduler.podgroups.domains import Domain
from placewright.scheduler.podgroups.group import Group

#: Nodes that are looked at for one member, at most: if these cannot hold it even when empty, others hardly can.
_MOST_ROWS: Final = 64
_MIRROR: Final = "kubernetes.io/config.mirror"


@dataclass(frozen=True, slots=True)
class Plan:
    """Nodes for as many members as the group needs.

    Attributes:
        nodes: by the member's uid.
        to_free: the amount that has to leave first, in nodes: the sum of the shares by which each member's node is too full.
    """

    nodes: Mapping[str, NodeName]
    to_free: float


@dataclass(frozen=True, slots=True)
class Planner:
    """Makes plans; no state is changed. The caller withdraws the group's own nominations first.

    Attributes:
        cluster: only read, with dry runs.
        choosing: finds the domains of the group's label.
    """

    cluster: Cluster
    choosing: DomainChoice

    def best(self, group: Group) -> Plan | None:
        """Find the plan for which least has to leave.

        Args:
            group: without nominations.

        Returns:
            The plan; None when the group could not stand even if every pod that can leave had left.
        """
        where: list[Domain | None] = [None]
        if group.pod_group.topology_key and group.pod_group.topology_required:
            found = sorted(self.choosing.domains(group), key=lambda domain: (-domain.room, domain.value))
            where = list(found[: group.settings.domains_to_compare])
        plans = [plan for domain in where if (plan := self._plan(group, domain)) is not None]
        return min(plans, key=lambda plan: plan.to_free, default=None)

    def again(self, group: Group, plan: Plan) -> Plan | None:
        """Evaluate an earlier plan's nodes as the cluster is now.

        Args:
            group: whose plan it is.
            plan: made earlier.

        Returns:
            The same nodes with the present `to_free`; None when they would not do any more.
        """
        if not plan.nodes.keys() <= {attempt.uid for attempt in group.attempts} or len(plan.nodes) != group.needed:
            return None
        return self._plan(group, None, plan.nodes)

    def _plan(self, group: Group, domain: Domain | None, fixed: Mapping[str, NodeName] | None = None) -> Plan | None:
        cluster, nodes, to_free = self.cluster, dict[str, NodeName](), 0.0
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
                found = self._row_for(group, pod, within, dry_run)
                if found is None:
                    continue  # the group may have enough members without this one
                row, shortage = found
                dry_run.add([(row, pod)])
                name = cluster.names[row]
                assert name is not None  # it is a candidate
                nodes[pod.uid] = name
                to_free += shortage
        return Plan(nodes, to_free) if len(nodes) == group.needed else None

    def _row_for(self, group: Group, pod: PodInfo, within: frozenset[NodeName] | None, dry_run: DryRunCluster) -> tuple[int, float] | None:
        """Return the least overfull node that could hold the pod, and the share by which it is too full."""
        for row, shortage in self._by_shortage(pod, within):
            name = self.cluster.names[row]
            movable = [] if name is None else [(row, other) for other in self.cluster.pods_on(name) if _leaves_some_day(other)]
            movable = [(row, other) for row, other in movable if self.cluster.placement(other.uid) is not None]
            dry_run.remove(movable)
            try:
                if group.evaluator.checker.check_row(pod, row).ok:
                    return row, shortage
            except CycleError:
                return None
            finally:
                dry_run.add(movable)
        return None

    def _by_shortage(self, pod: PodInfo, within: frozenset[NodeName] | None) -> Iterator[tuple[int, float]]:
        """Iterate over rows that are large enough, with the share that would have to be freed, the least first."""
        cluster = self.cluster
        rows: Rows = np.flatnonzero(cluster.present if within is None else cluster.present & rows_named(cluster, within))
        short = np.maximum(cluster.pod_count[rows] + 1 - cluster.pod_limit[rows], 0) / np.maximum(cluster.pod_limit[rows], 1)
        large = cluster.pod_limit[rows] > 0
        for name, amount in pod.requests.items():
            column = cluster.resources.column(name)
            offered = column.allocatable[rows]
            large &= offered >= amount
            short = short + np.maximum(column.requested[rows] + amount - offered, 0) / np.maximum(offered, 1)
        order = np.lexsort((rows, short))
        # Rows that are too small even when empty are left out first, or they could use the limit up.
        order = order[large[order]][:_MOST_ROWS]
        yield from zip(rows[order].tolist(), short[order].tolist(), strict=True)


def _leaves_some_day(pod: PodInfo) -> bool:
    """Return False for pods that belong to the node: pods of a DaemonSet, and static pods, which a kubelet reads from a file."""
    meta = pod.pod.metadata
    if _MIRROR in (meta.annotations or {}):
        return False
    return not any(owner.kind == "DaemonSet" for owner in meta.owner_references or ())
