"""Pods and nodes whole, as the API server has them: extenders are sent all of an object, not the few fields that scheduling reads.

Nodes come from a reflector of their own that keeps JSON text; it runs only while an extender needs it, since the text of thousands of
nodes is tens of megabytes. Pods are read when they are sent: each is needed for a moment only, and the few calls about one pod share one
reading.

Objects are written as kube-scheduler holds them: without `kind` and `apiVersion`, which its lists do not carry, and pods without
`managedFields`, which it drops.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from placewright.api.boundedcache import BoundedCache
from placewright.api.decode import DECODE_ERRORS, DecodeError, decode
from placewright.api.extenders import ExtenderError
from placewright.api.objects import KubeObject, NodeName, ObjectMeta
from placewright.api.pods import PodInfo
from placewright.kube.client import ApiClient
from placewright.kube.errors import NOT_FOUND, ApiError, RequestError
from placewright.kube.reflector import Reflector, Source

#: Pods whose text is kept, more than are decided upon at the same time, and how many bytes of it; a larger pod than a quarter of that is
#: read for each call.
_REMEMBERED_PODS: Final = 1024
_REMEMBERED_BYTES: Final = 16 * 2**20
_LARGEST_POD: Final = _REMEMBERED_BYTES // 4
#: Readings of pods under way at the same time, for one extender.
_READING_AT_ONCE: Final = 16
#: Seconds to wait for a node that the scheduler has heard of and this copy has not: another watch brings it.
_PATIENCE: Final = 1.0
_EMPTY: Final = msgspec.Raw(b"{}")


def new_readers() -> asyncio.Semaphore:
    """How many pods may be read at the same time; each extender has its own, as one may be sent thousands of victims."""
    return asyncio.Semaphore(_READING_AT_ONCE)


class WholeNode(msgspec.Struct, dict=True):
    """A node as JSON text, in the three parts that every object has. Written to JSON it is the whole node."""

    identity: msgspec.Raw = msgspec.field(default=_EMPTY, name="metadata")
    spec: msgspec.Raw = _EMPTY
    status: msgspec.Raw = _EMPTY

    @property
    def metadata(self) -> ObjectMeta:
        """What identifies it, read once; empty where that cannot be read."""
        known: ObjectMeta | None = self.__dict__.get("_read")
        if known is None:
            known = self.__dict__["_read"] = _identified(self.identity)
        return known


class _Identity(KubeObject, frozen=True):
    name: str = ""
    uid: str = ""
    resource_version: str = ""


def _identified(metadata: msgspec.Raw) -> ObjectMeta:
    try:
        found = msgspec.json.decode(metadata, type=_Identity)
    except DECODE_ERRORS:
        return ObjectMeta()
    return ObjectMeta(name=found.name, uid=found.uid, resource_version=found.resource_version)


def _apart(node: WholeNode) -> WholeNode:
    """The same with text of its own: as decoded it would keep the whole page of the list."""
    return WholeNode(node.identity.copy(), node.spec.copy(), node.status.copy())


class _Wakes:
    """A reflector's sink that wakes those who wait for a node."""

    def __init__(self) -> None:
        self._news = asyncio.Event()

    def changed(self, old: WholeNode | None, new: WholeNode) -> None:
        if old is None:
            self._news.set()
            self._news = asyncio.Event()

    def deleted(self, old: WholeNode) -> None:
        """Nobody waits for that."""

    def synced(self) -> None:
        """The reflector says so itself."""

    async def news(self) -> None:
        """Return at the next node that appears."""
        await self._news.wait()


@dataclass(slots=True)
class _Following:
    """The reflector while it runs, and how many need it."""

    reflector: Reflector[WholeNode]
    wakes: _Wakes
    task: asyncio.Task[None]
    users: int = 1


