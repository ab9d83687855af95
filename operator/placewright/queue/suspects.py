"""Which waiting pods are suspects: a decision about their like was the last that a process began. They are tried last, and then rarely.

After one death a suspect is tried when nothing else is: no pod is active, and none is being decided or bound. After more it waits before
that, ten minutes and then twice as long each time, up to an hour. It is never refused: a wait that is over for `LONGEST_QUIET` seconds
without a quiet moment counts as one. A decision that ends clears it.

A pod is a suspect by its spec, whatever its uid, name and controller are; where the spec is heavy, whatever its images are. A pod whose
decision is heavy is one by its controller, too, and by its namespace once that cost more than one process: there whoever makes such pods
varies them. Other pods of the namespace are not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from placewright.api.decisionmarks import DecisionMark, MarkedPod, PodKeys, heavy_work, keys_of
from placewright.api.pods import PodInfo

#: After the first death: long enough for what a new leader finds in its queue to be placed before.
FIRST_WAIT: Final = 10.0
#: After the second; doubled with each further one.
LONG_WAIT: Final = 600.0
LONGEST_WAIT: Final = 3600.0
#: Seconds that a suspect whose wait is over may be kept from being tried because something else always is.
LONGEST_QUIET: Final = 300.0
_MAX_DOUBLINGS: Final = 10


def wait_after(deaths: int) -> float:
    """Seconds that a suspect waits after so many deaths, of which there is at least one."""
    if deaths <= 1:
        return FIRST_WAIT
    return min(LONG_WAIT * 2.0 ** min(deaths - 2, _MAX_DOUBLINGS), LONGEST_WAIT)


@dataclass(frozen=True, slots=True)
class Suspicion:
    """Why a pod is tried last.

    Attributes:
        deaths: how many processes ended in a decision about its like.
        not_before: when it may be tried again, if then nothing else is; seconds on the queue's clock.
    """

    deaths: int
    not_before: float


@dataclass(frozen=True, slots=True)
class _Death:
    """A mark with deaths, and when the last of them was, on the queue's clock."""

    mark: DecisionMark
    at: float


class Suspects:
    """The marks that count deaths, and what they say of a pod. False while there are none, which is nearly always."""

    def __init__(self) -> None:
        self._deaths: dict[str, dict[str, _Death]] = {}

    def __bool__(self) -> bool:
        return bool(self._deaths)

    def __iter__(self) -> Iterator[DecisionMark]:
        """The marks, by namespace."""
        return (death.mark for deaths in self._deaths.values() for death in deaths.values())

    def adopt(self, marks: Iterable[tuple[DecisionMark, float]]) -> None:
        """Know these marks, each with when its last death was on the queue's clock, and no others."""
        found: defaultdict[str, dict[str, _Death]] = defaultdict(dict)
        for mark, at in marks:
            if mark.deaths:
                found[mark.pod.namespace][mark.pod.name] = _Death(mark, at)
        self._deaths = dict(found)

    def clear(self, namespace: str, name: str) -> bool:
        """A decision about the like of this mark ended; True where the mark had deaths."""
        deaths = self._deaths.get(namespace)
        if deaths is None or deaths.pop(name, None) is None:
            return False
        if not deaths:
            del self._deaths[namespace]
        return True

    def older_than(self, at: float) -> list[DecisionMark]:
        """The marks whose last death was before this moment of the queue's clock."""
        return [death.mark for deaths in self._deaths.values() for death in deaths.values() if death.at < at]

    def of(self, pod: PodInfo) -> Suspicion | None:
        """Whether a pod is a suspect; None for nearly all, which costs one look by namespace."""
        deaths = self._deaths.get(pod.namespace)
        if deaths is None:
            return None
        count, last = self._alike(pod, deaths.values())
        return Suspicion(count, last + wait_after(count)) if count > 0 else None

    def speaking_for(self, pod: PodInfo) -> list[DecisionMark]:
        """The marks of this very spec or group; that its decision ended speaks against them."""
        deaths = self._deaths.get(pod.namespace, {})
        keys = keys_of(pod) if deaths else None
        return [] if keys is None else [death.mark for death in deaths.values() if _is_same(death.mark.pod, keys)]

    def _alike(self, pod: PodInfo, deaths: Iterable[_Death]) -> tuple[int, float]:
        """How many deaths speak against this pod, and when the last of them was."""
        keys, heavy = keys_of(pod), heavy_work(pod) > 0
        own, by_controller, in_namespace, last = 0, 0, 0, 0.0
        for death in deaths:
            known, count = death.mark.pod, death.mark.deaths
            same = _is_same(known, keys)
            related = heavy and known.heavy
            own = max(own, count * same)
            by_controller += count * (related and known.controller != "" and known.controller == keys.controller)
            in_namespace += count * related
            if same or related:
                last = max(last, death.at)
        return max(own, by_controller, in_namespace - 1), last


def _is_same(known: MarkedPod, keys: PodKeys) -> bool:
    return known.spec == (keys.shape if known.heavy else keys.spec) or (known.group != "" and known.group == keys.group)
