"""Counts the failures of a profile's plugins. Status, metrics and events read them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from placewright.api.pods import PodInfo

#: Failed pods from which on a generation counts as one that fails for every pod, unless an attempt passed.
EVERY_POD: Final = 3
#: Pods whose PreEnqueue failed that are kept until an event tells them. More say nothing new, because each failure says the same.
_MOST_UNTOLD: Final = 1000


class Call(NamedTuple):
    """The plugin and the extension point of a call.

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
        counts: number of failures, by call.
        last: problem of the last failure, by call.
        total: number of all failures.
        passed: an attempt under this generation ended without a failure.
        failed_pods: uids of pods whose attempts failed, `EVERY_POD` at most.
        untold: pods that a failing PreEnqueue plugin keeps out of the queue, with the reason; no attempt tells them.
    """

    counts: Counter[Call] = field(default_factory=Counter)
    last: dict[Call, str] = field(default_factory=dict)
    total: int = 0
    passed: bool = False
    failed_pods: set[str] = field(default_factory=set)
    untold: dict[str, tuple[PodInfo, str]] = field(default_factory=dict)
    #: Called with each failed call.
    heard: Callable[[Call], None] = lambda _call: None

    def note(self, plugin: str, point: str, problem: str) -> bool:
        """Count one failure.

        Returns:
            True for the first failure of this call.
        """
        call = Call(plugin, point)
        self.counts[call] += 1
        self.last[call] = problem
        self.total += 1
        self.heard(call)
        return self.counts[call] == 1

    def attempted(self, uid: str, *, failed: bool) -> None:
        """Note the end of an attempt under this generation."""
        if not failed:
            self.passed = True
        elif len(self.failed_pods) < EVERY_POD:
            self.failed_pods.add(uid)

    @property
    def every_pod(self) -> bool:
        """True if plugins failed for every pod that this generation has decided, and for several pods."""
        return self.total > 0 and not self.passed and len(self.failed_pods) >= EVERY_POD

    def sentences(self, most: int | None = None) -> list[str]:
        """Return a sentence for each call that failed, the most frequent first.

        Args:
            most: number of calls with a sentence of their own; further ones are counted in a last one. None: all.
        """
        told = [
            f'{call.point} plugin "{call.plugin}" failed {count} time{"" if count == 1 else "s"}, last: {self.last[call]}'
            for call, count in self.counts.most_common(most)
        ]
        more = len(self.counts) - len(told)
        return told + ([f"and {more} more"] if more > 0 else [])

    def kept_out(self, pod: PodInfo, message: str) -> None:
        """Note a pod that a failing PreEnqueue plugin keeps out of the queue, so that an event tells it."""
        if len(self.untold) < _MOST_UNTOLD:
            self.untold[pod.uid] = (pod, message)
        self.attempted(pod.uid, failed=True)

    def to_tell(self) -> list[tuple[PodInfo, str]]:
        """Return the pods that were kept out since the last call, each with the reason, and forget them."""
        untold, self.untold = list(self.untold.values()), {}
        return untold
