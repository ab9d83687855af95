"""The search for devices: depth first, and the first way to serve all claims wins.

The order decides the result, so it is kube-scheduler's: claims and requests as listed, alternatives by preference, devices in the order of
`ReachableDevices`. Within one request devices are chosen in ascending order only, because another order would be the same choice again. A
search is limited in steps, not in seconds, so that it ends the same way on any machine. Other work draws on the budget of the whole
decision (`effort`).

Devices of a pool may share counters. Partitions of one device draw on them, so not all can be allocated at the same time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from placewright.api.devices import MAX_RESULTS
from placewright.plugins.dynamicresources.constraints import DeviceNeed, InfeasibilityProofs, constraints_of
from placewright.plugins.dynamicresources.demands import ClaimDemand, DemandError, DeviceDemand, check_size
from placewright.plugins.dynamicresources.effort import AMOUNT, BRANCH, CONSTRAIN, DRAW, DRAW_AT_ALL, LOOK, TRY, StepBudget
from placewright.plugins.dynamicresources.inventory import Usage
from placewright.plugins.dynamicresources.pools import (
    Amount,
    Amounts,
    CounterName,
    DeviceId,
    Pool,
    PoolDevice,
    PoolId,
    ReachableDevices,
    takes,
)

# --- counters that devices of a pool share ---------------------------------------------------------------------------------------


class Counters:
    """Remaining counters of pools while devices are being chosen, in nano-units."""

    def __init__(self, usage: Usage, effort: StepBudget) -> None:
        self._usage = usage
        self._effort = effort
        self._left: dict[PoolId, dict[CounterName, int]] = {}

    def take(self, pool: Pool, offer: PoolDevice) -> bool:
        """Draw the counters that a device consumes. Return False, and draw nothing, if any counter has less left.

        As in kube-scheduler, a pool with any overdrawn counter yields no more devices that draw on counters.
        """
        left = self._left_of(pool)
        self._effort.spend(DRAW_AT_ALL + DRAW * len(left))
        self._draw(left, offer, 1)
        if min(left.values()) < 0:
            self._draw(left, offer, -1)
            return False
        return True

    def give_back(self, pool: Pool, offer: PoolDevice) -> None:
        """Undo `take`."""
        self._draw(self._left_of(pool), offer, -1)

    def _left_of(self, pool: Pool) -> dict[CounterName, int]:
        left = self._left.get(pool.id)
        if left is None:
            self._effort.spend(DRAW * (len(pool.counters) + len(pool.offers)))
            left = self._left[pool.id] = dict(pool.counters)
            for offer in pool.offers.values():
                if offer.counters and self._usage.in_use(offer.id):
                    self._draw(left, offer, 1)
        return left

    @staticmethod
    def _draw(left: dict[CounterName, int], offer: PoolDevice, sign: int) -> None:
        for name, amount in offer.counters:
            left[name] -= sign * amount


# --- the search ------------------------------------------------------------------------------------------------------------------


#: A step tries one device for one request.
MOST_STEPS: Final = 10_000


class GaveUp(Exception):
    """The search took too many steps."""


@dataclass(frozen=True, slots=True, eq=False)
class Pick:
    """A device chosen for a demand.

    Attributes:
        share_id: id of the share of the device; None for the whole device.
        consumed: capacities that such a share consumes.
    """

    demand: DeviceDemand
    offer: PoolDevice
    share_id: str | None
    consumed: dict[str, Amount]


class SearchPosition(NamedTuple):
    """The position of a search.

    Attributes:
        alternative: index of the request's alternative; -1 while none is chosen.
        device: number of devices that the request has so far.
        start: index of the first candidate to try next.
    """

    claim: int
    request: int
    alternative: int = -1
    device: int = 0
    start: int = 0


class CandidateDevice(NamedTuple):
    """A device that a demand may get, or the error that ends the search when it is reached."""

    pool: Pool
    offer: PoolDevice
    error: DemandError | None = None


class SearchTask(NamedTuple):
    """Some claims, and one node whose devices may serve them.

    Attributes:
        outlook: devices that the node reaches.
        usage: use of all devices.
        claims: claims to serve.
        effort: step budget of the whole decision.
    """

    outlook: ReachableDevices
    usage: Usage
    claims: Sequence[ClaimDemand]
    effort: StepBudget


class DeviceSearch:
    """The search for devices for some claims on one node."""

    def __init__(self, task: SearchTask, new_share_id: Callable[[], str], steps: int) -> None:
        """Prepare a search of at most `steps` steps."""
        self._outlook, self._usage, self._claims, self._effort = task
        self.picks: list[list[Pick]] = [[] for _ in self._claims]
        self.steps = 0
        self._new_share_id = new_share_id
        self._limit = steps
        self._candidates: dict[DeviceDemand, list[CandidateDevice]] = {}
        self._constraints = [constraints_of(each.claim.spec.devices.constraints) for each in self._claims]
        self._try_steps = [TRY + CONSTRAIN * len(each) for each in self._constraints]
        self._counters = Counters(self._usage, self._effort)
        #: Claims that have chosen each device for exclusive use.
        self._owners: dict[DeviceId, list[int]] = {}
        self._taking: dict[DeviceId, dict[str, int]] = {}
        self._shares: dict[DeviceId, int] = {}

    def run(self) -> bool:
        """Search, and return whether `picks` serve all claims. Raise `DemandError`, `GaveUp` or `OutOfSteps`."""
        alternatives = sum(len(request) for claim in self._claims for request in claim.requests)
        self._effort.spend(LOOK * (alternatives + sum(map(len, self._constraints))))
        least = [self._least(claim) for claim in self._claims]
        self._rest = [[sum(counts[i + 1 :]) for i in range(len(counts))] for counts in least]
        if InfeasibilityProofs(self._effort).hopeless(self._claims, self._needs()):
            return False
        place = self._following(0, -1)
        stack = [] if place is None else [self._moves(place)]
        while stack:
            try:
                place = next(stack[-1])
            except StopIteration:
                stack.pop()
                continue
            if place is None:
                return True
            stack.append(self._moves(place))
        return place is None

    def _least(self, claim: ClaimDemand) -> list[int]:
        counts = [[self._wanted(demand) for demand in request] for request in claim.requests]
        check_size(claim, counts)
        return [min(each) for each in counts]

    def _wanted(self, demand: DeviceDemand) -> int:
        return demand.count or len(self._all(demand))

    def _following(self, claim: int, request: int) -> SearchPosition | None:
        """Return the position of the next request, None after the last one."""
        request += 1
        while claim < len(self._claims):
            if request < len(self._claims[claim].requests):
                return SearchPosition(claim, request)
            claim, request = claim + 1, 0
        return None

    def _moves(self, place: SearchPosition) -> Iterator[SearchPosition | None]:
        """Yield each move from here: made when yielded, undone when the next is asked for. None means that all is served."""
        if place.alternative < 0:
            return self._alternatives(place)
        demand = self._claims[place.claim].requests[place.request][place.alternative]
        if place.device >= (demand.count or len(self._all(demand))):
            return iter((self._following(place.claim, place.request),))
        return self._devices(place, demand)

    def _alternatives(self, place: SearchPosition) -> Iterator[SearchPosition | None]:
        chosen, rest = len(self.picks[place.claim]), self._rest[place.claim][place.request]
        alternatives = self._claims[place.claim].requests[place.request]
        self._effort.spend(BRANCH * len(alternatives))
        for i, demand in enumerate(alternatives):
            wanted = self._wanted(demand)
            if wanted and chosen + wanted + rest <= MAX_RESULTS:
                yield place._replace(alternative=i)

    def _devices(self, place: SearchPosition, demand: DeviceDemand) -> Iterator[SearchPosition | None]:
        exact = bool(demand.count)
        candidates = self._some(demand) if exact else self._all(demand)
        for i in range(place.start if exact else place.device, len(candidates) if exact else place.device + 1):
            self._step(self._try_steps[place.claim])
            pool, offer, error = candidates[i]
            if error is not None:
                raise error
            if self._take(place.claim, demand, pool, offer):
                yield place._replace(device=place.device + 1, start=i + 1)
                self._give_back(place.claim, pool)

    def _step(self, cost: int) -> None:
        if self.steps >= self._limit:
            raise GaveUp
        self.steps += 1
        self._effort.spend(cost)

    def _needs(self) -> list[DeviceNeed]:
        """Collect the needs that are known before the search; none if the search may end with an error."""
        needs = []
        for number, claim in enumerate(self._claims):
            for demand in (request[0] for request in claim.requests if len(request) == 1):
                candidates = self._some(demand)
                if any(each.error is not None for each in candidates):
                    return []
                if demand.count and not demand.admin and not any(each.offer.shared for each in candidates):
                    needs.append(DeviceNeed(number, demand, [each.offer for each in candidates]))
        return needs

    # --- candidates ------------------------------------------------------------------------------------------------------

    def _some(self, demand: DeviceDemand) -> list[CandidateDevice]:
        """Find the devices that a demand may get, as far as the search cannot change that."""
        known = self._candidates.get(demand)
        if known is None:
            self._effort.spend(demand.look_steps * len(self._outlook.offers))
            known = self._candidates[demand] = []
            for pool, offer in self._outlook.offers:
                if not demand.admin and self._usage.prevents(offer):
                    continue
                if offer.taints:
                    self._effort.spend(demand.taint_steps(offer))
                try:
                    if demand.selects(offer) and self._amounts(demand, offer, {}) is not None and demand.tolerates(offer):
                        known.append(CandidateDevice(pool, offer))
                except DemandError as error:
                    known.append(CandidateDevice(pool, offer, error))
                    break
        return known

    def _all(self, demand: DeviceDemand) -> list[CandidateDevice]:
        """Find every device that a demand selects, also in use. Raise `DemandError` if a pool is incomplete or invalid."""
        known = self._candidates.get(demand)
        if known is None:
            for pool in self._outlook.unusable:
                state = "being updated" if pool.incomplete else "invalid"
                raise DemandError(f"{demand.where}: asks for all devices, but resource pool {pool.id} is currently {state}")
            self._effort.spend(demand.look_steps * len(self._outlook.offers))
            chosen = (each for each in self._outlook.offers if demand.selects(each[1]) and self._amounts(demand, each[1], {}) is not None)
            known = self._candidates[demand] = [CandidateDevice(*each) for each in chosen]
        return known

    # --- taking and giving back ------------------------------------------------------------------------------------------

    def _take(self, claim: int, demand: DeviceDemand, pool: Pool, offer: PoolDevice) -> bool:
        if not self._is_free(claim, demand, offer):
            return False
        if not demand.count and offer.taints:  # `_some` leaves out what a demand for a number of devices does not tolerate
            self._effort.spend(demand.taint_steps(offer))
            if not demand.tolerates(offer):
                return False
        amounts = self._amounts(demand, offer, self._taking.get(offer.id, {}))
        if amounts is None:
            return False
        draws = self._draws(offer)
        if draws and not self._counters.take(pool, offer):
            return False
        if not self._constrain(claim, demand, offer):
            if draws:
                self._counters.give_back(pool, offer)
            if not demand.count:
                raise DemandError(f"{demand.where}: cannot add device {offer.id} because a claim constraint would not be satisfied")
            return False
        self._choose(claim, demand, offer, amounts)
        return True

    def _amounts(self, demand: DeviceDemand, offer: PoolDevice, taking: Amounts) -> dict[str, Amount] | None:
        """Return the capacities that the demand would take; None if they do not suffice. This search is `taking` others."""
        if offer.plain and not demand.capacity:
            return {}
        self._effort.spend(AMOUNT * (1 + len(offer.capacities)))
        return takes(offer, demand.capacity, self._usage.of(offer.id).taken, taking)

    def _is_free(self, claim: int, demand: DeviceDemand, offer: PoolDevice) -> bool:
        owners = self._owners.get(offer.id, ())
        if demand.admin:
            return claim not in owners
        return not owners and not self._usage.prevents(offer)

    def _draws(self, offer: PoolDevice) -> bool:
        """Return whether a choice draws on counters. Only the first share of a device does, for all its shares."""
        in_use = offer.shared and (self._usage.of(offer.id).shares > 0 or self._shares.get(offer.id, 0) > 0)
        return bool(offer.counters) and not in_use

    def _constrain(self, claim: int, demand: DeviceDemand, offer: PoolDevice) -> bool:
        constraints = self._constraints[claim]
        for i, constraint in enumerate(constraints):
            if not constraint.add(offer, demand.names):
                for added in constraints[:i]:
                    added.take_back(demand.names)
                return False
        return True

    def _choose(self, claim: int, demand: DeviceDemand, offer: PoolDevice, amounts: dict[str, Amount]) -> None:
        if offer.shared:
            taking = self._taking.setdefault(offer.id, {})
            for name, amount in amounts.items():
                taking[name] = taking.get(name, 0) + amount.nanos
            self._shares[offer.id] = self._shares.get(offer.id, 0) + 1
            pick = Pick(demand, offer, self._new_share_id(), amounts)
        else:
            self._owners.setdefault(offer.id, []).append(claim)
            pick = Pick(demand, offer, None, {})
        self.picks[claim].append(pick)

    def _give_back(self, claim: int, pool: Pool) -> None:
        pick = self.picks[claim].pop()
        offer = pick.offer
        if offer.shared:
            for name, amount in pick.consumed.items():
                self._taking[offer.id][name] -= amount.nanos
            self._shares[offer.id] -= 1
        else:
            self._owners[offer.id].pop()
        if self._draws(offer):
            self._counters.give_back(pool, offer)
        for constraint in self._constraints[claim]:
            constraint.take_back(pick.demand.names)
