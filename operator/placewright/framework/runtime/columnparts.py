"""Parts of columns that depend on less than the whole pod: one filter's or score's column, for all pods that look alike to that plugin.

Two Deployments that differ in their requests share the columns of taints, labels and ports. Each part is mended by itself, from where
it stopped reading, once for all shapes of pods that use it. A part lives as long as the columns of some shape are put together from it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Final

from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.interface import CycleState, FilterPlugin, Reads, Rows, ScorePlugin
from placewright.framework.runtime.changedrows import NOTHING_READ, ChangedRows
from placewright.framework.runtime.keptcolumn import KeptColumn
from placewright.framework.steps import FILTER

_Ask = Callable[[CycleState, PodInfo, Cluster, Rows], Any]
#: (plugin, extension point, what the plugin reads of the pod).
PartKey = tuple[str, str, Hashable]


class ColumnPart:
    """One plugin's column at one point, for pods that are alike to it.

    Invariant: `column` is what the plugin said of each row at `_read`, or later if the row has not changed since. A plugin that raises
    leaves both as they were.

    Attributes:
        column: None until it was asked for.
        key: the part's among `ColumnParts`.
        users: number of shapes that are put together from it.
        of_nodes_alone: pods on nodes make no difference to it.
    """

    __slots__ = ("_answer", "_counted", "_plugin", "_point", "_read", "column", "key", "of_nodes_alone", "users")

    def __init__(self, plugin: FilterPlugin | ScorePlugin, key: PartKey, counted: ColumnParts) -> None:
        self.column: KeptColumn[Any] | None = None
        self.users = 0
        self.of_nodes_alone = plugin.reads is Reads.NODE
        self._plugin = plugin
        self.key = key
        _, self._point, _ = key
        self._answer: _Ask = plugin.filter if isinstance(plugin, FilterPlugin) and self._point is FILTER else plugin.score  # type: ignore[union-attr]
        self._counted = counted
        self._read = NOTHING_READ

    def refreshed(self, state: CycleState, pod: PodInfo, cluster: Cluster, changes: ChangedRows) -> KeptColumn[Any]:
        """Bring the column up to date, and return it. The plugin is asked about rows that changed since the last call, and about no others.

        Args:
            state: the state that PreFilter or PreScore left.
            pod: one of those with this fragment.
            cluster: the cluster as it stands.
            changes: after `look`.

        Returns:
            The column; not to be written.
        """
        if self._read is not changes.now:  # a pod of another shape may have brought this part up to date
            self._catch_up(state, pod, cluster, changes)
        assert self.column is not None  # it is read now
        return self.column

    def _catch_up(self, state: CycleState, pod: PodInfo, cluster: Cluster, changes: ChangedRows) -> None:
        rows = self._changed_rows(cluster, changes)
        if rows is None or len(rows):
            asked = cluster.all_rows if rows is None else rows
            self._take(rows, state.steps.ask(self._plugin.name, self._point, self._answer, state, pod, cluster, asked))
        self._read = changes.now

    def _changed_rows(self, cluster: Cluster, changes: ChangedRows) -> Rows | None:
        # After rows were added, all are asked about: that is rare, and the array has to grow in any case.
        known = self.column is not None and self.column.size == cluster.size
        return changes.since(cluster, self._read, self._plugin.reads) if known else None

    def _take(self, rows: Rows | None, values: Any) -> None:
        before = self.nbytes
        if rows is None or self.column is None:
            self.column = KeptColumn(values)
        else:
            self.column.put(rows, values)
        # A part that no shape uses any more is counted no more.
        self._counted.held += self.nbytes - before if self.users else 0

    @property
    def nbytes(self) -> int:
        """Memory that the values take."""
        return 0 if self.column is None else self.column.nbytes


class ColumnParts:
    """The parts of one profile's columns, and the memory that all kept columns take.

    Attributes:
        changes: rows that have to be asked about again.
        held: bytes of values, over all columns; objects of Python around them are not counted.
        said: bytes among them that plugins said of pods. The authors of the pods choose their size; the cluster decides that of columns.
    """

    def __init__(self) -> None:
        self.changes: Final = ChangedRows()
        self.held = self.said = 0
        self._parts: dict[PartKey, ColumnPart] = {}

    def __len__(self) -> int:
        return len(self._parts)

    def use(self, plugin: FilterPlugin | ScorePlugin, point: str, fragment: Hashable) -> ColumnPart:
        """Return the part for pods that are alike to a plugin; one more shape uses it from now on.

        Args:
            plugin: a filter or a score.
            point: `FILTER` or `SCORE`; a plugin may have both.
            fragment: the plugin's signature of the pods.

        Returns:
            The part; `leave` gives it back.
        """
        key = (plugin.name, point, fragment)
        part = self._parts.get(key)
        if part is None:
            part = self._parts[key] = ColumnPart(plugin, key, self)
        part.users += 1
        return part

    def leave(self, part: ColumnPart) -> None:
        """Note that a shape that used the part is gone. The last user takes the part away."""
        part.users -= 1
        if not part.users:
            del self._parts[part.key]
            self.held -= part.nbytes
