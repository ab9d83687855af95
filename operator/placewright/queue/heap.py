"""Heaps whose items can be found, moved and removed by key: one by itself, and several lanes as one."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import Final, Generic, TypeVar

from placewright.queue.policy import SortKey

T = TypeVar("T")
L = TypeVar("L", bound=tuple[str, ...])
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

    def push(self, uid: str, key: SortKey, item: T, arrival: int | None = None) -> None:
        """Put an item in, or replace the one of the same uid; a replaced item with an equal key keeps its turn.

        `arrival`: the number of an item that comes, larger than all before, where several heaps number theirs together.
        """
        known = self._live.get(uid)
        if known is None:
            self._arrivals = self._arrivals + 1 if arrival is None else arrival
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

    def first_entry(self) -> Entry | None:
        """The entry of the item that `pop` would give, or None when empty."""
        self._surface()
        return self._entries[0] if self._entries else None

    def entries(self) -> Iterator[tuple[Entry, T]]:
        """All items with their entries, in no particular order."""
        return iter(self._live.values())

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

    def take_first(self) -> tuple[str, T]:
        """The same with its uid; raises `IndexError` when empty."""
        self._surface()
        uid = heapq.heappop(self._entries)[2]
        return uid, self._live.pop(uid)[1]

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


class LanedHeap(Generic[T, L]):
    """Items by uid, lowest sort key first among lanes that have room; equal keys in order of arrival.

    Each lane has a heap of its own, so that thousands of items of one that is stuck cost nobody anything: of a lane no more than its first
    item is looked at. A lane that has no room leaves the order when it is met, and comes back by `reopen`.
    """

    __slots__ = ("_arrivals", "_closed", "_firsts", "_full", "_has_room", "_lane_of", "_lanes", "_lined_up", "_next", "_of")

    def __init__(self, lane_of: Callable[[T], L], has_room: Callable[[L], bool], full: Callable[[], bool]) -> None:
        """`has_room`: whether an item of this lane may be handed out now. `full`: whether none may, of whatever lane."""
        self._lane_of = lane_of
        self._has_room = has_room
        self._full = full
        self._arrivals = 0
        self._lanes: dict[L, KeyedHeap[T]] = {}
        self._of: dict[str, L] = {}
        #: Of each lane its first item, as a heap of (sort key, arrival number, lane); what is out of date is dropped when it surfaces.
        self._firsts: list[tuple[SortKey, int, L]] = []
        #: By lane in the order, its first item's entry.
        self._lined_up: dict[L, Entry] = {}
        self._closed: set[L] = set()
        #: The lane of the first item, as long as nothing has happened since it was looked for.
        self._next: L | None = None

    def __len__(self) -> int:
        return len(self._of)

    def __contains__(self, uid: str) -> bool:
        return uid in self._of

    def __iter__(self) -> Iterator[T]:
        """All items, in no particular order."""
        return (item for heap in self._lanes.values() for item in heap)

    def push(self, uid: str, key: SortKey, item: T) -> None:
        """Put an item in, or give it another key; one with an equal key keeps its turn."""
        lane = self._of.get(uid)
        if lane is None:
            lane = self._of[uid] = self._lane_of(item)
            self._arrivals += 1
        heap = self._lanes.get(lane)
        if heap is None:
            heap = self._new_lane(lane)
        heap.push(uid, key, item, self._arrivals)
        self._line_up(lane, heap)

    def _new_lane(self, lane: L) -> KeyedHeap[T]:
        """While there is one lane alone, it is not lined up: most profiles have no other most of the time."""
        made = self._lanes[lane] = KeyedHeap()
        if len(self._lanes) == 2:
            alone = next(iter(self._lanes))
            self._line_up(alone, self._lanes[alone])
        return made

    def remove(self, uid: str) -> T | None:
        """Take the item of this uid out; None when there is none."""
        lane = self._of.pop(uid, None)
        if lane is None:
            return None
        heap = self._lanes[lane]
        item = heap.remove(uid)
        self._line_up(lane, heap)
        return item

    def first_key(self) -> SortKey | None:
        """The sort key of the item that `pop` would give, or None where it gives none."""
        lane = self._next = self._first_lane()
        return None if lane is None else self._lanes[lane].first_key()

    def pop(self) -> T | None:
        """Take out the first item whose lane has room, or None."""
        lane = self._next or self._first_lane()  # who asked for the key just before has found it
        if lane is None:
            return None
        heap = self._lanes[lane]
        uid, item = heap.take_first()
        del self._of[uid]
        self._line_up(lane, heap)
        return item

    def reopen(self) -> None:
        """Somebody left a place, or took one: lanes that may have it are in the order again."""
        self._next = None
        for lane in [lane for lane in self._closed if self._has_room(lane)] if self._closed else ():
            self._closed.discard(lane)
            self._line_up(lane, self._lanes[lane])

    def rekey(self, key_of: Callable[[T], SortKey]) -> None:
        """Give every item a new sort key at once, and the lane that it has by now; items with equal keys keep their order."""
        for uid, item in self._taken_out():
            self.push(uid, key_of(item), item)

    def _taken_out(self) -> Iterator[tuple[str, T]]:
        """All items, as they arrived; none is left."""
        arrived = [(entry[1], entry[2], item) for heap in self._lanes.values() for entry, item in heap.entries()]
        self._lanes, self._of, self._lined_up, self._firsts, self._closed, self._next = {}, {}, {}, [], set(), None
        return ((uid, item) for _, uid, item in sorted(arrived, key=itemgetter(0)))

    def _first_lane(self) -> L | None:
        """The lane of the first item that may be handed out."""
        if len(self._lanes) == 1:
            (only,) = self._lanes
            return only if self._has_room(only) else None
        if self._full():
            return None
        while self._firsts:
            key, arrival, lane = self._firsts[0]
            first = self._lined_up.get(lane)
            if first is not None and first[1] == arrival and first[0] == key:
                if self._has_room(lane):
                    return lane
                self._close(lane)
            else:
                heapq.heappop(self._firsts)
        return None

    def _close(self, lane: L) -> None:
        heapq.heappop(self._firsts)
        del self._lined_up[lane]
        self._closed.add(lane)

    def _line_up(self, lane: L, heap: KeyedHeap[T]) -> None:
        """The lane's first item may be another one now, or have another key, or there may be none."""
        self._next = None
        if not heap:
            del self._lanes[lane]
            self._lined_up.pop(lane, None)
            self._closed.discard(lane)
        elif len(self._lanes) > 1:
            self._line_up_beside_others(lane, heap.first_entry())

    def _line_up_beside_others(self, lane: L, first: Entry | None) -> None:
        if first is not None and lane not in self._closed and self._lined_up.get(lane) is not first:
            self._lined_up[lane] = first
            heapq.heappush(self._firsts, (first[0], first[1], lane))
            if len(self._firsts) > 2 * len(self._lanes) + _SLACK:
                self._firsts = [(entry[0], entry[1], each) for each, entry in self._lined_up.items()]
                heapq.heapify(self._firsts)
