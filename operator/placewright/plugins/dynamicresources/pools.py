"""Pools of devices as drivers publish them, parsed once: complete ones, the offer of each device, and the devices in reach of a node.

A pool counts if all slices of its highest generation exist. kube-scheduler first selects the slices that a node reaches. So while a pool is
being replaced, it may still allocate devices of an earlier generation; here the pod waits for the new one.

Amounts of a device are in nano-units. Rules: KEP-5075. A device that is allocated several times serves requests until its capacities are
used up. A policy may round requests up.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, NamedTuple

from placewright.api.compatibility import Rule
from placewright.api.devices import (
    CapacityPolicy,
    Device,
    DeviceCapacity,
    DeviceTaint,
    DeviceTaintRule,
    ResourceSlice,
    ResourceSliceSpec,
)
from placewright.api.objects import NodeSelector, RawQuantity
from placewright.api.quantity import NANO, nano
from placewright.api.selectors import NodeTerm, compile_node_selector
from placewright.plugins.dynamicresources.selectors import DeviceShape, DeviceShapes

# --- capacities ------------------------------------------------------------------------------------------------------------------


_SUFFIXES: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_MILLI: Final = NANO // 1000
#: Amounts that requests take, by qualified name of the capacity.
Amounts = Mapping[str, int]


class Amount(NamedTuple):
    """An amount, and its text."""

    nanos: int
    text: RawQuantity

    @classmethod
    def of(cls, text: RawQuantity) -> Amount:
        """Parse a quantity. Raise `QuantityError`."""
        return cls(nano(text), text)


@dataclass(frozen=True, slots=True)
class Range:
    """The amounts that a request may ask for: from the least on, in steps.

    Attributes:
        exact: whether steps are counted in nano-units; otherwise in whole units, to which all amounts are rounded up.
    """

    least: int | None
    most: int | None
    step: int | None
    exact: bool = False

    def rounded_up(self, asked: Amount) -> Amount:
        """Return the least amount of the range that suffices; `asked` itself if it is finer than exact steps are."""
        least, step = self.least or 0, self.step
        if asked.nanos < least:
            return Amount(least, written(least))
        if step is None or (self.exact and asked.nanos % _MILLI):
            return asked
        start, stride = self._units(least), self._units(step)
        units = start + -(-(self._units(asked.nanos) - start) // stride) * stride
        nanos = units if self.exact else units * NANO
        return Amount(nanos, written(nanos))

    def includes(self, nanos: int) -> bool:
        """Return whether the range has this amount, if it is no less than the least one."""
        if self.most is not None and nanos > self.most:
            return False
        return self.step is None or (self._units(nanos) - self._units(self.least or 0)) % self._units(self.step) == 0

    def _units(self, nanos: int) -> int:
        """Return the units in which steps are counted."""
        return nanos if self.exact else -(-nanos // NANO)


@dataclass(frozen=True, slots=True)
class Capacity:
    """One capacity of a device.

    Attributes:
        name: name as the driver publishes it.
        default: amount that a request takes without naming this capacity; None for the total.
        choices: amounts that a request may ask for, ascending; empty without such a rule.
    """

    name: str
    total: Amount
    has_policy: bool = False
    default: Amount | None = None
    choices: tuple[Amount, ...] = ()
    range: Range | None = None

    def taken_by(self, asked: Amount | None) -> Amount:
        """Return the amount that a request for this much takes, rounded up as the policy says."""
        if asked is None:
            return self.default or self.total
        if self.range is not None and self.range.least is not None:
            return self.range.rounded_up(asked)
        return next((choice for choice in self.choices if asked.nanos <= choice.nanos), asked)

    def may_take(self, nanos: int) -> bool:
        """Return whether the policy lets a request take this much."""
        if not self.has_policy or (self.default is not None and self.default.nanos == nanos):
            return True
        if self.range is not None:
            return self.range.includes(nanos)
        return not self.choices or any(choice.nanos == nanos for choice in self.choices)


def read_capacity(name: str, capacity: DeviceCapacity, fractional: bool) -> Capacity:
    """Parse a capacity as drivers publish it. Raise `QuantityError`, or `ValueError` for an invalid step.

    `fractional` says that a range may have thousandths.
    """
    policy: CapacityPolicy | None = capacity.request_policy
    if policy is None:
        return Capacity(name, Amount.of(capacity.value))
    bounds = None
    if policy.valid_range is not None:
        given = policy.valid_range
        least, most, step = (None if each is None else nano(each) for each in (given.min, given.max, given.step))
        if step is not None and (step <= 0 or least is None):
            raise ValueError("validRange has a step without a min, or one that is not positive")
        bounds = Range(least, most, step, fractional and not any(each % _MILLI for each in (least, most, step) if each is not None))
    choices = tuple(Amount.of(each) for each in policy.valid_values or ())
    return Capacity(name, Amount.of(capacity.value), True, None if policy.default is None else Amount.of(policy.default), choices, bounds)


def qualified(name: str, driver: str) -> str:
    """Return the name of a capacity or an attribute with its domain, which is the driver's if it has none."""
    return name if "/" in name else f"{driver}/{name}"


