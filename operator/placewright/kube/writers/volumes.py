"""Claims get their volumes: patches of PersistentVolumes and PersistentVolumeClaims, each only on what was looked at.

Every patch carries the resourceVersion that the decision was made on. Whoever changed the object in between wins: the answer is 409, the
pod is decided anew. So a patch may be repeated after a lost answer: it cannot undo anything.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any, Final, TypeVar

from placewright.api.decode import DecodeError, decode
from placewright.api.errors import VolumeError
from placewright.api.objects import ObjectMeta
from placewright.api.storage import PersistentVolume, PersistentVolumeClaim
from placewright.kube.client import ApiClient
from placewright.kube.errors import RequestError
from placewright.kube.ratelimit import Traffic
from placewright.kube.retry import Backoff, Sleep, with_retries
from placewright.kube.writers.guarded import GuardedBody

T = TypeVar("T", PersistentVolume, PersistentVolumeClaim)
#: Seconds between two looks at what the watches show; upstream looks once a second.
LOOK_SECONDS: Final = 0.2


class HttpVolumeWriter:
    """Writes to the API server; implements the framework's `VolumeWriter`."""

    def __init__(
        self,
        client: ApiClient,
        may_write: Callable[[], bool],
        *,
        attempts: int = 4,
        backoff: Backoff = Backoff(initial=0.2, maximum=5.0),  # noqa: B008 - frozen
        clock: Callable[[], float] = time.monotonic,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        """`may_write`: asked before each request and each look, as the binder asks: only the active replica may."""
        self._client = client.sending(Traffic.ROOM)
        self._may_write = may_write
        self._attempts = attempts
        self._backoff = backoff
        self._clock = clock
        self._sleep = sleep

    async def bind(self, volume: PersistentVolume) -> PersistentVolume:
        """Patch `spec.claimRef` and the annotations; raises `VolumeError`."""
        body = {"metadata": _metadata(volume.metadata), "spec": {"claimRef": volume.spec.claim_ref}}
        return await self._patch(f"/api/v1/persistentvolumes/{volume.metadata.name}", body, PersistentVolume)

    async def select_node(self, claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
        """Patch the annotations; raises `VolumeError`."""
        meta = claim.metadata
        path = f"/api/v1/namespaces/{meta.namespace}/persistentvolumeclaims/{meta.name}"
        return await self._patch(path, {"metadata": _metadata(meta)}, PersistentVolumeClaim)

    async def until(self, done: Callable[[], bool], seconds: float) -> bool:
        """True once `done` says so, False when it has not within so many seconds."""
        deadline = self._clock() + seconds
        while not done():
            self._require_lead()
            if self._clock() >= deadline:
                return False
            await self._sleep(LOOK_SECONDS)
        return True

    async def _patch(self, path: str, body: dict[str, Any], kind: type[T]) -> T:
        async def patch() -> bytes:
            self._require_lead()
            return await self._client.patch(path, GuardedBody(body, self._may_write))

        try:
            return decode(await with_retries(patch, self._attempts, self._backoff, self._sleep), kind)
        except (RequestError, DecodeError) as problem:
            raise VolumeError(f"patching {path}: {problem}") from problem

    def _require_lead(self) -> None:
        if not self._may_write():
            raise VolumeError("this replica is not the active one")


def _metadata(meta: ObjectMeta) -> dict[str, Any]:
    precondition = {"resourceVersion": meta.resource_version} if meta.resource_version else {}
    return {**precondition, "uid": meta.uid, "annotations": meta.annotations or {}}
