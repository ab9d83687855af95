"""SchedulingGates: a pod with `spec.schedulingGates` is not tried. Implements PreEnqueue."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from placewright.api.pods import PodInfo
from placewright.framework.assignedpods import is_itself
from placewright.framework.events import Action, ClusterEventWithHint, EventResource, QueueingHint, interest
from placewright.framework.interface import PreEnqueuePlugin
from placewright.framework.status import SUCCESS, Status, unresolvable

NAME: Final = "SchedulingGates"


class SchedulingGates(PreEnqueuePlugin):
    """Gates pods until all their scheduling gates are gone."""

    name = NAME

    def pre_enqueue(self, pod: PodInfo) -> Status:
        """Reject while any gate is left; the reason lists them."""
        told = gates_line(pod)
        return unresolvable(told) if told else SUCCESS

    def events(self) -> Sequence[ClusterEventWithHint]:
        """Only the removal of the pod's own gates helps."""
        return (interest(EventResource.POD, Action.UPDATE_POD_GATES_ELIMINATED, _is_same_pod, is_itself),)


def gates_line(pod: PodInfo) -> str:
    """Return the reason of a pod that its scheduling gates keep, which lists them; empty for a pod without gates."""
    gates = pod.pod.spec.scheduling_gates
    return f"waiting for scheduling gates: [{' '.join(gate.name for gate in gates)}]" if gates else ""


def _is_same_pod(pod: PodInfo, _old: PodInfo | None, new: PodInfo | None) -> QueueingHint:
    return QueueingHint.QUEUE if isinstance(new, PodInfo) and new.uid == pod.uid else QueueingHint.SKIP
