"""Whole pods and nodes for extenders: kube-scheduler sends them every field, not only the fields that scheduling reads.

Nodes come from a reflector of their own that keeps JSON text. It runs only while an extender needs it, because the text of thousands of
nodes takes tens of megabytes. A pod is read when it is sent: it is needed for a moment, and the few calls about one pod share one reading.

Objects are written as kube-scheduler holds them: without `kind` and `apiVersion`, which its lists do not carry, and pods without
`managedFields`, which it drops.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Final

import msgspec

from placewright.api.boundedcache import BoundedCache
from placewright.api.decode import DECODE_ERRORS, DecodeError, decode
from placewright.api.extenders import ExtenderError
from placewright.api.objects import NodeName, ObjectMeta
from placewright.api.pods import PodInfo
from placewright.api.writers import Writer
from placewright.kube.client import ApiClient
from placewright.kube.errors import NOT_FOUND, ApiError, RequestError
from placewright.kube.listwatch import Identity
from placewright.kube.reflector import Reflector, Source
from placewright.kube.tasks import cancelled

#: Pods whose text is kept: more than are decided at the same time.
_REMEMBERED_PODS: Final = 1024
#: Bytes of that text. A pod of more than a quarter of them is not kept: it would push out all others.
_REMEMBERED_BYTES: Final = 16 * 2**20
_LARGEST_POD: Final = _REMEMBERED_BYTES // 4
#: Seconds to wait for a node that the scheduler knows and this copy does not: the two have different watches.
_PATIENCE: Final = 1.0
_EMPTY: Final = msgspec.Raw(b"{}")


class WholeNode(msgspec.Struct, dict=True):
    """A node as JSON text, in the three parts that every object has. Encoded to JSON it is the whole node."""

    identity: Annotated[msgspec.Raw, Writer.KUBELET] = msgspec.field(default=_EMPTY, name="metadata")
    spec: Annotated[msgspec.Raw, Writer.OWNER] = _EMPTY
    status: Annotated[msgspec.Raw, Writer.KUBELET] = _EMPTY

    @property
    def metadata(self) -> ObjectMeta:
        """Name, uid and resourceVersion, decoded once; empty if the text cannot be decoded."""
        known: ObjectMeta | None = self.__dict__.get("_read")
        if known is None:
            known = ObjectMeta()
            with contextlib.suppress(*DECODE_ERRORS):
                known = msgspec.json.decode(self.identity, type=Identity).as_metadata()
            self.__dict__["_read"] = known
        return known


def _apart(node: WholeNode) -> WholeNode:
    """Copy the texts of a node. As decoded they are views, which would keep the whole page of the list in memory."""
    return WholeNode(node.identity.copy(), node.spec.copy(), node.status.copy())


class FullObjects:
    """Whole objects for extenders. One for the process; use it inside its event loop, and close it. It is the sink of its own reflector."""

    def __init__(self, client: ApiClient, *, patience: float = _PATIENCE) -> None:
        """Read nothing yet.

        Args:
            client: the API server's client.
            patience: seconds to wait for a node that is not known yet.
        """
        self._client = client
        self._patience = patience
        #: The reflector of the nodes while extenders need it, its task, and how many need it.
        self._nodes: Reflector[WholeNode] | None = None
        self._task: asyncio.Task[None] | None = None
        self._users = 0
        self._news = asyncio.Event()
        self._pods: BoundedCache[tuple[str, str], msgspec.Raw] = BoundedCache(
            _REMEMBERED_BYTES, most=_REMEMBERED_PODS, largest=_LARGEST_POD
        )

    # --- nodes ---------------------------------------------------------------------------------------------------------------

    def follow_nodes(self) -> None:
        """Keep a copy of all nodes, or note that one more extender needs it. Pair each call with `leave_nodes`."""
        self._users += 1
        if self._nodes is None:
            self._nodes = Reflector(self._client, Source("/api/v1/nodes", WholeNode, upgrade=_apart), self)
            self._task = asyncio.create_task(self._nodes.run(), name="whole nodes for extenders")

    async def leave_nodes(self) -> None:
        """Note that one extender less needs the copy. The last one ends it."""
        self._users = max(self._users - 1, 0)
        if not self._users:
            await self.close()

    async def close(self) -> None:
        """End the copy of the nodes."""
        task, self._task, self._nodes, self._users = self._task, None, None, 0
        if task is not None:
            await cancelled(task)

    async def nodes(self, names: Sequence[NodeName]) -> list[WholeNode]:
        """Return whole nodes. Waits for the first complete list, and for nodes that are not known yet.

        Returns:
            The nodes, in the order of `names`.

        Raises:
            ExtenderError: a node did not appear within the patience, or no copy is kept.
        """
        if self._nodes is None:
            raise ExtenderError("no copy of the nodes is kept")
        known = self._nodes.store
        await self._nodes.has_synced.wait()
        try:
            async with asyncio.timeout(self._patience):
                while any(name not in known for name in names):
                    await self._news.wait()
        except TimeoutError:
            missing = next((name for name in names if name not in known), "")
            raise ExtenderError(f"node {missing!r} cannot be sent: it is gone, or not known in full yet") from None
        return [known[name] for name in names]

    def changed(self, old: WholeNode | None, new: WholeNode) -> None:
        """Wake the calls that wait for a node."""
        if old is None:
            self._news.set()
            self._news.clear()

    def deleted(self, old: WholeNode) -> None:
        """Ignore it: no call waits for a deletion."""

    def synced(self) -> None:
        """Ignore it: calls wait for the reflector's own `has_synced`."""

    # --- pods ----------------------------------------------------------------------------------------------------------------

    async def pod(self, pod: PodInfo, readers: asyncio.Semaphore) -> msgspec.Raw:
        """Return a pod's JSON text.

        Args:
            pod: the pod as the scheduler knows it.
            readers: bounds the readings at the same time. Each extender has its own bound: it may be sent thousands of victims.

        Returns:
            The text, of the version that the scheduler knows or a later one.

        Raises:
            ExtenderError: the pod is gone, replaced, or cannot be read.
        """
        # By version: two calls about one decision share a reading, and a changed pod is read again.
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
        """Return the JSON texts of several pods.

        Args:
            pods: the pods as the scheduler knows them.
            readers: bounds the readings at the same time. Each extender has its own bound: it may be sent thousands of victims.

        Returns:
            The texts, in the order of `pods`.

        Raises:
            ExtenderError: one of the pods is gone, replaced, or cannot be read.
        """
        found = await asyncio.gather(*(self.pod(pod, readers) for pod in pods), return_exceptions=True)
        texts = [text for text in found if isinstance(text, msgspec.Raw)]
        for problem in found:
            if isinstance(problem, BaseException):
                raise problem
        return texts

    async def _read(self, pod: PodInfo) -> msgspec.Raw:
        try:
            body = await self._client.get(f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}")
            parts: dict[str, Any] = dict(decode(body, dict[str, msgspec.Raw]))
            metadata = decode(parts.get("metadata", _EMPTY), dict[str, msgspec.Raw])
            uid = decode(parts.get("metadata", _EMPTY), Identity).uid
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
