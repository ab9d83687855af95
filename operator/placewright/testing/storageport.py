"""The fake of the port through which claims get volumes: volumes are bound, and made, as soon as the scheduler asks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from msgspec.structs import replace

from placewright.api.errors import VolumeError
from placewright.api.storage import BIND_COMPLETED, SELECTED_NODE, PersistentVolume, PersistentVolumeClaim, VolumePhase
from placewright.cluster.cluster import Cluster
from placewright.cluster.objects import ClusterObject
from placewright.testing.objectmaker import next_version
from placewright.testing.ports import WatchingPort
from placewright.testing.volumes import persistent_volume

_BOUND: Final = VolumePhase(phase="Bound")


class VolumeWrite(NamedTuple):
    """A write of the scheduler: `bind` a volume to a claim, or `select` a node for a claim whose volume is to be made."""

    verb: str
    name: str
    to: str


class FakeVolumeWriter(WatchingPort):
    """Records what the scheduler writes of volumes. Implements the framework's `VolumeWriter`; `answers` go by the volume or the claim.

    A call that ends well does what the volume controller and a provisioner would do: the claim and its volume are bound to each other.

    Attributes:
        writes: all writes, in order.
    """

    def __init__(self, cluster: Cluster, clock: Callable[[], float], shows: Callable[[ClusterObject], object] = lambda _item: None) -> None:
        """Keep the volumes of a cluster.

        Args:
            cluster: holds the volumes and the claims.
            clock: seconds.
            shows: called with each object that a call changed; without it the scheduler sees none of the changes.
        """
        super().__init__(clock)
        self.writes: list[VolumeWrite] = []
        self._cluster = cluster
        self._shows = shows

    async def bind(self, volume: PersistentVolume) -> PersistentVolume:
        """Bind a volume to the claim that it names.

        Args:
            volume: the volume with its `claimRef`.

        Returns:
            The volume as it was shown, in the phase Bound.

        Raises:
            VolumeError: the claim is gone, or the volume names none.
        """
        reference = volume.spec.claim_ref
        if reference is None:
            raise VolumeError(f"persistentvolume {volume.metadata.name} names no claim")
        self.writes.append(VolumeWrite("bind", volume.metadata.name, reference.name))
        await self._answer(volume.metadata.name)
        # Looked up after the answer, because the claim may be deleted while the call is under way.
        claim = self._cluster.objects.storage.claims.shown(reference.name, reference.namespace)
        if claim is None:
            raise VolumeError(f"persistentvolumeclaim {reference.namespace}/{reference.name} is gone")
        bound = replace(volume, metadata=replace(volume.metadata, resource_version=next_version()), status=_BOUND)
        self._shows(bound)
        self._complete(claim, volume.metadata.name)
        return bound

    async def select_node(self, claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
        """Make a volume that the selected node reaches, and bind the claim to it.

        Args:
            claim: the claim with the annotation that names the node.

        Returns:
            The claim as it was shown, in the phase Bound; the volume is called `pvc-UID` after the claim's uid.
        """
        meta = claim.metadata
        node = (meta.annotations or {}).get(SELECTED_NODE, "")
        self.writes.append(VolumeWrite("select", meta.name, node))
        await self._answer(meta.name)
        asked = (claim.spec.resources.requests or {}).get("storage", "0")
        made = persistent_volume(f"pvc-{meta.uid}", str(asked)).storage_class(claim.spec.storage_class_name or "").on(node)
        made = made.access_modes(*(claim.spec.access_modes or ())).bound_to(meta.name, namespace=meta.namespace, uid=meta.uid)
        self._shows(made.build())
        return self._complete(claim, made.name)

    def _complete(self, claim: PersistentVolumeClaim, volume: str) -> PersistentVolumeClaim:
        meta = claim.metadata
        meta = replace(meta, annotations={**(meta.annotations or {}), BIND_COMPLETED: "yes"}, resource_version=next_version())
        bound = replace(claim, metadata=meta, spec=replace(claim.spec, volume_name=volume), status=_BOUND)
        self._shows(bound)
        return bound
