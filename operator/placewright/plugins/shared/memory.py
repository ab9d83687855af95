"""What a plugin worked out before and need not work out again; bounded, and what was not asked for the longest time is forgotten first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, TypeVar, cast

from placewright.cluster.cluster import Cluster

T = TypeVar("T")


class Memory:
    """Values by key, at most `limit` of them. A key always stands for one type of value, and no value is None."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._known: OrderedDict[Hashable, Any] = OrderedDict()

    def recall(self, key: Hashable, work_out: Callable[[], T]) -> T:
        """The value under this key, worked out now if it is not known."""
        value = self._known.get(key)
        if value is None:
            value = work_out()
            if len(self._known) >= self._limit:
                self._known.popitem(last=False)
            self._known[key] = value
        else:
            self._known.move_to_end(key)
        return cast(T, value)

    def forget(self) -> None:
        """Start anew."""
        self._known.clear()


class NodeMemory:
    """The same for what follows from node objects alone: forgotten when any node changes."""

    def __init__(self, limit: int = 128) -> None:
        self._memory = Memory(limit)
        self._cluster: Cluster | None = None
        self._position = -1

    def recall(self, cluster: Cluster, key: Hashable, work_out: Callable[[], T]) -> T:
        """The value under this key, worked out now if it is not known or a node has changed since."""
        position = cluster.node_journal.position
        if position != self._position or cluster is not self._cluster:
            self._memory.forget()
            self._position, self._cluster = position, cluster
        return self._memory.recall(key, work_out)
