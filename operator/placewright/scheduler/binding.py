"""The binding cycle: a placed pod waits for permission, is prepared, bound, and announced; or everything is taken back.

Many run at once. While one runs, its pod is in flight in the queue and assumed in the cluster.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import Final

import msgspec

from placewright.api.annotations import DECISION, Decision
from placewright.api.errors import BindError
from placewright.cluster.cluster import Cluster
from placewright.framework.events import ASSIGNED_POD_DELETE
from placewright.framework.status import Status, error
from placewright.queue.queue import SchedulingQueue
from placewright.queue.queued import QueuedPod
from placewright.scheduler.cycle import NoPlacement, Placement
from placewright.scheduler.failures import FailureHandler
from placewright.scheduler.messages import assigned, late_rejection
from placewright.scheduler.ports import EventRecorder, EventType
from placewright.scheduler.waiting import WaitingPods

_logger = logging.getLogger(__name__)

SCHEDULED: Final = "Scheduled"


@dataclass(frozen=True, slots=True)
class BindingCycle:
    """Takes placements to the API server."""

    cluster: Cluster
    queue: SchedulingQueue
    waiting: WaitingPods
    failures: FailureHandler
    events: EventRecorder
    #: Placements whose Binding may or may not exist, by uid: still assumed, still in flight, until a watch or the reconciler tells.
    unresolved: dict[str, tuple[QueuedPod, Placement]] = field(default_factory=dict)

    async def run(self, queued: QueuedPod, placement: Placement, waits: dict[str, float]) -> bool:
        """Bind, or roll back and requeue; True when the pod was bound. Never raises for what a plugin or the API server does."""
        try:
            status = await self._bind(placement, waits)
        except BindError as problem:
            _logger.warning("pod %s: %s; it keeps its place on %s until the API server tells", queued.key, problem, placement.node)
            self.unresolved[queued.uid] = (queued, placement)
            return False
        except Exception as problem:
            _logger.exception("binding pod %s to node %s broke", placement.pod.key, placement.node)
            status = error(f"{type(problem).__name__}: {problem}")
        if not status.ok:
            self.roll_back(queued, placement, status)
            return False
        self._bound(queued, placement)
        return True

    def resolve(self, uid: str, *, bound: bool) -> None:
        """The API server told what became of an unresolved Binding; unknown pods are no error."""
        unresolved = self.unresolved.pop(uid, None)
        if unresolved is None:
            return
        if bound:
            self._bound(*unresolved)
        else:
            self.roll_back(*unresolved, error("the API server has no Binding of this pod"))

    def _bound(self, queued: QueuedPod, placement: Placement) -> None:
        self.queue.done(queued.uid)
        self.events.record(placement.pod, EventType.NORMAL, SCHEDULED, "Binding", assigned(placement.pod, placement.node))
        placement.runtime.run_post_bind(placement.state, placement.pod, placement.node)
        self.queue.activate(placement.state.activate.values())

    async def _bind(self, placement: Placement, waits: dict[str, float]) -> Status:
        pod, node, runtime, state = placement.pod, placement.node, placement.runtime, placement.state
        status = await self.waiting.wait(pod, waits)
        if status.ok:
            status = await runtime.run_pre_bind(state, pod, node)
        if status.ok:
            status = await runtime.run_bind(state, pod, node, decision_annotations(placement))
        return status

    def roll_back(self, queued: QueuedPod, placement: Placement, status: Status) -> None:
        """Take everything back and requeue the pod."""
        pod, node = placement.pod, placement.node
        placement.runtime.run_unreserve(placement.state, pod, node)
        self.cluster.forget(pod, node)
        self.failures.handle(queued, rejected_late(status) if status.rejected else NoPlacement(status.message, internal=True))
        # The room that the pod would have used is free again: others may want it. The pod itself is rejected or backs off; a plugin
        # that rejected it must not be overruled by the pod's own leaving.
        self.queue.move(ASSIGNED_POD_DELETE, pod.on(node), None)


def rejected_late(status: Status) -> NoPlacement:
    """A plugin rejected the pod after a node was chosen."""
    return NoPlacement(late_rejection(status), unschedulable_plugins=frozenset({status.plugin}))


def decision_annotations(placement: Placement) -> dict[str, str]:
    """The decision, as it rides on the Binding to the pod."""
    profile = placement.runtime.profile
    decision = Decision(
        profile=profile.name,
        generation=profile.generation,
        score=placement.score,
        runner_up=placement.runner_up,
        plugins=placement.plugins,
    )
    return {DECISION: msgspec.json.encode(decision).decode()}
