"""A cache of computed values, bounded in bytes: the entry that was not asked for longest is dropped first.

Invariant: `nbytes` is the sum of the sizes that the entries were put in with, and is within the limit; no entry is larger than `largest`.
So a cache of tenants' objects takes no more memory than its limit, for any objects. `SharedBytes` is one limit for several
caches: when all of them together exceed it, the largest one drops entries.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from functools import _lru_cache_wrapper
from typing import Final, Generic, Protocol, TypeVar
from weakref import WeakSet

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
T = TypeVar("T")

#: Bytes of an entry beside key and value: its slots in the two tables, and the count itself.
ENTRY_BYTES: Final = 200
#: One entry may take this part of the limit: a cache of one entry would be none.
_LARGEST_PART: Final = 16
_UNLIMITED: Final = 1 << 62
#: Part of a common limit that is taken before the caches are added up again.
_UNSEEN_PART: Final = 256


class HoldsBytes(Protocol):
    """Values that are kept because of objects."""

    @property
    def nbytes(self) -> int:
        """Bytes that they take."""


class ForgetsUnasked(HoldsBytes, Protocol):
    """Values that were worked out from objects, and can be worked out again."""

    def forget_unasked(self) -> None:
        """Drop the values that were not asked for since the last call."""


#: All that forget, and all that only count. Weak, so that what is garbage takes no part any more.
_FORGETTING: Final[WeakSet[ForgetsUnasked]] = WeakSet()
_COUNTED: Final[WeakSet[HoldsBytes]] = WeakSet()


def forgets_unasked(kept: ForgetsUnasked) -> None:
    """Let an object take part in `forget_unasked` from now on."""
    _FORGETTING.add(kept)


def counts_bytes(kept: HoldsBytes) -> None:
    """Let an object that cannot forget at a beat take part in `kept_bytes` from now on."""
    _COUNTED.add(kept)


#: Functions that forget all that they remember of texts, which are quickly read again.
_CLEARED: Final[list[Callable[[], None]]] = []


def cleared_at_beats(known: _lru_cache_wrapper[T]) -> _lru_cache_wrapper[T]:
    """Have a function that remembers texts of objects forget all of them in `forget_unasked`."""
    _CLEARED.append(known.cache_clear)
    return known


def forget_unasked() -> None:
    """Drop all values that were not asked for since the last call: the objects that they were worked out from are gone, or rest.

    The engine calls this at a beat. So what is kept because of an object goes within two beats after the object, in every cache.
    """
    for kept in list(_FORGETTING):
        kept.forget_unasked()
    for clear in _CLEARED:
        clear()


def kept_bytes() -> int:
    """Add up the bytes of everything that takes part in `forget_unasked` or in this count."""
    return sum([kept.nbytes for kept in (*_FORGETTING, *_COUNTED)])


class GivesWay(HoldsBytes, Protocol):
    """A cache that takes part in a common limit."""

    def drop_oldest(self) -> None:
        """Drop the entry that was not asked for longest. Called only while there is one."""


class SharedBytes:
    """A common limit of several caches. A cache that is garbage takes no part any more.

    The caches are added up only once they have taken a 256th of the limit since the last time; they may exceed the limit by as much.

    Attributes:
        limit: bytes.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._caches: WeakSet[GivesWay] = WeakSet()
        self._taken = 0

    def join(self, cache: GivesWay) -> None:
        """Let a cache take part from now on."""
        self._caches.add(cache)

    @property
    def held(self) -> int:
        """Bytes that all of them take."""
        return sum([cache.nbytes for cache in self._caches])

    def take(self, nbytes: int) -> None:
        """Note that one of the caches grew."""
        self._taken += nbytes
        if self._taken * _UNSEEN_PART >= self.limit:
            self._taken = 0
            self.make_room()

    def make_room(self) -> None:
        """Have the largest cache drop entries until all are within the limit."""
        above = self.held - self.limit
        while above > 0:
            largest = max(self._caches, key=lambda cache: cache.nbytes)
            before = largest.nbytes
            while above > 0 and largest.nbytes > before // 2:
                size = largest.nbytes
                largest.drop_oldest()
                above -= size - largest.nbytes


class BoundedCache(Generic[K, V]):
    """Values by key, bounded in bytes.

        cache = BoundedCache(16 * 2**20, most=1024)
        cache.put(key, text, len(text))

    Attributes:
        nbytes: bytes that are taken, as counted.
        limit: bytes, of this cache alone.
        largest: bytes; a larger entry is not kept.
        dropped: entries that were dropped for want of room, ever.
    """

    def __init__(
        self,
        limit: int = _UNLIMITED,
        *,
        most: int | None = None,
        largest: int | None = None,
        shared: SharedBytes | None = None,
        forgets: bool = True,
    ) -> None:
        """Keep nothing yet.

        Args:
            limit: bytes of this cache alone.
            most: entries; None for no bound.
            largest: bytes of one entry; None for a sixteenth of the limit.
            shared: a limit in common with other caches.
            forgets: take part in `forget_unasked`, because values can be worked out again.
        """
        self.nbytes = 0
        self.limit = limit
        self.largest = min(limit, shared.limit if shared else limit) // _LARGEST_PART if largest is None else largest
        self.dropped = 0
        self._most = most
        self._shared = shared
        self._values: OrderedDict[K, V] = OrderedDict()
        self._sizes: dict[K, int] = {}
        #: Keys that were there at the last beat and were not asked for since.
        self._unasked: set[K] = set()
        if shared is not None:
            shared.join(self)
        if forgets:
            forgets_unasked(self)
        else:
            counts_bytes(self)

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[K]:
        """Keys, the one not asked for longest first."""
        return iter(self._values)

    def __contains__(self, key: K) -> bool:
        return key in self._values

    def get(self, key: K) -> V | None:
        """Look a key up. The value counts as asked for.

        Returns:
            The value; None if there is none.
        """
        value = self._values.get(key)
        if value is not None:
            self._values.move_to_end(key)
            self._unasked.discard(key)
        return value

    def put(self, key: K, value: V, nbytes: int) -> bool:
        """Keep a value, in the place of an earlier one.

        Returns:
            False if the entry is too large to be kept.
        """
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
        """Drop a key.

        Returns:
            Its value; None if there was none.
        """
        if key not in self._values:
            return None
        self.nbytes -= self._sizes.pop(key)
        self._unasked.discard(key)
        return self._values.pop(key)

    def drop_oldest(self) -> None:
        """Drop the entry that was not asked for longest. There must be one."""
        key, _ = self._values.popitem(last=False)
        self.nbytes -= self._sizes.pop(key)
        self._unasked.discard(key)
        self.dropped += 1

    def forget_unasked(self) -> None:
        """Drop the entries that were not asked for since the last call."""
        for key in list(self._unasked):
            self.pop(key)
        self._unasked = set(self._values)

    def clear(self) -> None:
        """Drop all entries."""
        self._values.clear()
        self._sizes.clear()
        self._unasked.clear()
        self.nbytes = 0
