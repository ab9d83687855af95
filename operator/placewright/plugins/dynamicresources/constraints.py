"""What devices of one claim must have in common, or each for itself."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from placewright.api.devices import DeviceConstraint
from placewright.plugins.dynamicresources.pools import Offer

#: More attributes than a device can have are not kept.
_MOST_VALUES: Final = 64


class Constraint(Protocol):
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


def constraints_of(specs: Sequence[DeviceConstraint] | None) -> list[Constraint]:
    """Fresh constraints, without devices. Each spec is known to be of a kind that there is."""
    made: list[Constraint] = []
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
