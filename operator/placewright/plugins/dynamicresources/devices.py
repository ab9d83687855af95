"""Which devices claims get on a node: what the plugin asks, and the allocation that is written into a claim's status.

`Inventory` knows the devices and their use, `ClaimReader` what claims want, `DeviceSearch` finds the one for the other. Simple demands are
answered for all rows at once: `FreeCounts` keeps how many devices that a pattern selects are free on each row, and brings that up to date
row by row, so that a decision costs what changed since the last.
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
from placewright.api.devices import AllocatedDevice, AllocatedDevices, AllocationResult, ResourceClaim
from placewright.api.objects import NodeSelector, NodeSelectorTerm, Requirement
from placewright.api.selectors import NODE_NAME_FIELD
from placewright.cluster.cluster import Cluster
from placewright.cluster.journal import Journal
from placewright.framework.interface import BoolColumn, IntColumn
from placewright.framework.status import SUCCESS, Status, error, unresolvable
from placewright.plugins.dynamicresources.allocator import MOST_STEPS, DeviceSearch, GaveUp, Pick
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
from placewright.plugins.dynamicresources.pools import NOT_COUNTED, Outlook
from placewright.plugins.dynamicresources.selectors import CompiledSelectors
from placewright.plugins.dynamicresources.shortage import DeviceShortage

# --- allocations -----------------------------------------------------------------------------------------------------------------


def allocation_of(claim: ClaimDemand, picks: Sequence[Pick], node: str) -> AllocationResult:
    """The allocation of a claim that gets these devices for a pod on this node."""
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
        consumed_capacity={name: amount.text for name, amount in pick.consumed.items()} or None,
    )


# --- configuration: that of classes first, each class once, then that of the claim -------------------------------------------


@dataclass(slots=True)
class _Entry:
    """A configuration. Its text is copied: decoded and encoded again, numbers and escapes of a driver's parameters would be others."""

    source: str
    requests: list[str]
    rest: dict[str, msgspec.Raw]

    def written(self) -> msgspec.Raw:
        """As the allocation has it."""
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
            entry.requests = []  # of all requests: said by naming none
    return tuple(entry.written() for entry in entries) or None


# --- from where the devices can be used --------------------------------------------------------------------------------------


def _node_selector(picks: Sequence[Pick], node: str) -> NodeSelector | None:
    """This node alone if any device is local to it or binds to it; else what all devices ask of nodes; None: any node will do."""
    if any(pick.offer.reach.node or pick.offer.device.binds_to_node for pick in picks):
        return NodeSelector((NodeSelectorTerm(match_fields=(Requirement(NODE_NAME_FIELD, "In", (node,)),)),))
    terms = [term for pick in picks if pick.offer.selector is not None for term in pick.offer.selector.node_selector_terms or ()]
    fields = _distinct(each for term in terms for each in term.match_fields or ())
    expressions = _distinct(each for term in terms for each in term.match_expressions or ())
    if not fields and not expressions:
        return None
    return NodeSelector((NodeSelectorTerm(expressions or None, fields or None),))


def _distinct(requirements: Iterable[Requirement]) -> tuple[Requirement, ...]:
    """Each value once, in any order."""
    first: dict[tuple[str, str, frozenset[str]], Requirement] = {}
    for each in requirements:
        first.setdefault((each.key, each.operator, frozenset(each.values or ())), each)
    return tuple(first.values())


# --- simple demands --------------------------------------------------------------------------------------------------------------


_MOST_PATTERNS: Final = 64
#: The count of a row on which only a search can tell: devices with counters, shares or rules, or a selector without an answer.
SEARCH: Final = -1


def simple_demand(claims: Sequence[ClaimDemand]) -> tuple[DeviceDemand, int] | None:
    """The one pattern that all these claims ask for, as a demand, and how many devices; None where it takes more to tell."""
    if any(claim.claim.spec.devices.constraints for claim in claims):
        return None
    requests = [request for claim in claims for request in claim.requests]
    demands = [request[0] for request in requests if len(request) == 1]
    if not demands or len(demands) < len(requests) or demands[0].pattern is None:
        return None
    if any(demand.pattern != demands[0].pattern for demand in demands):
        return None
    return demands[0], sum(demand.count for demand in demands)


