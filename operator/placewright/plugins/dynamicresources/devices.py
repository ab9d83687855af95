"""Which devices claims get on a node: what the plugin asks.

`Inventory` knows the devices and their use, `Reader` what claims want, `Search` finds the one for the other, and `FreeCounts` answers
simple claims for all rows at once.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from placewright.api.devices import AllocationResult, ResourceClaim
from placewright.cluster.cluster import Cluster
from placewright.cluster.journal import Journal
from placewright.framework.interface import BoolColumn, IntColumn
from placewright.framework.status import SUCCESS, Status, unresolvable
from placewright.plugins.dynamicresources.allocator import MOST_STEPS, GaveUp, Search
from placewright.plugins.dynamicresources.demands import ClaimDemand, Demand, DemandError, Reader, SelectorError
from placewright.plugins.dynamicresources.freecounts import SEARCH, FreeCounts, count_free, simple_demand
from placewright.plugins.dynamicresources.inventory import Inventory
from placewright.plugins.dynamicresources.outlook import Outlook
from placewright.plugins.dynamicresources.results import allocation_of
from placewright.plugins.dynamicresources.selectors import CompiledSelectors, OutOfSteps
from placewright.plugins.dynamicresources.shortage import Shortage

CANNOT_ALLOCATE: Final = "cannot allocate all claims"
INVALID_POOLS: Final = "invalid resource pools were encountered"
#: Of all rows together, in one decision.
MOST_STEPS_IN_ALL: Final = 10 * MOST_STEPS
#: Beyond these nobody is told how many devices a node lacks: somebody waits for the answer, and decisions wait meanwhile.
MOST_STEPS_TO_TELL: Final = 2 * MOST_STEPS
_MOST_CLAIMS: Final = 256


@dataclass(frozen=True, slots=True)
class Allocated:
    """What each claim gets, in the order in which they were asked for."""

    allocations: tuple[AllocationResult, ...]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a node cannot serve the claims.

    Attributes:
        message: one line.
        error: something is wrong with a claim, a class or a pool, and the pod is to be tried again later; otherwise devices are lacking.
        ends_attempt: a selector has no answer here, which ends the attempt for all nodes.
    """

    message: str
    error: bool = False
    ends_attempt: bool = False


