"""Counts the failures of a profile's plugins. Status, metrics and events read them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from placewright.api.pods import PodInfo

#: Pods whose PreEnqueue failed that are kept until an event tells them. More say nothing new, because each failure says the same.
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
    """The failures of one generation of one profile: exceptions, wrong answers, and statuses that say ERROR.

    Attributes:
        counts: by call, how often it failed.
        last: by call, the problem of the last failure.
        total: how many failures there were.
        untold: pods that a failing PreEnqueue plugin keeps out of the queue, with the reason; no attempt tells them.
    """

    counts: Counter[Call] = field(default_factory=Counter)
    last: dict[Call, str] = field(default_factory=dict)
    total: int = 0
    untold: dict[str, tuple[PodInfo, str]] = field(default_factory=dict)
    #: Hears of each.
    heard: Callable[[Call], None] = lambda _call: None

    def note(self, plugin: str, point: str, problem: str) -> bool:
        """Count one failure.

        Args:
            plugin: its name.
            point: the extension point.
            problem: in one line.

        Returns:
            True for the first failure of this call.
        """
        call = Call(plugin, point)
        self.counts[call] += 1
        self.last[call] = problem
        self.total += 1
        self.heard(call)
        return self.counts[call] == 1

    def kept_out(self, pod: PodInfo, message: str) -> None:
        """Note a pod that a failing PreEnqueue plugin keeps out of the queue, so that an event tells it.

        Args:
            pod: the pod.
            message: why.
        """
        if len(self.untold) < _MOST_UNTOLD:
            self.untold[pod.uid] = (pod, message)

    def to_tell(self) -> list[tuple[PodInfo, str]]:
        """Return the pods that were kept out since the last call, each with the reason, and forget them."""
        untold, self.untold = list(self.untold.values()), {}
        return untold
