"""The last placements as rows of the console's state.

The section `decisions` has the last placements of pods that the reader may see, and under `hidden` the number of all others.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final, NamedTuple

from placewright.console.rights import Rights

#: Placements that a reader gets, and that are kept for all readers.
MOST_SHOWN: Final = 100
MOST_KEPT: Final = 1000
HIDDEN: Final = "hidden"


class Placed(NamedTuple):
    """A pod that got its node.

    Attributes:
        at: the time, seconds since 1970.
        profile: of its schedulerName; empty where there is none.
    """

    uid: str
    namespace: str
    name: str
    node: str
    profile: str
    at: float


class LastPlacements:
    """Keeps the last placements, the latest first."""

    def __init__(self) -> None:
        self._kept: deque[Placed] = deque(maxlen=MOST_KEPT)

    def __iter__(self) -> Iterator[Placed]:
        return iter(self._kept)

    def add(self, placed: Placed) -> None:
        """Add the latest placement."""
        self._kept.appendleft(placed)

    def rows(self, rights: Rights) -> dict[str, Any]:
        """Return the section `decisions`.

        Args:
            rights: of the readers.

        Returns:
            Rows by the pod's uid.
        """
        seen = (each for each in self._kept if rights.may_see(each.namespace))
        rows: dict[str, Any] = {each.uid: _row(each) for each in islice(seen, MOST_SHOWN)}
        hidden = sum(not rights.may_see(each.namespace) for each in self._kept)
        if hidden:
            rows[HIDDEN] = hidden
        return rows


def _row(placed: Placed) -> list[Any]:
    return [placed.namespace, placed.name, placed.node, placed.profile, placed.at]
