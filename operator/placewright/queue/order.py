"""The order of waiting pods: `KeyedHeap` by key alone, `LanedHeap` past full lanes, and the transition between orders.

`Order` is the interface of a profile's active pods. `LanedHeap` is the order of a profile without fairness. If tenants take turns,
`queue.fairheap` has the order.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Iterable, Iterator
from itertools import islice
from typing import Any, Final, Generic, Protocol, TypeVar

from placewright.queue.inflight import Lane
from placewright.queue.policy import SortKey
from placewright.queue.queued import ByUid, QueuedPod

T = TypeVar("T")
L = TypeVar("L", bound=tuple[object, ...])
#: (sort key, arrival number, identity): arrival numbers make the order stable and keep identities from being compared.
Entry = tuple[SortKey, int, Any]

#: Removed entries stay in the heap until they surface; beyond this many more than live ones it is rebuilt.
SLACK: Final = 64


class KeyedHeap(ByUid, Generic[T]):
    """A heap of items by uid, or by another identity. `pop` gives the lowest sort key first, and equal keys in order of arrival.

    Every operation is O(log n) amortised. A removed item's entry stays in the heap until it reaches the top.
    """

    __slots__ = ("_arrivals", "_entries", "_of")

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._of: dict[Hashable, tuple[Entry, T]] = {}
        self._arrivals = 0

    def __iter__(self) -> Iterator[T]:
        """Iterate over all items, in no particular order."""
        return (item for _, item in self._of.values())

    def get(self, uid: Hashable) -> T | None:
        """Find an item without removing it; None when there is none."""
        found = self._of.get(uid)
        return found[1] if found else None

    def push(self, uid: Hashable, key: SortKey, item: T, arrival: int | None = None) -> None:
        """Add an item, or replace the item of the same uid. A replaced item whose key is equal keeps its turn.

        Args:
            uid: the item's identity in this heap.
            key: compared element by element, lowest first.
            item: returned by `pop`, `first` and `get`.
            arrival: the number of a new item, larger than all numbers before it. Several heaps that share one order pass their
                common counter; None numbers the item here.
        """
        known = self._of.get(uid)
        if known is None:
            self._arrivals = self._arrivals + 1 if arrival is None else arrival
            entry: Entry = (key, self._arrivals, uid)
        elif known[0][0] == key:
            # A pod is pushed again at every change. If it lost its turn for that, a busy controller could keep it waiting forever.
            self._of[uid] = (known[0], item)
            return
        else:
            entry = (key, known[0][1], uid)
        self._of[uid] = (entry, item)
        heapq.heappush(self._entries, entry)
        self._compact()

    def remove(self, uid: Hashable) -> T | None:
        """Remove an item and return it; None when there is none."""
        found = self._of.pop(uid, None)
        if found is None:
            return None
        self._compact()
        return found[1]

    def first_entry(self) -> Entry | None:
        """Return the entry of the item that `pop` would give, or None when the heap is empty."""
        entries, live = self._entries, self._of
        while entries:
            first = entries[0]
            found = live.get(first[2])
            if found is not None and found[0] is first:
                return first
            heapq.heappop(entries)  # removed or replaced
        return None

    def first_key(self) -> SortKey | None:
        """Return the sort key of the item that `pop` would give, or None when the heap is empty."""
        first = self.first_entry()
        return None if first is None else first[0]

    def first(self) -> T | None:
        """Return the item that `pop` would give, without removing it; None when the heap is empty."""
        first = self.first_entry()
        return None if first is None else self._of[first[2]][1]

    def pop(self) -> T | None:
        """Remove and return the item with the lowest key; None when the heap is empty."""
        return self.take_first()[1] if self._of else None

    def take_first(self) -> tuple[Any, T]:
        """Remove the item with the lowest key and return it, after its uid.

        Raises:
            IndexError: the heap is empty.
        """
        self.first_entry()
        uid = heapq.heappop(self._entries)[2]
        return uid, self._of.pop(uid)[1]

    def up_to(self, place: tuple[SortKey, int]) -> int:
        """Count the items up to this sort key and arrival number. O(items)."""
        return sum(entry[:2] <= place for entry, _ in self._of.values())

    def entry_of(self, uid: Hashable) -> Entry:
        """Return the entry of an item.

        Raises:
            KeyError: there is no such item.
        """
        return self._of[uid][0]

    def rekey(self, key_of: Callable[[T], SortKey]) -> None:
        """Give every item a new sort key. Items whose new keys are equal keep their order of arrival.

        All keys change together: old keys, which may be of another shape, are never compared with new ones.
        """
        self._of = {uid: ((key_of(item), entry[1], uid), item) for uid, (entry, item) in self._of.items()}
        self._rebuild()

    def _compact(self) -> None:
        # Rebuilding at a fixed factor keeps removal O(1) amortised: thousands of pods may leave a heap in one event.
        if not self._of or len(self._entries) > 2 * len(self._of) + SLACK:
            self._rebuild()

    def _rebuild(self) -> None:
        self._entries = [entry for entry, _ in self._of.values()]
        heapq.heapify(self._entries)


class LanedHeap(ByUid, Generic[T, L]):
    """A heap of items by uid, each in a lane. `pop` gives the lowest sort key among the lanes that have room.

    Each lane is a heap of its own, and only its first item takes part in the common order. A lane without room leaves the order when it
    comes first, and returns with `reopen`. So thousands of items in a full lane cost nothing.

    Invariant: a lane that has items is lined up in `_lined_up`, or closed, or the only lane.
    """

    __slots__ = ("_arrivals", "_closed", "_full", "_has_room", "_lane_of", "_lanes", "_lined_up", "_next", "_of")

    def __init__(self, lane_of: Callable[[T], L], has_room: Callable[[L], bool], full: Callable[[], bool]) -> None:
        """Start empty.

        Args:
            lane_of: the lane of an item, read when the item is first pushed.
            has_room: whether an item of this lane may be handed out now.
            full: whether no item of any lane may be handed out now.
        """
        self._lane_of = lane_of
        self._has_room = has_room
        self._full = full
        self._arrivals = 0
        self._lanes: dict[L, KeyedHeap[T]] = {}
        self._of: dict[str, L] = {}
        #: The lanes that take part in the order, each by the sort key and arrival number of its first item.
        self._lined_up: KeyedHeap[L] = KeyedHeap()
        self._closed: set[L] = set()
        #: The lane that `first_key` found, until anything changes: `pop` follows `first_key` at once and need not search again.
        self._next: L | None = None

    def __iter__(self) -> Iterator[T]:
        """Iterate over all items, in no particular order."""
        return (item for heap in self._lanes.values() for item in heap)

    def holds(self, lane: L) -> bool:
        """Return whether the lane has items."""
        return lane in self._lanes

    def position_of(self, uid: str) -> int:
        """Count the items up to this one in the common order, whether or not their lanes have room. O(items).

        Returns:
            1 for the first item.

        Raises:
            KeyError: there is no such item.
        """
        place = self._lanes[self._of[uid]].entry_of(uid)[:2]
        return sum(heap.up_to(place) for heap in self._lanes.values())

    def push(self, uid: str, key: SortKey, item: T) -> None:
        """Add an item, or give the item of the same uid another key. An item whose key is equal keeps its turn.

        Args:
            uid: the item's identity in this heap.
            key: compared element by element, lowest first, across all lanes.
            item: returned by `pop`.
        """
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
        """Open a lane. A single lane is not lined up, because most profiles have one lane most of the time."""
        made = self._lanes[lane] = KeyedHeap()
        if len(self._lanes) == 2:
            alone = next(iter(self._lanes))
            self._line_up(alone, self._lanes[alone])
        return made

    def remove(self, uid: str) -> T | None:
        """Remove an item and return it; None when there is none."""
        lane = self._of.pop(uid, None)
        if lane is None:
            return None
        heap = self._lanes[lane]
        item = heap.remove(uid)
        self._line_up(lane, heap)
        return item

    def first_key(self) -> SortKey | None:
        """Return the sort key of the item that `pop` would give, or None when `pop` would give none."""
        lane = self._next = self._first_lane()
        return None if lane is None else self._lanes[lane].first_key()

    def pop(self) -> tuple[T, L] | None:
        """Remove and return the first item whose lane has room, with its lane; None when no lane with items has room."""
        lane = self._next or self._first_lane()
        if lane is None:
            return None
        heap = self._lanes[lane]
        uid, item = heap.take_first()
        del self._of[uid]
        self._line_up(lane, heap)
        return item, lane

    def reopen(self) -> None:
        """Put closed lanes that have room again back into the order. The caller reports that a place was left or taken."""
        self._next = None
        for lane in [lane for lane in self._closed if self._has_room(lane)] if self._closed else ():
            self._closed.discard(lane)
            self._line_up(lane, self._lanes[lane])

    def _first_lane(self) -> L | None:
        """Return the lane of the first item that may be handed out."""
        if len(self._lanes) == 1:
            (only,) = self._lanes
            return only if self._has_room(only) else None
        if self._full():
            return None
        while (lane := self._lined_up.first()) is not None and not self._has_room(lane):
            # A full lane leaves the order: left in it, each `pop` would meet it again.
            self._lined_up.remove(lane)
            self._closed.add(lane)
        return lane

    def _line_up(self, lane: L, heap: KeyedHeap[T]) -> None:
        """Note that a lane's first item, its key, or the lane's emptiness may have changed."""
        self._next = None
        if not heap:
            del self._lanes[lane]
            self._lined_up.remove(lane)
            self._closed.discard(lane)
        elif len(self._lanes) > 1 and lane not in self._closed and (first := heap.first_entry()) is not None:
            self._lined_up.push(lane, first[:2], lane)


class Order(Protocol):
    """The active pods of one profile, by uid, in an order of their own."""

    def __len__(self) -> int:
        """Return the number of pods."""

    def __contains__(self, uid: Hashable) -> bool:
        """Return whether a pod is here."""

    def __iter__(self) -> Iterator[QueuedPod]:
        """Iterate over all pods, in no particular order."""

    def uids(self) -> list[str]:
        """Return the uids of all pods, in order of arrival."""

    def push(self, uid: str, key: SortKey, item: QueuedPod) -> None:
        """Add a pod, or give it another key. A pod whose key is equal keeps its turn."""

    def remove(self, uid: str) -> QueuedPod | None:
        """Remove a pod and return it; None when it is not here."""

    def first_key(self) -> SortKey | None:
        """Return the sort key of the pod that `pop` would give, or None when `pop` would give none."""

    def pop(self) -> tuple[QueuedPod, Lane] | None:
        """Remove and return the first pod that has room, with its lane; None when no pod has room."""

    def reopen(self) -> None:
        """Let pods be handed out again whose lanes have room again. The caller reports that a place was left or taken."""


class OrderTransition:
    """Moves active pods from one order to the next after a profile changed. Few move at a time, to keep the event loop free.

    `queue.events` moves the pods in slices. The scheduling loop pops no pod before the last one has moved, so each decision is made in one
    order. If a pod is popped earlier, the former order goes first.

    Args:
        former: holds the pods.
        then: the next order, empty.
        key_of: a pod's sort key in the next order.

    Attributes:
        orders: hold the pods, the oldest order first. There are several former ones if the profile changed again meanwhile.
        then: the next order, the last of `orders`.
    """

    __slots__ = ("_key_of", "_uids", "orders", "then")

    def __init__(self, former: Order, then: Order, key_of: Callable[[QueuedPod], SortKey]) -> None:
        self.orders: tuple[Order, ...] = (*(former.orders if isinstance(former, OrderTransition) else (former,)), then)
        self.then = then
        self._uids = iter(self.uids())
        self._key_of = key_of

    def __len__(self) -> int:
        return sum(map(len, self.orders))

    def __contains__(self, uid: Hashable) -> bool:
        return any(uid in each for each in self.orders)

    def __iter__(self) -> Iterator[QueuedPod]:
        """Iterate over all pods, in no particular order."""
        return (queued for each in self.orders for queued in each)

    def uids(self) -> list[str]:
        """Return the uids of all pods, in order of arrival."""
        return [uid for each in self.orders for uid in each.uids()]

    def push(self, uid: str, key: SortKey, item: QueuedPod) -> None:
        """Add a pod to the next order, out of the former one if it was there."""
        self._take_out(uid, self.orders[:-1])
        self.then.push(uid, key, item)

    def remove(self, uid: str) -> QueuedPod | None:
        """Remove a pod and return it; None when it is not here."""
        return self._take_out(uid, self.orders)

    def _take_out(self, uid: str, orders: Iterable[Order]) -> QueuedPod | None:
        return next((found for each in orders if (found := each.remove(uid)) is not None), None)

    def first_key(self) -> SortKey | None:
        """Return the sort key of the pod that `pop` would give, or None when `pop` would give none."""
        return next((key for each in self.orders if (key := each.first_key()) is not None), None)

    def pop(self) -> tuple[QueuedPod, Lane] | None:
        """Remove and return the first pod that has room, with its lane. Pods of the former order go first."""
        return next((found for each in self.orders if (found := each.pop()) is not None), None)

    def reopen(self) -> None:
        """Let pods be handed out again whose lanes have room again."""
        for each in self.orders:
            each.reopen()

    def move(self, most: int | None) -> int:
        """Move pods to the next order, in order of arrival.

        Args:
            most: pods at most; None for all.

        Returns:
            How many were looked at; 0 when all have moved.
        """
        looked_at = 0
        for uid in islice(self._uids, most):
            looked_at += 1
            queued = self._take_out(uid, self.orders[:-1])
            if queued is not None:
                self.then.push(uid, self._key_of(queued), queued)
        return looked_at
