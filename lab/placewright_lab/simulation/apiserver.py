"""Stand-in of the API server, its controllers and its kubelets. It takes the scheduler's writes, and shows them like watches.

Everything happens at once: a pod runs after its binding, and a victim is gone after its eviction. A scenario may give pods some seconds to
become Ready.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from msgspec.structs import replace

from placewright.api.errors import BindError
from placewright.api.extenders import ExtenderError
from placewright.api.objects import Condition, Node, NodeName, Pod, PodExtendedResourceClaimStatus, PodStatus
from placewright.api.pods import PodInfo
from placewright.cluster.objects import ClusterObject
from placewright.scheduler.eventhandlers import ClusterEventHandlers
from placewright.scheduler.ports import Clock
from placewright_lab.simulation.claimwriter import InstantClaimWriter
from placewright_lab.simulation.outcome import Fates
from placewright_lab.simulation.volumewriter import identified

Later = Callable[[float, Callable[[], None]], None]
#: Annotation of pods that a kubelet read from its own file. No scheduler can place them elsewhere.
MIRROR: Final = "kubernetes.io/config.mirror"
_RUNNING: Final = "Running"
_READY: Final = (Condition(type="Ready", status="True"),)
_NEW: Final = PodStatus()


class ApiServer:
    """The truth about the cluster, and the ports through which the scheduler changes it.

    Args:
        begin: time at second 0, in UTC.
        durations, start_seconds: fields of `Scenario`.
        later: function that does something at a later second.
        changed: function that hears of every change in the cluster.

    Attributes:
        event_handlers: handlers of each event, set before the first one.
        claims: writer that makes claims to devices for pods, and frees them; set before the first event.
    """

    event_handlers: ClusterEventHandlers
    claims: InstantClaimWriter

    def __init__(
        self, clock: Clock, begin: datetime, durations: Mapping[str, float], fates: Fates, later: Later, changed: Callable[[], None],
        start_seconds: float = 0.0,
    ) -> None:  # fmt: skip
        self._clock = clock
        self._begin = begin
        self._durations = durations
        self._start_seconds = start_seconds
        self._fates = fates
        self._later = later
        self._changed = changed
        self._pods: dict[str, PodInfo] = {}
        self._writes = 0

    def knows(self, uid: str) -> bool:
        """Return whether the pod exists."""
        return uid in self._pods

    # --- changes by others --------------------------------------------------------------------------------------------------

    def put(self, item: Node | ClusterObject) -> None:
        """Take in an object, except a pod, that came or changed."""
        self._changed()
        if isinstance(item, Node):
            self.event_handlers.node(item)
        else:
            self.event_handlers.cluster_object(identified(item))

    def remove(self, item: Node | ClusterObject) -> None:
        """Remove an object, except a pod, that is gone."""
        self._changed()
        if isinstance(item, Node):
            self.event_handlers.node_gone(NodeName(item.metadata.name))
        else:
            self.event_handlers.cluster_object_gone(item)

    def put_pod(self, pod: PodInfo) -> None:
        """Take in a pod that came or changed. Its node, and the time since when it is there, stay this server's own facts."""
        known = self._pods.get(pod.uid)
        if known is not None and pod.uid in self._fates.by_uid:
            pod = _standing(pod, known)
        if known is None and not pod.node_name:
            pod = self.claims.equipped(pod)
        self._show(pod)
        if pod.finished:
            self._fates.left(pod.uid)
            self.claims.pod_left(pod.uid)

    def remove_pod(self, uid: str) -> None:
        """Remove a deleted pod. Ignore a pod that is unknown, or gone already."""
        if self._pods.pop(uid, None) is not None:
            self._changed()
            self._fates.left(uid)
            self.event_handlers.pod_gone(uid)
            self.claims.pod_left(uid)

    def _show(self, pod: PodInfo) -> None:
        self._changed()
        self._pods[pod.uid] = pod
        if pod.node_name:
            self.event_handlers.assigned_pod(pod)
        else:
            self.event_handlers.unscheduled_pod(pod)

    # --- changes by the scheduler ---------------------------------------------------------------------------------------------

    async def bind(self, pod: PodInfo, node: NodeName, annotations: dict[str, str]) -> None:
        """Bind the pod to its node, and run it. Raises `BindError` if the pod is gone."""
        known = self._pods.get(pod.uid)
        if known is None:
            raise BindError(f"{pod.key} is gone")
        now = self._clock()
        started = (self._begin + timedelta(seconds=int(now))).strftime("%Y-%m-%dT%H:%M:%SZ")
        content = known.pod
        conditions = None if self._start_seconds else _READY
        status = replace(content.status, phase=_RUNNING, start_time=started, nominated_node_name="", conditions=conditions)
        bound = known.on(node)  # faster than deriving it all again
        noted = replace(content.metadata, annotations={**(content.metadata.annotations or {}), **annotations})
        bound.pod = self._next(replace(content, metadata=noted, spec=replace(content.spec, node_name=node), status=status))
        self.event_handlers.unscheduled_pod_gone(bound)
        self._show(bound)
        duration = self._durations.get(pod.uid)
        if duration is not None:
            self._later(now + duration, lambda: self.remove_pod(pod.uid))
        if self._start_seconds:
            self._later(now + self._start_seconds, lambda: self._becomes_ready(pod.uid))

    def _becomes_ready(self, uid: str) -> None:
        known = self._pods.get(uid)
        if known is not None and known.node_name:
            self._show(PodInfo(self._next(replace(known.pod, status=replace(known.pod.status, conditions=_READY))), known))

    async def patch(self, path: str, body: Mapping[str, Any], namespace: str) -> None:
        """Accept a plugin's patch, and change nothing. Objects of plugins stay in their first state."""

    async def bind_by(self, pod: PodInfo, node: NodeName, send: Callable[[], Awaitable[None]]) -> None:
        """Let an extender bind the pod, and trust its answer."""
        try:
            await send()
        except ExtenderError as problem:
            raise BindError(str(problem)) from problem
        await self.bind(pod, node, {})

    async def evict(self, victim: PodInfo, preemptor: PodInfo, node: NodeName) -> None:
        """Remove the victim. Ignore a victim that is gone already."""
        if victim.uid in self._pods:
            self._fates.preempted(victim, preemptor)
            self.remove_pod(victim.uid)

    def pod_unscheduled(self, pod: PodInfo, reason: str, message: str, nominated_node: NodeName | None) -> None:
        """Keep only the nomination, because the pod's fate has the message."""
        if nominated_node is not None:
            self._nominate(pod.uid, nominated_node)

    def nomination_cleared(self, pod: PodInfo) -> None:
        """Remove the pod's nominated node."""
        self._nominate(pod.uid, NodeName(""))

    def pod_condition(self, pod: PodInfo, condition: Condition) -> None:
        """Keep nothing, because the pod's fate tells that it is given up."""

    def _nominate(self, uid: str, node: NodeName) -> None:
        known = self._pods.get(uid)
        if known is not None and known.nominated_node != node:
            self._tell(known, replace(known.pod.status, nominated_node_name=node))

    def claimed(self, uid: str, claim: PodExtendedResourceClaimStatus) -> None:
        """Show the claim of the pod's extended resources in its status."""
        known = self._pods.get(uid)
        if known is not None:
            self._tell(known, replace(known.pod.status, extended_resource_claim_status=claim))

    def _tell(self, known: PodInfo, status: PodStatus) -> None:
        pod = PodInfo(self._next(replace(known.pod, status=status)))
        self._pods[pod.uid] = pod
        # The scheduler continues before a watch shows its own write.
        self._later(self._clock(), lambda: self._nominated(pod))

    def _next(self, content: Pod) -> Pod:
        self._writes += 1
        return replace(content, metadata=replace(content.metadata, resource_version=f"simulated-{self._writes}"))

    def _nominated(self, pod: PodInfo) -> None:
        if self._pods.get(pod.uid) is pod:
            self.event_handlers.unscheduled_pod(pod)


def waiting(pod: PodInfo) -> PodInfo:
    """Return the pod in its state before it was placed."""
    content = pod.pod
    if not pod.node_name and content.status == _NEW:
        return pod
    status = replace(_NEW, resource_claim_statuses=content.status.resource_claim_statuses)
    return PodInfo(replace(content, spec=replace(content.spec, node_name=""), status=status))


def _standing(pod: PodInfo, known: PodInfo) -> PodInfo:
    """Return the pod as described by others, but on its node in the simulation."""
    content: Pod = pod.pod
    spec = replace(content.spec, node_name=known.node_name)
    was = known.pod.status
    phase = content.status.phase if pod.finished else was.phase
    status = replace(
        content.status, phase=phase, nominated_node_name=was.nominated_node_name, start_time=was.start_time, conditions=was.conditions
    )
    return PodInfo(replace(content, spec=spec, status=status))
