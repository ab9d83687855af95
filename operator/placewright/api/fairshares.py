"""Places that several parties share, so that none of them can take all: dynamic thresholds, as switches share their buffers.

An eighth of the places is kept for parties that hold none, one each. Of the others a party may take one while it holds fewer than
`factor` times as many as are free. So a party alone gets all of these but one part in `factor` + 1, and with others the less the more they
are.
Where parties never give anything back, some ten of them share most of the places, and as many more as are kept get one each.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from types import MappingProxyType
from typing import Final, Generic, TypeVar

P = TypeVar("P", bound=Hashable)
#: One place in so many is kept for parties that hold none.
_KEPT: Final = 8


class FairShares(Generic[P]):
    """Counts the places that parties hold. The caller asks `may_take` before it takes one; what has to be taken all the same counts, too.

    A party that had to take more than it may have alone (`most`) is counted with that many: what it holds beyond takes nothing from others.

    Attributes:
        free: places that nobody holds; every operation changes it by one at most.
        most: what a party that is alone may hold.
    """

    __slots__ = ("_factor", "_held", "_kept", "free", "most")

    def __init__(self, places: int, factor: int) -> None:
        """`places`, `factor`: 1 or more."""
        self._kept = places // _KEPT
        self.free = places
        self.most = -(-(places - self._kept) * factor // (factor + 1))
        self._factor = factor
        self._held: dict[P, int] = {}

    @property
    def held(self) -> Mapping[P, int]:
        """By party that holds any, how many; a view."""
        return MappingProxyType(self._held)

    def may_take(self, party: P) -> bool:
        """Whether the party may take one more place now."""
        held = self._held.get(party)
        return self.free > 0 if held is None else held < self._factor * (self.free - self._kept)

    def take(self, party: P) -> None:
        """The party holds one more place."""
        held = self._held.get(party, 0)
        self._held[party] = held + 1
        if held < self.most:
            self.free -= 1

    def give_back(self, party: P) -> None:
        """The party holds one place less; raises `KeyError` where it holds none."""
        held = self._held[party] - 1
        if held:
            self._held[party] = held
        else:
            del self._held[party]
        if held < self.most:
            self.free += 1
