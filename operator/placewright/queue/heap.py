"""A heap whose items can be found, moved and removed by key."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from typing import Final, Generic, TypeVar

from placewright.queue.policy import SortKey

T = TypeVar("T")
#: (sort key, arrival number, uid): arrival numbers make the order stable and keep uids from being compared.
Entry = tuple[SortKey, int, str]

#: Removed entries stay in the heap until they surface; beyond this many more than live ones it is rebuilt.
_SLACK: Final = 64


class KeyedHeap(Generic[T]):
    """Items by uid, lowest sort key first; equal keys in order of arrival. Every operation is O(log n), amortised."""

    __slots__ = ("_arrivals", "_entries", "_live")

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._live: dict[str, tuple[Entry, T]] = {}
        self._arrivals = 0

    def __len__(self) -> int:
        return len(self._live)

    def __contains__(self, uid: str) -> bool:
        return uid in self._live

    def __iter__(self) -> Iterator[T]:
        """All items, in no particular order."""
        return (item for _, item in self._live.values())

    def get(self, uid: str) -> T | None:
        """The item of this uid, or None."""
        found = self._live.get(uid)
        return found[1] if found else None

    def push(self, uid: str, key: SortKey, item: T) -> None:
        """Put an item in, or replace the one of the same uid; a replaced item with an equal key keeps its turn."""
        known = self._live.get(uid)
        if known is None:
            self._arrivals += 1
            entry: Entry = (key, self._arrivals, uid)
        elif known[0][0] == key:
            self._live[uid] = (known[0], item)
            return
        else:
            entry = (key, known[0][1], uid)
        self._live[uid] = (entry, item)
        heapq.heappush(self._entries, entry)
        self._compact()

    def remove(self, uid: str) -> T | None:
        """Take the item of this uid out; None when there is none."""
        found = self._live.pop(uid, None)
        if found is None:
            return None
        self._compact()
        return found[1]

    def first_key(self) -> SortKey | None:
        """The sort key of the item that `pop` would give, or None when empty."""
        self._surface()
        return self._entries[0][0] if self._entries else None

    def first(self) -> T | None:
        """The item that `pop` would give, or None when empty."""
        self._surface()
        return self._live[self._entries[0][2]][1] if self._entries else None

    def pop(self) -> T | None:
        """Take out the item with the lowest key, or None when empty."""
        self._surface()
        if not self._entries:
            return None
        return self._live.pop(heapq.heappop(self._entries)[2])[1]

    def rekey(self, key_of: Callable[[T], SortKey]) -> None:
        """Give every item a new sort key at once; old keys are not compared with new ones, and items with equal keys keep their order."""
        live = {uid: ((key_of(item), entry[1], uid), item) for uid, (entry, item) in self._live.items()}
        entries = [entry for entry, _ in live.values()]
        heapq.heapify(entries)
        self._live, self._entries = live, entries

    def _surface(self) -> None:
        """Drop removed and replaced entries from the top."""
        while self._entries and not self._is_live(self._entries[0]):
            heapq.heappop(self._entries)

    def _is_live(self, entry: Entry) -> bool:
        found = self._live.get(entry[2])
        return found is not None and found[0] is entry

    def _compact(self) -> None:
        if len(self._entries) > 2 * len(self._live) + _SLACK:
            self._entries = [entry for entry, _ in self._live.values()]
            heapq.heapify(self._entries)
