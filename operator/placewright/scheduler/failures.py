"""A pod could not be placed: back to the queue, nominate, make room, and say why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.queue.queue import SchedulingQueue
from placewright.queue.queued import QueuedPod
from placewright.scheduler.cycle import FitError
from placewright.scheduler.ports import EventRecorder, EventType, Lead, StatusWriter

FAILED_SCHEDULING: Final = "FailedScheduling"
UNSCHEDULABLE: Final = "Unschedulable"
SCHEDULER_ERROR: Final = "SchedulerError"
_SCHEDULING: Final = "Scheduling"


@dataclass(frozen=True, slots=True)
class FailureHandler:
    """Does what follows a failed attempt, in kube-scheduler's order."""

    queue: SchedulingQueue
    events: EventRecorder
    status: StatusWriter
    lead: Lead

    def handle(self, queued: QueuedPod, failure: FitError) -> PodInfo | None:
        """Requeue and report; returns the pod as it now waits, or None when it is gone, was replaced, or is not ours to see to any more."""
        filtered = failure.diagnosis is not None
        self.queue.return_unschedulable(queued, failure.unschedulable_plugins, failure.pending_plugins, filtered=filtered)
        waiting = self.queue.get(queued.uid)
        if waiting is None:
            return None
        pod = waiting.pod
        self._nominate(pod, failure.nominated_node)
        if not self.lead.active:
            return None
        self.events.record(pod, EventType.WARNING, FAILED_SCHEDULING, _SCHEDULING, failure.message)
        reason = SCHEDULER_ERROR if failure.internal else UNSCHEDULABLE
        self.status.pod_unscheduled(pod, reason, failure.message, failure.nominated_node)
        return pod

    def skipped_deleting(self, pod: PodInfo, note: str) -> None:
        """The pod is being deleted: nothing to schedule, but its events should say so."""
        self.events.record(pod, EventType.WARNING, FAILED_SCHEDULING, _SCHEDULING, note)

    def _nominate(self, pod: PodInfo, node: NodeName | None) -> None:
        if node is not None:
            self.queue.nominate(pod, node)
