"""What a profile's plugins did wrong: counted where it happens, told by whoever looks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from placewright.api.pods import PodInfo

#: So many pods whose PreEnqueue failed are remembered until somebody tells them; each failure says the same.
_MOST_UNTOLD: Final = 1000


class Call(NamedTuple):
    """Where a plugin is called.

    Attributes:
        point: the extension point, as kube-scheduler names it; `Sign`, `NormalizeScore` and `QueueingHint` are others' names for the
            methods that belong to no point.
    """

    plugin: str
    point: str


@dataclass(slots=True)
class PluginFailures:
    """Failures of one generation of one profile: what was raised, what was no answer, and statuses that say `Error`.

    Attributes:
        counts: by call, how often it failed.
        last: by call, what it did the last time.
        total: how many there were.
        untold: pods that a failing PreEnqueue plugin keeps out of the queue, with why; no attempt tells them.
    """

    counts: Counter[Call] = field(default_factory=Counter)
    last: dict[Call, str] = field(default_factory=dict)
    total: int = 0
    untold: dict[str, tuple[PodInfo, str]] = field(default_factory=dict)
    #: Hears of each.
    heard: Callable[[Call], None] = lambda _call: None

    def note(self, plugin: str, point: str, problem: str) -> bool:
        """Count one; True for the first of its call."""
        call = Call(plugin, point)
        self.counts[call] += 1
        self.last[call] = problem
        self.total += 1
        self.heard(call)
        return self.counts[call] == 1

    def kept_out(self, pod: PodInfo, message: str) -> None:
        """A failing PreEnqueue plugin keeps this pod out of the queue."""
        if len(self.untold) < _MOST_UNTOLD:
            self.untold[pod.uid] = (pod, message)

    def to_tell(self) -> list[tuple[PodInfo, str]]:
        """The pods kept out since this was asked last."""
        untold, self.untold = list(self.untold.values()), {}
        return untold
