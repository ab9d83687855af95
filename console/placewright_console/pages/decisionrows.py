"""The last decisions as rows of the console's state.

The section `decisions` has the last decisions about pods that the reader may see. `hidden` is the number of all others. The key of a row is
the decision's number.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final, NamedTuple

from placewright.serving.rights import Rights

#: Decisions that a reader gets, and that are kept for all readers.
MOST_SHOWN: Final = 100
MOST_KEPT: Final = 1000
#: Victims that a row names.
MOST_VICTIMS: Final = 10
HIDDEN: Final = "hidden"
#: The results: the pod has its node, no node fits, victims leave a node for it, or something broke.
PLACED: Final = "placed"
REFUSED: Final = "refused"
PREEMPTING: Final = "preempting"
ERROR: Final = "error"


class SeenDecision(NamedTuple):
    """A decision about a pod.

    Attributes:
        node: node that it got, or that victims leave for it; empty if it has none.
        profile: profile of its schedulerName; empty if there is none.
        at: the time, seconds since 1970.
        result: `placed`, `refused`, `preempting` or `error`.
        generation: generation of the profile; 0 if it is not known.
        victims: pods that leave the node for it, as (namespace, name).
        reason: why no node holds it; empty if it is not known.
    """

    uid: str
    namespace: str
    name: str
    node: str
    profile: str
    at: float
    result: str = PLACED
    generation: int = 0
    victims: tuple[tuple[str, str], ...] = ()
    reason: str = ""


class LastDecisions:
    """Keeps the last decisions, the latest first."""

    def __init__(self) -> None:
        self._kept: deque[tuple[str, SeenDecision]] = deque(maxlen=MOST_KEPT)
        self._number = 0

    def __iter__(self) -> Iterator[SeenDecision]:
        return (decided for _, decided in self._kept)

    def add(self, decided: SeenDecision) -> None:
        """Add the latest decision."""
        self._number += 1
        self._kept.appendleft((str(self._number), decided))

    def rows(self, rights: Rights) -> dict[str, Any]:
        """Return the section `decisions`.

        Args:
            rights: rights of the readers. Of a decision that is seen, victims of other namespaces are counted.

        Returns:
            Rows by number: namespace, name, node, profile, time, result, generation, names of victims, number of hidden victims, and a
            known reason.
        """
        seen = ((number, each) for number, each in self._kept if rights.may_see(each.namespace))
        rows: dict[str, Any] = {number: _row(each, rights) for number, each in islice(seen, MOST_SHOWN)}
        hidden = 0 if rights.namespaces is None else sum(not rights.may_see(each.namespace) for _, each in self._kept)
        if hidden:
            rows[HIDDEN] = hidden
        return rows


def _row(decided: SeenDecision, rights: Rights) -> list[Any]:
    seen = [f"{namespace}/{name}" for namespace, name in decided.victims if rights.may_see(namespace)]
    hidden = len(decided.victims) - len(seen)
    row = [*decided[1:8], seen[:MOST_VICTIMS], hidden + max(len(seen) - MOST_VICTIMS, 0)]
    return [*row, decided.reason] if decided.reason else row
