"""The rows of the cluster's table: one row for each node, and the columns that node objects fill.

`Cluster` builds on this and adds the pods. A removed node leaves a free row, which the next new node takes. So the table
does not grow while nodes come and go.
"""

from __future__ import annotations

from collections.abc import Iterator, KeysView, Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from placewright.api.objects import Node, NodeName, Taint
from placewright.api.requests import PODS, is_native_or_scalar
from placewright.cluster.encoding import EncodedColumn
from placewright.cluster.images import Images
from placewright.cluster.labels import LabelColumn, LabelColumns
from placewright.cluster.resources import Resources, grown

_FIRST_CAPACITY: Final = 64


class NodeRows:
    """Node rows and their columns. Only `Cluster` writes them.

    Columns are longer than the number of rows, so that most new nodes need no new arrays; the properties return views of the
    rows in use.

    Attributes:
        names: node name by row; None for a free row.
        resources: allocatable and requested amounts, by resource.
        taints: each node's taints, by row.
        unschedulable: True for cordoned nodes, by row; shape (capacity,).
        declared_features: the features that the kubelet of each row declares.
        images: the container images on each row, with their sizes.
    """

    def __init__(self) -> None:
        self.names: list[NodeName | None] = []
        self.resources = Resources(_FIRST_CAPACITY)
        self.taints: EncodedColumn[tuple[Taint, ...]] = EncodedColumn(_FIRST_CAPACITY, ())
        self.unschedulable = np.zeros(_FIRST_CAPACITY, np.bool_)
        self.declared_features: EncodedColumn[frozenset[str]] = EncodedColumn(_FIRST_CAPACITY, frozenset())
        self.images = Images()
        self._capacity = _FIRST_CAPACITY
        self._present = np.zeros(_FIRST_CAPACITY, np.bool_)
        self._pod_count = np.zeros(_FIRST_CAPACITY, np.int64)
        self._pod_limit = np.zeros(_FIRST_CAPACITY, np.int64)
        self._scoring_cpu = np.zeros(_FIRST_CAPACITY, np.int64)
        self._scoring_memory = np.zeros(_FIRST_CAPACITY, np.int64)
        self._labels = LabelColumns(_FIRST_CAPACITY)
        self._nodes: list[Node | None] = []
        self._row_of: dict[NodeName, int] = {}
        self._free_rows: list[int] = []
        self._all_rows: NDArray[np.intp] = np.zeros(0, np.intp)

    # --- reading ---------------------------------------------------------------------------------------------------------

    @property
    def size(self) -> int:
        """Number of rows, free ones included; every column is at least this long."""
        return len(self.names)

    @property
    def all_rows(self) -> NDArray[np.intp]:
        """Every row, ascending, free ones included; shape (size,).

        The same read-only array until the size changes: plugins recognise it by identity, and read columns without a copy.
        """
        if len(self._all_rows) != len(self.names):
            self._all_rows = np.arange(len(self.names))
            self._all_rows.flags.writeable = False
        return self._all_rows

    @property
    def node_count(self) -> int:
        """Number of nodes."""
        return len(self._row_of)

    @property
    def present(self) -> NDArray[np.bool_]:
        """True for rows that hold a node; shape (size,)."""
        return self._present[: len(self.names)]

    @property
    def pod_count(self) -> NDArray[np.int64]:
        """Pods on each row; shape (size,)."""
        return self._pod_count[: len(self.names)]

    @property
    def pod_limit(self) -> NDArray[np.int64]:
        """Allocatable pods of each row; shape (size,)."""
        return self._pod_limit[: len(self.names)]

    @property
    def scoring_cpu(self) -> NDArray[np.int64]:
        """Requested milli-CPU on each row, with kube-scheduler's default for containers that request none; shape (size,)."""
        return self._scoring_cpu[: len(self.names)]

    @property
    def scoring_memory(self) -> NDArray[np.int64]:
        """Requested bytes of memory on each row, with kube-scheduler's default for containers that request none; shape (size,)."""
        return self._scoring_memory[: len(self.names)]

    def rows(self) -> NDArray[np.intp]:
        """Return the rows that hold a node, ascending."""
        return np.flatnonzero(self.present)

    def row(self, node: NodeName) -> int | None:
        """Find the row of a node.

        Returns:
            An index into every column; None for an unknown node.
        """
        return self._row_of.get(node)

    def node(self, row: int) -> Node:
        """Return the node object of a row.

        Raises:
            KeyError: the row is free.
        """
        node = self._nodes[row]
        if node is None:
            raise KeyError(row)
        return node

    def nodes(self) -> Iterator[Node]:
        """Iterate over all nodes, in row order."""
        return (node for node in self._nodes if node is not None)

    def label(self, key: str) -> LabelColumn:
        """Return the column of a label.

        Returns:
            Each node's value; None if a node does not have the label.
        """
        return self._labels.column(key)

    @property
    def label_keys(self) -> KeysView[str]:
        """The keys of labels that some node has."""
        return self._labels.keys

    # --- writing, for `Cluster` ------------------------------------------------------------------------------------------

    def _new_row(self, name: NodeName) -> int:
        # Autoscalers replace nodes all day: without reuse, columns would grow with every node that ever was.
        if self._free_rows:
            row = self._free_rows.pop()
            self.names[row] = name
        else:
            row = len(self.names)
            if row == self._capacity:
                self._grow(2 * self._capacity)
            self.names.append(name)
            self._nodes.append(None)
        self._row_of[name] = row
        self._present[row] = True
        return row

    def _free_row(self, row: int) -> Node:
        node = self.node(row)
        self._present[row] = False
        self.names[row] = None
        self._nodes[row] = None
        self._write_node(row, Node(), {})
        self._free_rows.append(row)
        return node

    def _write_node(self, row: int, node: Node, amounts: Mapping[str, int]) -> None:
        self.resources.set_allocatable(row, {n: a for n, a in amounts.items() if is_native_or_scalar(n)})
        self._pod_limit[row] = amounts.get(PODS, 0)
        self.unschedulable[row] = node.spec.unschedulable
        self.taints.set(row, tuple(node.spec.taints or ()))
        self.declared_features.set(row, frozenset(node.status.declared_features or ()))
        self.images.set_row(row, node.status.images or ())
        self._labels.set_row(row, node.metadata.labels or {})

    def _grow(self, capacity: int) -> None:
        self._capacity = capacity
        self.resources.grow(capacity)
        self.taints.grow(capacity)
        self.declared_features.grow(capacity)
        self._labels.grow(capacity)
        self.unschedulable = grown(self.unschedulable, capacity)
        self._present = grown(self._present, capacity)
        self._pod_count = grown(self._pod_count, capacity)
        self._pod_limit = grown(self._pod_limit, capacity)
        self._scoring_cpu = grown(self._scoring_cpu, capacity)
        self._scoring_memory = grown(self._scoring_memory, capacity)
