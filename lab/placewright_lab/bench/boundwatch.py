"""A watch that hears at the least cost which pods were bound, and when.

It reads metadata only, and only of pods on nodes. That also keeps the comparison fair. The API server encodes an object once for all
watches of one form. So a watch of whole objects in JSON would save work for a scheduler that watches JSON. A scheduler that watches
protobuf would gain nothing.

A fresh API server keeps little room for each watch. It closes a watch that it cannot serve for some tens of milliseconds. This happens on a
machine with all cores taken. So this watch begins again after the last event that it heard, and loses no event.
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
    """The watch ended or reported an error, or a pod was bound twice. The measurement is void."""


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
    """A watch of the assigned pods of one collection, from a version on. It runs while its context is open.

    Attributes:
        times: time (`time.monotonic`) of each pod's binding, by name; by `namespace/name` in a watch of all namespaces.
        gone: those of these pods that were deleted since.
        placed: numbers of pods on nodes now, by namespace.
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
        """Return the number of bound pods. Raises `WatchBroken` if the watch has failed."""
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
        """Read until the context ends. Give up after too many ends of the watch without an event in between."""
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
        """Hear all events of one answer. Return whether there were any."""
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
