"""What each score plugin did to the outcome: counted on a sample of a profile's decisions, for advice to whoever set the weights.

A plugin *scored* when it gave the feasible nodes different scores. It *decided* when, without its part, other nodes would have been best:
the set of best nodes is compared, as the choice within that set is by chance. Facts of 5,000 nodes: looking at one decision costs about as
much as deciding it, hence the sample.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np

from placewright.framework.interface import IntColumn

#: One decision in so many is looked at.
SAMPLE_EVERY: Final = 128


class Influence:
    """Counts for one generation of one profile.

    Attributes:
        samples: decisions looked at.
    """

    __slots__ = ("_decided", "_every", "_left", "_scored", "samples")

    def __init__(self, plugins: Iterable[str], every: int = SAMPLE_EVERY) -> None:
        """`plugins`: names of those that score. One decision in `every` is looked at, the first one being the `every`th."""
        self.samples = 0
        self._every = every
        self._left = every
        self._scored = dict.fromkeys(plugins, 0)
        self._decided = dict(self._scored)

    def due(self) -> bool:
        """Count a decision among several nodes; True when it is to be looked at."""
        self._left -= 1
        if self._left:
            return False
        self._left = self._every
        return True

    def note(self, totals: IntColumn, parts: Mapping[str, IntColumn]) -> None:
        """Look at one decision: the totals of the feasible nodes, and by plugin what it put into them; shapes (feasible,)."""
        self.samples += 1
        best = totals == totals.max()
        for plugin, part in parts.items():
            if part.min() == part.max():
                continue
            self._scored[plugin] = self.samples
            without = totals - part
            if not np.array_equal(without == without.max(), best):
                self._decided[plugin] = self.samples

    def idle(self, plugin: str) -> int:
        """How many of the latest samples in a row the plugin gave all nodes the same score, or none, in."""
        return self.samples - self._scored[plugin]

    def undecisive(self, plugin: str) -> int:
        """How many of the latest samples in a row would have had the same best nodes without the plugin."""
        return self.samples - self._decided[plugin]
