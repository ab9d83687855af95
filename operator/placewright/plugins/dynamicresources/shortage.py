"""How many more devices a node would need to serve claims: told only after a search that finds them with that many more.

A device that is added is like one that there is: one that the node has, free if possible, or else one of any other node. Where more of them
would not do, as for a constraint that their likeness breaks, nothing is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from placewright.plugins.dynamicresources.allocator import DeviceSearch, GaveUp
from placewright.plugins.dynamicresources.demands import ClaimDemand, DeviceDemand
from placewright.plugins.dynamicresources.effort import StepBudget
from placewright.plugins.dynamicresources.inventory import Usage
from placewright.plugins.dynamicresources.pools import DeviceId, Offer, Outlook, Pool

#: What demands for devices that are alike have in common: their class, and what selects within it.
_Like = tuple[str, tuple[str, ...]]
_Model = tuple[Pool, Offer]
_MOST_SEARCHES: Final = 40


class DeviceShortage:
    """The shortage of one node for some claims.

    Attributes:
        steps: that were taken.
    """

    def __init__(
        self, outlook: Outlook, usage: Usage, claims: Sequence[ClaimDemand], pools: Iterable[Pool], steps: int, effort: StepBudget
    ) -> None:
        """`pools`: all that there are, for devices that the node has none of. `steps`: that all searches together may take."""
        self.steps = 0
        self._limit = steps
        self._effort = effort
        self._outlook = outlook
        self._usage = usage
        self._claims = claims
        self._pools = pools
        self._searches = 0

    def by_class(self) -> Mapping[str, int] | None:
        """By class, how many more would do: with one less of any there is no way. None where no number would do, or that cannot be told.

        Raises `DemandError` and `OutOfSteps`, as a search does.
        """
        wanted: dict[_Like, tuple[int, DeviceDemand]] = {}
        for request in (request for claim in self._claims for request in claim.requests):
            if not request[0].admin:
                like = _likeness(request[0])
                wanted[like] = (wanted.get(like, (0, request[0]))[0] + max(request[0].count, 1), request[0])
        models = {like: model for like, (_, demand) in wanted.items() if (model := self._model(demand)) is not None}
        more = {like: count for like, (count, _) in wanted.items() if like in models}
        if not more or not self._serve(models, more):
            return None
        for like in tuple(more):
            while more[like] and self._serve(models, more | {like: more[like] - 1}):
                more[like] -= 1
        found: dict[str, int] = {}
        for (name, _), count in more.items():
            if count:
                found[name] = found.get(name, 0) + count
        return found if found and not self._gave_up() else None

    def _model(self, demand: DeviceDemand) -> _Model | None:
        """A device like which others may be."""
        near = [(pool, offer) for pool, offer in self._outlook.offers if self._could_be(demand, offer)]
        free = next((each for each in near if not self._usage.in_use(each[1].id)), None)
        far = ((pool, offer) for pool in self._pools if pool.usable for offer in pool.offers.values() if self._could_be(demand, offer))
        return free or next(iter(near), None) or next(far, None)

    def _serve(self, models: Mapping[_Like, _Model], more: Mapping[_Like, int]) -> bool:
        self._searches += 1
        if self._gave_up():
            return False
        added = [_another(*models[like], f"{place}-{number}") for place, like in enumerate(more) for number in range(more[like])]
        outlook = Outlook((*self._outlook.offers, *added), self._outlook.unusable)
        search = DeviceSearch(outlook, self._usage, self._claims, _nobody_s_share, self._limit - self.steps, self._effort)
        try:
            return search.run()
        except GaveUp:
            return False
        finally:
            self.steps += search.steps

    def _could_be(self, demand: DeviceDemand, offer: Offer) -> bool:
        """Partitions are not added: they draw on what there is."""
        self._effort.spend(demand.look_steps + demand.taint_steps(offer))
        return not offer.counters and demand.selects(offer) and demand.tolerates(offer)

    def _gave_up(self) -> bool:
        return self._searches > _MOST_SEARCHES or self.steps >= self._limit


def _likeness(demand: DeviceDemand) -> _Like:
    return demand.device_class.metadata.name, tuple(condition.expression.source for condition in demand.conditions)


def _another(pool: Pool, offer: Offer, name: str) -> _Model:
    return pool, replace(offer, id=DeviceId(offer.id.driver, offer.id.pool, f"added-{name}"), order=len(pool.offers))


def _nobody_s_share() -> str:
    return ""