class Devices:
    """The devices of the cluster, and who has them."""

    def __init__(self, cluster: Cluster, new_share_id: Callable[[], str] = lambda: str(uuid.uuid4())) -> None:
        """Look at the cluster's tables; nothing is known before the first `refresh`."""
        self._cluster = cluster
        self._new_share_id = new_share_id
        self._inventory = Inventory(cluster)
        self._expressions = CompiledSelectors()
        self._reader = Reader(cluster.objects.devices.classes, self._expressions)
        self._free = FreeCounts(self._inventory.changed_rows)
        self._everywhere = self._classes = -1
        #: What is read of claims, with the claim: an id alone may come to stand for another.
        self._read: dict[int, tuple[ResourceClaim, ClaimDemand]] = {}
        #: For whom steps are being counted, and how many searches took.
        self._asked: tuple[ResourceClaim, ...] | None = None
        self._spent = 0

    def refresh(self) -> None:
        """Take in what changed in the cluster's tables and nodes since the last time; costs what changed."""
        self._inventory.refresh()
        if self._inventory.everywhere != self._everywhere:
            self._everywhere = self._inventory.everywhere
            self._free.forget()
        if self._inventory.classes_changed != self._classes:
            self._classes = self._inventory.classes_changed
            self._read.clear()

    def version(self, row: int) -> int:
        """Grows whenever what that row could get changed."""
        return self._inventory.version(row)

    @property
    def changed_rows(self) -> Journal:
        """Rows whose version grew by itself."""
        return self._inventory.changed_rows

    @property
    def everywhere(self) -> int:
        """Grows when all versions do."""
        return self._inventory.everywhere

    def check(self, claims: Sequence[ResourceClaim]) -> Status:
        """What is wrong with these claims whatever the node is; names the object and the field.

        A decision begins with this, or with other claims than before: what searches and selectors may take is then counted anew.
        """
        self._asked = None
        try:
            self._demands(claims)
        except DemandError as wrong:
            return unresolvable(str(wrong))
        return SUCCESS

    def candidates(self, claims: Sequence[ResourceClaim]) -> BoolColumn | None:
        """Rows that can serve these claims, shape (size,), exact; None where each row has to be searched."""
        self._count_steps(claims)
        try:
            simple = simple_demand(self._demands(claims))
            return None if simple is None else self._count(*simple)
        except (DemandError, OutOfSteps):
            return None

    def free(self, claims: Sequence[ResourceClaim]) -> tuple[str, int, IntColumn] | None:
        """(class, how many are wanted, how many each row has free, shape (size,)); None where that does not say all there is to say."""
        self._count_steps(claims)
        try:
            simple = simple_demand(self._demands(claims))
            counts = None if simple is None else self._free_counts(simple[0])
            return None if simple is None or counts is None else (simple[0].device_class.metadata.name, simple[1], counts)
        except (DemandError, OutOfSteps):
            return None

    def shortage(self, row: int, claims: Sequence[ResourceClaim]) -> Mapping[str, int] | None:
        """By class, how many more devices the node of this row would need for these claims; None where that is not what is lacking."""
        self._count_steps(claims)
        outlook, inventory, left = self._inventory.outlook(row), self._inventory, MOST_STEPS_TO_TELL - self._spent
        try:
            shortage = Shortage(outlook, inventory.usage, self._demands(claims), inventory.pools(), left)
            found = shortage.by_class()
        except (DemandError, OutOfSteps):
            return None
        self._spent += shortage.steps
        return found

    def _count(self, demand: Demand, count: int) -> BoolColumn | None:
        counts = self._free_counts(demand)
        return None if counts is None else counts >= count

    def _free_counts(self, demand: Demand) -> IntColumn | None:
        present, size = self._cluster.present, self._cluster.size

        def count_on(row: int) -> int:
            return count_free(demand, self._inventory.outlook(row), self._inventory.usage) if present[row] else 0

        counts = self._free.ask(demand, size, count_on)
        return None if bool((counts == SEARCH).any()) else counts

    def allocate(self, row: int, claims: Sequence[ResourceClaim]) -> Allocated | Refusal:
        """The first way in which the node of this row serves all these claims; `KeyError` for a row without a node."""
        outlook = self._inventory.outlook(row)
        self._count_steps(claims)
        try:
            demands = self._demands(claims)
            steps = min(MOST_STEPS, MOST_STEPS_IN_ALL - self._spent)
            search = Search(outlook, self._inventory.usage, demands, self._new_share_id, steps)
            return self._result(row, demands, search, outlook)
        except (DemandError, OutOfSteps) as wrong:
            return Refusal(str(wrong), error=True, ends_attempt=isinstance(wrong, SelectorError))

    def _result(self, row: int, demands: Sequence[ClaimDemand], search: Search, outlook: Outlook) -> Allocated | Refusal:
        try:
            found = search.run()
        except GaveUp:
            return self._gave_up(search.steps)
        finally:
            self._spent += search.steps
        if not found:
            return Refusal(_why_not(outlook))
        node = str(self._cluster.names[row])
        return Allocated(tuple(allocation_of(claim, picks, node) for claim, picks in zip(demands, search.picks, strict=True)))

    def _gave_up(self, steps: int) -> Refusal:
        """On this row only, until the rows together have taken too many steps."""
        spent = self._spent + steps
        if spent >= MOST_STEPS_IN_ALL:
            return Refusal(f"gave up after {spent} steps on several nodes: the claims can be combined with devices in too many ways", True)
        return Refusal(f"gave up after {steps} steps: the claims can be combined with devices in too many ways")

    def _count_steps(self, claims: Sequence[ResourceClaim]) -> None:
        """Go on counting while the same claims are asked for."""
        if self._asked is None or len(self._asked) != len(claims) or any(a is not b for a, b in zip(self._asked, claims, strict=True)):
            self._asked = tuple(claims)
            self._spent = 0
            self._expressions.effort.renew()

    def _demands(self, claims: Sequence[ResourceClaim]) -> list[ClaimDemand]:
        return [self._demand(claim) for claim in claims]

    def _demand(self, claim: ResourceClaim) -> ClaimDemand:
        known = self._read.get(id(claim))
        if known is None:
            if len(self._read) >= _MOST_CLAIMS:
                self._read.clear()
            known = self._read[id(claim)] = (claim, self._reader.read(claim))
        return known[1]


def _why_not(outlook: Outlook) -> str:
    """Devices are lacking; a pool from which none can be had may be why."""
    return INVALID_POOLS if any(pool.problem for pool in outlook.unusable) else CANNOT_ALLOCATE
