"""SchedulingGates: holds back a pod with `spec.schedulingGates`. Implements PreEnqueue."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from placewright.api.pods import PodInfo
from placewright.framework.events import Action, ClusterEventWithHint
from placewright.framework.interface import PreEnqueuePlugin
from placewright.framework.status import SUCCESS, Status, unresolvable
from placewright.plugins.shared.hints import own_change

NAME: Final = "SchedulingGates"


class SchedulingGates(PreEnqueuePlugin):
    """Gates pods until all their scheduling gates are gone."""

    name = NAME

    def pre_enqueue(self, pod: PodInfo) -> Status:
        """Reject while any gate is left, with the gates as the reason."""
        told = gates_line(pod)
        return unresolvable(told) if told else SUCCESS

    def events(self) -> Sequence[ClusterEventWithHint]:
        """Declare the removal of the pod's own gates, because nothing else helps."""
        return (own_change(Action.UPDATE_POD_GATES_ELIMINATED, lambda _old, _new: True),)


def gates_line(pod: PodInfo) -> str:
    """Return the reason of a gated pod, which lists its scheduling gates; empty without gates."""
    gates = pod.pod.spec.scheduling_gates
    return f"waiting for scheduling gates: [{' '.join(gate.name for gate in gates)}]" if gates else ""
