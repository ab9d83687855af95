"""Hears which pods were bound, and when, at the least cost: metadata only, and only of pods that have a node.

Metadata only also keeps the watch fair: the API server encodes an object once for all watches that want it alike, so a watch for whole
objects in JSON would save a scheduler that watches JSON that work, and not one that watches protobuf.
"""

from __future__ import annotations

import asyncio
import time
from types import TracebackType
from typing import Final, Self

import aiohttp
import msgspec

from placewright.kube.auth.login import ClusterAccess
from placewright.kube.listwatch import LineSplitter

_METADATA: Final = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"


class WatchBroken(Exception):
    """The watch ended or told an error, or a pod was bound twice: what was measured is worth nothing."""


class _Metadata(msgspec.Struct, frozen=True):
    name: str = ""


class _Object(msgspec.Struct, frozen=True):
    metadata: _Metadata = _Metadata()


class _Event(msgspec.Struct, frozen=True):
    type: str
    object: _Object


_DECODER: Final = msgspec.json.Decoder(_Event)


class BoundWatch:
    """Watches the assigned pods of one collection while its context is open, from a version on.

    Attributes:
        times: when each pod was seen bound, by name (`time.monotonic`).
    """

    def __init__(self, access: ClusterAccess, path: str, version: str) -> None:
        self.times: dict[str, float] = {}
        self._access = access
        self._path = path
        self._version = version
        self._broken: Exception | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None), read_bufsize=2**20)
        try:
            self._answer = await self._session.get(
                self._access.server + self._path,
                params={"watch": "1", "resourceVersion": self._version, "fieldSelector": "spec.nodeName!="},
                headers={"Accept": _METADATA, "Authorization": self._access.authorization},
                ssl=self._access.tls,
            )
            self._answer.raise_for_status()
        except BaseException:
            await self._session.close()
            raise
        self._reading = asyncio.create_task(self._read(self._answer), name="watch of bound pods")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)
        self._answer.close()
        await self._session.close()

    def seen(self) -> int:
        """How many were bound by now. Raises `WatchBroken` when that cannot be told any more."""
        if self._broken is not None:
            raise self._broken
        return len(self.times)

    async def _read(self, answer: aiohttp.ClientResponse) -> None:
        lines = LineSplitter()
        try:
            async for chunk in answer.content.iter_any():
                now = time.monotonic()
                for line in lines.feed(chunk):
                    self._hear(line, now)
            self._broken = WatchBroken("the API server ended the watch of bound pods")
        except (WatchBroken, aiohttp.ClientError, msgspec.MsgspecError) as error:
            self._broken = WatchBroken(str(error))

    def _hear(self, line: bytes, now: float) -> None:
        event = _DECODER.decode(line)
        name = event.object.metadata.name
        if event.type == "ERROR":
            raise WatchBroken(f"the API server ended the watch of bound pods: {line[:300].decode(errors='replace')}")
        if event.type != "ADDED":
            return
        if name in self.times:
            raise WatchBroken(f"pod {name} was bound twice")
        self.times[name] = now
