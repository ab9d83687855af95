"""What was worked out and may be worked out again, within so many bytes: what nobody asked for longest is forgotten first.

Invariant: `nbytes` is the sum of what the entries were said to take when they were put in, and is within the limit; no entry is larger than
`largest`. So a cache of somebody's objects takes no more memory than is written beside it, whatever they look like. `SharedBytes` is
one limit for several caches: where all of them together hold more, the one that holds most gives way.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator
from typing import Final, Generic, Protocol, TypeVar
from weakref import WeakSet

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

#: What an entry takes beside key and value: its place in the table, and the count itself.
ENTRY_BYTES: Final = 200
#: Of its limit, one entry may take so much: a cache of one entry would be none.
_LARGEST_PART: Final = 16
_UNLIMITED: Final = 1 << 62
#: Of a common limit, a part in so many is taken before anybody looks.
_UNSEEN_PART: Final = 256


class GivesWay(Protocol):
    """A cache that takes part in a common limit."""

    @property
    def nbytes(self) -> int:
        """Memory that is taken."""

    def drop_oldest(self) -> None:
        """Forget what nobody asked for longest; there is something."""


class SharedBytes:
    """A limit that several caches have together; one that is not used any more takes no part as soon as it is gone.

    What they hold is added up only once they have taken a 256th of the limit since that was last done, and may be above it by as much.

    Attributes:
        limit: bytes.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._caches: WeakSet[GivesWay] = WeakSet()
        self._taken = 0

    def join(self, cache: GivesWay) -> None:
        """Take part from now on."""
        self._caches.add(cache)

    @property
    def held(self) -> int:
        """Bytes that all of them take."""
        return sum([cache.nbytes for cache in self._caches])

    def take(self, nbytes: int) -> None:
        """One of the caches holds so much more."""
        self._taken += nbytes
        if self._taken * _UNSEEN_PART >= self.limit:
            self._taken = 0
            self.make_room()

    def make_room(self) -> None:
        """Have the largest forget until all are within the limit."""
        above = self.held - self.limit
        while above > 0:
            largest = max(self._caches, key=lambda cache: cache.nbytes)
            before = largest.nbytes
            while above > 0 and largest.nbytes > before // 2:
                size = largest.nbytes
                largest.drop_oldest()
                above -= size - largest.nbytes


class BoundedCache(Generic[K, V]):
    """Values by key.

    Attributes:
        nbytes: memory that is taken, as it was counted.
        limit: bytes, of this cache alone.
        largest: what is larger than this is not kept.
        dropped: entries that were forgotten for want of room, ever.
    """

    def __init__(
        self, limit: int = _UNLIMITED, *, most: int | None = None, largest: int | None = None, shared: SharedBytes | None = None
    ) -> None:
        """`most`: entries. `shared`: a limit in common with other caches."""
        self.nbytes = 0
        self.limit = limit
        self.largest = min(limit, shared.limit if shared else limit) // _LARGEST_PART if largest is None else largest
        self.dropped = 0
        self._most = most
        self._shared = shared
        self._values: OrderedDict[K, V] = OrderedDict()
        self._sizes: dict[K, int] = {}
        if shared is not None:
            shared.join(self)

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[K]:
        """Keys, the one not asked for longest first."""
        return iter(self._values)

    def __contains__(self, key: K) -> bool:
        return key in self._values

    def get(self, key: K) -> V | None:
        """The value, which counts as asked for; None where there is none."""
        value = self._values.get(key)
        if value is not None:
            self._values.move_to_end(key)
        return value

    def put(self, key: K, value: V, nbytes: int) -> bool:
        """Keep a value that takes so many bytes with its key, in the place of what is there. False where it is too large to be kept."""
        self.pop(key)
        nbytes += ENTRY_BYTES
        if nbytes > self.largest:
            return False
        self._values[key], self._sizes[key] = value, nbytes
        self.nbytes += nbytes
        while self.nbytes > self.limit or (self._most is not None and len(self._values) > self._most):
            self.drop_oldest()
        if self._shared is not None:
            self._shared.take(nbytes)
        return True

    def pop(self, key: K) -> V | None:
        """Forget a key; its value, or None where there is none."""
        if key not in self._values:
            return None
        self.nbytes -= self._sizes.pop(key)
        return self._values.pop(key)

    def drop_oldest(self) -> None:
        """Forget what nobody asked for longest; there is something."""
        key, _ = self._values.popitem(last=False)
        self.nbytes -= self._sizes.pop(key)
        self.dropped += 1

    def clear(self) -> None:
        """Forget everything."""
        self._values.clear()
        self._sizes.clear()
        self.nbytes = 0
