"""Quick proofs that a search would find nothing, so that it is spared: it would try every order of devices that are all alike.

Each is a necessary condition only, and leaves out what it cannot count simply: alternatives, administrators, shared devices.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Sequence
from typing import Final, NamedTuple

from placewright.api.devices import DeviceConstraint
from placewright.plugins.dynamicresources.constraints import applies, attribute_of
from placewright.plugins.dynamicresources.demands import ClaimDemand, Demand
from placewright.plugins.dynamicresources.pools import Offer

#: More devices are not matched: that takes as many nested calls.
_MOST_SEATS: Final = 128


class Need(NamedTuple):
    """A demand without alternatives, for a number of devices, and those that it may have, none of which can be shared."""

    claim: int
    demand: Demand
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
