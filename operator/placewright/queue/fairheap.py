"""Waiting pods whose tenants take turns: `FairHeap` takes the place of `LanedHeap` where a profile has `spec.fairness`.

A higher priority goes first; among tenants of one priority `queue.tenantturns` decides; and the pods of one tenant are a `LanedHeap`,
in the profile's order and past the lanes without room.

A tenant whose lanes have no room leaves the order and sleeps in these lanes. When a lane has room again, the sleeper whose turn comes
first is woken, and the next one when that one's pod has gone. So thousands of tenants that wait for one place cost what one costs.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterator
from operator import neg
from typing import NamedTuple

from placewright.queue.heap import KeyedHeap, LanedHeap
from placewright.queue.policy import SortKey, TenantPolicy
from placewright.queue.queued import QueuedPod
from placewright.queue.room import Lane
from placewright.queue.tenantturns import Tenant, TenantTurns
from placewright.queue.tenantwaits import TenantWaits


class FairTurn(NamedTuple):
    """When a waiting pod's turn comes.

    Attributes:
        tenant: the pod's.
        turn: of the tenant, among the tenants that wait at the pod's priority; 1 is next.
        tenants: how many tenants wait at that priority.
        position: of the pod, among the pods of its tenant; 1 is next.
        pods: how many pods of the tenant wait at that priority.
        ahead: pods of higher priorities, which go first.
        no_room: True while the tenant's pods wait for a place in the profile's room.
    """

    tenant: str
    turn: int
    tenants: int
    position: int
    pods: int
    ahead: int
    no_room: bool


class FairHeap:
    """Active pods of one profile, by uid; `pop` gives the pod whose turn it is among the pods that have room.

    Args:
        policy: the profile's tenants.
        lane_of: the lane of a pod, read when the pod is first pushed.
        has_room: whether a pod of this lane may be handed out now.
        full: whether no pod of any lane may be handed out now.
        clock: seconds, monotonic.

    Attributes:
        policy: as given; another one of the same kind may take its place.
        waits: how long pods of each tenant waited here.
    """

    __slots__ = (
        "_asking", "_asleep", "_clock", "_full", "_has_room", "_key", "_lane_of", "_next", "_of", "_priorities", "_turns", "policy",
        "waits",
    )  # fmt: skip

    def __init__(
        self, policy: TenantPolicy, lane_of: Callable[[QueuedPod], Lane], has_room: Callable[[Lane], bool], full: Callable[[], bool],
        clock: Callable[[], float],
    ) -> None:  # fmt: skip
        self.policy = policy
        self.waits = TenantWaits()
        self._lane_of = lane_of
        self._has_room = has_room
        self._full = full
        self._clock = clock
        #: By uid, in order of arrival: the tenant, and when the pod came here.
        self._of: dict[str, tuple[Tenant, float]] = {}
        self._turns: dict[int, TenantTurns] = {}
        #: The priorities in `_turns`, the highest first.
        self._priorities: list[int] = []
        #: The tenants that sleep in each lane, in the order of their turns.
        self._asleep: dict[Lane, KeyedHeap[Tenant]] = {}
        #: The tenant whose lanes are being asked for room. One for all, as a callback for each tenant would cost a cycle of references.
        self._asking: Tenant | None = None
        #: The tenant that `first_key` found and the key of its pod, until anything changes.
        self._next: Tenant | None = None
        self._key: SortKey = ()

    def __len__(self) -> int:
        return len(self._of)

    def __contains__(self, uid: str) -> bool:
        return uid in self._of

    def __iter__(self) -> Iterator[QueuedPod]:
        """All pods, in no particular order."""
        return (queued for turns in self._turns.values() for tenant in turns.tenants.values() for queued in tenant.lanes)

    def uids(self) -> list[str]:
        """Return the uids of all pods, in order of arrival."""
        return list(self._of)

    def push(self, uid: str, key: SortKey, item: QueuedPod) -> None:
        """Add a pod, or give it another key, tenant or priority. A pod whose key is equal keeps its turn.

        Args:
            uid: the pod's.
            key: of the profile's QueueSort plugin; the order among the pods of the tenant.
            item: the pod.
        """
        name, priority = self.policy.tenant_of(item.pod), _priority(item)
        known = self._of.get(uid)
        if known is not None and (known[0].name != name or known[0].turns.priority != priority):
            self.remove(uid)
            known = None
        tenant = self._tenant(name, priority) if known is None else known[0]
        self._next = None
        tenant.lanes.push(uid, key, item)
        if known is None:
            self._of[uid] = (tenant, self._clock())
        if tenant.entry is None:
            tenant.turns.line_up(tenant)

    def _tenant(self, name: str, priority: int) -> Tenant:
        turns = self._turns.get(priority)
        if turns is None:
            turns = self._turns[priority] = TenantTurns(priority)
            insort(self._priorities, priority, key=neg)
        tenant = turns.tenants.get(name)
        if tenant is None:
            tenant = Tenant(name, turns, LanedHeap(self._lane_of, self._may_enter, _never))
            turns.begin(tenant, self.policy.weight(name))
        return tenant

    def remove(self, uid: str) -> QueuedPod | None:
        """Remove a pod.

        Args:
            uid: the pod's.

        Returns:
            The pod; None when it is not here.
        """
        known = self._of.pop(uid, None)
        if known is None:
            return None
        tenant = known[0]
        queued = tenant.lanes.remove(uid)
        self._next = None
        if not len(tenant.lanes):
            self._leaves(tenant)
        if self._asleep:
            self.reopen()
        return queued

    def first_key(self) -> SortKey | None:
        """Return the sort key of the pod that `pop` would give, or None when `pop` would give none."""
        return None if self._first() is None else self._key

    def pop(self) -> tuple[QueuedPod, Lane] | None:
        """Remove, charge and return the pod whose turn it is, with its lane; None when no pod has room."""
        tenant = self._next or self._first()
        if tenant is None:
            return None
        self._next, self._asking = None, tenant
        found = tenant.lanes.pop()
        assert found is not None  # the tenant was found by its first pod
        queued, lane = found
        since = self._of.pop(queued.uid)[1]
        policy, name = self.policy, tenant.name
        tenant.turns.charge(tenant, policy.charge(queued.pod), policy.weight(name))
        self.waits.note(name, self._clock() - since)
        if not len(tenant.lanes):
            self._leaves(tenant)
        if lane in self._asleep:
            self._wake(lane)
        return found

    def charge(self, queued: QueuedPod) -> None:
        """Charge a pod that was handed out without its turn: with its group, or before its backoff ended.

        Where no pod of its priority waits, nothing is charged, because no tenant waited for it.

        Args:
            queued: handed out.
        """
        turns = self._turns.get(_priority(queued))
        if turns is not None:
            self._next = None
            name = self.policy.tenant_of(queued.pod)
            turns.charge_absent(name, self.policy.charge(queued.pod), self.policy.weight(name))

    def reopen(self) -> None:
        """Wake the next sleeper of each lane that has room again. The caller reports that a place was left or taken."""
        self._next = None
        for lane in tuple(self._asleep):
            self._wake(lane)

    def turn_of(self, uid: str) -> FairTurn | None:
        """Tell when a pod's turn comes. O(tenants of its priority + pods of its tenant).

        Args:
            uid: the pod's.

        Returns:
            The turn; None when the pod is not here.
        """
        known = self._of.get(uid)
        if known is None:
            return None
        tenant = known[0]
        turns = tenant.turns
        earlier = sum((each.tag, each.number) < (tenant.tag, tenant.number) for each in turns.tenants.values())
        higher = (self._turns[each].tenants.values() for each in self._priorities if each > turns.priority)
        ahead = sum(len(each.lanes) for tenants in higher for each in tenants)
        position = tenant.lanes.position_of(uid)
        return FairTurn(tenant.name, 1 + earlier, len(turns.tenants), position, len(tenant.lanes), ahead, tenant.entry is None)

    def turns(self) -> Iterator[TenantTurns]:
        """Iterate over the turns of each priority, the highest first, for reading."""
        return (self._turns[priority] for priority in self._priorities)

    def _first(self) -> Tenant | None:
        """Return the tenant whose pod is next, and note the key of that pod."""
        if self._full():
            return None
        for priority in self._priorities:
            turns = self._turns[priority]
            while (tenant := turns.first()) is not None:
                self._asking = tenant
                key = tenant.lanes.first_key()
                if key is not None:
                    self._next, self._key = tenant, key
                    return tenant
                # None of its lanes has room. It sleeps in them, and each `pop` goes past it.
                turns.step_aside(tenant)
        return None

    def _leaves(self, tenant: Tenant) -> None:
        """Drop a tenant that has no pod left, and the turns of its priority when it was the last: then no debt is owed to any tenant."""
        turns = tenant.turns
        turns.end(tenant)
        for lane in tenant.sleeps_in or ():
            sleepers = self._asleep[lane]
            sleepers.remove(_name(tenant))
            if not len(sleepers):
                del self._asleep[lane]
        tenant.sleeps_in = None
        if not turns.tenants:
            del self._turns[turns.priority]
            self._priorities.remove(turns.priority)

    def _may_enter(self, lane: Lane) -> bool:
        """Return whether a lane of the asking tenant has room; without room the tenant sleeps in it."""
        if self._has_room(lane):
            return True
        tenant = self._asking
        assert tenant is not None  # lanes are asked for room by `_first`, `pop` and `_wake`
        if tenant.sleeps_in is None:
            tenant.sleeps_in = set()
        tenant.sleeps_in.add(lane)
        self._asleep.setdefault(lane, KeyedHeap()).push(_name(tenant), _rank(tenant), tenant)
        return False

    def _wake(self, lane: Lane) -> None:
        """Wake the sleeper whose turn comes first, if the lane has room; past sleepers whose pods in this lane have gone meanwhile."""
        if not self._has_room(lane):
            return
        sleepers = self._asleep[lane]
        woken = None
        while len(sleepers) and (woken is None or not woken.lanes.holds(lane)):
            woken = _first_sleeper(sleepers)
            sleepers.remove(_name(woken))
            self._wake_up(woken, lane)
        if not len(sleepers):
            del self._asleep[lane]

    def _wake_up(self, tenant: Tenant, lane: Lane) -> None:
        if tenant.sleeps_in is not None:
            tenant.sleeps_in.discard(lane)
        self._next, self._asking = None, tenant
        tenant.lanes.reopen()
        if tenant.entry is None:
            tenant.turns.line_up(tenant)


def _first_sleeper(sleepers: KeyedHeap[Tenant]) -> Tenant:
    """Find the sleeper whose turn comes first. A sleeper may have been charged since it fell asleep, for pods of its other lanes."""
    while True:
        tenant = sleepers.first()
        assert tenant is not None  # a lane without sleepers is dropped
        rank = _rank(tenant)
        if sleepers.first_key() == rank:
            return tenant
        sleepers.push(_name(tenant), rank, tenant)


def _rank(tenant: Tenant) -> SortKey:
    return (-tenant.turns.priority, tenant.tag, tenant.number)


def _name(tenant: Tenant) -> str:
    return f"{tenant.turns.priority}/{tenant.name}"


def _priority(queued: QueuedPod) -> int:
    """A group waits at the priority of its first member."""
    return (queued.pod if queued.pod_group is None else queued.pod_group.first.pod).priority


def _never() -> bool:
    return False