class FullObjects:
    """Whole objects for extenders; one for the whole program, used inside its event loop, and closed."""

    def __init__(self, client: ApiClient, *, patience: float = _PATIENCE) -> None:
        """`patience`: seconds to wait for a node that is not known yet."""
        self._client = client
        self._patience = patience
        self._following: _Following | None = None
        self._pods: BoundedCache[tuple[str, str], msgspec.Raw] = BoundedCache(
            _REMEMBERED_BYTES, most=_REMEMBERED_PODS, largest=_LARGEST_POD
        )

    # --- nodes ---------------------------------------------------------------------------------------------------------------

    @property
    def follows_nodes(self) -> bool:
        """True while somebody needs whole nodes."""
        return self._following is not None

    def follow_nodes(self) -> None:
        """Begin to keep a copy of all nodes, or note that one more needs it; to be paired with `leave_nodes`."""
        if self._following is not None:
            self._following.users += 1
            return
        wakes = _Wakes()
        reflector = Reflector(self._client, Source("/api/v1/nodes", WholeNode, upgrade=_apart), wakes)
        self._following = _Following(reflector, wakes, asyncio.create_task(reflector.run(), name="whole nodes for extenders"))

    async def leave_nodes(self) -> None:
        """One less needs the copy; the last one ends it."""
        following = self._following
        if following is None:
            return
        following.users -= 1
        if following.users == 0:
            await self.close()

    async def close(self) -> None:
        """End the copy of the nodes."""
        following, self._following = self._following, None
        if following is not None:
            following.task.cancel()
            await asyncio.gather(following.task, return_exceptions=True)

    async def nodes(self, names: Sequence[NodeName]) -> list[WholeNode]:
        """These nodes, in this order. Waits for the first complete list; raises `ExtenderError` for a node that does not show up."""
        following = self._following
        if following is None:
            raise ExtenderError("no copy of the nodes is kept")
        await following.reflector.has_synced.wait()
        known = following.reflector.store
        if any(name not in known for name in names):
            await self._until_known(names, following)
        return [known[name] for name in names]

    async def _until_known(self, names: Iterable[NodeName], following: _Following) -> None:
        known = following.reflector.store
        try:
            async with asyncio.timeout(self._patience):
                while any(name not in known for name in names):
                    await following.wakes.news()
        except TimeoutError:
            missing = next((name for name in names if name not in known), "")
            raise ExtenderError(f"node {missing!r} cannot be sent: it is gone, or not known in full yet") from None

    # --- pods ----------------------------------------------------------------------------------------------------------------

    async def pod(self, pod: PodInfo, readers: asyncio.Semaphore) -> msgspec.Raw:
        """The pod's JSON text. Raises `ExtenderError` when it is gone, replaced, or cannot be read. `readers`: see `new_readers`."""
        key = (pod.uid, pod.pod.metadata.resource_version)
        known = self._pods.get(key)
        if known is not None:
            return known
        async with readers:
            text = await self._read(pod)
        if all(key):
            self._pods.put(key, text, len(memoryview(text)))
        return text

    async def pods(self, pods: Iterable[PodInfo], readers: asyncio.Semaphore) -> list[msgspec.Raw]:
        """Several, in this order; raises as `pod` does."""
        async with asyncio.TaskGroup() as group:
            reading = [group.create_task(self._or_error(pod, readers)) for pod in pods]
        found = [task.result() for task in reading]
        for text in found:
            if isinstance(text, ExtenderError):
                raise text
        return [text for text in found if isinstance(text, msgspec.Raw)]

    async def _or_error(self, pod: PodInfo, readers: asyncio.Semaphore) -> msgspec.Raw | ExtenderError:
        """One failure must not cancel the other readings half-way, and not arrive as a group of errors."""
        try:
            return await self.pod(pod, readers)
        except ExtenderError as error:
            return error

    async def _read(self, pod: PodInfo) -> msgspec.Raw:
        try:
            body = await self._client.get(f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}")
            parts: dict[str, Any] = dict(decode(body, dict[str, msgspec.Raw]))
            metadata = decode(parts.get("metadata", _EMPTY), dict[str, msgspec.Raw])
            uid = decode(parts.get("metadata", _EMPTY), _Identity).uid
        except ApiError as error:
            if error.status == NOT_FOUND:
                raise ExtenderError(f"pod {pod.key} cannot be sent: it is gone") from None
            raise ExtenderError(f"pod {pod.key} cannot be sent: {error}") from None
        except (RequestError, DecodeError) as error:
            raise ExtenderError(f"pod {pod.key} cannot be sent: {error}") from None
        if uid != pod.uid:
            raise ExtenderError(f"pod {pod.key} cannot be sent: it has been replaced by another of its name")
        parts["metadata"] = {name: text for name, text in metadata.items() if name != "managedFields"}
        return msgspec.Raw(msgspec.json.encode({name: part for name, part in parts.items() if name not in ("kind", "apiVersion")}))
