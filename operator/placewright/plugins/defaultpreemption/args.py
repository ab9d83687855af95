"""Arguments of DefaultPreemption, as in KubeSchedulerConfiguration v1."""

from __future__ import annotations

import msgspec

#: (path inside args, what was found, what is allowed)
Problem = tuple[str, str, str]


class DefaultPreemptionArgs(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """How many nodes to try before choosing: this percentage of those where preemption may help, but at least so many."""

    min_candidate_nodes_percentage: int = 10
    min_candidate_nodes_absolute: int = 100

    def candidates_wanted(self, nodes: int) -> int:
        """How many candidates to collect where preemption may help on this many nodes."""
        return min(nodes, max(nodes * self.min_candidate_nodes_percentage // 100, self.min_candidate_nodes_absolute))

    def validate(self) -> list[Problem]:
        """Ranges; and not both 0, which would try no node at all."""
        percentage, absolute = self.min_candidate_nodes_percentage, self.min_candidate_nodes_absolute
        problems = []
        if not 0 <= percentage <= 100:
            problems.append(("minCandidateNodesPercentage", str(percentage), "0 to 100"))
        if absolute < 0:
            problems.append(("minCandidateNodesAbsolute", str(absolute), "0 or more"))
        if percentage == absolute == 0:
            problems.append(("minCandidateNodesPercentage", "0, with minCandidateNodesAbsolute 0", "one of the two above 0"))
        return problems
