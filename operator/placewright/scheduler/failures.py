"""Ends a failed attempt: returns the pod to the queue, nominates it, and reports why. Upstream: `handleSchedulingFailure`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

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
    """Handles failed attempts in kube-scheduler's order: first the queue, then the nomination, then event and condition.

    Attributes:
        queue: queue in which the pod waits again.
        events: recorder of the event `FailedScheduling`.
        status: writer of the condition `PodScheduled`.
        lead: tells whether this replica may report.
    """

    queue: SchedulingQueue
    events: EventRecorder
    status: StatusWriter
    lead: Lead

    def handle(self, queued: QueuedPod, failure: FitError) -> PodInfo | None:
        """Return the pod to the queue and report why it has no node.

        Args:
            queued: pod whose attempt has failed.
            failure: the failure.

        Returns:
            The pod in its present version; None when it is gone or replaced, or this replica lost the lead.
        """
        filtered = failure.diagnosis is not None
        # The queue comes first, because it knows whether the pod is gone. Then there is nothing to report.
        self.queue.return_unschedulable(queued, failure.unschedulable_plugins, failure.pending_plugins, filtered=filtered)
        waiting = self.queue.get(queued.uid)
        if waiting is None:
            return None
        if failure.retry_after is not None:
            self.queue.wake_ups.after(queued.uid, failure.retry_after)
        pod = waiting.pod
        if failure.nominated_node is not None:
            self.queue.nominate(pod, failure.nominated_node)
        # A replica without the lead must not report: the new leader may have placed the pod already, and this event would
        # contradict it.
        if not self.lead.active:
            return None
        self.events.record(pod, EventType.WARNING, FAILED_SCHEDULING, _SCHEDULING, failure.message)
        reason = SCHEDULER_ERROR if failure.internal else UNSCHEDULABLE
        self.status.pod_unscheduled(pod, reason, failure.message, failure.nominated_node)
        return pod

    def report_deleting(self, pod: PodInfo) -> None:
        """Report that a pod which is being deleted is not scheduled."""
        note = f"skip schedule deleting pod: {pod.key}"
        self.events.record(pod, EventType.WARNING, FAILED_SCHEDULING, _SCHEDULING, note)
