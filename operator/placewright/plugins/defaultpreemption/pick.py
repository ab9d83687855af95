"""Which candidate to preempt: kube-scheduler's criteria, in its order, and the node's name as the last one.

Upstream's last criterion is the order of a Go map; ours is the name, so that the same cluster always gives the same answer.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.framework.interface import Seconds
from placewright.framework.preemption.importance import start_time

#: Makes every priority positive, so that of two sums the one with more pods is never smaller for a negative priority.
_PRIORITY_OFFSET: Final = 2**31


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node, and who would have to leave it.

    Attributes:
        victims: most important first, at least one.
        violations: how many of them no disruption budget can spare.
        ranks: the priorities that victims count with, where these are not their own but their groups'; in the same order.
    """

    node: NodeName
    victims: tuple[PodInfo, ...]
    violations: int
    ranks: tuple[int, ...] = ()

    @property
    def cost(self) -> tuple[int, int, int, int, Seconds]:
        """How bad it would be; less is better.

        Broken budgets first, then the priority of the top victim, the sum of priorities, the number of victims, and how long the top
        victims have run.
        """
        ranks = self.ranks or tuple(pod.priority for pod in self.victims)
        top = ranks[0]
        total = sum(rank + _PRIORITY_OFFSET for rank in ranks)
        earliest = min(start_time(pod) for pod, rank in zip(self.victims, ranks, strict=True) if rank == top)
        return self.violations, top, total, len(self.victims), -earliest


def pick(candidates: Iterable[Candidate]) -> Candidate:
    """The cheapest candidate; raise `ValueError` when there is none."""
    return min(candidates, key=lambda candidate: (candidate.cost, candidate.node))
