"""Which devices claims get on a node: the questions of the plugin, and the allocation for a claim's status.

`Inventory` knows the devices and their use, `ClaimReader` the demands of claims, and `DeviceSearch` matches them. Simple demands are
answered for all rows at once. `FreeCounts` keeps how many devices of a pattern are free on each row, and updates single rows. So a decision
costs as much as changed since the last one.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from placewright.api.boundedcache import BoundedCache
from placewright.api.bytecount import object_bytes
from placewright.api.compatibility import Rule
from placewright.api.devices import AllocatedDevice, AllocatedDevices, AllocationResult, ResourceClaim
from placewright.api.objects import NodeSelector, NodeSelectorTerm, Requirement
from placewright.api.selectors import NODE_NAME_FIELD
from placewright.cluster.cluster import Cluster
from placewright.cluster.journal import Journal
from placewright.framework.interface import BoolColumn, IntColumn
from placewright.framework.status import SUCCESS, Status, error, unresolvable
from placewright.plugins.dynamicresources.allocator import MOST_STEPS, DeviceSearch, GaveUp, Pick, SearchTask
from placewright.plugins.dynamicresources.claims import SPECIAL_NAME
from placewright.plugins.dynamicresources.demands import (
    ClaimDemand,
    ClaimReader,
    DemandError,
    DeviceDemand,
    SelectorFailed,
)
from placewright.plugins.dynamicresources.effort import COUNT, LOOK, OutOfSteps
from placewright.plugins.dynamicresources.inventory import Inventory, Usage
from placewright.plugins.dynamicresources.pools import DeviceId, ReachableDevices
from placewright.plugins.dynamicresources.selectors import CompiledSelectors
from placewright.plugins.dynamicresources.shortage import DeviceShortage

# --- allocations -----------------------------------------------------------------------------------------------------------------


def allocation_of(claim: ClaimDemand, picks: Sequence[Pick], node: str) -> AllocationResult:
    """Build the allocation of a claim that gets these devices for a pod on this node."""
    devices = AllocatedDevices(tuple(_result(pick) for pick in picks) or None, _configuration(claim, picks))
    return AllocationResult(devices, _node_selector(picks, node))


def _result(pick: Pick) -> AllocatedDevice:
    offer = pick.offer
    return AllocatedDevice(
        request=pick.demand.name,
        driver=offer.id.driver,
        pool=offer.id.pool,
        device=offer.id.device,
        admin_access=True if pick.demand.admin else None,
        tolerations=pick.demand.wish.tolerations,
        binding_conditions=offer.device.binding_conditions,
        binding_failure_conditions=offer.device.binding_failure_conditions,
        share_id=pick.share_id,
        consumed_capacity={offer.capacities[name].name: amount.text for name, amount in pick.consumed.items()} or None,
    )


# --- configuration: that of classes first, each class once, then that of the claim -------------------------------------------


@dataclass(slots=True)
class _Entry:
    """A configuration. Its text is copied, because decoding and encoding would change numbers and escapes of a driver's parameters."""

    source: str
    requests: list[str]
    rest: dict[str, msgspec.Raw]

    def written(self) -> msgspec.Raw:
        """Encode it as the allocation has it."""
        named = {"requests": self.requests} if self.requests else {}
        return msgspec.Raw(msgspec.json.encode({"source": self.source, **named, **self.rest}))


_fields_of: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_names_of: Final = msgspec.json.Decoder(list[str] | None).decode


def _configuration(claim: ClaimDemand, picks: Sequence[Pick]) -> tuple[msgspec.Raw, ...] | None:
    chosen = {pick.demand.name.partition("/")[0]: pick.demand for pick in picks}
    demands = [chosen[name] for name in (request.name for request in claim.claim.spec.devices.requests or ()) if name in chosen]
    entries: list[_Entry] = []
    for device_class in {demand.device_class.metadata.name: demand.device_class for demand in demands}.values():
        users = [demand.name for demand in demands if demand.device_class is device_class]
        entries += [_Entry("FromClass", users, _fields_of(raw)) for raw in device_class.spec.config or ()]
    for raw in claim.claim.spec.devices.config or ():
        config = _fields_of(raw)
        users = _names_of(config.pop("requests", b"null")) or []
        if not users or any(demand.names & set(users) for demand in demands):
            entries.append(_Entry("FromClaim", users, config))
    for entry in entries:
        if all(demand.names & set(entry.requests) for demand in demands):
            entry.requests = []  # no name stands for all requests
    return tuple(entry.written() for entry in entries) or None


# --- nodes that can use the devices --------------------------------------------------------------------------------------


