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
from placewright.scheduler.repairs import Repairs


@dataclass(frozen=True, slots=True)
class Known:
    """What was believed when the list was asked for; what came later cannot be judged by that list.

    `departed` grows while the list is under way: what it shows of those pods is old.
    """

    queued: frozenset[str]
    unresolved: frozenset[str]
    unconfirmed: frozenset[str]
    departed: set[str]


class Reconciler:
    """Compares and repairs. `before_list`, then list, then `after_list`; then ask for each of `doubtful` and say `looked`."""

    def __init__(self, cluster: Cluster, queue: SchedulingQueue, binding: BindingCycle, intake: Intake) -> None:
        self.repairs = intake.repairs
        self._cluster = cluster
        self._queue = queue
        self._binding = binding
        self._intake = intake
        self._unconfirmed_before: frozenset[str] = frozenset()
        self._doubtful: frozenset[str] = frozenset()

    def before_list(self) -> Known:
        """Remember what the list is going to be compared with."""
        self._intake.departed = departed = set[str]()
        unresolved = frozenset(self._binding.unresolved)
        return Known(frozenset(self._queue.uids()), unresolved, self._unconfirmed(), departed)

    def after_list(self, known: Known, listed: Iterable[PodInfo]) -> Repairs:
        """Mend the differences; returns those of this run."""
        self._intake.departed = None
        found = Repairs()
        seen: set[str] = set()
        for pod in listed:
            seen.add(pod.uid)
            self._compare(pod, known, found)
        for uid in known.queued - seen:
            # A pod that is being bound has left the list for a good reason; its binding tells.
            if self._cluster.placement(uid) is None and self._queue.delete(uid) is not None:
                found.vanished += 1
        self._doubt(known, seen)
        self._add(found)
        return found

    def doubtful(self) -> list[PodInfo]:
        """Pods that hold room on a node, are not listed without one, and that no watch has shown there: only reading each one tells."""
        placements = (self._cluster.placement(uid) for uid in self._doubtful)
        return [placement.pod for placement in placements if placement is not None and placement.assumed]

    def looked(self, pod: PodInfo, found: PodInfo | None) -> None:
        """A doubtful pod was read; None when there is none of that name."""
        if found is None or found.uid != pod.uid:
            self._intake.pod_gone(pod.uid)
            self.repairs.forgotten += 1
        elif found.node_name:
            self._intake.assigned_pod(found)

    def _compare(self, pod: PodInfo, known: Known, found: Repairs) -> None:
        if pod.uid in known.departed:
            return
        if pod.uid in known.unresolved and pod.uid in self._binding.unresolved:
            self._binding.resolve(pod.uid, None)
            found.unbound += 1
        elif self._queue.get(pod.uid) is None and self._cluster.placement(pod.uid) is None:
            self._intake.unscheduled_pod(pod)
            found.missed += 1

    def _doubt(self, known: Known, seen: set[str]) -> None:
        """Bindings without an answer at once; those that succeeded only when two comparisons in a row saw no watch confirm them."""
        self._doubtful = (known.unresolved | (known.unconfirmed & self._unconfirmed_before)) - seen
        self._unconfirmed_before = known.unconfirmed

    def _unconfirmed(self) -> frozenset[str]:
        if not self._cluster.assumed_count:
            return frozenset()
        uids = (placement.pod.uid for placement in self._cluster.placements() if placement.assumed)
        return frozenset(uid for uid in uids if self._queue.get(uid) is None)

    def _add(self, found: Repairs) -> None:
        self.repairs.missed += found.missed
        self.repairs.vanished += found.vanished
        self.repairs.unbound += found.unbound
