"""Chooses the labels by which nodes can be grouped: few, the most useful first, however many keys the nodes have.

A label divides the nodes if it has more than one value, or if some nodes lack it. It must not have too many values. Labels that Kubernetes
defines, such as zone and region, come first. Labels about topology follow, then the labels that most nodes have.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Final

#: Labels by which nodes can be grouped, and values of one: a picture with more groups shows nothing.
MOST_LABELS: Final = 12
MOST_VALUES: Final = 300
#: Labels that operators group by come first, in this order.
WELL_KNOWN: Final = (
    "topology.kubernetes.io/zone", "topology.kubernetes.io/region", "node.kubernetes.io/instance-type",
    "kubernetes.io/arch", "kubernetes.io/os",
)  # fmt: skip
_PLACES: Final = {key: place for place, key in enumerate(WELL_KNOWN)}
_TOPOLOGY: Final = "topology."

_Labels = Mapping[str, str]
_NOTHING: Final[_Labels] = {}


class LabelCounts:
    """Counts nodes by label and value.

    A change of one node costs its labels, and `chosen` costs the keys. So a large cluster is not read again for each change. A label that
    had more than `MOST_VALUES` is not counted by value while a node has it.
    """

    def __init__(self) -> None:
        """Count no node yet."""
        self._labels: dict[int, _Labels] = {}
        #: Nodes by key and value; None for a key of too many values.
        self._nodes: dict[str, dict[str, int] | None] = {}
        self._with: dict[str, int] = defaultdict(int)

    def set_row(self, row: int, labels: _Labels | None) -> None:
        """Count a node with its labels, in place of what its row had.

        Args:
            row: row of the cluster.
            labels: None for a row without a node.
        """
        before = self._labels.pop(row, _NOTHING)
        if labels is not None:
            self._labels[row] = labels
        now = _NOTHING if labels is None else labels
        if before is now or before == now:
            return
        for key, value in before.items():
            self._drop(key, value)
        for key, value in now.items():
            self._add(key, value)

    def chosen(self) -> tuple[str, ...]:
        """Choose the labels.

        Returns:
            At most `MOST_LABELS` keys, the most useful first.
        """
        nodes = len(self._labels)
        most = min(MOST_VALUES, max(nodes // 2, 2))
        found = [key for key, values in self._nodes.items() if values and 1 < len(values) + (self._with[key] < nodes) <= most]
        found.sort(key=lambda key: (_PLACES.get(key, len(_PLACES)), not key.startswith(_TOPOLOGY), -self._with[key], key))
        return tuple(found[:MOST_LABELS])

    def _add(self, key: str, value: str) -> None:
        self._with[key] += 1
        values = self._nodes.setdefault(key, {})
        if values is not None:
            values[value] = values.get(value, 0) + 1
            if len(values) > MOST_VALUES:
                self._nodes[key] = None

    def _drop(self, key: str, value: str) -> None:
        self._with[key] -= 1
        values = self._nodes[key]
        if values is not None:
            values[value] -= 1
            if not values[value]:
                del values[value]
        if not self._with[key]:
            del self._nodes[key], self._with[key]
