"""Counters that devices of a pool share: partitions of one piece of hardware draw on them, so that not all can be had at a time."""

from __future__ import annotations

from placewright.plugins.dynamicresources.pools import CounterName, Offer, Pool, PoolId
from placewright.plugins.dynamicresources.usage import Usage


class Counters:
    """What is left of the counters of pools while devices are being chosen, in nano-units."""

    def __init__(self, usage: Usage) -> None:
        self._usage = usage
        self._left: dict[PoolId, dict[CounterName, int]] = {}

    def take(self, pool: Pool, offer: Offer) -> bool:
        """Draw what this device consumes; False, and nothing drawn, where less is left of any counter.

        As in kube-scheduler, nothing more that draws on counters is had from a pool of which any counter is overdrawn.
        """
        left = self._left_of(pool)
        self._draw(left, offer, 1)
        if min(left.values()) < 0:
            self._draw(left, offer, -1)
            return False
        return True

    def give_back(self, pool: Pool, offer: Offer) -> None:
        """Undo `take`."""
        self._draw(self._left_of(pool), offer, -1)

    def _left_of(self, pool: Pool) -> dict[CounterName, int]:
        left = self._left.get(pool.id)
        if left is None:
            left = self._left[pool.id] = dict(pool.counters)
            for offer in pool.offers.values():
                if offer.counters and self._usage.in_use(offer.id):
                    self._draw(left, offer, 1)
        return left

    @staticmethod
    def _draw(left: dict[CounterName, int], offer: Offer, sign: int) -> None:
        for name, amount in offer.counters:
            left[name] -= sign * amount
