"""Marks of decisions on the API server: one ControllerRevision (apps/v1) a mark, in the operator's namespace, where tenants cannot write.

Whom a mark speaks for never changes. What does (who decides it now, the deaths) is changed on the condition that nobody else did so since
it was read: of two replicas one is refused with 409.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from placewright.api.decisionmarks import DecisionMark, MarkedPod
from placewright.api.decode import DECODE_ERRORS, DecodeError, decode
from placewright.api.objects import KubeObject, ObjectMeta
from placewright.kube.client import ApiClient
from placewright.kube.discovery import collection_path
from placewright.kube.errors import CONFLICT, NOT_FOUND, ApiError
from placewright.kube.guarded import GuardedBody

MARK_LABEL: Final = "placewright.dev/decision-mark"
OPENED_BY: Final = "placewright.dev/deciding"
DIED_AT: Final = "placewright.dev/died-at"
#: The reason of a 409 to a creation.
ALREADY_EXISTS: Final = "AlreadyExists"
_DECISION: Final = "decision"


class _StoredMark(KubeObject, frozen=True):
    """A ControllerRevision; its number is that of the deaths."""

    metadata: ObjectMeta = ObjectMeta()
    revision: int = 0
    data: MarkedPod | None = None


class _MarkList(msgspec.Struct, frozen=True):
    items: tuple[msgspec.Raw, ...] = ()


class MarkStore:
    """Reads and writes marks in one namespace. Every method raises `RequestError`, and `DecodeError` for an answer that is no mark."""

    def __init__(self, client: ApiClient, namespace: str, allowed: Callable[[], bool] = lambda: True) -> None:
        """`allowed`: asked as the bytes that open a mark leave."""
        self._client = client
        self._namespace = namespace
        self._allowed = allowed
        everywhere = collection_path("apps", "v1", "controllerrevisions")
        self._path = everywhere.replace("/controllerrevisions", f"/namespaces/{namespace}/controllerrevisions")

    async def marks(self) -> list[DecisionMark]:
        """All of them; what is none of ours is passed over."""
        listed = await self._client.get_as(self._path, _MarkList, {"labelSelector": MARK_LABEL})
        return list(_readable(listed.items))

    async def open(self, pod: MarkedPod, by: str) -> DecisionMark:
        """Say that a decision about this pod begins; the mark as it then is, with the deaths that it had."""
        body = {**self._named(pod), "revision": 0, "data": msgspec.to_builtins(pod)}
        body["metadata"]["annotations"] = {OPENED_BY: by}
        try:
            return _mark(await self._client.post(self._path, GuardedBody(body, self._allowed)))
        except ApiError as refusal:
            if refusal.reason != ALREADY_EXISTS:
                raise
        change = {"metadata": {"annotations": {OPENED_BY: by}}}
        return _mark(await self._client.patch(self._path_of(pod), GuardedBody(change, self._allowed)))

    async def count_death(self, mark: DecisionMark, at: float) -> DecisionMark:
        """Nobody decides it any more: one death more. Refused with 409 where somebody else changed the mark."""
        when = datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        noted = {"resourceVersion": mark.version, "annotations": {OPENED_BY: "", DIED_AT: when}}
        return _mark(await self._client.patch(self._path_of(mark.pod), {"metadata": noted, "revision": mark.deaths + 1}))

    async def close(self, mark: DecisionMark) -> None:
        """The decision ended: the mark goes, with its deaths, unless somebody else changed it since this version, or took it away."""
        options = {"preconditions": {"resourceVersion": mark.version}} if mark.version else {}
        try:
            await self._client.delete(self._path_of(mark.pod), options)
        except ApiError as refusal:
            if refusal.status not in (CONFLICT, NOT_FOUND):
                raise

    def _path_of(self, pod: MarkedPod) -> str:
        return f"{self._path}/{_name_of(pod)}"

    def _named(self, pod: MarkedPod) -> dict[str, Any]:
        labels = {"app.kubernetes.io/managed-by": "placewright", MARK_LABEL: _DECISION}
        metadata = {"name": _name_of(pod), "namespace": self._namespace, "labels": labels}
        return {"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": metadata}


def _name_of(pod: MarkedPod) -> str:
    return f"decision-{pod.name}"


def _mark(answer: bytes | msgspec.Raw) -> DecisionMark:
    stored = decode(bytes(answer), _StoredMark)
    if stored.data is None:
        raise DecodeError(f"ControllerRevision {stored.metadata.name}: no mark of a decision is in its data")
    notes = stored.metadata.annotations or {}
    died_at = 0.0
    with contextlib.suppress(ValueError):
        died_at = datetime.fromisoformat(notes.get(DIED_AT, "")).timestamp()
    return DecisionMark(stored.data, max(stored.revision, 0), notes.get(OPENED_BY, ""), died_at, stored.metadata.resource_version)


def _readable(items: Iterable[msgspec.Raw]) -> Iterator[DecisionMark]:
    for item in items:
        with contextlib.suppress(*DECODE_ERRORS, DecodeError):  # one that somebody else wrote under our label
            yield _mark(item)
