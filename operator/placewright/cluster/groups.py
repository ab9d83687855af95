"""Pods counted per group: same namespace, labels, affinity and life stage. Spread and affinity read counts, not pods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from placewright.api.objects import Affinity
from placewright.api.pods import PodGroup, PodInfo

_NO_ROWS: Final[Mapping[int, int]] = {}


class GroupCounts:
    """How many pods of each group stand on each row.

    Attributes:
        version: grows with every change of any count.
    """

    def __init__(self) -> None:
        self.version = 0
        self._rows: dict[PodGroup, dict[int, int]] = {}
        self._by_namespace: dict[str, dict[PodGroup, None]] = {}
        self._affinities: dict[PodGroup, Affinity] = {}

    def add(self, pod: PodInfo, row: int, delta: int) -> None:
        """Count one pod more (`delta` 1) or less (-1) on a row."""
        self.version += 1
        group = pod.group
        rows = self._rows.get(group)
        if rows is None:
            rows = self._rows[group] = {}
            self._by_namespace.setdefault(group.namespace, {})[group] = None
            if group.affinity and pod.pod.spec.affinity is not None:
                self._affinities[group] = pod.pod.spec.affinity
        count = rows.get(row, 0) + delta
        if count:
            rows[row] = count
            return
        rows.pop(row, None)
        if not rows:
            self._drop(group)

    def rows(self, group: PodGroup) -> Mapping[int, int]:
        """Row to count for one group."""
        return self._rows.get(group, _NO_ROWS)

    def in_namespace(self, namespace: str) -> Iterator[PodGroup]:
        """Groups of one namespace, in the order they appeared."""
        return iter(self._by_namespace.get(namespace, ()))

    def with_affinity(self) -> Mapping[PodGroup, Affinity]:
        """Groups whose pods have affinity or anti-affinity terms of their own."""
        return self._affinities

    def __iter__(self) -> Iterator[PodGroup]:
        """All groups that have pods."""
        return iter(self._rows)

    def _drop(self, group: PodGroup) -> None:
        del self._rows[group]
        self._affinities.pop(group, None)
        namespace = self._by_namespace[group.namespace]
        del namespace[group]
        if not namespace:
            del self._by_namespace[group.namespace]
