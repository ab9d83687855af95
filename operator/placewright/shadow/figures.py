"""Counts how often a shadow and its live profile agree, and how much worse each finds the other's nodes.

The utilisation of nodes is measured, too: mean and deviation of the requested share by resource, and the number of empty nodes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.api.profile import Allocation, EmptyNodes, Regret, ShadowStatus, ShadowUse
from placewright.api.requests import CPU, MEMORY, is_extended_resource
from placewright.cluster.cluster import Cluster

#: Differing decisions that are kept as examples.
MOST_EXAMPLES: Final = 100


class Disagreement(NamedTuple):
    """A decision in which the two profiles differ.

    Attributes:
        namespace: namespace of the pod.
        name: name of the pod.
        shadow: node of the shadow; None if it found none.
        live: node of the live profile; None if it found none.
        points: points by which the live node is worse, by the shadow's totals; None if they are not known.
    """

    namespace: str
    name: str
    shadow: NodeName | None
    live: NodeName | None
    points: int | None = None


@dataclass(slots=True)
class Regrets:
    """Distances from the best total, in points of the score.

    Attributes:
        decisions: number of decisions.
        points: sum of the distances.
        worst: the largest distance.
        share: sum of the distances, each as a share of the best total.
    """

    decisions: int = 0
    points: int = 0
    worst: int = 0
    share: float = 0.0

    def add(self, best: int, other: int) -> None:
        """Count a decision.

        Args:
            best: total of the chosen node, by the scores of the profile that chose it.
            other: total of the other profile's node, by the same scores.
        """
        distance = best - other
        self.decisions += 1
        self.points += distance
        self.worst = max(self.worst, distance)
        self.share += distance / best if best > 0 else 0.0

    @property
    def told(self) -> Regret:
        """The figures in the form of the status."""
        count = self.decisions or 1
        return Regret(
            decisions=self.decisions,
            mean_points=round(self.points / count, 2),
            max_points=float(self.worst),
            mean_percent=round(100 * self.share / count, 2),
        )


@dataclass(slots=True)
class Figures:
    """Counts of the comparison with one generation of the live profile, named as in `ShadowStatus`.

    Attributes:
        since: time at which the counts begin, RFC 3339.
        live_generation: generation of the live profile; 0 before its first decision.
        same: decisions for the same node.
        other: decisions for different nodes.
        live_only: decisions in which only the live profile found a node.
        shadow_only: decisions in which only the shadow found a node.
        neither: decisions in which neither found a node.
        passed_over: decisions of the live profile that the shadow had no time for.
        not_feasible: decisions whose live node could not have held the pod in the shadow's world.
        regret: regret of the live node, by the shadow's totals.
        live_regret: regret of the shadow's node, by the live totals, if the live profile recorded them.
        differences: last decisions in which the two differ, the latest last.
    """

    since: str
    live_generation: int = 0
    same: int = 0
    other: int = 0
    live_only: int = 0
    shadow_only: int = 0
    neither: int = 0
    passed_over: int = 0
    not_feasible: int = 0
    regret: Regrets = field(default_factory=Regrets)
    live_regret: Regrets = field(default_factory=Regrets)
    differences: deque[Disagreement] = field(default_factory=lambda: deque(maxlen=MOST_EXAMPLES))

    def count(self, shadow: NodeName | None, live: NodeName | None) -> None:
        """Count a decision of both.

        Args:
            shadow: node of the shadow; None if it found none.
            live: node of the live profile; None if it found none.
        """
        if shadow is None and live is None:
            self.neither += 1
        elif shadow is None:
            self.live_only += 1
        elif live is None:
            self.shadow_only += 1
        elif shadow == live:
            self.same += 1
        else:
            self.other += 1

    @property
    def decided(self) -> int:
        """The number of the shadow's decisions."""
        return self.same + self.other + self.live_only + self.shadow_only + self.neither

    @property
    def pods(self) -> int:
        """The number of the live profile's decisions."""
        return self.decided + self.passed_over

    @property
    def sampled_percent(self) -> float:
        """The share of the live profile's decisions that the shadow made, too; 100 if there were none."""
        return round(100 * self.decided / self.pods, 1) if self.pods else 100.0

    @property
    def agreement(self) -> float | None:
        """The share of decisions for the same node among decisions in which either found a node; None if there were none."""
        placed = self.decided - self.neither
        return self.same / placed if placed else None

    def told(self) -> dict[str, Any]:
        """Return the figures by their fields of `ShadowStatus`."""
        said = {name: getattr(self, name) for name in ShadowStatus.__struct_fields__ if hasattr(self, name)}
        percent = None if self.agreement is None else round(100 * self.agreement, 1)
        return said | {"agreement_percent": percent, "regret": self.regret.told, "live_regret": self.live_regret.told}


# --- utilisation -----------------------------------------------------------------------------------------------------------------


def uses(shadow: Cluster, live: Cluster) -> list[ShadowUse]:
    """Compare the utilisation of two clusters.

    Args:
        shadow: the shadow's cluster.
        live: the live cluster, which says which resources are offered.

    Returns:
        CPU, memory, and every extended resource that a live node offers, by name.
    """
    rows = live.rows()
    extended = (name for name in live.resources.names() if is_extended_resource(name))
    offered = sorted(name for name in extended if live.resources.column(name).allocatable[rows].any())
    return [ShadowUse(name=name, shadow=allocation(shadow, name), live=allocation(live, name)) for name in (CPU, MEMORY, *offered)]


def allocation(cluster: Cluster, resource: str) -> Allocation | None:
    """Measure the requested share of a resource over the nodes that offer it.

    Args:
        cluster: cluster with the nodes.
        resource: name of the resource.

    Returns:
        Mean and population standard deviation, in percent; None if no node offers the resource.
    """
    rows, column = cluster.rows(), cluster.resources.column(resource)
    have = rows[column.allocatable[rows] > 0]
    if not len(have):
        return None
    shares = 100 * column.requested[have] / column.allocatable[have]
    return Allocation(mean_percent=round(float(shares.mean()), 2), deviation_percent=round(float(shares.std()), 2))


def empty(shadow: Cluster, live: Cluster) -> EmptyNodes:
    """Count the nodes of each cluster that could be removed, because all their pods belong to DaemonSets."""
    return EmptyNodes(shadow=sum(_empty_nodes(shadow)), live=sum(_empty_nodes(live)))


def _empty_nodes(cluster: Cluster) -> Iterator[bool]:
    return (all(map(_is_daemon, cluster.pods_on(name))) for name in cluster.names if name is not None)


def _is_daemon(pod: PodInfo) -> bool:
    return any(owner.controller and owner.kind == "DaemonSet" for owner in pod.pod.metadata.owner_references or ())
