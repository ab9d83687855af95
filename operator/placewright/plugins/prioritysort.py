"""PrioritySort: higher priority first, then longer waiting time. Implements QueueSort."""

from __future__ import annotations

from placewright.api.pods import PodInfo
from placewright.framework.interface import QueueSortPlugin, Seconds


class PrioritySort(QueueSortPlugin):
    """Orders the active queue."""

    name = "PrioritySort"

    def sort_key(self, pod: PodInfo, timestamp: Seconds) -> tuple[int, float]:
        """Return the negated priority, then the time at which the pod entered the queue, in ascending order."""
        return (-pod.priority, timestamp)