def _node_selector(picks: Sequence[Pick], node: str) -> NodeSelector | None:
    """Return this node if any device is local or binds to it, otherwise what all devices demand of nodes; None for any node."""
    if any(pick.offer.reach.node or pick.offer.device.binds_to_node for pick in picks):
        return NodeSelector((NodeSelectorTerm(match_fields=(Requirement(NODE_NAME_FIELD, "In", (node,)),)),))
    terms = [term for pick in picks if pick.offer.selector is not None for term in pick.offer.selector.node_selector_terms or ()]
    fields = _distinct(each for term in terms for each in term.match_fields or ())
    expressions = _distinct(each for term in terms for each in term.match_expressions or ())
    if not fields and not expressions:
        return None
    return NodeSelector((NodeSelectorTerm(expressions or None, fields or None),))


def _distinct(requirements: Iterable[Requirement]) -> tuple[Requirement, ...]:
    """Drop requirements with the same values in another order."""
    first: dict[tuple[str, str, frozenset[str]], Requirement] = {}
    for each in requirements:
        first.setdefault((each.key, each.operator, frozenset(each.values or ())), each)
    return tuple(first.values())


# --- simple demands --------------------------------------------------------------------------------------------------------------


_MOST_PATTERNS: Final = 64
#: Marks a row that needs a search: it has counters, shares or policies, or a selector without an answer.
SEARCH: Final = -1


def simple_demand(claims: Sequence[ClaimDemand]) -> tuple[DeviceDemand, int] | None:
    """Return the one pattern that all these claims ask for and how many devices; None if there is no such pattern."""
    if any(claim.claim.spec.devices.constraints for claim in claims):
        return None
    requests = [request for claim in claims for request in claim.requests]
    demands = [request[0] for request in requests if len(request) == 1]
    if not demands or len(demands) < len(requests) or demands[0].pattern is None:
        return None
    if any(demand.pattern != demands[0].pattern for demand in demands):
        return None
    return demands[0], sum(demand.count for demand in demands)


def count_free(demand: DeviceDemand, outlook: ReachableDevices, usage: Usage) -> int:
    """Count the free devices for this demand, or return `SEARCH`."""
    free = 0
    for _, offer in outlook.offers:
        if usage.prevents(offer):
            continue
        try:
            if not demand.selects(offer):
                continue
        except DemandError:
            return SEARCH
        if not offer.plain:
            return SEARCH
        free += demand.tolerates(offer)
    return free


class FreeCounts:
    """Counts of devices by pattern, such as free ones, for the patterns asked for most recently."""

    def __init__(self, journal: Journal) -> None:
        """Follow the rows that `journal` names."""
        self._journal = journal
        self._columns: BoundedCache[Hashable, _Column] = BoundedCache(most=_MOST_PATTERNS)

    def forget(self) -> None:
        """Drop all counts, because every answer may have changed."""
        self._columns.clear()

    def ask(self, demand: DeviceDemand, size: int, count: Callable[[int], int]) -> NDArray[np.int64]:
        """Return the counts of this demand's pattern, shape (size,). Call `count` for rows that changed."""
        column = self._columns.get(demand.pattern)
        if column is None:
            column = _Column()
            self._columns.put(demand.pattern, column, size * column.counts.itemsize)
        changed = None if column.position < 0 else self._journal.since(column.position)
        column.grow(size)
        column.stale.update(range(size) if changed is None else (row for row in changed if row < size))
        column.position = self._journal.position
        while column.stale:  # `count` may raise: rows that were counted before stay counted
            row = next(iter(column.stale))
            column.counts[row] = count(row)
            column.stale.discard(row)
        return column.counts[:size]


class _Column:
    """The counts of one pattern; `stale` has the rows to count again."""

    __slots__ = ("counts", "position", "stale")

    def __init__(self) -> None:
        self.counts = np.zeros(0, np.int64)
        self.position = -1
        self.stale: set[int] = set()

    def grow(self, size: int) -> None:
        if len(self.counts) < size:
            self.counts = np.concatenate([self.counts, np.zeros(2 * size - len(self.counts), np.int64)])


# --- what the plugin asks --------------------------------------------------------------------------------------------------------


CANNOT_ALLOCATE: Final = "cannot allocate all claims"
INVALID_POOLS: Final = "invalid resource pools were encountered"
#: Most steps of all rows together, in one decision, and for each row of a large cluster.
MOST_STEPS_IN_ALL: Final = 10 * MOST_STEPS
_STEPS_A_ROW: Final = 100
#: Most steps of telling how many devices a node lacks, because the answer and further decisions wait for it.
MOST_STEPS_TO_TELL: Final = 2 * MOST_STEPS
_MOST_CLAIMS: Final = 256
#: Most bytes of parsed claims that are kept; a claim may be as large as the API server accepts.
_MOST_CLAIM_BYTES: Final = 16 * 2**20


