"""Counts on a sample of decisions what each score plugin did to them, for advice about weights (docs/decisions/0016)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np

from placewright.framework.interface import IntColumn
from placewright.framework.runtime.podcolumns import Totals

#: One decision in so many is looked at, because a look costs about as much as the decision.
SAMPLE_EVERY: Final = 128


class ScoreImpact:
    """Counts on a sample of decisions whether each score plugin made a difference, for advice about weights.

    A plugin *scored* when it gave the feasible nodes different scores. It *decided* when, without its part, other nodes would have been
    best: the set of best nodes is compared, as the choice within that set is by chance. Looking at one decision among 5,000 nodes costs
    about as much as deciding it, hence the sample.

    Attributes:
        samples: decisions looked at.
    """

    __slots__ = ("_decided", "_every", "_left", "_scored", "samples")

    def __init__(self, plugins: Iterable[str], every: int = SAMPLE_EVERY) -> None:
        """`plugins`: names of the score plugins. One decision in `every` is looked at, the first one being the `every`th."""
        self.samples = 0
        self._every = every
        self._left = every
        self._scored = dict.fromkeys(plugins, 0)
        self._decided = dict(self._scored)

    def due(self) -> bool:
        """Count a decision among several nodes.

        Returns:
            True when it is to be looked at.
        """
        self._left -= 1
        if self._left:
            return False
        self._left = self._every
        return True

    def note(self, totals: Totals, parts: Mapping[str, IntColumn]) -> None:
        """Look at one decision.

        Args:
            totals: totals of the feasible nodes, shape (feasible,).
            parts: part of the totals, by plugin; each shape (feasible,).
        """
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
        """Count how long a plugin made no difference between nodes.

        Returns:
            How many of the latest samples in a row it gave all nodes the same score, or none, in.
        """
        return self.samples - self._scored[plugin]

    def undecisive(self, plugin: str) -> int:
        """Count how long a plugin decided nothing.

        Returns:
            How many of the latest samples in a row would have had the same best nodes without it.
        """
        return self.samples - self._decided[plugin]
