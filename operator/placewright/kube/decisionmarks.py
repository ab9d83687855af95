"""Marks of decisions on the API server: one ControllerRevision (apps/v1) a mark, in the operator's namespace, where tenants cannot write.

The pod that a mark is about never changes. The deciding replica and the number of deaths change only if the mark was not changed since it
was read. So of two replicas one is refused with 409 (docs/decisions/0034).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

import msgspec

from placewright.api.decisionmarks import DecisionMark, MarkedPod
from placewright.api.decode import decode
from placewright.api.objects import KubeObject, ObjectMeta
from placewright.kube.client import ApiClient
from placewright.kube.errors import CONFLICT, NOT_FOUND, ApiError
from placewright.kube.guarded import GuardedBody, always
from placewright.kube.history import RevisionStore
from placewright.kube.writers.events import seconds_time

MARK_LABEL: Final = "placewright.dev/decision-mark"
OPENED_BY: Final = "placewright.dev/deciding"
DIED_AT: Final = "placewright.dev/died-at"
#: Reason of a 409 to the creation of an object that exists.
ALREADY_EXISTS: Final = "AlreadyExists"
_DECISION: Final = "decision"


class _StoredMark(KubeObject, frozen=True):
    """A ControllerRevision; its `revision` is the number of deaths."""

    data: MarkedPod
    metadata: ObjectMeta = ObjectMeta()
    revision: int = 0


class MarkStore(RevisionStore):
    """Reads and writes marks in one namespace.

    Every method raises `RequestError` when the server refuses or does not answer. It raises `DecodeError` for an answer that is no mark.
    """

    def __init__(self, client: ApiClient, namespace: str, allowed: Callable[[], bool] = always) -> None:
        """Read nothing yet.

        Args:
            client: the API server's client.
            namespace: the operator's.
            allowed: asked when the bytes that open a mark leave: only the active replica may.
        """
        super().__init__(client, namespace)  # the history of profiles needs the same rights
        self._allowed = allowed

    async def marks(self) -> list[DecisionMark]:
        """Read all marks.

        Returns:
            The marks; objects under our label that are no marks are left out.
        """
        return await self._listed(MARK_LABEL, _mark)

    async def open(self, pod: MarkedPod, by: str) -> DecisionMark:
        """Write that a decision about this pod begins.

        Args:
            pod: the pod, by a digest of its spec.
            by: the deciding replica.

        Returns:
            The mark as stored, with the deaths of earlier decisions.
        """
        body = self._manifest(_name_of(pod), (MARK_LABEL, _DECISION), {OPENED_BY: by}, 0, pod)
        try:
            return _mark(await self._client.post(self._path, GuardedBody(body, self._allowed)))
        except ApiError as refusal:
            if refusal.reason != ALREADY_EXISTS:
                raise
        change = {"metadata": {"annotations": {OPENED_BY: by}}}
        return _mark(await self._client.patch(self._path_of(pod), GuardedBody(change, self._allowed)))

    async def count_death(self, mark: DecisionMark, at: float) -> DecisionMark:
        """Count one more death: the process of the mark's decision ended before the decision did.

        Args:
            mark: the mark as read. The API server refuses with 409 when it was changed since.
            at: seconds since 1970.
        """
        when = seconds_time(datetime.fromtimestamp(at, UTC))
        noted = {"resourceVersion": mark.version, "annotations": {OPENED_BY: "", DIED_AT: when}}
        return _mark(await self._client.patch(self._path_of(mark.pod), {"metadata": noted, "revision": mark.deaths + 1}))

    async def close(self, mark: DecisionMark) -> None:
        """Remove the mark and its deaths: the decision ended.

        Args:
            mark: the mark as read or opened. A mark that was changed since stays, and one that is gone is no error.
        """
        options = {"preconditions": {"resourceVersion": mark.version}} if mark.version else {}
        try:
            await self._client.delete(self._path_of(mark.pod), options)
        except ApiError as refusal:
            if refusal.status not in (CONFLICT, NOT_FOUND):
                raise

    def _path_of(self, pod: MarkedPod) -> str:
        return f"{self._path}/{_name_of(pod)}"


def _name_of(pod: MarkedPod) -> str:
    return f"decision-{pod.name}"


def _mark(answer: bytes | msgspec.Raw) -> DecisionMark:
    stored = decode(bytes(answer), _StoredMark)
    notes = stored.metadata.annotations or {}
    died_at = 0.0
    with contextlib.suppress(ValueError):
        died_at = datetime.fromisoformat(notes.get(DIED_AT, "")).timestamp()
    return DecisionMark(stored.data, max(stored.revision, 0), notes.get(OPENED_BY, ""), died_at, stored.metadata.resource_version)