def qualified_last(names: Iterable[str]) -> list[str]:
    """Order names so that one with a domain replaces the same one without."""
    return sorted(names, key=lambda name: "/" in name)


def takes(offer: PoolDevice, asked: Mapping[str, Amount], used: Amounts, taking: Amounts) -> dict[str, Amount] | None:
    """Return the amount of each capacity that a request takes; None if less is left or the policy forbids it.

    `used` is taken by allocated claims, `taking` by the claims that are being allocated.
    """
    if not asked.keys() <= offer.names.keys():
        return None
    wanted = {offer.names[name]: asked[name] for name in qualified_last(asked)}
    taken = {name: capacity.taken_by(wanted.get(name)) for name, capacity in offer.capacities.items()}
    for name, amount in taken.items():
        capacity = offer.capacities[name]
        if not capacity.may_take(amount.nanos) or used.get(name, 0) + taking.get(name, 0) + amount.nanos > capacity.total.nanos:
            return None
    return taken


def written(nanos: int) -> str:
    """Format an amount as API servers write memory: with the largest binary suffix that leaves a whole number, or in thousandths."""
    if nanos % NANO:
        return f"{nanos}n" if nanos % _MILLI else f"{nanos // _MILLI}m"
    units, power = nanos // NANO, 0
    while units and units % 1024 == 0 and power < len(_SUFFIXES) - 1:
        units, power = units // 1024, power + 1
    return f"{units}{_SUFFIXES[power]}"


# --- pools -----------------------------------------------------------------------------------------------------------------------


#: Effects of taints that repel claims.
REPELLING = ("NoSchedule", "NoExecute")
#: A counter set of the pool and a counter in it.
CounterName = tuple[str, str]


class PoolId(NamedTuple):
    """A pool, identified by its driver and name."""

    driver: str
    pool: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}"


class DeviceId(NamedTuple):
    """A device, identified by its driver, pool and name."""

    driver: str
    pool: str
    device: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}/{self.device}"


@dataclass(frozen=True, slots=True)
class DeviceReach:
    """The nodes that can use a device: one by name, all, the nodes of a selector, or none that we know of."""

    node: str = ""
    everywhere: bool = False
    terms: tuple[NodeTerm, ...] | None = None

    def includes(self, name: str, labels: Mapping[str, str]) -> bool:
        """Return whether that node is within reach."""
        if self.node:
            return self.node == name
        return self.everywhere or any(term.matches(labels, name) for term in self.terms or ())


