"""What a plugin worked out before and need not work out again, in so many bytes; what nobody asked for longest is forgotten first.

The keys and values follow from pods, whose size others decide. So all plugins of all profiles together keep no more than `PLUGIN_BYTES`,
which belongs to the process as its memory does; what is too large for it is worked out each time.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Final, TypeVar, cast

from placewright.api.boundedcache import BoundedCache, SharedBytes
from placewright.api.bytecount import bytes_of
from placewright.cluster.cluster import Cluster

T = TypeVar("T")

#: What all memories of this process take together. The engine makes it smaller where there is little memory.
PLUGIN_BYTES: Final = SharedBytes(64 * 2**20)
#: A key with its value; larger ones are worked out each time. A Deployment's constraints and terms are some KB.
_LARGEST: Final = 256 * 1024


class Memory:
    """Values by key, at most `limit` of them. A key always stands for one type of value, and no value is None."""

    def __init__(self, limit: int) -> None:
        self._known: BoundedCache[Hashable, Any] = BoundedCache(most=limit, largest=_LARGEST, shared=PLUGIN_BYTES)

    @property
    def nbytes(self) -> int:
        """Memory that is taken."""
        return self._known.nbytes

    def recall(self, key: Hashable, work_out: Callable[[], T]) -> T:
        """The value under this key, worked out now if it is not known."""
        value = self._known.get(key)
        if value is None:
            value = work_out()
            self.remember(key, value)
        return cast(T, value)

    def remember(self, key: Hashable, value: object) -> None:
        """Keep this value, which may be one that was kept and has become another size."""
        self._known.put(key, value, bytes_of((key, value), _LARGEST))

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
