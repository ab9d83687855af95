"""Hears which pods were bound, and when, at the least cost: metadata only, and only of pods that have a node.

Metadata only also keeps the watch fair: the API server encodes an object once for all watches that want it alike, so a watch for whole
objects in JSON would save a scheduler that watches JSON that work, and not one that watches protobuf.

An API server that has just started keeps little room for each watch, and closes one that it cannot serve for some tens of milliseconds, as
on a machine whose cores are all taken. So a watch that ends is taken up again after the last event that was heard: none is lost.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from types import TracebackType
from typing import Final, Self

import aiohttp
import msgspec

from placewright.kube.auth.login import ClusterAccess
from placewright.kube.listwatch import LineSplitter

_METADATA: Final = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"

_SILENT_ENDS: Final = 3


class WatchBroken(Exception):
    """The watch ended or reported an error, or a pod was bound twice: the measurement is void."""


class _Metadata(msgspec.Struct, rename="camel", frozen=True):
    name: str = ""
    namespace: str = ""
    resource_version: str = ""


class _Object(msgspec.Struct, frozen=True):
    metadata: _Metadata = _Metadata()


class _Event(msgspec.Struct, frozen=True):
    type: str
    object: _Object


_DECODER: Final = msgspec.json.Decoder(_Event)


class BoundWatch:
    """Watches the assigned pods of one collection while its context is open, from a version on.

    Attributes:
        times: when each pod was seen bound (`time.monotonic`), by name; by `namespace/name` where it watches all namespaces.
        gone: those of them that were deleted since.
        placed: how many are on nodes now, by namespace.
    """

    def __init__(self, access: ClusterAccess, path: str, version: str) -> None:
        self.times: dict[str, float] = {}
        self.gone: set[str] = set()
        self.placed: Counter[str] = Counter()
        self._access = access
        self._path = path
        self._everywhere = "/namespaces/" not in path
        self._version = version
        self._broken: Exception | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None), read_bufsize=2**20)
        try:
            answer = await self._open()
        except BaseException:
            await self._session.close()
            raise
        self._reading = asyncio.create_task(self._read(answer), name="watch of bound pods")
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)
        await self._session.close()

    def seen(self) -> int:
        """How many were bound by now. Raises `WatchBroken` when that cannot be told any more."""
        if self._broken is not None:
            raise self._broken
        return len(self.times)

    async def _open(self) -> aiohttp.ClientResponse:
        answer = await self._session.get(
            self._access.server + self._path,
            params={"watch": "1", "resourceVersion": self._version, "fieldSelector": "spec.nodeName!="},
            headers={"Accept": _METADATA, "Authorization": self._access.authorization},
            ssl=self._access.tls,
        )
        answer.raise_for_status()
        return answer

    async def _read(self, answer: aiohttp.ClientResponse) -> None:
        """Until the context ends, or the watch has ended so often without an event in between that it will not go on."""
        silent = 0
        try:
            while True:
                silent = 0 if await self._heard_of(answer) else silent + 1
                if silent == _SILENT_ENDS:
                    break
                answer = await self._open()
            self._broken = WatchBroken("the API server ended the watch of bound pods")
        except (WatchBroken, aiohttp.ClientError, msgspec.MsgspecError) as error:
            self._broken = WatchBroken(str(error))

    async def _heard_of(self, answer: aiohttp.ClientResponse) -> bool:
        """Hear all events of one answer; whether there were any."""
        lines, before = LineSplitter(), self._version
        async with answer:
            async for chunk in answer.content.iter_any():
                now = time.monotonic()
                for line in lines.feed(chunk):
                    self._hear(line, now)
        return self._version != before

    def _hear(self, line: bytes, now: float) -> None:
        event = _DECODER.decode(line)
        metadata = event.object.metadata
        name = f"{metadata.namespace}/{metadata.name}" if self._everywhere else metadata.name
        if event.type == "ERROR":
            raise WatchBroken(f"the API server ended the watch of bound pods: {line[:300].decode(errors='replace')}")
        self._version = metadata.resource_version
        if event.type == "DELETED" and name in self.times:
            self.gone.add(name)
            self.placed[metadata.namespace] -= 1
        if event.type != "ADDED":
            return
        if name in self.times:
            raise WatchBroken(f"pod {name} was bound twice")
        self.times[name] = now
        self.placed[metadata.namespace] += 1