@dataclass(frozen=True, slots=True)
class Allocated:
    """The allocation of each claim, in the order of the question."""

    allocations: tuple[AllocationResult, ...]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a node cannot serve the claims.

    Attributes:
        message: one line.
        error: whether a claim, a class or a pool is faulty, so that the pod is tried again later; False if devices are lacking.
        ends_attempt: whether a selector has no answer here, which ends the attempt for all nodes.
        unfinished: whether the decision ran out of steps on this node; the next one continues here.
    """

    message: str
    error: bool = False
    ends_attempt: bool = False
    unfinished: bool = False


class ClusterDevices:
    """The devices of the cluster, and the claims that have them.

    Attributes:
        inventory: devices by row, and the versions of rows. Its devices are current after `refresh`.
    """

    def __init__(
        self,
        cluster: Cluster,
        in_force: Callable[[Rule], bool] = lambda _: False,
        new_share_id: Callable[[], str] = lambda: str(uuid.uuid4()),
    ) -> None:
        """Refer to the cluster's tables; the first `refresh` reads them. Without `in_force`, the rules are those of 1.36."""
        self._cluster = cluster
        self._new_share_id = new_share_id
        self.inventory = Inventory(cluster, in_force)
        self._expressions = CompiledSelectors()
        self._reader = ClaimReader(cluster.objects.devices.classes, self._expressions)
        self._free, self._reached, self._used = (FreeCounts(self.inventory.changed_rows) for _ in range(3))
        self._everywhere = self._classes = -1
        #: Parsed claims by id, with the claim, because an id may be used again for another object.
        self._read: BoundedCache[int, tuple[ResourceClaim, ClaimDemand]] = BoundedCache(
            _MOST_CLAIM_BYTES, most=_MOST_CLAIMS, largest=_MOST_CLAIM_BYTES
        )
        #: The claim for which steps are counted, and the steps that searches took.
        self._asked: ResourceClaim | None = None
        self._spent = 0

    def refresh(self) -> None:
        """Take in the changes of tables and nodes since the last call. The cost grows with the changes."""
        self.inventory.refresh()
        if self.inventory.everywhere != self._everywhere:
            self._everywhere = self.inventory.everywhere
            for counts in (self._free, self._reached, self._used):
                counts.forget()
        if self.inventory.classes_changed != self._classes:
            self._classes = self.inventory.classes_changed
            self._read.clear()

    @property
    def turn(self) -> int:
        """Number that grows when steps are counted anew."""
        return self._expressions.effort.turn

    def check(self, claims: Sequence[ResourceClaim]) -> Status:
        """Return the fault of these claims on any node, or an error if parsing them takes too long.

        Call it first in a decision, or when the claims are others than before: it starts the count of steps anew.
        """
        self._asked = None
        self._count_steps(claims)
        try:
            self._demands(claims)
        except DemandError as wrong:
            return unresolvable(str(wrong))
        except OutOfSteps as ended:
            return error(str(ended))
        return SUCCESS

    def candidates(self, claims: Sequence[ResourceClaim]) -> BoolColumn | None:
        """Return the exact rows that can serve these claims, shape (size,); None if each row must be searched."""
        free = self.free(claims)
        return None if free is None else free[2] >= free[1]

    def free(self, claims: Sequence[ResourceClaim]) -> tuple[str, int, IntColumn] | None:
        """Return the class, the number wanted, and the free devices of each row, shape (size,); None if that is not the whole answer."""
        self._count_steps(claims)
        try:
            simple = simple_demand(self._demands(claims))
            counts = None if simple is None else self._free_counts(simple[0])
            return None if simple is None or counts is None else (simple[0].device_class.metadata.name, simple[1], counts)
        except (DemandError, OutOfSteps):
            return None

    def in_class(self, name: str) -> tuple[IntColumn, IntColumn]:
        """Return how many devices of a class each row reaches, and how many of these are in use, shape (size,).

        A row counts none if an expression of the class has no answer there, as in kube-scheduler.
        """
        self._asked = None
        self._expressions.effort.renew(self._cluster.node_count)
        size, usage = self._cluster.size, self.inventory.usage
        try:
            demand = self._reader.of_class(name)
            reached = self._reached.ask(demand, size, lambda row: len(self._selected(demand, row)))
            used = self._used.ask(demand, size, lambda row: sum(map(usage.in_use, self._selected(demand, row))))
        except (DemandError, OutOfSteps):
            return np.zeros(size, np.int64), np.zeros(size, np.int64)
        return reached, used

    def _selected(self, demand: DeviceDemand, row: int) -> list[DeviceId]:
        if not self._cluster.present[row]:
            return []
        offers = self._outlook(row).offers
        self._expressions.effort.spend(COUNT * len(offers))
        try:
            return [offer.id for _, offer in offers if demand.selects(offer)]
        except DemandError:
            return []

    def shortage(self, row: int, claims: Sequence[ResourceClaim]) -> Mapping[str, int] | None:
        """Return by class how many more devices the row's node needs for these claims; None if something else is lacking."""
        self._count_steps(claims)
        try:
            shortage = DeviceShortage(self._task(row, claims), self.inventory.pools(), MOST_STEPS_TO_TELL - self._spent)
            found = shortage.by_class()
        except (DemandError, OutOfSteps):
            return None
        self._spent += shortage.steps
        return found

    def _free_counts(self, demand: DeviceDemand) -> IntColumn | None:
        present, size = self._cluster.present, self._cluster.size

        def count_on(row: int) -> int:
            if not present[row]:
                return 0
            outlook = self._outlook(row)
            self._expressions.effort.spend(COUNT * len(outlook.offers))
            return count_free(demand, outlook, self.inventory.usage)

        counts = self._free.ask(demand, size, count_on)
        return None if bool((counts == SEARCH).any()) else counts

    def allocate(self, row: int, claims: Sequence[ResourceClaim]) -> Allocated | Refusal:
        """Find the first way in which the row's node serves all these claims. Raise `KeyError` for a row without a node."""
        self._count_steps(claims)
        try:
            task, steps = self._task(row, claims), min(MOST_STEPS, self._steps_in_all() - self._spent)
            return self._result(row, task, DeviceSearch(task, self._new_share_id, steps))
        except DemandError as wrong:
            return Refusal(str(wrong), error=True, ends_attempt=isinstance(wrong, SelectorFailed))
        except OutOfSteps as ended:
            return Refusal(str(ended), error=True, unfinished=True)

    def _task(self, row: int, claims: Sequence[ResourceClaim]) -> SearchTask:
        return SearchTask(self._outlook(row), self.inventory.usage, self._demands(claims), self._expressions.effort)

    def _outlook(self, row: int) -> ReachableDevices:
        """Return the devices in reach of a row's node. Raise `OutOfSteps`, or `KeyError` for a row without a node."""
        self._expressions.effort.spend(LOOK + self.inventory.steps_to_look_out(row))
        return self.inventory.outlook(row)

    def _steps_in_all(self) -> int:
        return max(MOST_STEPS_IN_ALL, _STEPS_A_ROW * self._cluster.node_count)

    def _result(self, row: int, task: SearchTask, search: DeviceSearch) -> Allocated | Refusal:
        try:
            found = search.run()
        except GaveUp:
            return self._gave_up(search.steps)
        finally:
            self._spent += search.steps
        if not found:
            return Refusal(_why_not(task.outlook))
        node = str(self._cluster.names[row])
        return Allocated(tuple(allocation_of(claim, picks, node) for claim, picks in zip(task.claims, search.picks, strict=True)))

    def _gave_up(self, steps: int) -> Refusal:
        """Refuse this row only, until the rows together have taken too many steps."""
        spent = self._spent + steps
        if spent >= self._steps_in_all():
            why = f"gave up after {spent} steps on several nodes: the claims can be combined with devices in too many ways"
            return Refusal(why, error=True, unfinished=True)
        return Refusal(f"gave up after {steps} steps: the claims can be combined with devices in too many ways")

    def _count_steps(self, claims: Sequence[ResourceClaim]) -> None:
        """Continue the count of the same decision. A pod's last claim may differ from node to node, for its extended resources."""
        first = next(iter(claims), None)
        if first is not None and self._asked is not None and (first is self._asked or _are_of_one_pod(first, self._asked)):
            return
        self._asked = first
        self._spent = 0
        self._expressions.effort.renew(self._cluster.node_count)

    def _demands(self, claims: Sequence[ResourceClaim]) -> list[ClaimDemand]:
        return [self._demand(claim) for claim in claims]

    def _demand(self, claim: ResourceClaim) -> ClaimDemand:
        known = self._read.get(id(claim))
        if known is None:
            known = (claim, self._reader.read(claim))
            self._read.put(id(claim), known, object_bytes(claim))
        return known[1]


def _are_of_one_pod(one: ResourceClaim, other: ResourceClaim) -> bool:
    """Return whether both claims stand for extended resources of one pod, which share a uid."""
    return one.metadata.uid == other.metadata.uid and one.metadata.name.startswith(SPECIAL_NAME)


def _why_not(outlook: ReachableDevices) -> str:
    """Return the lack of devices as the reason, or the problem of a pool in reach, which may cause it."""
    return INVALID_POOLS if any(pool.problem for pool in outlook.unusable) else CANNOT_ALLOCATE
