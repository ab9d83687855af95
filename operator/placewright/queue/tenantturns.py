"""Turns of the tenants that wait at one priority: start-time fair queueing, whose virtual time moves with each hand-out (decision 46).

Each waiting tenant has a start tag, and the tenant with the lowest tag is next. Its tag then grows by the charge for the pod over the
tenant's weight, so in the long run tenants are charged in proportion to their weights.

The virtual time is the tag of the tenant that was served last, and a step further for each pod: the smallest charge, divided by the
weights of all that wait. A tenant that begins to wait starts there: its turn comes soon, and it has gathered nothing while it was idle.

A tenant that stops waiting with a higher tag owes the difference. The debt is kept until the virtual time reaches it, so that pods that
come one at a time gain nothing over pods that wait.
"""

from __future__ import annotations

import heapq
from typing import Final

from placewright.queue.heap import LanedHeap
from placewright.queue.policy import WHOLE_CLUSTER
from placewright.queue.queued import QueuedPod
from placewright.queue.room import Lane

#: Tenants of one priority that owe and do not wait, at most. Beyond that the smallest debts are forgiven.
MOST_DEBTORS: Final = 4_096
#: Entries of a heap that may be outdated before it is rebuilt, beside as many as are valid.
_SLACK: Final = 64


#: (start tag, number, tenant). Numbers differ, so tenants are never compared.
TurnEntry = tuple[int, int, "Tenant"]


class Tenant:
    """A tenant with waiting pods of one priority.

    Args:
        name: as the policy names it.
        turns: of its priority.
        lanes: its pods, in their order.

    Attributes:
        tag: the start tag.
        number: counts tags as they are given, so that of equal tags the older one is first.
        weight: 1 or more.
        entry: its entry in the order of turns; None while no lane of it has room.
        sleeps_in: the lanes without room in which its pods were found; see `queue.fairheap`.
    """

    __slots__ = ("entry", "lanes", "name", "number", "sleeps_in", "tag", "turns", "weight")

    def __init__(self, name: str, turns: TenantTurns, lanes: LanedHeap[QueuedPod, Lane]) -> None:
        self.name: Final = name
        self.turns: Final = turns
        self.lanes: Final = lanes
        self.tag = 0
        self.number = 0
        self.weight = 1
        self.entry: TurnEntry | None = None
        self.sleeps_in: set[Lane] | None = None


