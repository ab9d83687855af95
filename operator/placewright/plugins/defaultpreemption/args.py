"""Arguments of DefaultPreemption, as in KubeSchedulerConfiguration v1."""

from __future__ import annotations

from typing import Annotated

import msgspec

from placewright.framework.constraints import within

#: (path inside args, what was found, what is allowed)
Problem = tuple[str, str, str]


class DefaultPreemptionArgs(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """How many nodes to try before choosing: this percentage of those where preemption may help, but at least so many."""

    min_candidate_nodes_percentage: Annotated[int, within(0, 100)] = 10
    min_candidate_nodes_absolute: Annotated[int, within(0)] = 100

    def candidates_wanted(self, nodes: int) -> int:
        """How many candidates to collect where preemption may help on this many nodes."""
        return min(nodes, max(nodes * self.min_candidate_nodes_percentage // 100, self.min_candidate_nodes_absolute))

    def validate(self) -> list[Problem]:
        """Not both 0, which would try no node at all."""
        if self.min_candidate_nodes_percentage == self.min_candidate_nodes_absolute == 0:
            return [("minCandidateNodesPercentage", "0, with minCandidateNodesAbsolute 0", "one of the two above 0")]
        return []
