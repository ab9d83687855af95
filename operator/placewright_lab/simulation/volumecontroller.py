"""Stands in for the volume controller and every provisioner: a claim has its volume as soon as the scheduler has said which, or where.

Volumes are made in the zone of the node, and reached from there; without a zone label, from everywhere.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

from msgspec.structs import replace

from placewright.api.errors import VolumeError
from placewright.api.objects import NodeName, NodeSelector, NodeSelectorTerm, ObjectMeta, Requirement
from placewright.api.storage import (
    BIND_COMPLETED,
    SELECTED_NODE,
    CsiVolumeSource,
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeSpec,
    StorageClass,
    VolumeNodeAffinity,
    VolumePhase,
)
from placewright.cluster.cluster import Cluster
from placewright.cluster.objects import ClusterObject
from placewright.scheduler.ports import Clock

T = TypeVar("T", PersistentVolume, PersistentVolumeClaim)
ZONE: Final = "topology.kubernetes.io/zone"
_BOUND: Final = VolumePhase(phase="Bound")
_LOOK_SECONDS: Final = 1.0


class VolumeController:
    """Implements the framework's `VolumeWriter`. `show`: tells the scheduler what an object is like now."""

    def __init__(self, cluster: Cluster, clock: Clock, show: Callable[[ClusterObject], None]) -> None:
        self._cluster = cluster
        self._clock = clock
        self._show = show
        self._writes = 0

    async def bind(self, volume: PersistentVolume) -> PersistentVolume:
        """The volume belongs to its claim, and the claim knows; raises `VolumeError` for a claim that is gone."""
        reference = volume.spec.claim_ref or ObjectReference()
        claim = self._cluster.objects.storage.claims.shown(reference.name, reference.namespace)
        if claim is None:
            raise VolumeError(f"persistentvolumeclaim {reference.namespace}/{reference.name} is gone")
        bound = self._next(replace(volume, status=_BOUND))
        self._show(bound)
        self._complete(claim, volume.metadata.name)
        return bound

    async def select_node(self, claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
        """A volume is made where the node is; raises `VolumeError` for a node that is gone."""
        node = (claim.metadata.annotations or {}).get(SELECTED_NODE, "")
        row = self._cluster.row(NodeName(node))
        if row is None:
            raise VolumeError(f"node {node} is gone")
        volume = self._made(claim, (self._cluster.node(row).metadata.labels or {}).get(ZONE))
        self._show(volume)
        return self._complete(claim, volume.metadata.name)

    async def until(self, done: Callable[[], bool], seconds: float) -> bool:
        """As the real one, in virtual seconds."""
        deadline = self._clock() + seconds
        while not done():
            if self._clock() >= deadline:
                return False
            await asyncio.sleep(_LOOK_SECONDS)
        return True

    def _made(self, claim: PersistentVolumeClaim, zone: str | None) -> PersistentVolume:
        meta, wanted = claim.metadata, claim.spec
        storage_class = self._cluster.objects.storage.classes.get(wanted.storage_class_name or "") or StorageClass()
        name = f"pvc-{meta.uid}"
        spec = PersistentVolumeSpec(
            capacity=wanted.resources.requests,
            access_modes=wanted.access_modes,
            claim_ref=ObjectReference("PersistentVolumeClaim", "v1", meta.namespace, meta.name, meta.uid, meta.resource_version),
            storage_class_name=wanted.storage_class_name or "",
            volume_mode=wanted.volume_mode,
            volume_attributes_class_name=wanted.volume_attributes_class_name,
            node_affinity=None if zone is None else _only_in(zone),
            csi=CsiVolumeSource(storage_class.provisioner, name),
        )
        return self._next(PersistentVolume(ObjectMeta(name=name), spec, _BOUND))

    def _complete(self, claim: PersistentVolumeClaim, volume: str) -> PersistentVolumeClaim:
        annotations = {**(claim.metadata.annotations or {}), BIND_COMPLETED: "yes"}
        meta = replace(claim.metadata, annotations=annotations)
        bound = self._next(replace(claim, metadata=meta, spec=replace(claim.spec, volume_name=volume), status=_BOUND))
        self._show(bound)
        return bound

    def _next(self, item: T) -> T:
        """With a resourceVersion that it never had."""
        self._writes += 1
        return replace(item, metadata=replace(item.metadata, resource_version=f"simulated-volume-{self._writes}"))


def identified(item: ClusterObject) -> ClusterObject:
    """Claims that people write have no uid; their volumes name them by it."""
    if isinstance(item, PersistentVolumeClaim) and not item.metadata.uid:
        meta = item.metadata
        namespace = meta.namespace or "default"
        return replace(item, metadata=replace(meta, namespace=namespace, uid=f"{namespace}-{meta.name}"))
    return item


def _only_in(zone: str) -> VolumeNodeAffinity:
    term = NodeSelectorTerm(match_expressions=(Requirement(ZONE, "In", (zone,)),))
    return VolumeNodeAffinity(required=NodeSelector((term,)))