class TenantTurns:
    """The tenants that wait at one priority, in the order of their turns.

    Args:
        priority: of their pods.

    Attributes:
        priority: as given.
        tenants: the tenants that have waiting pods, by name.
        virtual: the virtual time.
    """

    __slots__ = ("_debtors", "_debts", "_least", "_number", "_order", "_weights", "priority", "tenants", "virtual")

    def __init__(self, priority: int) -> None:
        self.priority: Final = priority
        self.tenants: dict[str, Tenant] = {}
        self.virtual = 0
        self._order: list[TurnEntry] = []
        self._number = 0
        self._weights = 0
        #: The smallest charge so far.
        self._least = WHOLE_CLUSTER
        #: The tags of tenants that left with a tag above the virtual time, and a heap of (tag, name) that may be outdated.
        self._debts: dict[str, int] = {}
        self._debtors: list[tuple[int, str]] = []

    @property
    def weights(self) -> int:
        """The sum of the weights of all waiting tenants."""
        return self._weights

    @property
    def debts(self) -> int:
        """The number of tenants that owe and do not wait."""
        return len(self._debts)

    def begin(self, tenant: Tenant, weight: int) -> None:
        """Let a tenant wait: at the virtual time, or where its debt puts it.

        Args:
            tenant: not waiting before.
            weight: 1 or more.
        """
        self.tenants[tenant.name] = tenant
        tenant.weight = weight
        self._weights += weight
        self._give_tag(tenant, max(self.virtual, self._debts.pop(tenant.name, 0)))

    def end(self, tenant: Tenant) -> None:
        """Let a tenant leave that has no waiting pod any more. It keeps its debt.

        Args:
            tenant: waiting.
        """
        del self.tenants[tenant.name]
        self._weights -= tenant.weight
        tenant.entry = None
        self._owe(tenant.name, tenant.tag)

    def first(self) -> Tenant | None:
        """Return the tenant whose turn it is; None when no tenant is lined up."""
        order = self._order
        while order:
            entry = order[0]
            if entry[2].entry is entry:
                return entry[2]
            heapq.heappop(order)
        return None

    def line_up(self, tenant: Tenant) -> None:
        """Put a tenant into the order by its tag. A tenant that could not go on takes its turn from the virtual time: no credit.

        Args:
            tenant: waiting, and not lined up.
        """
        if tenant.tag < self.virtual:
            self._give_tag(tenant, self.virtual)
        self._put(tenant)

    def step_aside(self, tenant: Tenant) -> None:
        """Take a tenant out of the order, because none of its lanes has room."""
        tenant.entry = None

    def charge(self, tenant: Tenant, charge: int, weight: int) -> None:
        """Charge the tenant whose turn it was.

        Args:
            tenant: waiting, its pod handed out.
            charge: of `WHOLE_CLUSTER`.
            weight: the tenant's weight from now on.
        """
        virtual = max(self.virtual, tenant.tag)
        self._weights += weight - tenant.weight
        tenant.weight = weight
        self._give_tag(tenant, tenant.tag + -(-charge // weight))
        if tenant.entry is not None:
            self._put(tenant)
        self._move_on(virtual, charge)

    def charge_absent(self, name: str, charge: int, weight: int) -> None:
        """Charge a tenant for a pod that was handed out without its turn: with its group, or before its backoff ended.

        Args:
            name: of the tenant, which may not be waiting.
            charge: of `WHOLE_CLUSTER`.
            weight: of the tenant.
        """
        tenant = self.tenants.get(name)
        if tenant is not None:
            self._give_tag(tenant, tenant.tag + -(-charge // weight))
            if tenant.entry is not None:
                self._put(tenant)
        else:
            self._owe(name, max(self.virtual, self._debts.get(name, 0)) + -(-charge // weight))

    def _give_tag(self, tenant: Tenant, tag: int) -> None:
        self._number += 1
        tenant.tag, tenant.number = tag, self._number

    def _put(self, tenant: Tenant) -> None:
        entry = tenant.entry = (tenant.tag, tenant.number, tenant)
        order = self._order
        heapq.heappush(order, entry)
        if len(order) > 2 * len(self.tenants) + _SLACK:
            order[:] = [each.entry for each in self.tenants.values() if each.entry is not None]
            heapq.heapify(order)

    def _move_on(self, virtual: int, charge: int) -> None:
        """Move the virtual time on by a step.

        Without steps it would stand still while a new tenant comes with each pod, and tenants with higher tags would never be served.
        Steps are as small as the smallest charge allows: after one of a large pod, a new tenant would have to wait while tenants that
        waited longer are handed as much.
        """
        self._least = min(self._least, charge) or 1
        self.virtual = virtual + max(1, self._least // (self._weights or 1))
        self._forgive()

    def _owe(self, name: str, tag: int) -> None:
        if tag <= self.virtual:
            return
        self._debts[name] = tag
        heapq.heappush(self._debtors, (tag, name))
        if len(self._debtors) > 2 * len(self._debts) + _SLACK:
            self._debtors = [(owed, debtor) for debtor, owed in self._debts.items()]
            heapq.heapify(self._debtors)
        while len(self._debts) > MOST_DEBTORS:
            self._forgive_first()

    def _forgive(self) -> None:
        """Drop the debts that the virtual time has reached."""
        while self._debtors and self._debtors[0][0] <= self.virtual:
            self._forgive_first()

    def _forgive_first(self) -> None:
        tag, name = heapq.heappop(self._debtors)
        if self._debts.get(name) == tag:
            del self._debts[name]
