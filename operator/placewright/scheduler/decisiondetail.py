"""What a decision tells about itself, taken while the columns stand: the best few nodes with their scores, and who rejected how many.

Refusals cost little beside finding them. The best few cost a few percent of a decision among thousands of nodes, so they are taken within
a share of the time: at low rates every decision tells them, at full speed a sample does.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Final, NamedTuple

import msgspec
import numpy as np

from placewright.api.objects import NodeName
from placewright.cluster.cluster import Cluster
from placewright.framework.interface import Diagnosis, Rows
from placewright.framework.runtime.podcolumns import Totals
from placewright.framework.status import Status

#: Best nodes that are told, the chosen one among them.
TOP: Final = 3
#: Of the time since they were last told, so much may be spent.
SHARE: Final = 0.01
#: Seconds; what seems to take longer was a process that stood still, which is no reason to tell nothing for long.
_LONGEST_PAUSE: Final = 0.05
#: Kinds of refusal told of one attempt, nodes named with each, and characters of a reason: what is kept has to have a size.
MOST_REFUSALS: Final = 20
MOST_EXAMPLES: Final = 5
MOST_CHARACTERS: Final = 300
#: What nodes are put down to that nobody gave a reason for: extenders may drop nodes without a word.
NO_REASON: Final = "left out without a reason"
OTHER_REASONS: Final = "other reasons"
#: Below every total.
_TAKEN: Final = -1


class NodeRefusal(msgspec.Struct, frozen=True, gc=False):
    """Nodes that one plugin rejected first, for one reason.

    Attributes:
        plugin: who; empty where nobody said.
        nodes: how many.
        examples: names of some of them.
    """

    plugin: str
    reason: str
    nodes: int
    examples: tuple[NodeName, ...] = ()


class Refused(NamedTuple):
    """Why no node could hold a pod.

    Attributes:
        nodes: how many nodes there were.
        by: groups of them, the largest first; together they are all nodes. Empty where nobody wants to know.
    """

    nodes: int = 0
    by: tuple[NodeRefusal, ...] = ()


#: No node was looked at.
NO_NODE_REFUSED: Final = Refused()


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


class DecisionDetail:
    """Takes what decisions tell; nothing until it is switched on.

    Attributes:
        on: whether anybody wants to know.
    """

    __slots__ = ("_began", "_clock", "_due", "on")

    def __init__(self, clock: Callable[[], float], *, on: bool = False) -> None:
        """`clock`: seconds, finer than a microsecond."""
        self.on = on
        self._clock = clock
        self._began: float | None = None
        self._due = 0.0

    def rows(self, totals: Totals, choice: Choice) -> Rows:
        """The chosen row, and after it the next best ones, if they are to be told of this decision. Then `taken` is to be called."""
        if self.on:
            now = self._clock()
            if now >= self._due:
                self._began = now
                return best_rows(totals, choice)
        return np.array([choice.row], np.intp)

    def taken(self) -> None:
        """The scores of these rows have been read: the next ones are due when this will have been a small part of the time."""
        if self._began is not None:
            now = self._clock()
            self._due = now + min((now - self._began) / SHARE, _LONGEST_PAUSE)
            self._began = None

    def refused(self, cluster: Cluster, diagnosis: Diagnosis) -> Refused:
        """Why no node fits, in groups where somebody wants to know."""
        return Refused(diagnosis.node_count, refusals(cluster, diagnosis) if self.on else ())


def best_rows(totals: Totals, choice: Choice, most: int = TOP) -> Rows:
    """Up to `most` rows by total, the chosen one first."""
    rows, totals = [choice.row], totals.copy()
    following = choice.runner_up
    totals[choice.row] = _TAKEN
    while following is not None and len(rows) < most:
        rows.append(following)
        totals[following] = _TAKEN
        following = int(totals.argmax()) if len(rows) < most else None
        if following is not None and totals[following] < 0:
            following = None
    return np.array(rows, np.intp)


def refusals(cluster: Cluster, diagnosis: Diagnosis) -> tuple[NodeRefusal, ...]:
    """Nodes grouped by who rejected them first and why, the largest group first; together they are all nodes."""
    groups: dict[tuple[str, tuple[str, ...]], _Group] = {}
    for status, rows in diagnosis.rejections:
        groups.setdefault((status.plugin, status.reasons), _Group()).add(rows)
    told = [NodeRefusal(plugin, cut(", ".join(why)), group.nodes, group.names(cluster)) for (plugin, why), group in groups.items()]
    rest = diagnosis.node_count - sum(each.nodes for each in told)
    if rest > 0:
        told.append(_of_the_rest(cluster, diagnosis.absent, rest))
    if len(told) > 1:
        told.sort(key=lambda refusal: -refusal.nodes)
    if len(told) > MOST_REFUSALS:
        others = sum(refusal.nodes for refusal in told[MOST_REFUSALS - 1 :])
        told[MOST_REFUSALS - 1 :] = [NodeRefusal("", OTHER_REASONS, others)]
    return tuple(told)


def cut(text: str, most: int = MOST_CHARACTERS) -> str:
    """The text, or its beginning where it has no end in sight."""
    return text if len(text) <= most else text[: most - 1] + "…"


def _of_the_rest(cluster: Cluster, status: Status | None, nodes: int) -> NodeRefusal:
    if status is None:
        return NodeRefusal("", NO_REASON, nodes)
    some = islice((name for name in cluster.names if name is not None), MOST_EXAMPLES)
    return NodeRefusal(status.plugin, cut(status.message), nodes, tuple(some))


class _Group:
    """Rows rejected for one reason: how many, and some of them."""

    __slots__ = ("_some", "nodes")

    def __init__(self) -> None:
        self.nodes = 0
        self._some: list[int] = []

    def add(self, rows: Rows) -> None:
        self.nodes += len(rows)
        if len(self._some) < MOST_EXAMPLES:
            self._some += rows[: MOST_EXAMPLES - len(self._some)].tolist()

    def names(self, cluster: Cluster) -> tuple[NodeName, ...]:
        return tuple([name for row in self._some if (name := cluster.names[row]) is not None])
