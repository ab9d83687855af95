"""The simulation's `VolumeWriter`. A claim gets its volume right after the scheduler has chosen the volume or the node.

Volumes come from the sandbox's provisioner (`kubesandbox.controllers.provisioner`). Snapshots keep no topology of drivers. So a volume is
in the zone of its node, and reached from there. Without a zone label, all nodes reach it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

import msgspec
from msgspec.structs import replace

from kubesandbox.controllers.provisioner import Place, made_volume, place_on_node
from placewright.api.decode import convert
from placewright.api.errors import VolumeError
from placewright.api.objects import NodeName
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
from placewright.scheduler.ports import Clock
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
