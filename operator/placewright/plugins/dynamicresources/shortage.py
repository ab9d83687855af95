"""Number of further devices that a node needs to serve claims. A search with that many more confirms the number.

An added device is a copy of an existing one: of the node's, free if possible, or of any other node's. If more copies would not help, as
with a constraint that equal devices break, there is no answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from placewright.plugins.dynamicresources.allocator import DeviceSearch, GaveUp, SearchTask
from placewright.plugins.dynamicresources.demands import DeviceDemand
from placewright.plugins.dynamicresources.pools import DeviceId, Pool, PoolDevice, ReachableDevices

#: The common part of demands for equal devices: their class, and the selectors within it.
_Like = tuple[str, tuple[str, ...]]
_Model = tuple[Pool, PoolDevice]
_MOST_SEARCHES: Final = 40


class DeviceShortage:
    """The shortage of one node for some claims.

    Attributes:
        steps: number of steps taken.
    """

    def __init__(self, task: SearchTask, pools: Iterable[Pool], steps: int) -> None:
        """Prepare. `pools` are all pools, for devices that the node lacks. All searches together take at most `steps`."""
        self.steps = self._searches = 0
        self._task = task
        self._outlook, self._usage, self._claims, self._effort = task
        self._pools = pools
        self._limit = steps

    def by_class(self) -> Mapping[str, int] | None:
        """Return by class how many more devices suffice, while one less would not; None if that cannot be told.

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
        """Choose a device to copy."""
        near = [(pool, offer) for pool, offer in self._outlook.offers if self._could_be(demand, offer)]
        free = next((each for each in near if not self._usage.in_use(each[1].id)), None)
        far = ((pool, offer) for pool in self._pools if pool.usable for offer in pool.offers.values() if self._could_be(demand, offer))
        return free or next(iter(near), None) or next(far, None)

    def _serve(self, models: Mapping[_Like, _Model], more: Mapping[_Like, int]) -> bool:
        self._searches += 1
        if self._gave_up():
            return False
        added = [_another(*models[like], f"{place}-{number}") for place, like in enumerate(more) for number in range(more[like])]
        outlook = ReachableDevices((*self._outlook.offers, *added), self._outlook.unusable)
        search = DeviceSearch(self._task._replace(outlook=outlook), _no_share, self._limit - self.steps)
        try:
            return search.run()
        except GaveUp:
            return False
        finally:
            self.steps += search.steps

    def _could_be(self, demand: DeviceDemand, offer: PoolDevice) -> bool:
        """Return whether copies of a device may serve. Partitions are not copied, because they draw on existing counters."""
        self._effort.spend(demand.look_steps + demand.taint_steps(offer))
        return not offer.counters and demand.selects(offer) and demand.tolerates(offer)

    def _gave_up(self) -> bool:
        return self._searches > _MOST_SEARCHES or self.steps >= self._limit


def _likeness(demand: DeviceDemand) -> _Like:
    return demand.device_class.metadata.name, tuple(condition.expression.source for condition in demand.conditions)


def _another(pool: Pool, offer: PoolDevice, name: str) -> _Model:
    return pool, replace(offer, id=DeviceId(offer.id.driver, offer.id.pool, f"added-{name}"), order=len(pool.offers))


def _no_share() -> str:
    return ""