@dataclass(slots=True, eq=False)
class PoolDevice:
    """One device of a pool.

    Attributes:
        order: position in the pool.
        slice: position of its slice among the pool's slices by name.
        reach: reach of the device, or of its slice; `selector` is its source, if there is one.
        shared: whether several claims can have it at the same time.
        taints: taints that repel claims.
        capacities: capacities by qualified name.
        names: qualified names of the capacities, by each name that a request may use.
        plain: whether a request without capacities can have it whenever it is free and selected.
        values: values of the attributes that constraints read.
    """

    id: DeviceId
    device: Device
    shape: DeviceShape
    order: int
    slice: int
    reach: DeviceReach
    selector: NodeSelector | None
    shared: bool
    taints: tuple[DeviceTaint, ...]
    counters: tuple[tuple[CounterName, int], ...]
    capacities: dict[str, Capacity]
    names: dict[str, str]
    plain: bool
    values: dict[str, frozenset[Hashable]] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Pool:
    """The highest generation of a pool.

    Attributes:
        incomplete: whether slices are missing, because the pool is being updated.
        problem: why a complete pool offers nothing, or "".
        offers: its devices by name, in the order of the search: slices by name, then as listed.
        counters: counters that its devices share, in nano-units.
        nodes: nodes that slices or devices name; `reaches` has the other ways to reach them.
        node: the only node that can use it, or "".
        local: devices by the node that they name; `general` has the others.
        binding: slices with devices that have binding conditions.
        sets: names of the counter sets.
        read: devices by the name of their slice, with that slice.
        rules: taint rules that were applied.
        maps: whether any of its devices takes resources of the node.
    """

    id: PoolId
    incomplete: bool = False
    problem: str = ""
    offers: dict[str, PoolDevice] = field(default_factory=dict)
    counters: dict[CounterName, int] = field(default_factory=dict)
    reaches: tuple[DeviceReach, ...] = ()
    nodes: frozenset[str] = frozenset()
    node: str = ""
    local: dict[str, list[PoolDevice]] = field(default_factory=dict)
    general: list[PoolDevice] = field(default_factory=list)
    binding: set[int] = field(default_factory=set)
    sets: set[str] = field(default_factory=set)
    read: dict[str, tuple[ResourceSlice, list[PoolDevice]]] = field(default_factory=dict)
    rules: Sequence[DeviceTaintRule] = ()
    maps: bool = False

    @property
    def usable(self) -> bool:
        """Whether its devices can be allocated."""
        return not self.incomplete and not self.problem

    def includes(self, name: str, labels: Mapping[str, str]) -> bool:
        """Return whether any of its devices is within reach of that node."""
        return name in self.nodes or any(reach.includes(name, labels) for reach in self.reaches)

    def offers_to(self, name: str, labels: Mapping[str, str]) -> list[PoolDevice]:
        """Return the devices within reach of that node, in order."""
        general = [offer for offer in self.general if offer.reach.includes(name, labels)]
        local = self.local.get(name, [])
        return sorted((*local, *general), key=lambda offer: offer.order) if local and general else local or general

    def add(self, offer: PoolDevice) -> None:
        """Add a device. Raise `PoolError` if there is one of that name."""
        if offer.id.device in self.offers:
            raise PoolError(f"duplicate device name {offer.id.device}")
        self.offers[offer.id.device] = offer
        (self.local.setdefault(offer.reach.node, []) if offer.reach.node else self.general).append(offer)
        if offer.device.binding_conditions is not None:
            self.binding.add(offer.slice)


class PoolError(ValueError):
    """The fault of a pool."""


class PoolReading(NamedTuple):
    """The facts with which the slices of every pool are read.

    Attributes:
        taints: rules that taint devices.
        shapes: shapes of all devices.
        in_force: tells whether a rule of a version is in force.
    """

    taints: Sequence[DeviceTaintRule]
    shapes: DeviceShapes
    in_force: Callable[[Rule], bool]


