"""Chooses among the topology domains that hold a group.

A group whose own object asks for a domain gets the one that kube-scheduler's placement scores prefer. PodGroupPodsCount counts the
members with a node, as a share of the most in any domain. NodeResourcesFit scores how full the domain would be. Both weigh the same. All
other groups get the domain with the highest sum of the members' node scores. Source: kube-scheduler
`podgrouppodscount/podgroup_pods_count.go, noderesources/resource_allocation.go`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from placewright.api.objects import NodeName
from placewright.api.podgroups import PodGroup
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.interface import MAX_NODE_SCORE, Rows
from placewright.framework.runtime.profileruntime import ProfileRuntime
from placewright.scheduler.podgroups.domains import Domain


@runtime_checkable
class PlacementScorer(Protocol):
    """A plugin that also scores the nodes of a domain together."""

    def score_placements(self, cluster: Cluster, placements: Sequence[Rows], pods: Sequence[PodInfo]) -> list[int]:
        """Score each of these sets of rows from 0 to 100, as if the pods were placed there."""


@dataclass(frozen=True, slots=True)
class HoldingDomain:
    """A domain that holds the group.

    Attributes:
        domain: the domain.
        pods: members that got a node there.
        score: sum of the members' node scores.
    """

    domain: Domain
    pods: Sequence[PodInfo]
    score: int


@dataclass(frozen=True, slots=True)
class Placements:
    """The rules by which the domains of one group are compared. The cluster is read while no member is on trial.

    Attributes:
        cluster: columns, which are only read.
        pod_group: the group.
        members: members to be placed.
        runtime: plugins of the profile; its placement scorers are asked.
        tie: key that sorts equally good domains, the best first.
    """

    cluster: Cluster
    pod_group: PodGroup
    members: Sequence[PodInfo]
    runtime: ProfileRuntime
    tie: Callable[[Domain], tuple[bool, float]]

    def ordered(self, found: Sequence[Domain]) -> list[Domain]:
        """Return the domains in the order in which they are tried, without domains that lack room.

        Domains with placement scores come in the order of their score with all members. So no later domain is better than an earlier one
        that holds all.
        """
        roomy = [domain for domain in found if domain.room >= 1]
        if not self.pod_group.placement_scored:
            return roomy
        return self._sorted(self._fullness(roomy, self.members), roomy)

    def nominated(self, found: Sequence[Domain], nodes: Iterable[NodeName | None]) -> Domain | None:
        """Return the domain that most members are nominated to; None without a nomination to any of these.

        Like the nominated node of a single pod, it is taken without a comparison if it holds the group.

        Args:
            found: domains in the order in which they are tried.
            nodes: nominated node of each member.
        """
        counts = Counter(node for node in nodes if node is not None)
        if not counts:
            return None
        ranked = [(sum(counts[node] for node in counts.keys() & domain.names), domain) for domain in found]
        most, best = max(ranked, key=lambda each: each[0], default=(0, None))
        return best if most else None

    def settles(self, holding: HoldingDomain) -> bool:
        """Return whether no domain that comes later in the order can be better."""
        return self.pod_group.placement_scored and len(holding.pods) == len(self.members)

    def ranked(self, holding: Sequence[HoldingDomain]) -> list[Domain]:
        """Return the domains that hold the group, the best first."""
        return self._sorted(self.totals(holding), [each.domain for each in holding])

    def totals(self, holding: Sequence[HoldingDomain]) -> list[int]:
        """Return the score of each domain that holds the group; the highest is the best."""
        if not self.pod_group.placement_scored:
            return [each.score for each in holding]
        most = max((len(each.pods) for each in holding), default=1)
        counts = [len(each.pods) * MAX_NODE_SCORE // most for each in holding]
        return [count + self._fullness([each.domain], each.pods)[0] for count, each in zip(counts, holding, strict=True)]

    def _sorted(self, scores: Sequence[int], found: Sequence[Domain]) -> list[Domain]:
        keyed = [(-score, self.tie(domain), domain) for score, domain in zip(scores, found, strict=True)]
        return [domain for _, _, domain in sorted(keyed, key=lambda each: each[:2])]

    def _fullness(self, found: Sequence[Domain], pods: Sequence[PodInfo]) -> list[int]:
        """Return the sum of all plugins' scores for each domain."""
        rows = [np.array([row for name in domain.names if (row := self.cluster.row(name)) is not None], np.intp) for domain in found]
        scorers = [plugin for plugin in self.runtime.filter if isinstance(plugin, PlacementScorer)]
        scores = [scorer.score_placements(self.cluster, rows, pods) for scorer in scorers]
        return [sum(column) for column in zip(*scores, strict=True)] if scores else [0] * len(found)
