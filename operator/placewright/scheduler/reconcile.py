"""The reconciler's comparison: what the API server lists against what the queue and the cluster believe.

Kopf says nothing about objects that vanished while its stream was broken, and a bind whose answer got lost is in nobody's queue. A
full list of unscheduled pods tells; the differences go through the intake as if they had been news, and are counted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.queue.queue import SchedulingQueue
from placewright.scheduler.binding import BindingCycle
from placewright.scheduler.intake import Intake


@dataclass(slots=True)
class Repairs:
    """Differences found and mended since the start.

    Attributes:
        missed: unscheduled pods that the queue did not know.
        vanished: pods in the queue that the API server does not list as unscheduled any more.
        unbound: Bindings of unknown outcome that turned out not to exist.
    """

    missed: int = 0
    vanished: int = 0
    unbound: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return self.missed + self.vanished + self.unbound


@dataclass(frozen=True, slots=True)
class Known:
    """What was believed when the list was asked for; what came later cannot be judged by that list."""

    queued: frozenset[str]
    unresolved: frozenset[str]


class Reconciler:
    """Compares and repairs. `before_list`, then list, then `after_list`."""

    def __init__(self, cluster: Cluster, queue: SchedulingQueue, binding: BindingCycle, intake: Intake) -> None:
        self.repairs = Repairs()
        self._cluster = cluster
        self._queue = queue
        self._binding = binding
        self._intake = intake

    def before_list(self) -> Known:
        """Remember what the list is going to be compared with."""
        return Known(frozenset(self._queue.uids()), frozenset(self._binding.unresolved))

    def after_list(self, known: Known, listed: Iterable[PodInfo]) -> Repairs:
        """Mend the differences; returns those of this run."""
        found = Repairs()
        seen: set[str] = set()
        for pod in listed:
            seen.add(pod.uid)
            if pod.uid in known.unresolved and pod.uid in self._binding.unresolved:
                self._binding.resolve(pod.uid, bound=False)
                found.unbound += 1
            elif self._queue.get(pod.uid) is None and self._cluster.placement(pod.uid) is None:
                self._intake.unscheduled_pod(pod)
                found.missed += 1
        for uid in known.queued - seen:
            if uid not in known.unresolved and self._queue.delete(uid) is not None:
                found.vanished += 1
        self._add(found)
        return found

    def _add(self, found: Repairs) -> None:
        self.repairs.missed += found.missed
        self.repairs.vanished += found.vanished
        self.repairs.unbound += found.unbound