def read_pool(id_: PoolId, slices: Iterable[ResourceSlice], reading: PoolReading, before: Pool | None = None) -> Pool | None:
    """Build the pool of these slices; None if there are none. Reuse devices of unchanged slices of `before`, which ends."""
    newest = _newest(slices)
    if not newest:
        return None
    reaches = tuple(dict.fromkeys(reach for each in newest if not each.spec.shared_counters for reach in _reaches(each.spec)))
    general, nodes = tuple(reach for reach in reaches if not reach.node), frozenset(reach.node for reach in reaches if reach.node)
    pool = Pool(id_, reaches=general, nodes=nodes, node=next(iter(nodes)) if len(nodes) == 1 and not general else "")
    pool.rules = reading.taints
    pool.incomplete = len(newest) != newest[0].spec.pool.resource_slice_count
    if not pool.incomplete:
        try:
            _fill(pool, newest, reading, before)
        except ValueError as problem:
            pool.problem = str(problem)
    return pool


def _newest(slices: Iterable[ResourceSlice]) -> list[ResourceSlice]:
    known = list(slices)
    generation = max((each.spec.pool.generation for each in known), default=0)
    return sorted((each for each in known if each.spec.pool.generation == generation), key=lambda each: each.metadata.name)


def _fill(pool: Pool, slices: Sequence[ResourceSlice], reading: PoolReading, before: Pool | None) -> None:
    for each in slices:
        _add_counters(pool, each.spec)
    kept = before.read if before is not None and _reads_alike(before, pool) else {}
    for number, each in enumerate(slices):
        if each.spec.shared_counters:
            continue
        name, offers = each.metadata.name, list[PoolDevice]()
        known = kept.get(name)
        for place, device in enumerate(each.spec.devices or ()):
            pool.maps = pool.maps or bool(device.node_allocatable_resources or device.node_allocatable_resource_mappings)
            if known is not None and known[0] is each:
                offer = known[1][place]
                offer.order, offer.slice = len(pool.offers), number
            else:
                offer = _offer(pool, each.spec, device, number, reading)
            offers.append(offer)
            pool.add(offer)
        pool.read[name] = each, offers


def _reads_alike(before: Pool, now: Pool) -> bool:
    """Return whether equal slices have equal devices in both pools, because taint rules and counters are the same."""
    same_rules = len(before.rules) == len(now.rules) and all(one is other for one, other in zip(before.rules, now.rules, strict=True))
    return same_rules and before.counters == now.counters


def _add_counters(pool: Pool, spec: ResourceSliceSpec) -> None:
    for counters in spec.shared_counters or ():
        if counters.name in pool.sets:
            raise PoolError(f"duplicate counter set name {counters.name}")
        if counters.counters:
            pool.sets.add(counters.name)
        for name, counter in (counters.counters or {}).items():
            pool.counters[counters.name, name] = nano(counter.value)


def _offer(pool: Pool, spec: ResourceSliceSpec, device: Device, number: int, reading: PoolReading) -> PoolDevice:
    counters = tuple(_consumed(pool, device))
    capacities = _capacities(pool.id.driver, device, reading)
    shared = bool(device.allow_multiple_allocations)
    own = bool(spec.per_device_node_selection)
    return PoolDevice(
        id=DeviceId(*pool.id, device.name),
        device=device,
        shape=reading.shapes.of(pool.id.driver, device),
        order=len(pool.offers),
        slice=number,
        reach=_reach(device) if own else _reach(spec),
        selector=device.node_selector if own else spec.node_selector,
        shared=shared,
        taints=_taints(pool.id, device, pool.rules),
        counters=counters,
        capacities=capacities,
        names=_names(pool.id.driver, capacities, reading),
        plain=not shared and not counters and not any(each.has_policy for each in capacities.values()),
    )


def _capacities(driver: str, device: Device, reading: PoolReading) -> dict[str, Capacity]:
    """Read capacities by qualified name. If a driver publishes one with and without its domain, the former counts."""
    published, fractional = device.capacity or {}, reading.in_force(Rule.FRACTIONAL_CAPACITY)
    return {qualified(name, driver): read_capacity(name, published[name], fractional) for name in qualified_last(published)}


