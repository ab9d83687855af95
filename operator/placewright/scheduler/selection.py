"""From scores to one node: sampling when the profile asks for it, and a fair choice among the best."""

from __future__ import annotations

import random
from typing import Final, NamedTuple

import numpy as np

from placewright.framework.interface import BoolColumn, IntColumn

_MIN_FEASIBLE_TO_FIND: Final = 100


class Choice(NamedTuple):
    """The chosen row, and how it compares.

    Attributes:
        row: the chosen node's row.
        total: its score.
        ties: how many nodes had that score.
        runner_up: the best row that was not chosen, or None when there is no other.
    """

    row: int
    total: int
    ties: int
    runner_up: int | None


def choose(totals: IntColumn, rng: random.Random) -> Choice:
    """Choose uniformly among the rows with the highest total; rows below 0 do not take part."""
    best = int(totals.max())
    tied = np.flatnonzero(totals == best)
    row = int(tied[rng.randrange(len(tied))] if len(tied) > 1 else tied[0])
    return Choice(row, best, len(tied), _runner_up(totals, row))


def _runner_up(totals: IntColumn, row: int) -> int | None:
    kept = totals[row]
    totals[row] = -1
    second = int(totals.argmax())
    found = totals[second] >= 0
    totals[row] = kept
    return second if found else None


def nodes_to_find(nodes: int, percentage: int) -> int:
    """How many feasible nodes are enough, kube-scheduler's `numFeasibleNodesToFind` with a percentage set."""
    if nodes < _MIN_FEASIBLE_TO_FIND:
        return nodes
    return max(nodes * percentage // 100, _MIN_FEASIBLE_TO_FIND)


class Sampler:
    """Narrows feasible rows to the first k in rotation, so that successive pods look at different nodes."""

    def __init__(self) -> None:
        self._start = 0

    def narrow(self, feasible: BoolColumn, nodes: int, percentage: int) -> BoolColumn:
        """The first `nodes_to_find` feasible rows from where the last pod stopped; shape (size,)."""
        wanted = nodes_to_find(nodes, percentage)
        size = len(feasible)
        order = (np.arange(size) + self._start % max(size, 1)) % max(size, 1)
        found = np.flatnonzero(feasible[order])[: wanted + 1]
        looked_at = int(found[wanted]) if len(found) > wanted else size
        self._start = (self._start + looked_at) % max(size, 1)
        narrowed = np.zeros(size, np.bool_)
        narrowed[order[found[:wanted]]] = True
        return narrowed
