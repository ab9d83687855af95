"""From which rows storage can be reached: node selectors and topologies, each evaluated once for as long as the labels stay as they are."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from placewright.api.objects import NodeName, NodeSelector
from placewright.api.selectors import CompiledRequirement, Selector, compile_node_selector
from placewright.api.storage import PersistentVolume, TopologySelectorTerm
from placewright.cluster.cluster import Cluster
from placewright.framework.interface import BoolColumn, Rows
from placewright.plugins.csimigration import driver_affinity, in_tree_plugin, migrated_plugins
from placewright.plugins.volumebinding.capacities import Capacities, Room

#: Selectors whose rows are kept; a cluster with local disks has one a node.
_MAX_KEPT: Final = 100_000


class Reach:
    """Rows by selector, for one cluster.

    Local volumes come with a selector each, which names one host. So values are looked up by their code, and the rows of a selector are
    kept until a label that any selector reads changes on any node, not until any node changes.
    """

    def __init__(self) -> None:
        self._rows: dict[Hashable, Rows] = {}
        self._labels: dict[str, tuple[list[str | None], NDArray[np.int32]]] = {}
        self._everywhere: Rows = np.zeros(0, np.intp)
        self._capacities = Capacities()
        #: Grows when anything was forgotten.
        self._epoch = 0
        #: By in-tree plugin, where a CSI driver has taken over, as of the versions of nodes and CSINodes.
        self._taken_over: dict[str, BoolColumn] = {}
        self._taken_over_at: tuple[int, int] | None = None

    def look(self, cluster: Cluster) -> None:
        """Forget what does not hold any more; to be called before the rows of selectors are asked for."""
        everywhere = np.arange(cluster.size)
        same = len(everywhere) == len(self._everywhere) and len(self._rows) <= _MAX_KEPT
        if same and all(self._unchanged(cluster, key) for key in self._labels):
            return
        self._everywhere = everywhere
        self._epoch += 1
        self._rows.clear()
        self._labels.clear()

    def _unchanged(self, cluster: Cluster, key: str) -> bool:
        values, codes = self._labels[key]
        column = cluster.label(key)
        return column.values == values and np.array_equal(column.codes(self._everywhere), codes)

    def volume(self, cluster: Cluster, volume: PersistentVolume) -> Rows:
        """Rows that a volume's node affinity allows, ascending; not to be written.

        kube-scheduler gives this check a node's labels without its name, and so passes over `matchFields`.
        """
        affinity = volume.spec.node_affinity
        return self._selected(cluster, affinity.required if affinity is not None else None)

    def claimed_volume(self, cluster: Cluster, volume: PersistentVolume) -> Rows:
        """The same for a volume that a claim has: where a CSI driver has taken over from its in-tree plugin, in the words of the driver.

        Volumes that nobody has yet are not looked at in this way, neither here nor in kube-scheduler. Raises `TranslationError`.
        """
        plugin = in_tree_plugin(volume.spec)
        taken_over = None if plugin is None else self._where_taken_over(cluster).get(plugin)
        if taken_over is None:
            return self.volume(cluster, volume)
        reached = np.zeros(len(self._everywhere), np.bool_)
        reached[self.volume(cluster, volume)] = True
        reached[taken_over] = False
        in_drivers_words = self._selected(cluster, driver_affinity(volume))
        reached[in_drivers_words[taken_over[in_drivers_words]]] = True
        return np.flatnonzero(reached)

    def room(self, cluster: Cluster, storage_class: str) -> Room:
        """What drivers say of the room for volumes of a class."""
        table = cluster.objects.storage.capacities
        return self._capacities.of(storage_class, table, lambda selector: self._matching(cluster, selector), self._epoch)

    def _matching(self, cluster: Cluster, selector: Selector) -> Rows:
        return np.flatnonzero(self._all_match(cluster, selector.expressions))

    def _selected(self, cluster: Cluster, selector: NodeSelector | None) -> Rows:
        if selector is None:
            return self._everywhere
        rows = self._rows.get(selector)
        if rows is None:
            rows = self._rows[selector] = np.flatnonzero(self._any_term(cluster, selector))
        return rows

    def _where_taken_over(self, cluster: Cluster) -> dict[str, BoolColumn]:
        csi_nodes = cluster.objects.storage.csi_nodes
        now = (csi_nodes.version, cluster.node_journal.position)
        if self._taken_over_at != now:
            self._taken_over_at, self._taken_over = now, {}
            for csi_node in csi_nodes.values():
                row = cluster.row(NodeName(csi_node.metadata.name))
                for plugin in migrated_plugins(csi_node) if row is not None else ():
                    self._taken_over.setdefault(plugin, np.zeros(cluster.size, np.bool_))[row] = True
        return self._taken_over

    def topologies(self, cluster: Cluster, terms: tuple[TopologySelectorTerm, ...] | None) -> BoolColumn:
        """True where a class allows volumes; shape (size,). No terms allow every node, an empty term none."""
        if not terms:
            return np.ones(len(self._everywhere), np.bool_)
        allowed = np.zeros(len(self._everywhere), np.bool_)
        for term in terms:
            wanted = term.match_label_expressions or ()
            if wanted and all(each.values for each in wanted):
                expressions = (CompiledRequirement(each.key, "In", frozenset(each.values or ())) for each in wanted)
                allowed |= self._all_match(cluster, expressions)
        return allowed

    def _any_term(self, cluster: Cluster, selector: NodeSelector) -> BoolColumn:
        matched = np.zeros(len(self._everywhere), np.bool_)
        for term in compile_node_selector(selector):
            matched |= self._all_match(cluster, term.labels)
        return matched

    def _all_match(self, cluster: Cluster, expressions: Iterable[CompiledRequirement]) -> BoolColumn:
        matched = np.ones(len(self._everywhere), np.bool_)
        for expression in expressions:
            matched &= self._matches(cluster, expression)
        return matched

    def _matches(self, cluster: Cluster, expression: CompiledRequirement) -> BoolColumn:
        column = cluster.label(expression.key)
        kept = self._labels.get(expression.key)
        if kept is None:
            kept = self._labels[expression.key] = (list(column.values), column.codes(self._everywhere))
        if expression.operator != "In":
            return column.where(self._everywhere, expression.matches)
        matched = np.zeros(len(self._everywhere), np.bool_)
        for value in expression.values:
            code = column.code(value)
            if code is not None:
                matched |= kept[1] == code
        return matched