def count_free(demand: DeviceDemand, outlook: Outlook, usage: Usage) -> int:
    """Free devices for this demand, or `SEARCH`."""
    free = 0
    for _, offer in outlook.offers:
        if usage.owned(offer.id) or (usage.shared(offer.id) and not offer.shared):
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
    """Counts by pattern, for the patterns asked for most recently."""

    def __init__(self, journal: Journal) -> None:
        """Keep up with the rows that `journal` names."""
        self._journal = journal
        self._columns: BoundedCache[Hashable, _Column] = BoundedCache(most=_MOST_PATTERNS)

    def forget(self) -> None:
        """Note that every answer may have changed."""
        self._columns.clear()

    def ask(self, demand: DeviceDemand, size: int, count: Callable[[int], int]) -> NDArray[np.int64]:
        """Counts of this demand's pattern, shape (size,); `count` is asked for rows that changed."""
        column = self._columns.get(demand.pattern)
        if column is None:
            column = _Column()
            self._columns.put(demand.pattern, column, size * column.counts.itemsize)
        changed = None if column.position < 0 else self._journal.since(column.position)
        column.grow(size)
        column.stale.update(range(size) if changed is None else (row for row in changed if row < size))
        column.position = self._journal.position
        while column.stale:  # `count` may fail: what was counted by then stays so
            row = next(iter(column.stale))
            column.counts[row] = count(row)
            column.stale.discard(row)
        return column.counts[:size]


class _Column:
    """`stale`: rows that have to be counted again."""

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
#: Of all rows together, in one decision, and for each row of a large cluster.
MOST_STEPS_IN_ALL: Final = 10 * MOST_STEPS
_STEPS_A_ROW: Final = 100
#: Steps for telling how many devices a node lacks, at most: the answer is waited for, and decisions wait meanwhile.
MOST_STEPS_TO_TELL: Final = 2 * MOST_STEPS
_MOST_CLAIMS: Final = 256
#: Bytes of claims that are kept as read; a claim may be as large as an API server takes.
_MOST_CLAIM_BYTES: Final = 16 * 2**20


