"""Trying nodes until there are enough candidates to choose from."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

import numpy as np

from placewright.api.objects import NodeName
from placewright.cluster.cluster import Cluster
from placewright.framework.interface import Rows
from placewright.framework.status import Code, Status
from placewright.plugins.defaultpreemption.dryrun import DryRun
from placewright.plugins.defaultpreemption.pick import Candidate
from placewright.plugins.defaultpreemption.trial import NO_VICTIMS, Outcome

NOT_HELPFUL: Final = "Preemption is not helpful for scheduling"
#: Nodes tried in step: enough to share the cost of a look, and no more than a few milliseconds' work beyond what is needed.
_SMALLEST_BATCH: Final = 64


@dataclass(slots=True)
class Search:
    """What was found so far.

    Attributes:
        wanted: stop at so many candidates, as soon as one of them breaks no budget.
        candidates: nodes where evicting helps.
        rejections: why evicting does not help, for the nodes that were tried in vain.
    """

    wanted: int
    candidates: list[Candidate] = field(default_factory=list)
    rejections: list[Status] = field(default_factory=list)
    _respectful: int = 0

    def run(self, trials: DryRun, cluster: Cluster, rows: Rows, rng: random.Random) -> None:
        """Try the rows in order, from a random one on, until there is enough to choose from."""
        if trials.pointless:
            self.rejections.extend([NO_VICTIMS] * len(rows))
            return
        nodes = _from_anywhere(cluster, rows, rng)
        while batch := list(islice(nodes, max(self.wanted - len(self.candidates), _SMALLEST_BATCH))):
            for outcome in trials.on(batch):
                self._note(outcome)
                if self._respectful and len(self.candidates) >= self.wanted:
                    return

    def _note(self, outcome: Outcome) -> None:
        if isinstance(outcome, Status):
            self.rejections.append(outcome)
        elif outcome.violations == 0:
            self._respectful += 1
            self.candidates.append(outcome)
        elif len(self.candidates) - self._respectful < self.wanted:
            self.candidates.append(outcome)

    @property
    def problem(self) -> str:
        """What broke while nodes were tried, or ""."""
        return ", ".join(sorted({status.message for status in self.rejections if status.code is Code.ERROR}))

    def summary(self, node_count: int) -> str:
        """Why no node will do: `0/5 nodes are available: 2 No preemption victims found for incoming pod, 3 Preemption is ...`.

        Nodes that were not tried are the ones where preemption was out of the question.
        """
        counted = Counter(reason for status in self.rejections for reason in status.reasons)
        if untried := node_count - len(self.rejections):
            counted[NOT_HELPFUL] += untried
        reasons = ", ".join(sorted(f"{count} {reason}" for reason, count in counted.items()))
        return f"0/{node_count} nodes are available: {reasons}."


def _from_anywhere(cluster: Cluster, rows: Rows, rng: random.Random) -> Iterator[tuple[int, NodeName]]:
    """Each row once, with its node's name, beginning at a random place: so that not the same nodes are disturbed again and again."""
    for row in np.roll(rows, -rng.randrange(len(rows))).tolist() if len(rows) else ():
        name = cluster.names[row]
        if name is not None:
            yield row, name
