"""Active pods on their way from one order to another, after a profile changed: few at a time, so that the event loop is not held.

While pods are under way they are handed out in their former order. `queue.sweeps` moves them in slices, and the scheduling loop pops
no pod before the last one has moved, so that each decision is made in one order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

from placewright.queue.fairheap import FairHeap
from placewright.queue.heap import LanedHeap
from placewright.queue.policy import SortKey, TenantPolicy
from placewright.queue.queued import QueuedPod
from placewright.queue.room import Lane, ProfileRoom

#: An order of active pods: lanes alone, or tenants that take turns.
ActiveOrder = LanedHeap[QueuedPod, Lane] | FairHeap


def new_order(
    tenants: TenantPolicy | None, lane_of: Callable[[QueuedPod], Lane], room: ProfileRoom, clock: Callable[[], float]
) -> ActiveOrder:
    """Make the order of a profile's active pods, without pods.

    Args:
        tenants: that take turns; None for the order of the sort keys alone.
        lane_of: the lane of a pod.
        room: of the profile.
        clock: seconds, monotonic.

    Returns:
        The order.
    """
    if tenants is None:
        return LanedHeap(lane_of, room.may_enter, lambda: room.full)
    return FairHeap(tenants, lane_of, room.may_enter, lambda: room.full, clock)


class OrderTransition:
    """Active pods in a former order and in the next one, with the methods of both.

    Args:
        former: holds the pods.
        then: the next order, empty.
        key_of: a pod's sort key in the next order.

    Attributes:
        then: as given.
    """

    __slots__ = ("_former", "_key_of", "_uids", "then")
    then: ActiveOrder

    def __init__(self, former: ActiveOrder | OrderTransition, then: ActiveOrder, key_of: Callable[[QueuedPod], SortKey]) -> None:
        #: The profile may change again before all pods have moved: then there are several former orders, the oldest first.
        self._former: list[ActiveOrder] = [*former.orders()] if isinstance(former, OrderTransition) else [former]
        self._uids = iter([uid for each in self._former for uid in each.uids()])
        self._key_of = key_of
        self.then = then

    def __len__(self) -> int:
        return sum(map(len, self._former)) + len(self.then)

    def __contains__(self, uid: str) -> bool:
        return uid in self.then or any(uid in each for each in self._former)

    def __iter__(self) -> Iterator[QueuedPod]:
        """All pods, in no particular order."""
        for each in self.orders():
            yield from each

    def push(self, uid: str, key: SortKey, item: QueuedPod) -> None:
        """Add a pod to the next order, out of the former one where it was there.

        Args:
            uid: the pod's.
            key: in the next order.
            item: the pod.
        """
        self._take_out(uid)
        self.then.push(uid, key, item)

    def remove(self, uid: str) -> QueuedPod | None:
        """Remove a pod.

        Args:
            uid: the pod's.

        Returns:
            The pod; None when it is not here.
        """
        return self._take_out(uid) or self.then.remove(uid)

    def _take_out(self, uid: str) -> QueuedPod | None:
        return next((found for each in self._former if (found := each.remove(uid)) is not None), None)

    def first_key(self) -> SortKey | None:
        """Return the sort key of the pod that `pop` would give, or None when `pop` would give none."""
        keys = (each.first_key() for each in self.orders())
        return next((key for key in keys if key is not None), None)

    def pop(self) -> tuple[QueuedPod, Lane] | None:
        """Remove and return the first pod that has room, with its lane, in the former order as long as that has one."""
        found = (each.pop() for each in self.orders())
        return next((each for each in found if each is not None), None)

    def reopen(self) -> None:
        """Let pods be handed out again whose lanes have room again."""
        for each in self.orders():
            each.reopen()

    def orders(self) -> tuple[ActiveOrder, ...]:
        """Return the orders that hold the pods, the oldest first."""
        return (*self._former, self.then)

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
            queued = self._take_out(uid)
            if queued is not None:
                self.then.push(uid, self._key_of(queued), queued)
        return looked_at
