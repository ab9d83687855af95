"""Writes volumes: patches of PersistentVolumes and PersistentVolumeClaims, each only on the version that the decision saw.

Every patch carries the resourceVersion that the decision saw. A writer that changed the object in between wins: the answer is 409, and the
pod is decided again. So a patch may be repeated after a lost answer: it cannot undo a change of another writer.
"""

from __future__ import annotations

from typing import Any, ClassVar, TypeVar

from placewright.api.decode import DecodeError, decode
from placewright.api.errors import VolumeError
from placewright.api.objects import ObjectMeta
from placewright.api.storage import PersistentVolume, PersistentVolumeClaim
from placewright.kube.errors import RequestError
from placewright.kube.writers.places import RequestOwner
from placewright.kube.writers.writer import RoomWriter, precondition

T = TypeVar("T", PersistentVolume, PersistentVolumeClaim)


class HttpVolumeWriter(RoomWriter):
    """Writes volumes to the API server; implements the framework's port `VolumeWriter`."""

    ERROR: ClassVar[type[Exception]] = VolumeError

    async def bind(self, volume: PersistentVolume) -> PersistentVolume:
        """Patch a volume's `spec.claimRef` and annotations.

        Raises:
            VolumeError: the server refused (409 when the volume changed meanwhile), or did not answer.
        """
        body = {"metadata": _metadata(volume.metadata), "spec": {"claimRef": volume.spec.claim_ref}}
        claim = volume.spec.claim_ref
        whose = RequestOwner("" if claim is None else claim.namespace)
        return await self._patch(f"/api/v1/persistentvolumes/{volume.metadata.name}", body, PersistentVolume, whose)

    async def select_node(self, claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
        """Patch a claim's annotations, which name the selected node.

        Raises:
            VolumeError: the server refused (409 when the claim changed meanwhile), or did not answer.
        """
        meta = claim.metadata
        path = f"/api/v1/namespaces/{meta.namespace}/persistentvolumeclaims/{meta.name}"
        return await self._patch(path, {"metadata": _metadata(meta)}, PersistentVolumeClaim, RequestOwner(meta.namespace))

    async def _patch(self, path: str, body: dict[str, Any], kind: type[T], whose: RequestOwner) -> T:
        try:
            return decode(await self._send(lambda: self.client.patch(path, self._guarded(body)), whose=whose), kind)
        except (RequestError, DecodeError) as problem:
            raise VolumeError(f"patching {path}: {problem}") from problem


def _metadata(meta: ObjectMeta) -> dict[str, Any]:
    return {**precondition(meta.uid, meta.resource_version), "annotations": meta.annotations or {}}
