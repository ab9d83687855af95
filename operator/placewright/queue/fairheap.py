"""The order of active pods whose tenants take turns. `FairHeap` replaces `LanedHeap` if a profile has `spec.fairness` (decision 46).

A higher priority goes first. Among tenants of one priority `TenantTurns` decides by start-time fair queueing. The pods of one tenant are a
`LanedHeap`: they keep the profile's order, and pods in lanes without room are passed over.

Each waiting tenant has a start tag, and the tenant with the lowest tag is next. Its tag then grows by the charge for the pod over the
tenant's weight. So in the long run tenants are charged in proportion to their weights. The virtual time is the tag of the tenant that was
served last. Each pod moves it a step further: the smallest charge, divided by the weights of all waiting tenants. A tenant that begins to
wait starts at the virtual time. So its turn comes soon, but it has gathered no credit while it was idle. A tenant that stops waiting with a
higher tag owes the difference. The debt is kept until the virtual time reaches it. So pods that come one at a time gain nothing over pods
that wait.

A tenant whose lanes have no room leaves the order and sleeps in these lanes. When a lane has room again, only the sleeper whose turn comes
first is woken. The next sleeper is woken once the first one's pod has gone. So thousands of tenants that wait for one place cost as much as
one tenant.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from placewright.queue.inflight import Lane
from placewright.queue.order import KeyedHeap, LanedHeap
from placewright.queue.policy import WHOLE_CLUSTER, SortKey, TenantPolicy
from placewright.queue.queued import ByUid, QueuedPod

#: Most tenants of one priority that owe and do not wait. Beyond that the smallest debts are forgiven.
MOST_DEBTORS: Final = 4_096
#: Most tenants of one profile that are counted by name; all others are counted together.
MOST_NAMED: Final = 50
#: Number of hand-outs of other tenants after which a name may go to another tenant.
PASSED_OVER: Final = 100_000
#: The name of all other tenants, and of pods that no tenant claims. No namespace and no value of a label has parentheses.
OTHERS: Final = "(other)"
UNNAMED: Final = "(none)"


class Tenant:
    """A tenant with waiting pods of one priority.

    Args:
        name: name in the policy.
        turns: turns of its priority.
        lanes: its pods, in their order.

    Attributes:
        tag: the start tag.
        number: counts tags as they are given, so that of equal tags the older one is first.
        weight: 1 or more.
        sleeps_in: the lanes without room in which its pods were found.
    """

    __slots__ = ("lanes", "name", "number", "sleeps_in", "tag", "turns", "weight")

    def __init__(self, name: str, turns: TenantTurns, lanes: LanedHeap[QueuedPod, Lane]) -> None:
        self.name: Final = name
        self.turns: Final = turns
        self.lanes: Final = lanes
        self.tag = 0
        self.number = 0
        self.weight = 1
        self.sleeps_in: set[Lane] = set()

    @property
    def lined_up(self) -> bool:
        """True while a lane of the tenant may have room, so that the tenant has a turn."""
        return self.name in self.turns.order


class TenantTurns:
    """The tenants that wait at one priority, in the order of their turns.

    Args:
        priority: priority of their pods.

    Attributes:
        priority: priority of their pods.
        tenants: the tenants that have waiting pods, by name.
        order: the tenants that have a turn; the others sleep.
        virtual: the virtual time.
        weights: the sum of the weights of all waiting tenants.
    """

    __slots__ = ("_debts", "_least", "_number", "order", "priority", "tenants", "virtual", "weights")

    def __init__(self, priority: int) -> None:
        self.priority: Final = priority
        self.tenants: dict[str, Tenant] = {}
        self.virtual = 0
        self.weights = 0
        self.order: KeyedHeap[Tenant] = KeyedHeap()
        self._number = 0
        #: The smallest charge so far.
        self._least = WHOLE_CLUSTER
        #: The tags of tenants that left with a tag above the virtual time, by name; the lowest tag first.
        self._debts: KeyedHeap[int] = KeyedHeap()

    def begin(self, tenant: Tenant, weight: int) -> None:
        """Let a tenant wait: at the virtual time, or where its debt puts it.

        Args:
            tenant: not waiting before.
            weight: 1 or more.
        """
        self.tenants[tenant.name] = tenant
        tenant.weight = weight
        self.weights += weight
        self._give_tag(tenant, max(self.virtual, self._debts.remove(tenant.name) or 0))

    def end(self, tenant: Tenant) -> None:
        """Let a tenant leave that has no waiting pod any more. It keeps its debt.

        Args:
            tenant: waiting.
        """
        del self.tenants[tenant.name]
        self.weights -= tenant.weight
        self.order.remove(tenant.name)
        self._owe(tenant.name, tenant.tag)

    def line_up(self, tenant: Tenant) -> None:
        """Put a tenant into the order by its tag. A tenant that slept begins at the virtual time, so that it gathers no credit.

        Args:
            tenant: waiting, and not lined up.
        """
        if tenant.tag < self.virtual:
            self._give_tag(tenant, self.virtual)
        self._put(tenant)

    def charge(self, tenant: Tenant, charge: int, weight: int) -> None:
        """Charge the tenant whose turn it was.

        Args:
            tenant: waiting, its pod handed out.
            charge: part of `WHOLE_CLUSTER`.
            weight: the tenant's weight from now on.
        """
        virtual = max(self.virtual, tenant.tag)
        self.weights += weight - tenant.weight
        tenant.weight = weight
        self._charge(tenant, charge, weight)
        self._move_on(virtual, charge)

    def charge_absent(self, name: str, charge: int, weight: int) -> None:
        """Charge a tenant for a pod that was handed out without its turn: with its group, or before its backoff ended.

        Args:
            name: name of the tenant, which may not be waiting.
            charge: part of `WHOLE_CLUSTER`.
            weight: weight of the tenant.
        """
        tenant = self.tenants.get(name)
        if tenant is not None:
            self._charge(tenant, charge, weight)
        else:
            self._owe(name, max(self.virtual, self._debts.get(name) or 0) + -(-charge // weight))

    def _charge(self, tenant: Tenant, charge: int, weight: int) -> None:
        self._give_tag(tenant, tenant.tag + -(-charge // weight))
        if tenant.lined_up:
            self._put(tenant)

    def _give_tag(self, tenant: Tenant, tag: int) -> None:
        self._number += 1
        tenant.tag, tenant.number = tag, self._number

    def _put(self, tenant: Tenant) -> None:
        self.order.push(tenant.name, (tenant.tag, tenant.number), tenant)

    def _move_on(self, virtual: int, charge: int) -> None:
        """Move the virtual time on by a step.

        Without steps it would stand still while each pod brings a new tenant. Tenants with higher tags would never be served. Steps are as
        small as the smallest charge, because after larger steps a new tenant would wait too long.
        """
        self._least = min(self._least, charge) or 1
        self.virtual = virtual + max(1, self._least // (self.weights or 1))
        while (entry := self._debts.first_entry()) is not None and entry[0][0] <= self.virtual:
            self._debts.pop()

    def _owe(self, name: str, tag: int) -> None:
        if tag > self.virtual:
            self._debts.push(name, (tag, name), tag)
            if len(self._debts) > MOST_DEBTORS:
                self._debts.pop()


@dataclass(slots=True)
class TenantWait:
    """The waits of one tenant's pods.

    Attributes:
        pods: number of pods that were handed out.
        seconds: sum of their waits.
        last: number of this tenant's last hand-out, in the count of all tenants' hand-outs.
    """

    pods: int = 0
    seconds: float = 0.0
    last: int = 0


class TenantWaits:
    """Counts how long the pods of each tenant waited for their turn.

    Users may create any number of tenants, so metrics name at most `MOST_NAMED`. When all names are taken, a new tenant replaces a tenant
    that had no pod among the last `PASSED_OVER`. Tenants without a name are counted together.
    """

    __slots__ = ("_handed_out", "_named", "_others")

    def __init__(self) -> None:
        self._named: OrderedDict[str, TenantWait] = OrderedDict()
        self._others = TenantWait()
        self._handed_out = 0

    def note(self, tenant: str, seconds: float) -> None:
        """Count a pod that was handed out.

        Args:
            tenant: the pod's tenant.
            seconds: seconds that the pod waited among the active pods.
        """
        self._handed_out += 1
        wait = self._named.get(tenant) or self._named_anew(tenant)
        wait.pods += 1
        wait.seconds += seconds
        wait.last = self._handed_out

    def _named_anew(self, tenant: str) -> TenantWait:
        """Name a tenant. If all names are taken, it replaces the tenant that was named first, if that had no pod for long."""
        if len(self._named) >= MOST_NAMED:
            name, wait = next(iter(self._named.items()))
            if wait.last > self._handed_out - PASSED_OVER:
                self._named.move_to_end(name)  # the next newcomer asks another
                return self._others
            del self._named[name]
        return self._named.setdefault(tenant, TenantWait())

    def __iter__(self) -> Iterator[tuple[str, TenantWait]]:
        """Iterate over the tenants that have a name, and the others together if there are any."""
        yield from ((name or UNNAMED, wait) for name, wait in self._named.items())
        if self._others.pods:
            yield OTHERS, self._others


class FairTurn(NamedTuple):
    """When a waiting pod's turn comes.

    Attributes:
        tenant: the pod's tenant.
        turn: turn of the tenant, among the tenants that wait at the pod's priority; 1 is next.
        tenants: number of tenants that wait at that priority.
        position: position of the pod among the pods of its tenant; 1 is next.
        pods: number of the tenant's pods that wait at that priority.
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


