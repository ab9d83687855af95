"""What devices of one claim must have in common, or each for itself, and quick proofs that no choice of devices can hold to it.

Each proof is a necessary condition only, and leaves out what it cannot count simply: alternatives, administrators, shared devices. It
spares a search that would try every order of devices that are all alike.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

from placewright.api.devices import DeviceConstraint
from placewright.plugins.dynamicresources.demands import ClaimDemand, DeviceDemand
from placewright.plugins.dynamicresources.pools import Offer

# --- constraints -----------------------------------------------------------------------------------------------------------------


#: More attributes than a device can have are not kept.
_MOST_VALUES: Final = 64


class AttributeConstraint(Protocol):
    """A condition on the devices that were added and not taken away again, in the order of a stack.

    Adding more devices never makes a broken constraint whole, so a search may turn back at the first refusal.
    """

    def add(self, offer: Offer, names: frozenset[str]) -> bool:
        """Add a device for the request of these names; False, and nothing added, where that breaks the constraint."""

    def take_back(self, names: frozenset[str]) -> None:
        """Undo the last `add` for the request of these names that was True."""


@dataclass(slots=True)
class MatchAttribute:
    """All devices have this attribute, with one value."""

    requests: frozenset[str]
    attribute: str
    _values: list[Hashable] = field(default_factory=list)

    def add(self, offer: Offer, names: frozenset[str]) -> bool:
        """True when the device fits in with those before."""
        if self.requests and not self.requests & names:
            return True
        value = attribute_of(offer, self.attribute)
        if value is None or (self._values and self._values[-1] != value):
            return False
        self._values.append(value)
        return True

    def take_back(self, names: frozenset[str]) -> None:
        """Forget the last device."""
        if not self.requests or self.requests & names:
            self._values.pop()


@dataclass(slots=True)
class DistinctAttribute:
    """All devices have this attribute, each with a value of its own.

    kube-scheduler compares with the last device of each request only; here it is all of them, as the API's words say.
    """

    requests: frozenset[str]
    attribute: str
    _values: list[Hashable] = field(default_factory=list)

    def add(self, offer: Offer, names: frozenset[str]) -> bool:
        """True when the device differs from all before."""
        if self.requests and not self.requests & names:
            return True
        value = attribute_of(offer, self.attribute)
        if value is None or value in self._values:
            return False
        self._values.append(value)
        return True

    def take_back(self, names: frozenset[str]) -> None:
        """Forget the last device."""
        if not self.requests or self.requests & names:
            self._values.pop()


def constraints_of(specs: Sequence[DeviceConstraint] | None) -> list[AttributeConstraint]:
    """Fresh constraints, without devices. Each spec is known to be of a kind that there is."""
    made: list[AttributeConstraint] = []
    for spec in specs or ():
        requests = frozenset(spec.requests or ())
        if spec.match_attribute is not None:
            made.append(MatchAttribute(requests, spec.match_attribute))
        else:
            made.append(DistinctAttribute(requests, spec.distinct_attribute or ""))
    return made


def attribute_of(offer: Offer, name: str) -> Hashable | None:
    """The value of an attribute with its type, by its full name or, in the driver's domain, without it; None where there is none."""
    if name not in offer.values:
        if len(offer.values) >= _MOST_VALUES:
            offer.values.clear()
        offer.values[name] = _look_up(offer, name)
    return offer.values[name]


def _look_up(offer: Offer, name: str) -> Hashable | None:
    attributes = offer.device.attributes or {}
    attribute = attributes.get(name)
    if attribute is None:
        domain, _, identifier = name.partition("/")
        attribute = attributes.get(identifier) if domain == offer.id.driver else None
    if attribute is None:
        return None
    values = (("string", attribute.text), ("int", attribute.number), ("bool", attribute.truth), ("version", attribute.version))
    return next((each for each in values if each[1] is not None), None)


def applies(constraint: DeviceConstraint, names: frozenset[str]) -> bool:
    """True when a constraint is about the request of these names."""
    return not constraint.requests or bool(names & set(constraint.requests))


# --- proofs ----------------------------------------------------------------------------------------------------------------------


#: More devices are not matched: that takes as many nested calls.
_MOST_SEATS: Final = 128


class Need(NamedTuple):
    """A demand without alternatives, for a number of devices, and those that it may have, none of which can be shared."""

    claim: int
    demand: DeviceDemand
    offers: Sequence[Offer]


def hopeless(claims: Sequence[ClaimDemand], needs: Sequence[Need]) -> bool:
    """True when there surely is no way to serve these needs at once."""
    if not _can_seat((need.demand.count, [offer.id for offer in need.offers]) for need in needs):
        return True
    for number, claim in enumerate(claims):
        for constraint in claim.claim.spec.devices.constraints or ():
            about = [need for need in needs if need.claim == number and applies(constraint, need.demand.names)]
            if about and not _can_hold(constraint, about):
                return True
    return False


def _can_hold(constraint: DeviceConstraint, needs: Sequence[Need]) -> bool:
    """Whether devices of enough values, or enough of one value, are there."""
    name = constraint.match_attribute or constraint.distinct_attribute or ""
    by_value = [[(attribute_of(offer, name), offer) for offer in need.offers] for need in needs]
    if constraint.match_attribute is None:
        values = ({value for value, _ in each if value is not None} for each in by_value)
        return _can_seat((need.demand.count, each) for need, each in zip(needs, values, strict=True))
    first = {value for value, _ in by_value[0] if value is not None}
    alike = (zip(needs, ([offer.id for one, offer in each if one == value] for each in by_value), strict=True) for value in first)
    return any(_can_seat((need.demand.count, offers) for need, offers in each) for each in alike)


def _can_seat(parties: Iterable[tuple[int, Collection[Hashable]]]) -> bool:
    """Whether each party gets as many seats of those that it may have; each seat is for one. True for more than can be tried."""
    known = list(parties)
    if any(count > len(seats) for count, seats in known):
        return False
    if len(known) <= 1 or sum(count for count, _ in known) > _MOST_SEATS:
        return True
    taken: dict[Hashable, Collection[Hashable]] = {}
    return all(_seat(seats, taken, set()) for count, seats in known for _ in range(count))


def _seat(seats: Collection[Hashable], taken: dict[Hashable, Collection[Hashable]], tried: set[Hashable]) -> bool:
    """Seat one more, moving others if need be (an augmenting path)."""
    for seat in seats:
        if seat not in tried:
            tried.add(seat)
            if seat not in taken or _seat(taken[seat], taken, tried):
                taken[seat] = seats
                return True
    return False
