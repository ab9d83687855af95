"""Constraints between devices of one claim, and quick proofs that no choice of devices satisfies them.

Each proof is a necessary condition only, and leaves out what it cannot count simply: alternatives, administrators, shared devices. It saves
a search that would try every order of equal devices.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from placewright.api.devices import DeviceConstraint
from placewright.plugins.dynamicresources.demands import ClaimDemand, DeviceDemand
from placewright.plugins.dynamicresources.effort import COMPARE, VISIT, StepBudget
from placewright.plugins.dynamicresources.pools import DeviceId, PoolDevice

# --- constraints -----------------------------------------------------------------------------------------------------------------


#: Most attributes whose values are kept for a device: more than a device can have.
_MOST_VALUES: Final = 64
#: Fields of an attribute by type; lists have the plural.
_TYPES: Final = ("text", "number", "truth", "version")


@dataclass(slots=True)
class AttributeConstraint:
    """A condition on an attribute of the added devices. The last device is taken back first, as with a stack.

    All devices have the attribute. They have one value in common or, if `distinct`, each has values of its own. kube-scheduler compares
    with the last device of each request only. Here a new device is compared with all, as the API describes it.

    Adding more devices never makes a broken constraint whole, so a search may turn back at the first refusal.
    """

    requests: frozenset[str]
    attribute: str
    distinct: bool
    #: Values after each device: the values that all devices have in common, or if `distinct` the values of all together.
    _values: list[frozenset[Hashable]] = field(default_factory=list)

    def add(self, offer: PoolDevice, names: frozenset[str]) -> bool:
        """Add a device for the request of these names. Return False, and add nothing, if that breaks the constraint."""
        if self.requests and not self.requests & names:
            return True
        values = values_of(offer, self.attribute)
        if self._values and values:
            before = self._values[-1]
            if not self.distinct:
                values &= before
            elif before.isdisjoint(values):
                values |= before
            else:
                values = frozenset()
        if values:
            self._values.append(values)
        return bool(values)

    def take_back(self, names: frozenset[str]) -> None:
        """Undo the last `add` for the request of these names that returned True."""
        if not self.requests or self.requests & names:
            self._values.pop()


def constraints_of(specs: Sequence[DeviceConstraint] | None) -> list[AttributeConstraint]:
    """Create the constraints of these specs, without devices. Each spec is of a known kind."""
    named = ((spec, spec.match_attribute or spec.distinct_attribute or "") for spec in specs or ())
    return [AttributeConstraint(frozenset(spec.requests or ()), name, spec.match_attribute is None) for spec, name in named]


def values_of(offer: PoolDevice, name: str) -> frozenset[Hashable]:
    """Return the values of an attribute with their types, by full name, or without domain if it is the driver's; none if absent.

    A list attribute has several values.
    """
    if name not in offer.values:
        if len(offer.values) >= _MOST_VALUES:
            offer.values.clear()
        offer.values[name] = _look_up(offer, name)
    return offer.values[name]


def _look_up(offer: PoolDevice, name: str) -> frozenset[Hashable]:
    attributes = offer.device.attributes or {}
    attribute = attributes.get(name)
    if attribute is None:
        domain, _, identifier = name.partition("/")
        attribute = attributes.get(identifier) if domain == offer.id.driver else None
    if attribute is None:
        return frozenset()
    alone = [(kind, getattr(attribute, kind)) for kind in _TYPES]
    lists = [(kind, each) for kind in _TYPES for each in getattr(attribute, f"{kind}s") or ()]
    return frozenset((kind, each) for kind, each in (*alone, *lists) if each is not None)


def applies(constraint: DeviceConstraint, names: frozenset[str]) -> bool:
    """Return whether a constraint applies to the request of these names."""
    return not constraint.requests or bool(names & set(constraint.requests))


# --- proofs ----------------------------------------------------------------------------------------------------------------------


#: Most devices that are matched, because each takes a nested call.
_MOST_SEATS: Final = 128
#: Most devices that are visited to prove one claim hopeless on one node; beyond that only the search decides.
_MOST_VISITS: Final = 20_000


class DeviceNeed(NamedTuple):
    """A demand without alternatives: a number of devices, and the devices that may serve it, none of them shared."""

    claim: int
    demand: DeviceDemand
    offers: Sequence[PoolDevice]


class InfeasibilityProofs:
    """Proofs that needs cannot be served. Each counts what it reads, and a proof that takes too long proves nothing."""

    def __init__(self, effort: StepBudget) -> None:
        self._effort = effort
        self._visits = _MOST_VISITS

    def hopeless(self, claims: Sequence[ClaimDemand], needs: Sequence[DeviceNeed]) -> bool:
        """Return whether these needs certainly cannot be served at once. Raise `OutOfSteps`."""
        if not self._can_seat([(need.demand.count, [offer.id for offer in need.offers]) for need in needs]):
            return True
        for number, claim in enumerate(claims):
            for constraint in claim.claim.spec.devices.constraints or ():
                self._effort.spend(VISIT * len(needs))
                about = [need for need in needs if need.claim == number and applies(constraint, need.demand.names)]
                if about and not self._can_hold(constraint, about):
                    return True
        return False

    def _can_hold(self, constraint: DeviceConstraint, needs: Sequence[DeviceNeed]) -> bool:
        """Return whether there are devices of enough values, or enough devices of one value."""
        self._effort.spend(COMPARE * sum(len(need.offers) for need in needs))
        by_value = [_by_value(constraint.match_attribute or constraint.distinct_attribute or "", need.offers) for need in needs]
        counts = [need.demand.count for need in needs]
        if constraint.match_attribute is None:
            return self._can_seat(list(zip(counts, by_value, strict=True)))
        alike = ([each.get(value, ()) for each in by_value] for value in by_value[0])
        return any(self._can_seat(list(zip(counts, offers, strict=True))) for offers in alike)

    def _can_seat(self, parties: Sequence[tuple[int, Collection[Hashable]]]) -> bool:
        """Return whether each party can get its number of seats, one party a seat; True if there are too many to try."""
        self._effort.spend(VISIT * (2 + len(parties)))
        if any(count > len(seats) for count, seats in parties):
            return False
        if len(parties) <= 1 or sum(count for count, _ in parties) > _MOST_SEATS:
            return True
        taken: dict[Hashable, Collection[Hashable]] = {}
        try:
            return all(self._seat(seats, taken, set()) for count, seats in parties for _ in range(count))
        except _TooLong:
            return True

    def _seat(self, seats: Collection[Hashable], taken: dict[Hashable, Collection[Hashable]], tried: set[Hashable]) -> bool:
        """Seat one more, and move others if necessary (an augmenting path)."""
        for seat in seats:
            self._visit()
            if seat not in tried:
                tried.add(seat)
                if seat not in taken or self._seat(taken[seat], taken, tried):
                    taken[seat] = seats
                    return True
        return False

    def _visit(self) -> None:
        self._effort.spend(VISIT)
        self._visits -= 1
        if self._visits < 0:
            raise _TooLong


class _TooLong(Exception):
    """A proof visits more devices than it may."""


def _by_value(attribute: str, offers: Iterable[PoolDevice]) -> dict[Hashable, list[DeviceId]]:
    """Group devices by the values of an attribute; devices without the attribute are left out."""
    found: dict[Hashable, list[DeviceId]] = {}
    for offer in offers:
        for value in values_of(offer, attribute):
            found.setdefault(value, []).append(offer.id)
    return found
