"""Stand-in of the API server, its controllers and its kubelets. It takes the scheduler's writes, and shows them like watches.

Everything happens at once: a pod runs after its binding, and a victim is gone after its eviction. A scenario may give pods some seconds to
become Ready.

The simulation's `VolumeWriter`. A claim gets its volume right after the scheduler has chosen the volume or the node.

Volumes come from the sandbox's provisioner (`kubesandbox.controllers.provisioner`). Snapshots keep no topology of drivers. So a volume is
in the zone of its node, and reached from there. Without a zone label, all nodes reach it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar

import msgspec
from msgspec.structs import replace

from kubesandbox.controllers.provisioner import Place, made_volume, place_on_node
from placewright.api.decode import convert
from placewright.api.errors import BindError, VolumeError
from placewright.api.extenders import ExtenderError
from placewright.api.objects import Condition, Node, NodeName, Pod, PodStatus
from placewright.api.pods import PodInfo
from placewright.api.storage import (
    BIND_COMPLETED,
    SELECTED_NODE,
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumePhase,
)
from placewright.cluster.cluster import Cluster
from placewright.cluster.objects import ClusterObject
from placewright.scheduler.eventhandlers import ClusterEventHandlers
from placewright.scheduler.ports import Clock
from placewright_lab.simulation.claimwriter import InstantClaimWriter
from placewright_lab.simulation.outcome import Fates
from placewright_lab.simulation.virtualtime import until

T = TypeVar("T", PersistentVolume, PersistentVolumeClaim)
_BOUND: Final = VolumePhase(phase="Bound")


class InstantVolumeWriter:
    """Implements the framework's `VolumeWriter`. `show` shows the scheduler an object's new state."""

    def __init__(self, cluster: Cluster, clock: Clock, show: Callable[[ClusterObject], None]) -> None:
        self._cluster = cluster
        self._clock = clock
        self._show = show
        self._writes = 0

    async def bind(self, volume: PersistentVolume) -> PersistentVolume:
        """Bind the volume and its claim to each other. Raises `VolumeError` if the claim is gone."""
        reference = volume.spec.claim_ref or ObjectReference()
        claim = self._cluster.objects.storage.claims.shown(reference.name, reference.namespace)
        if claim is None:
            raise VolumeError(f"persistentvolumeclaim {reference.namespace}/{reference.name} is gone")
        bound = self._next(replace(volume, status=_BOUND))
        self._show(bound)
        self._complete(claim, volume.metadata.name)
        return bound

    async def select_node(self, claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
        """Make a volume on the claim's selected node. Raises `VolumeError` if the node is gone."""
        node = (claim.metadata.annotations or {}).get(SELECTED_NODE, "")
        row = self._cluster.row(NodeName(node))
        if row is None:
            raise VolumeError(f"node {node} is gone")
        volume = self._made(claim, place_on_node(self._cluster.node(row).metadata.labels or {}, None))
        self._show(volume)
        return self._complete(claim, volume.metadata.name)

    async def until(self, done: Callable[[], bool], seconds: float) -> bool:
        """Wait until a condition holds, in virtual seconds."""
        return await until(self._clock, done, seconds)

    def _made(self, claim: PersistentVolumeClaim, place: Place) -> PersistentVolume:
        meta, name = claim.metadata, claim.spec.storage_class_name or ""
        storage_class = self._cluster.objects.storage.classes.get(name) or StorageClass()
        named = {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid, "resourceVersion": meta.resource_version}
        content = {"metadata": named, "spec": msgspec.to_builtins(claim.spec)}
        made = made_volume(content, {"metadata": {"name": name}, "provisioner": storage_class.provisioner}, place)
        return self._next(replace(convert(made, PersistentVolume), status=_BOUND))

    def _complete(self, claim: PersistentVolumeClaim, volume: str) -> PersistentVolumeClaim:
        annotations = {**(claim.metadata.annotations or {}), BIND_COMPLETED: "yes"}
        meta = replace(claim.metadata, annotations=annotations)
        bound = self._next(replace(claim, metadata=meta, spec=replace(claim.spec, volume_name=volume), status=_BOUND))
        self._show(bound)
        return bound

    def _next(self, item: T) -> T:
        """Return the object with a new resourceVersion."""
        self._writes += 1
        return replace(item, metadata=replace(item.metadata, resource_version=f"simulated-volume-{self._writes}"))


def identified(item: ClusterObject) -> ClusterObject:
    """Return the claim with a uid, because volumes name claims by uid and people write claims without one."""
    if isinstance(item, PersistentVolumeClaim) and not item.metadata.uid:
        meta = item.metadata
        namespace = meta.namespace or "default"
        return replace(item, metadata=replace(meta, namespace=namespace, uid=f"{namespace}-{meta.name}"))
    return item


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

    def pod_nominated(self, pod: PodInfo, node: NodeName) -> None:
        """Change the pod's nominated node."""
        self._nominate(pod.uid, node)

    def pod_condition(self, pod: PodInfo, condition: Condition) -> None:
        """Keep nothing, because the pod's fate tells that it is given up."""

    def _nominate(self, uid: str, node: NodeName) -> None:
        known = self._pods.get(uid)
        if known is not None and known.nominated_node != node:
            self._tell(known, replace(known.pod.status, nominated_node_name=node))

    def claimed(self, uid: str, fields: Mapping[str, object]) -> None:
        """Show fields of the pod's status that tell of its claims."""
        known = self._pods.get(uid)
        if known is not None:
            self._tell(known, replace(known.pod.status, **fields))

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
