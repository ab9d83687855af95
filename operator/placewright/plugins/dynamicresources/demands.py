"""Claims, parsed once: the demand of each request, with the selectors of its class compiled. Parsing finds the faults of a claim."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from placewright.api.devices import (
    ALL_DEVICES,
    EXACT_COUNT,
    MAX_RESULTS,
    DeviceClass,
    DeviceSelector,
    DeviceSubRequest,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaim,
)
from placewright.api.quantity import QuantityError
from placewright.api.tolerations import tolerated
from placewright.cel.syntax import ExpressionError
from placewright.cluster.storage import Table, key_of
from placewright.plugins.dynamicresources.effort import ASK, LOOK, READ, TOLERATE
from placewright.plugins.dynamicresources.pools import Amount, PoolDevice
from placewright.plugins.dynamicresources.selectors import CompiledSelector, CompiledSelectors

Wish = ExactDeviceRequest | DeviceSubRequest
#: Most selectors of one claim, over all alternatives, and most characters of them: all are compiled before any device is read.
MOST_SELECTORS: Final = 256
MOST_SELECTOR_TEXT: Final = 64 * 1024


class DemandError(ValueError):
    """A fault of a claim, of its class, or of a selector's answer. The message names the object and the field."""


class SelectorFailed(DemandError):
    """A selector has no answer for a device. As in kube-scheduler, that ends the whole attempt, with its message."""


class SelectorCondition(NamedTuple):
    """An expression, and the object whose selector it is."""

    expression: CompiledSelector
    whose: str


@dataclass(frozen=True, slots=True, eq=False)
class DeviceDemand:
    """One request, or one of its alternatives.

    Attributes:
        name: name in results: `request`, or `request/subrequest`.
        where: claim and request, as messages name them.
        names: names by which constraints may refer to it.
        count: number of devices; 0 for all that match.
        wish: the request as written.
        pattern: equal for demands that the same devices serve; None if more than being free and selected decides.
    """

    name: str
    where: str
    names: frozenset[str]
    device_class: DeviceClass
    wish: Wish
    count: int
    admin: bool
    conditions: tuple[SelectorCondition, ...]
    capacity: dict[str, Amount]
    pattern: tuple[tuple[str, ...], tuple[DeviceToleration, ...]] | None

    @property
    def look_steps(self) -> int:
        """Steps of reading one device, without its taints."""
        return LOOK + ASK * (len(self.conditions) + len(self.capacity))

    def taint_steps(self, offer: PoolDevice) -> int:
        """Return the most steps that comparing tolerations with the taints of a device takes."""
        return TOLERATE * len(offer.taints) * (1 + len(self.wish.tolerations or ()))

    def selects(self, offer: PoolDevice) -> bool:
        """Return whether class and request select this device. Raise `SelectorFailed` if an expression has no answer."""
        for condition in self.conditions:
            verdict = offer.shape.matches(condition.expression)
            if isinstance(verdict, str):
                raise SelectorFailed(f"{condition.whose}: CEL runtime error: {verdict}")
            if not verdict:
                return False
        return True

    def tolerates(self, offer: PoolDevice) -> bool:
        """Return whether this demand tolerates all taints of the device."""
        return all(tolerated(taint, self.wish.tolerations or ()) for taint in offer.taints)


@dataclass(frozen=True, slots=True, eq=False)
class ClaimDemand:
    """A claim with the alternatives of each request, by preference; a request without a choice has one."""

    claim: ResourceClaim
    key: str
    requests: tuple[tuple[DeviceDemand, ...], ...]


