"""Amounts of a device: what a request takes of them, and whether it may. Amounts are in nano-units.

Rules: KEP-5075. A device that is allocated several times serves requests until its capacities are used up; a policy may round requests up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from placewright.api.devices import CapacityPolicy, DeviceCapacity
from placewright.api.objects import RawQuantity
from placewright.api.quantity import NANO, nano

_SUFFIXES: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
#: What requests take, by capacity.
Amounts = Mapping[str, int]


class Amount(NamedTuple):
    """An amount, and how it is written."""

    nanos: int
    text: RawQuantity

    @classmethod
    def of(cls, text: RawQuantity) -> Amount:
        """Raises `QuantityError`."""
        return cls(nano(text), text)


@dataclass(frozen=True, slots=True)
class Range:
    """What may be asked, in steps from the least on."""

    least: int | None
    most: int | None
    step: int | None


@dataclass(frozen=True, slots=True)
class Capacity:
    """One capacity of a device.

    Attributes:
        default: what a request takes that does not name this capacity; None: all there is.
        choices: what can be asked for, ascending; empty where there is no such rule.
    """

    total: Amount
    has_policy: bool = False
    default: Amount | None = None
    choices: tuple[Amount, ...] = ()
    range: Range | None = None

    def taken_by(self, asked: Amount | None) -> Amount:
        """What a request takes that asks for this much, rounded up as the policy says."""
        if asked is None:
            return self.default or self.total
        if self.range is not None and self.range.least is not None:
            return _rounded_up(asked, self.range.least, self.range.step)
        return next((choice for choice in self.choices if asked.nanos <= choice.nanos), asked)

    def may_take(self, nanos: int) -> bool:
        """True when the policy lets a request take this much."""
        if not self.has_policy or (self.default is not None and self.default.nanos == nanos):
            return True
        if self.range is not None:
            return _in_range(nanos, self.range)
        return not self.choices or any(choice.nanos == nanos for choice in self.choices)


def read_capacity(capacity: DeviceCapacity) -> Capacity:
    """A capacity as drivers publish it. Raises `QuantityError`, and `ValueError` for a step that is no step."""
    policy: CapacityPolicy | None = capacity.request_policy
    if policy is None:
        return Capacity(Amount.of(capacity.value))
    bounds = None
    if policy.valid_range is not None:
        given = policy.valid_range
        bounds = Range(*(None if each is None else nano(each) for each in (given.min, given.max, given.step)))
        if bounds.step is not None and (bounds.step <= 0 or bounds.least is None):
            raise ValueError("validRange has a step without a min, or one that is not positive")
    choices = tuple(Amount.of(each) for each in policy.valid_values or ())
    return Capacity(Amount.of(capacity.value), True, None if policy.default is None else Amount.of(policy.default), choices, bounds)


def takes(capacities: Mapping[str, Capacity], asked: Mapping[str, Amount], used: Amounts, taking: Amounts) -> dict[str, Amount] | None:
    """What of each capacity a request takes; None when there is not as much left, or it may not be asked for.

    Args:
        capacities: of the device.
        asked: by the request.
        used: by claims that are allocated.
        taking: by the claims that are being allocated.
    """
    if not asked.keys() <= capacities.keys():
        return None
    taken = {name: capacity.taken_by(asked.get(name)) for name, capacity in capacities.items()}
    for name, amount in taken.items():
        capacity = capacities[name]
        if not capacity.may_take(amount.nanos) or used.get(name, 0) + taking.get(name, 0) + amount.nanos > capacity.total.nanos:
            return None
    return taken


def _rounded_up(asked: Amount, least: int, step: int | None) -> Amount:
    if asked.nanos < least:
        return Amount(least, _written(least))
    if step is None:
        return asked
    start, stride = _units(least), _units(step)
    units = start + -(-(_units(asked.nanos) - start) // stride) * stride
    return Amount(units * NANO, _written(units * NANO))


def _in_range(nanos: int, bounds: Range) -> bool:
    if bounds.most is not None and nanos > bounds.most:
        return False
    return bounds.step is None or (_units(nanos) - _units(bounds.least or 0)) % _units(bounds.step) == 0


def _units(nanos: int) -> int:
    """Whole units, rounded up: steps are counted in these."""
    return -(-nanos // NANO)


def _written(nanos: int) -> str:
    """As API servers write amounts of memory: with the largest binary suffix that leaves a whole number."""
    if nanos % NANO:
        return f"{nanos}n"
    units, power = nanos // NANO, 0
    while units and units % 1024 == 0 and power < len(_SUFFIXES) - 1:
        units, power = units // 1024, power + 1
    return f"{units}{_SUFFIXES[power]}"
