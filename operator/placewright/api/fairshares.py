"""Places that several parties share, so that no party can take all of them: dynamic thresholds, as switches share their buffers.

An eighth of the places is kept for parties that hold none, one each. Of the others a party may take one while it holds fewer than `factor`
times as many as are free. So a party that is alone gets all of these but one part in `factor` + 1. With more parties, each gets less. A
fixed bound would either slow down a party that is alone, or let a few parties take everything (docs/decisions/0032).
If parties never give a place back, about ten of them share most of the places. Later parties get one kept place each.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from types import MappingProxyType
from typing import Final, Generic, TypeVar

from placewright.api.counts import add_count

P = TypeVar("P", bound=Hashable)
#: One place in so many is kept for parties that hold none.
_KEPT: Final = 8


class FairShares(Generic[P]):
    """Counts the places that parties hold. The caller asks `may_take` before `take`; a place that has to be taken all the same counts, too.

    A party that had to take more than `most` counts with `most`: the excess takes nothing from others.

        shares = FairShares[str](places=64, factor=2)
        if shares.may_take("web"):
            shares.take("web")

    Attributes:
        free: places that no party holds; every operation changes it by one at most.
        most: places that a party may hold when it is alone.
    """

    __slots__ = ("_factor", "_held", "_kept", "free", "most")

    def __init__(self, places: int, factor: int) -> None:
        """Give no place yet.

        Args:
            places: 1 or more.
            factor: 1 or more; the larger, the more a party that is alone gets, and the less is left for a new one.
        """
        self._kept = places // _KEPT
        self.free = places
        self.most = -(-(places - self._kept) * factor // (factor + 1))
        self._factor = factor
        self._held: dict[P, int] = {}

    @property
    def held(self) -> Mapping[P, int]:
        """By party that holds a place, how many; a view."""
        return MappingProxyType(self._held)

    def may_take(self, party: P) -> bool:
        """Return whether a party may take one more place now."""
        held = self._held.get(party)
        return self.free > 0 if held is None else held < self._factor * (self.free - self._kept)

    def take(self, party: P) -> None:
        """Note that a party holds one more place."""
        held = self._held.get(party, 0)
        self._held[party] = held + 1
        if held < self.most:
            self.free -= 1

    def give_back(self, party: P) -> None:
        """Note that a party holds one place less.

        Raises:
            KeyError: it holds none.
        """
        if add_count(self._held, party, -1) < self.most:
            self.free += 1
