"""Records details of a decision before the columns change: the best few nodes with their scores, and the rejections by plugin.

To record rejections costs little compared to finding them. To record the best few nodes costs a few percent of a decision among
thousands of nodes. So they are recorded within a share of the time: at low rates by every decision, and at full speed by a sample.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Final, NamedTuple

import msgspec
import numpy as np

from placewright.api.objects import NodeName
from placewright.cluster.cluster import Cluster
from placewright.framework.interface import Diagnosis, Rows
from placewright.framework.runtime.podcolumns import Totals
from placewright.framework.status import Status

#: Best nodes that a decision records, the chosen one among them.
TOP: Final = 3
#: Share of the time since the last record that may be spent on the next one.
SHARE: Final = 0.01
#: Most seconds between two records. If a record seems to need a longer pause, other work interrupted it.
_LONGEST_PAUSE: Final = 0.05
#: Kinds of rejection that one attempt records, nodes named with each, and characters of a reason. They bound the size of records.
MOST_REFUSALS: Final = 20
MOST_EXAMPLES: Final = 5
MOST_CHARACTERS: Final = 300
#: The reason of nodes that have none: extenders may drop nodes without a word.
NO_REASON: Final = "left out without a reason"
OTHER_REASONS: Final = "other reasons"
#: Marks rows that are recorded already; below every total.
_TAKEN: Final = -1


class NodeRefusal(msgspec.Struct, frozen=True, gc=False):
    """Nodes that one plugin rejected first, for one reason.

    Attributes:
        plugin: name of the plugin; empty when none is known.
        reason: text of the plugin, cut to `MOST_CHARACTERS`.
        nodes: number of nodes.
        examples: names of some of the nodes.
    """

    plugin: str
    reason: str
    nodes: int
    examples: tuple[NodeName, ...] = ()


class Refused(NamedTuple):
    """The rejections of all nodes, which could not hold a pod.

    Attributes:
        nodes: number of nodes in the cluster.
        by: groups of nodes by plugin and reason, the largest group first. Together they are all nodes. Empty if no observer wants
            details.
    """

    nodes: int = 0
    by: tuple[NodeRefusal, ...] = ()


#: No node was looked at.
NO_NODE_REFUSED: Final = Refused()


class Choice(NamedTuple):
    """The chosen row, compared with the other rows.

    Attributes:
        row: row of the chosen node.
        total: score of the chosen node.
        ties: number of nodes with that score.
        runner_up: best row that was not chosen; None when there is no other.
    """

    row: int
    total: int
    ties: int
    runner_up: int | None


class DecisionDetail:
    """Chooses the decisions that record their best nodes.

    Attributes:
        on: True if an observer wants details; otherwise none are recorded.
    """

    __slots__ = ("_began", "_clock", "_due", "on")

    def __init__(self, clock: Callable[[], float], *, on: bool = False) -> None:
        """Start without a record under way.

        Args:
            clock: seconds, finer than a microsecond.
            on: True if an observer wants details.
        """
        self.on = on
        self._clock = clock
        self._began: float | None = None
        self._due = 0.0

    def rows(self, totals: Totals, choice: Choice) -> Rows:
        """Return the rows that this decision records, the chosen row first. The caller calls `taken` once it has read their scores.

        Args:
            totals: totals of the rows; shape (size,).
            choice: the chosen row.
        """
        if self.on:
            now = self._clock()
            if now >= self._due:
                self._began = now
                return best_rows(totals, choice)
        return np.array([choice.row], np.intp)

    def taken(self) -> None:
        """Note that the scores of the rows have been read. Schedule the next record so that the cost stays within `SHARE`."""
        if self._began is not None:
            now = self._clock()
            self._due = now + min((now - self._began) / SHARE, _LONGEST_PAUSE)
            self._began = None

    def refused(self, cluster: Cluster, diagnosis: Diagnosis) -> Refused:
        """Count the nodes that do not fit, and group them if an observer wants details."""
        return Refused(diagnosis.node_count, refusals(cluster, diagnosis) if self.on else ())


def best_rows(totals: Totals, choice: Choice, most: int = TOP) -> Rows:
    """Return up to `most` rows by total, the chosen one first.

    Args:
        totals: totals of the rows; shape (size,).
        choice: the chosen row.
        most: number of rows, at least 1.

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
        cluster: cluster that knows the names of nodes.
        diagnosis: reason of each node.

    Returns:
        At most `MOST_REFUSALS` groups, the largest first; together they are all nodes.
    """
    groups: defaultdict[tuple[str, tuple[str, ...]], list[Rows]] = defaultdict(list)
    for status, rows in diagnosis.rejections:
        groups[status.plugin, status.reasons].append(rows)
    told = [
        NodeRefusal(plugin, cut(", ".join(why)), sum(map(len, parts)), _examples(cluster, parts)) for (plugin, why), parts in groups.items()
    ]
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
    """Cut a text to `most` characters, with an ellipsis at the end if it is longer."""
    return text if len(text) <= most else text[: most - 1] + "…"


def _of_the_rest(cluster: Cluster, status: Status | None, nodes: int) -> NodeRefusal:
    if status is None:
        return NodeRefusal("", NO_REASON, nodes)
    some = islice((name for name in cluster.names if name is not None), MOST_EXAMPLES)
    return NodeRefusal(status.plugin, cut(status.message), nodes, tuple(some))


def _examples(cluster: Cluster, parts: Sequence[Rows]) -> tuple[NodeName, ...]:
    some = islice((row for part in parts for row in part[:MOST_EXAMPLES].tolist()), MOST_EXAMPLES)
    return tuple([name for row in some if (name := cluster.names[row]) is not None])