@dataclass(frozen=True, slots=True)
class Allocated:
    """The allocation of each claim, in the order in which they were asked for."""

    allocations: tuple[AllocationResult, ...]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a node cannot serve the claims.

    Attributes:
        message: one line.
        error: something is wrong with a claim, a class or a pool, and the pod is to be tried again later; otherwise devices are lacking.
        ends_attempt: a selector has no answer here, which ends the attempt for all nodes.
        unfinished: the decision ran out of steps before this node was searched to the end; another one goes on with it.
    """

    message: str
    error: bool = False
    ends_attempt: bool = False
    unfinished: bool = False


class ClusterDevices:
    """The devices of the cluster, and who has them."""

    def __init__(self, cluster: Cluster, new_share_id: Callable[[], str] = lambda: str(uuid.uuid4())) -> None:
        """Look at the cluster's tables; nothing is known before the first `refresh`."""
        self._cluster = cluster
        self._new_share_id = new_share_id
        self._inventory = Inventory(cluster)
        self._expressions = CompiledSelectors()
        self._reader = ClaimReader(cluster.objects.devices.classes, self._expressions)
        self._free = FreeCounts(self._inventory.changed_rows)
        self._everywhere = self._classes = -1
        #: What is read of claims, with the claim: an id alone may come to stand for another.
        self._read: BoundedCache[int, tuple[ResourceClaim, ClaimDemand]] = BoundedCache(
            _MOST_CLAIM_BYTES, most=_MOST_CLAIMS, largest=_MOST_CLAIM_BYTES
        )
        #: For whom steps are being counted, and how many searches took.
        self._asked: ResourceClaim | None = None
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

    def keep(self, kept: Mapping[str, ResourceClaim]) -> None:
        """Show the devices of these claims as taken, and no longer the devices that were kept before.

        Args:
            kept: claims with devices, by keys that no claim in the cluster has.
        """
        self._inventory.keep(kept)

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

    @property
    def turn(self) -> int:
        """Grows when steps are counted anew."""
        return self._expressions.effort.turn

    def check(self, claims: Sequence[ResourceClaim]) -> Status:
        """The fault of these claims on any node; names the object and the field. An error where reading them takes too long.

        A decision begins with this, or with other claims than before: what searches and selectors may take is then counted anew.
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
        inventory, left = self._inventory, MOST_STEPS_TO_TELL - self._spent
        try:
            outlook = self._outlook(row)
            effort = self._expressions.effort
            shortage = DeviceShortage(outlook, inventory.usage, self._demands(claims), inventory.pools(), left, effort)
            found = shortage.by_class()
        except (DemandError, OutOfSteps):
            return None
        self._spent += shortage.steps
        return found

    def _count(self, demand: DeviceDemand, count: int) -> BoolColumn | None:
        counts = self._free_counts(demand)
        return None if counts is None else counts >= count

    def _free_counts(self, demand: DeviceDemand) -> IntColumn | None:
        present, size = self._cluster.present, self._cluster.size

        def count_on(row: int) -> int:
            if not present[row]:
                return 0
            outlook = self._outlook(row)
            self._expressions.effort.spend(COUNT * len(outlook.offers))
            return count_free(demand, outlook, self._inventory.usage)

        counts = self._free.ask(demand, size, count_on)
        return None if bool((counts == SEARCH).any()) else counts

    def allocate(self, row: int, claims: Sequence[ResourceClaim]) -> Allocated | Refusal:
        """The first way in which the node of this row serves all these claims; `KeyError` for a row without a node."""
        self._count_steps(claims)
        try:
            outlook, demands = self._outlook(row), self._demands(claims)
            steps = min(MOST_STEPS, self._steps_in_all() - self._spent)
            search = DeviceSearch(outlook, self._inventory.usage, demands, self._new_share_id, steps, self._expressions.effort)
            return self._result(row, demands, search, outlook)
        except DemandError as wrong:
            return Refusal(str(wrong), error=True, ends_attempt=isinstance(wrong, SelectorFailed))
        except OutOfSteps as ended:
            return Refusal(str(ended), error=True, unfinished=True)

    def _outlook(self, row: int) -> Outlook:
        """The devices in reach of a row's node. Raises `OutOfSteps`, and `KeyError` for a row without a node."""
        self._expressions.effort.spend(LOOK + self._inventory.steps_to_look_out(row))
        return self._inventory.outlook(row)

    def _steps_in_all(self) -> int:
        return max(MOST_STEPS_IN_ALL, _STEPS_A_ROW * self._cluster.node_count)

    def _result(self, row: int, demands: Sequence[ClaimDemand], search: DeviceSearch, outlook: Outlook) -> Allocated | Refusal:
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
        if spent >= self._steps_in_all():
            why = f"gave up after {spent} steps on several nodes: the claims can be combined with devices in too many ways"
            return Refusal(why, error=True, unfinished=True)
        return Refusal(f"gave up after {steps} steps: the claims can be combined with devices in too many ways")

    def _count_steps(self, claims: Sequence[ResourceClaim]) -> None:
        """Go on counting while the same decision asks. Of a pod's claims the last may differ from node to node: extended resources."""
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
    """Whether these stand for extended resources of the same pod, which are claims of one uid."""
    return one.metadata.uid == other.metadata.uid and one.metadata.name.startswith(SPECIAL_NAME)


def _why_not(outlook: Outlook) -> str:
    """Devices are lacking; a pool from which none can be had may be why."""
    if any(pool.problem == NOT_COUNTED for pool in outlook.unusable):
        return NOT_COUNTED
    return INVALID_POOLS if any(pool.problem for pool in outlook.unusable) else CANNOT_ALLOCATE
