"""What follows a choice at once: the pod is assumed on its node, plugins reserve for it, and Permit plugins have their say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from placewright.cluster.cluster import Cluster
from placewright.framework.interface import Seconds
from placewright.framework.status import Code, Status
from placewright.framework.steps import PERMIT, RESERVE
from placewright.queue.queue import SchedulingQueue
from placewright.scheduler.binding import rejected_late, unreserve
from placewright.scheduler.cycle import Placement, broken
from placewright.scheduler.waiting import WaitingPods


@dataclass(frozen=True, slots=True)
class Reserving:
    """Takes what a placement needs, and gives it back."""

    cluster: Cluster
    queue: SchedulingQueue
    waiting: WaitingPods

    def take(self, placement: Placement) -> None:
        """Assume · Reserve. Raises `NoPlacement`, or what a plugin raised, with everything given back."""
        pod, node, steps = placement.pod, placement.node, placement.state.steps
        self.cluster.assume(pod, node)
        reserved = True
        steps.begin()
        try:
            status = placement.runtime.run_reserve(placement.state, pod, node)
            reserved = status.ok  # what failed has been given back already
            steps.end(RESERVE, status.code)
            _require(status)
        except BaseException:
            if reserved:
                unreserve(placement)
            self.cluster.forget(pod, node)
            raise

    def give_back(self, placement: Placement) -> None:
        """As if `take` had not been called."""
        unreserve(placement)
        self.cluster.forget(placement.pod, placement.node)

    def permitted(self, placement: Placement) -> Mapping[str, Seconds]:
        """Permit: which plugins want the pod to wait, and how long; raises `NoPlacement`, or what a plugin raised."""
        steps = placement.state.steps
        steps.begin()
        status, waits = placement.runtime.run_permit(placement.state, placement.pod, placement.node)
        steps.end(PERMIT, Code.WAIT if waits else status.code)
        _require(status)
        return waits

    def settle(self, placement: Placement, waits: Mapping[str, Seconds]) -> None:
        """The pod is on its way: it waits for permission where it has to, its nomination ends, and pods that it helps are tried."""
        self.waiting.enter(placement.pod, waits)
        self.queue.nominator.delete(placement.pod.uid)
        self.queue.activate(placement.state.activate.values())
        placement.state.activate.clear()


def _require(status: Status) -> None:
    if status.ok:
        return
    raise rejected_late(status) if status.rejected else broken(status.message)
