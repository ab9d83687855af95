"""The details that a decision tells about itself while the columns stand: the best few nodes with scores, and rejections by plugin.

Rejections cost little beside finding them. The best few nodes cost a few percent of a decision among thousands of nodes, so
they are taken within a share of the time: every decision tells them at low rates, and a sample of decisions at full speed.
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

#: Best nodes that a decision tells, the chosen one among them.
TOP: Final = 3
#: Share of the time since the last telling that may be spent on the next one.
SHARE: Final = 0.01
#: Seconds. A telling that seems to have cost more was interrupted, and must not silence the next ones for long.
_LONGEST_PAUSE: Final = 0.05
#: Kinds of rejection that one attempt tells, nodes named with each, and characters of a reason: records have a bounded size.
MOST_REFUSALS: Final = 20
MOST_EXAMPLES: Final = 5
MOST_CHARACTERS: Final = 300
#: The reason of nodes that have none: extenders may drop nodes without a word.
NO_REASON: Final = "left out without a reason"
OTHER_REASONS: Final = "other reasons"
#: Marks rows that are told already; below every total.
_TAKEN: Final = -1


class NodeRefusal(msgspec.Struct, frozen=True, gc=False):
    """Nodes that one plugin rejected first, for one reason.

    Attributes:
        plugin: its name; empty when none is known.
        reason: the plugin's text, cut to `MOST_CHARACTERS`.
        nodes: number of nodes.
        examples: names of some of them.
    """

    plugin: str
    reason: str
    nodes: int
    examples: tuple[NodeName, ...] = ()


class Refused(NamedTuple):
    """Why no node could hold a pod.

    Attributes:
        nodes: number of nodes in the cluster.
        by: nodes grouped by plugin and reason, the largest group first; together they are all nodes. Empty when no observer
            wants them.
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
        ties: number of nodes with that score.
        runner_up: the best row that was not chosen; None when there is no other.
    """

    row: int
    total: int
    ties: int
    runner_up: int | None


class DecisionDetail:
    """Decides which decisions tell their best nodes.

    Attributes:
        on: whether an observer wants details; without, none are taken.
    """

    __slots__ = ("_began", "_clock", "_due", "on")

    def __init__(self, clock: Callable[[], float], *, on: bool = False) -> None:
        """Start without a telling under way.

        Args:
            clock: seconds, finer than a microsecond.
            on: whether an observer wants details.
        """
        self.on = on
        self._clock = clock
        self._began: float | None = None
        self._due = 0.0

    def rows(self, totals: Totals, choice: Choice) -> Rows:
        """Return the rows that this decision tells. When these are more than one, the caller calls `taken` after reading their scores.

        Args:
            totals: changed only in a copy; shape (size,).
            choice: the decision.

        Returns:
            The chosen row first.
        """
        if self.on:
            now = self._clock()
            if now >= self._due:
                self._began = now
                return best_rows(totals, choice)
        return np.array([choice.row], np.intp)

    def taken(self) -> None:
        """Note that the scores of these rows have been read, and schedule the next telling so that the cost stays within `SHARE`."""
        if self._began is not None:
            now = self._clock()
            self._due = now + min((now - self._began) / SHARE, _LONGEST_PAUSE)
            self._began = None

    def refused(self, cluster: Cluster, diagnosis: Diagnosis) -> Refused:
        """Return why no node fits, in groups if an observer wants details.

        Args:
            cluster: for the names of nodes.
            diagnosis: each node's reason.

        Returns:
            The number of nodes, and the groups.
        """
        return Refused(diagnosis.node_count, refusals(cluster, diagnosis) if self.on else ())


def best_rows(totals: Totals, choice: Choice, most: int = TOP) -> Rows:
    """Return up to `most` rows by total, the chosen one first.

    Args:
        totals: read only; shape (size,).
        choice: the decision.
        most: at least 1.

    Returns:
        Rows, shape (1 to most,).
    """
    rows, totals = [choice.row], totals.copy()
    following = choice.runner_up
    totals[choice.row] = _TAKEN
    while following is not None and len(rows) < most:
        rows.append(following)
        totals[following] = _TAKEN
        # A few maxima cost less than sorting thousands of rows.
        following = int(totals.argmax()) if len(rows) < most else None
        if following is not None and totals[following] < 0:
            following = None
    return np.array(rows, np.intp)


def refusals(cluster: Cluster, diagnosis: Diagnosis) -> tuple[NodeRefusal, ...]:
    """Group the nodes by the plugin that rejected them first and its reason.

    Args:
        cluster: for the names of nodes.
        diagnosis: each node's reason.

    Returns:
        At most `MOST_REFUSALS` groups, the largest first; together they are all nodes.
    """
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
    """Cut a text to `most` characters.

    Args:
        text: of a plugin.
        most: including the ellipsis.

    Returns:
        The text, or its beginning with an ellipsis.
    """
    return text if len(text) <= most else text[: most - 1] + "…"


def _of_the_rest(cluster: Cluster, status: Status | None, nodes: int) -> NodeRefusal:
    if status is None:
        return NodeRefusal("", NO_REASON, nodes)
    some = islice((name for name in cluster.names if name is not None), MOST_EXAMPLES)
    return NodeRefusal(status.plugin, cut(status.message), nodes, tuple(some))


class _Group:
    """Rows rejected for one reason: their number, and some of them."""

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