class ClaimReader:
    """Parses claims."""

    def __init__(self, classes: Table[DeviceClass], expressions: CompiledSelectors) -> None:
        self._classes = classes
        self._expressions = expressions

    def read(self, claim: ResourceClaim) -> ClaimDemand:
        """Parse the demands of a claim. Raise `DemandError` or `OutOfSteps`."""
        key = key_of(claim.metadata)
        _check_selectors(claim, key)
        requests = []
        for i, request in enumerate(claim.spec.devices.requests or ()):
            path = f"spec.devices.requests[{i}]"
            where = f"resource claim {key}, request {request.name}"
            if request.exactly is not None:
                demands = [self._demand(key, where, f"{path}.exactly", request.name, "", request.exactly)]
            else:
                alternatives = enumerate(request.first_available or ())
                demands = [self._demand(key, where, f"{path}.firstAvailable[{j}]", request.name, sub.name, sub) for j, sub in alternatives]
            if not demands:
                raise DemandError(f"{where}: unknown request type")
            requests.append(tuple(demands))
        for i, constraint in enumerate(claim.spec.devices.constraints or ()):
            if constraint.match_attribute is None and constraint.distinct_attribute is None:
                raise DemandError(f"resource claim {key}: spec.devices.constraints[{i}] is of a kind that is not supported")
        demand = ClaimDemand(claim, key, tuple(requests))
        check_size(demand, [[each.count for each in request] for request in demand.requests])
        return demand

    def of_class(self, name: str) -> DeviceDemand:
        """Return the demand for one device of a class. Raise `DemandError` or `OutOfSteps`."""
        return self._demand("", f"device class {name}", "", "device", "", ExactDeviceRequest(device_class_name=name))

    def _demand(self, claim: str, where: str, path: str, request: str, sub: str, wish: Wish) -> DeviceDemand:
        self._expressions.effort.spend(READ)
        device_class = self._class(where, f"{request}/{sub}" if sub else request, wish)
        count = _count(where, path, wish)
        conditions = (
            *self._conditions("device class", device_class.metadata.name, "spec", device_class.spec.selectors),
            *self._conditions("resource claim", claim, path, wish.selectors),
        )
        admin = isinstance(wish, ExactDeviceRequest) and bool(wish.admin_access)
        capacity = _capacity(where, path, wish)
        simple = not sub and count and not admin and not capacity
        expressions = tuple(dict.fromkeys(each.expression.source for each in conditions))
        return DeviceDemand(
            name=f"{request}/{sub}" if sub else request,
            where=f"claim {claim}, request {sub or request}",
            names=frozenset((request, f"{request}/{sub}")) if sub else frozenset((request,)),
            device_class=device_class,
            wish=wish,
            count=count,
            admin=admin,
            conditions=conditions,
            capacity=capacity,
            pattern=(expressions, wish.tolerations or ()) if simple else None,
        )

    def _class(self, where: str, request: str, wish: Wish) -> DeviceClass:
        if not wish.device_class_name:
            raise DemandError(f"{where}: missing device class name (unsupported request type?)")
        device_class = self._classes.get(wish.device_class_name)
        if device_class is None:
            raise DemandError(f"request {request}: device class {wish.device_class_name} does not exist")
        return device_class

    def _conditions(self, kind: str, name: str, path: str, selectors: Sequence[DeviceSelector] | None) -> list[SelectorCondition]:
        conditions = []
        for i, selector in enumerate(selectors or ()):
            field = f"{kind} {name}: {path}.selectors[{i}]"
            if selector.cel is None:
                raise DemandError(f"{field} is of a kind that is not supported")
            field, whose = f"{field}.cel.expression", f"{kind.rpartition(' ')[2]} {name}: selector #{i}"
            try:
                conditions.append(SelectorCondition(self._expressions.get(selector.cel.expression), whose))
            except ExpressionError as error:
                raise DemandError(f"{field}: {error}") from None
        return conditions


def _check_selectors(claim: ResourceClaim, key: str) -> None:
    """Refuse a claim with more selectors than users write. Compiling the largest that the API allows takes seconds."""
    requests = claim.spec.devices.requests or ()
    wishes = [wish for each in requests for wish in (each.exactly, *(each.first_available or ())) if wish is not None]
    written = [selector.cel.expression for wish in wishes for selector in wish.selectors or () if selector.cel is not None]
    if len(written) > MOST_SELECTORS:
        raise DemandError(f"resource claim {key}: has {len(written)} selectors, this scheduler evaluates at most {MOST_SELECTORS}")
    length = sum(map(len, written))
    if length > MOST_SELECTOR_TEXT:
        raise DemandError(f"resource claim {key}: has {length} characters of selectors, this scheduler reads at most {MOST_SELECTOR_TEXT}")


def check_size(demand: ClaimDemand, counts: Sequence[Sequence[int]]) -> None:
    """Refuse a claim whose requests need more devices than a claim may have, even at the least. Raise `DemandError`."""
    least = sum(min(each) for each in counts)
    if least > MAX_RESULTS:
        raise DemandError(f"claim {demand.key}: number of requested devices {least} exceeds the claim limit of {MAX_RESULTS}")


def _count(where: str, path: str, wish: Wish) -> int:
    if wish.allocation_mode == ALL_DEVICES:
        return 0
    if wish.allocation_mode != EXACT_COUNT:
        raise DemandError(f"{where}: {path}.allocationMode {wish.allocation_mode} is not supported")
    if wish.count < 1:
        raise DemandError(f"{where}: {path}.count is {wish.count}, must be at least 1")
    return wish.count


def _capacity(where: str, path: str, wish: Wish) -> dict[str, Amount]:
    asked = {} if wish.capacity is None else wish.capacity.requests or {}
    try:
        return {name: Amount.of(amount) for name, amount in asked.items()}
    except QuantityError as error:
        raise DemandError(f"{where}: {path}.capacity.requests: {error}") from None
