"""Keeps values that a plugin worked out, within a bound of bytes. The value that was asked for longest ago is forgotten first.

The keys and values follow from pods, and the authors of pods choose how large they are. So all plugins of all profiles together keep at
most `PLUGIN_BYTES`. A value that is too large for that is worked out each time.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Final, TypeVar, cast

from placewright.api.boundedcache import BoundedCache, SharedBytes
from placewright.api.bytecount import bytes_of
from placewright.cluster.cluster import Cluster

T = TypeVar("T")

#: The bytes of all memories of this process together. The engine makes it smaller if there is little memory.
PLUGIN_BYTES: Final = SharedBytes(64 * 2**20)
#: Bytes of a key with its value; larger values are worked out each time. A Deployment's constraints and terms are some KB.
_LARGEST: Final = 256 * 1024
#: Bytes for each row of the cluster, if values are columns: a spread constraint takes some 40 bytes a row, and most pods have two.
_LARGEST_A_ROW: Final = 512
#: One value may take up to this fraction of all memories: otherwise columns of few kinds of pods would push out all others.
_LARGEST_PART: Final = 4


class Memory(BoundedCache[Hashable, Any]):
    """Values by key, at most `limit` of them. A key always stands for one type of value, and no value is None."""

    def __init__(self, limit: int) -> None:
        super().__init__(most=limit, largest=_LARGEST, shared=PLUGIN_BYTES)

    def recall(self, key: Hashable, work_out: Callable[[], T]) -> T:
        """Return the value under a key, worked out now if it is not known.

        Args:
            key: stands for everything that the value depends on.
            work_out: makes the value; never None.

        Example:
            own = self._own.recall(pod.pairwise_key.affinity, lambda: compile_own(pod))
        """
        value = self.get(key)
        if value is None:
            value = work_out()
            self.remember(key, value)
        return cast(T, value)

    def remember(self, key: Hashable, value: object) -> None:
        """Keep a value; also one that was kept before and has become another size.

        Args:
            key: the key, as for `recall`.
            value: never None.
        """
        self.put(key, value, bytes_of((key, value), self.largest))

    def forget(self) -> None:
        """Drop all values."""
        self.clear()


class NodeMemory:
    """A `Memory` for values that follow from node objects alone: forgotten when any node changes.

    Values are columns of nodes, so a value may be larger the more nodes there are.
    """

    def __init__(self, limit: int = 128) -> None:
        self._memory = Memory(limit)
        self._cluster: Cluster | None = None
        self._position = -1

    def recall(self, cluster: Cluster, key: Hashable, work_out: Callable[[], T]) -> T:
        """Return the value under a key, worked out now if it is not known or a node has changed since.

        Args:
            cluster: the cluster with the nodes that the value follows from.
            key: stands for everything else that the value depends on.
            work_out: makes the value; never None.
        """
        position = cluster.node_journal.position
        if position != self._position or cluster is not self._cluster:
            self._memory.forget()
            self._memory.largest = max(_LARGEST, min(_LARGEST_A_ROW * cluster.size, PLUGIN_BYTES.limit // _LARGEST_PART))
            self._position, self._cluster = position, cluster
        return self._memory.recall(key, work_out)