class FairHeap(ByUid):
    """Active pods of one profile, by uid. `pop` gives the pod whose turn it is among the pods that have room.

    Args:
        policy: the profile's tenants.
        lane_of: the lane of a pod, read when the pod is first pushed.
        has_room: whether a pod of this lane may be handed out now.
        full: whether no pod of any lane may be handed out now.
        clock: seconds, monotonic.

    Attributes:
        policy: the profile's tenants; another policy of the same kind may replace it.
        waits: waits of each tenant's pods here.
    """

    __slots__ = ("_asking", "_asleep", "_clock", "_full", "_has_room", "_key", "_lane_of", "_next", "_of", "_turns", "policy", "waits")

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
        #: The tenant and arrival time of each pod by uid, in order of arrival.
        self._of: dict[str, tuple[Tenant, float]] = {}
        #: Turns by priority, the highest first.
        self._turns: dict[int, TenantTurns] = {}
        #: The tenants that sleep in each lane, in the order of their turns.
        self._asleep: dict[Lane, KeyedHeap[Tenant]] = {}
        #: The tenant whose lanes are being asked for room. One for all, as a callback for each tenant would cost a cycle of references.
        self._asking: Tenant | None = None
        #: The tenant that `first_key` found and the key of its pod, until anything changes.
        self._next: Tenant | None = None
        self._key: SortKey = ()

    def __iter__(self) -> Iterator[QueuedPod]:
        """Iterate over all pods, in no particular order."""
        return (queued for turns in self._turns.values() for tenant in turns.tenants.values() for queued in tenant.lanes)

    def push(self, uid: str, key: SortKey, item: QueuedPod) -> None:
        """Add a pod, or give it another key, tenant or priority. A pod whose key is equal keeps its turn.

        Args:
            uid: the pod's.
            key: key of the profile's QueueSort plugin, which orders the tenant's pods.
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
        if not tenant.lined_up:
            tenant.turns.line_up(tenant)

    def _tenant(self, name: str, priority: int) -> Tenant:
        turns = self._turns.get(priority)
        if turns is None:
            turns = TenantTurns(priority)
            self._turns = dict(sorted([*self._turns.items(), (priority, turns)], reverse=True))
        tenant = turns.tenants.get(name)
        if tenant is None:
            tenant = Tenant(name, turns, LanedHeap(self._lane_of, self._may_enter, lambda: False))
            turns.begin(tenant, self.policy.weight(name))
        return tenant

    def remove(self, uid: str) -> QueuedPod | None:
        """Remove a pod and return it; None when it is not here."""
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

        If no pod of its priority waits, there is no charge, because no tenant waited for it.

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

        Returns:
            The turn; None when the pod is not here.
        """
        known = self._of.get(uid)
        if known is None:
            return None
        tenant = known[0]
        turns = tenant.turns
        earlier = sum((each.tag, each.number) < (tenant.tag, tenant.number) for each in turns.tenants.values())
        higher = (each for each in self._turns.values() if each.priority > turns.priority)
        ahead = sum(len(tenant.lanes) for each in higher for tenant in each.tenants.values())
        position = tenant.lanes.position_of(uid)
        return FairTurn(tenant.name, 1 + earlier, len(turns.tenants), position, len(tenant.lanes), ahead, not tenant.lined_up)

    def turns(self) -> Iterator[TenantTurns]:
        """Iterate over the turns of each priority, the highest first, for reading."""
        return iter(self._turns.values())

    def _first(self) -> Tenant | None:
        """Return the tenant whose pod is next, and note the key of that pod."""
        if self._full():
            return None
        for turns in self._turns.values():
            while (tenant := turns.order.first()) is not None:
                self._asking = tenant
                key = tenant.lanes.first_key()
                if key is not None:
                    self._next, self._key = tenant, key
                    return tenant
                # None of its lanes has room. It sleeps in them, and each `pop` goes past it.
                turns.order.remove(tenant.name)
        return None

    def _leaves(self, tenant: Tenant) -> None:
        """Drop a tenant that has no pod left. Drop the turns of its priority, too, if it was the last one."""
        turns = tenant.turns
        turns.end(tenant)
        for lane in tuple(tenant.sleeps_in):
            self._drop_sleeper(tenant, lane)
        if not turns.tenants:
            del self._turns[turns.priority]

    def _drop_sleeper(self, tenant: Tenant, lane: Lane) -> None:
        tenant.sleeps_in.discard(lane)
        sleepers = self._asleep[lane]
        sleepers.remove(tenant)
        if not sleepers:
            del self._asleep[lane]

    def _may_enter(self, lane: Lane) -> bool:
        """Return whether a lane of the asking tenant has room; without room the tenant sleeps in it."""
        if self._has_room(lane):
            return True
        tenant = self._asking
        assert tenant is not None  # lanes are asked for room by `_first`, `pop` and `_wake`
        tenant.sleeps_in.add(lane)
        self._asleep.setdefault(lane, KeyedHeap()).push(tenant, _rank(tenant), tenant)
        return False

    def _wake(self, lane: Lane) -> None:
        """Wake the sleeper whose turn comes first, if the lane has room. Sleepers without a pod in this lane leave it on the way."""
        if not self._has_room(lane):
            return
        woken = None
        while lane in self._asleep and (woken is None or not woken.lanes.holds(lane)):
            woken = self._first_sleeper(lane)
            self._drop_sleeper(woken, lane)
            self._next, self._asking = None, woken
            woken.lanes.reopen()
            if not woken.lined_up:
                woken.turns.line_up(woken)

    def _first_sleeper(self, lane: Lane) -> Tenant:
        """Find the sleeper whose turn comes first. A sleeper may have been charged since it fell asleep, for pods of its other lanes."""
        sleepers = self._asleep[lane]
        while (tenant := sleepers.first()) is not None and sleepers.first_key() != _rank(tenant):
            sleepers.push(tenant, _rank(tenant), tenant)
        assert tenant is not None  # a lane without sleepers is dropped
        return tenant


def _rank(tenant: Tenant) -> SortKey:
    return (-tenant.turns.priority, tenant.tag, tenant.number)


def _priority(queued: QueuedPod) -> int:
    """Return the pod's priority; a group has that of its first member."""
    return (queued.pod if queued.pod_group is None else queued.pod_group.first.pod).priority
