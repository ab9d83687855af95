"""Nodes' labels as columns: one for each key that somebody asks for and some node has.

Pods name keys as they please, in spread constraints and affinity; a key that no node has costs no memory, however many of them there are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import KeysView, Mapping

from placewright.cluster.encoding import EncodedColumn

LabelColumn = EncodedColumn[str | None]
Labels = Mapping[str, str]


class LabelColumns:
    """By row, the labels of the node there."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._rows: dict[int, Labels] = {}
        self._nodes_with: Counter[str] = Counter()
        self._columns: dict[str, LabelColumn] = {}
        #: Of every key that no node has.
        self._nowhere: LabelColumn = EncodedColumn(capacity, None)

    def set_row(self, row: int, labels: Labels) -> None:
        """Give a row its labels; none for a row that holds no node."""
        before = self._rows.get(row, {})
        if labels == before:
            return
        self._rows[row] = labels
        self._nodes_with.update(labels.keys() - before.keys())
        for key in before.keys() - labels.keys():
            self._nodes_with[key] -= 1
            if not self._nodes_with[key]:
                del self._nodes_with[key]
                self._columns.pop(key, None)
        for key, column in self._columns.items():
            column.set(row, labels.get(key))

    @property
    def keys(self) -> KeysView[str]:
        """The keys that some node has."""
        return self._nodes_with.keys()

    def column(self, key: str) -> LabelColumn:
        """Each row's value, None where there is no such label. To be read at once: tomorrow it may be another object."""
        column = self._columns.get(key)
        if column is not None:
            return column
        if key not in self._nodes_with:
            return self._nowhere
        column = self._columns[key] = EncodedColumn(self._capacity, None)
        for row, labels in self._rows.items():
            column.set(row, labels.get(key))
        return column

    def grow(self, capacity: int) -> None:
        """Make room for more rows."""
        self._capacity = capacity
        for column in (*self._columns.values(), self._nowhere):
            column.grow(capacity)