def _names(driver: str, capacities: Mapping[str, Capacity], reading: PoolReading) -> dict[str, str]:
    """Return the qualified name of each capacity by the names that requests may use."""
    names = {capacity.name: name for name, capacity in capacities.items()}
    if reading.in_force(Rule.QUALIFIED_CAPACITY):
        names |= {name: name for name in capacities} | {name.removeprefix(f"{driver}/"): name for name in capacities}
    return names


def _consumed(pool: Pool, device: Device) -> Iterable[tuple[CounterName, int]]:
    for consumption in device.consumes_counters or ():
        if consumption.counter_set not in pool.sets:
            raise PoolError(f"device {device.name} consumes of counter set {consumption.counter_set}, which is not there")
        for name, counter in (consumption.counters or {}).items():
            if (consumption.counter_set, name) not in pool.counters:
                raise PoolError(f"device {device.name} consumes of counter {name}, which counter set {consumption.counter_set} lacks")
            yield (consumption.counter_set, name), nano(counter.value)


def _taints(pool: PoolId, device: Device, rules: Sequence[DeviceTaintRule]) -> tuple[DeviceTaint, ...]:
    added = (rule.spec.taint for rule in rules if _is_about(rule, pool, device.name))
    return tuple(taint for taint in (*(device.taints or ()), *added) if taint.effect in REPELLING)


def _is_about(rule: DeviceTaintRule, pool: PoolId, device: str) -> bool:
    selector = rule.spec.device_selector
    if selector is None:
        return False
    wanted = ((selector.driver, pool.driver), (selector.pool, pool.pool), (selector.device, device))
    return all(asked is None or asked == name for asked, name in wanted)


# --- reach -------------------------------------------------------------------------------------------------------------------


def _reaches(spec: ResourceSliceSpec) -> Iterable[DeviceReach]:
    return [_reach(device) for device in spec.devices or ()] if spec.per_device_node_selection else [_reach(spec)]


def _reach(of: ResourceSliceSpec | Device) -> DeviceReach:
    if of.node_name:
        return DeviceReach(of.node_name)
    if of.all_nodes:
        return DeviceReach(everywhere=True)
    return DeviceReach(terms=None if of.node_selector is None else _terms(of.node_selector))


@lru_cache(maxsize=4096)
def _terms(selector: NodeSelector) -> tuple[NodeTerm, ...]:
    return compile_node_selector(selector)


# --- devices in reach of a node --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class ReachableDevices:
    """The devices in reach of one node.

    Attributes:
        offers: devices of usable pools, by driver and pool, in the order of the pool; pools with binding conditions come last.
        unusable: pools in reach that are incomplete or invalid.
    """

    offers: tuple[tuple[Pool, PoolDevice], ...]
    unusable: tuple[Pool, ...]

    @property
    def maps(self) -> bool:
        """Whether any of the pools has devices that take resources of the node."""
        return any(pool.maps for pool, _ in self.offers)


def look_out(pools: Iterable[Pool], name: str, labels: Mapping[str, str]) -> ReachableDevices:
    """Return the devices in reach of a node of this name and with these labels."""
    usable: list[tuple[bool, Pool, list[PoolDevice]]] = []
    unusable = []
    for pool in pools:
        if not pool.includes(name, labels):
            continue
        if not pool.usable:
            unusable.append(pool)
            continue
        offers = pool.offers_to(name, labels)
        # binding conditions count for a slice with any device in reach, even on its other devices
        usable.append((any(offer.slice in pool.binding for offer in offers), pool, offers))
    usable.sort(key=lambda each: (each[0], each[1].id))
    unusable.sort(key=lambda pool: pool.id)
    return ReachableDevices(tuple((pool, offer) for _, pool, offers in usable for offer in offers), tuple(unusable))
