"""The Lease as the API has it: read, written, and whether we may do either.

Written by PUT with the resourceVersion that was read, so that of two who write at once one is refused. What people put on it (labels,
annotations) stays on it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from placewright.api.decode import DECODE_ERRORS, decode
from placewright.api.objects import KubeObject, ObjectMeta
from placewright.kube.client import ApiClient
from placewright.kube.errors import CONFLICT, FORBIDDEN, NOT_FOUND, ApiError
from placewright.leadership.leaserule import LeaseRecord, Sight

LEASE_NAME: Final = "placewright"
_API_VERSION: Final = "coordination.k8s.io/v1"
_DRY_RUN: Final = {"dryRun": "All"}
_WHAT_TO_APPLY: Final = "apply manifests/base (role.yaml, rolebinding.yaml), or run the only replica with --leader-elect=false"


class CannotElect(Exception):
    """Replicas could not settle which of them is active; the message says what to apply."""


class Lease(KubeObject, frozen=True):
    """A Lease; `spec` is decoded apart, so that a strange one is still a Lease."""

    metadata: ObjectMeta = ObjectMeta()
    spec: msgspec.Raw = msgspec.Raw(b"{}")


class _Spec(KubeObject, frozen=True):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


_SPEC: Final = msgspec.json.Decoder(_Spec | None)


def sight_of(lease: Lease) -> Sight:
    """What it says."""
    return Sight(lease.metadata.uid, lease.metadata.resource_version, _record(bytes(lease.spec)))


def _record(text: bytes) -> LeaseRecord:
    try:
        spec = _SPEC.decode(text) or _Spec()
    except DECODE_ERRORS:
        return LeaseRecord(garbled=text)
    return LeaseRecord(
        spec.holder_identity or "",
        max(0, spec.lease_duration_seconds or 0),
        spec.acquire_time or "",
        spec.renew_time or "",
        spec.lease_transitions or 0,
    )


def older(version: str, other: str) -> bool:
    """Whether a version is known to be older; where they are no numbers nobody knows, and any may be news."""
    return version.isdecimal() and other.isdecimal() and int(version) < int(other)


def micro_stamp(moment: datetime) -> str:
    """As MicroTime is written, always with six digits."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class LeaseStore:
    """Reads and writes one Lease. Every method raises `RequestError`, and `DecodeError` for an answer that is no Lease."""

    def __init__(self, client: ApiClient, namespace: str, name: str = LEASE_NAME) -> None:
        self.namespace = namespace
        self.name = name
        self.collection = f"/apis/{_API_VERSION}/namespaces/{namespace}/leases"
        self._client = client
        self._path = f"{self.collection}/{name}"
        #: The object as last seen; what a write keeps of it.
        self.last: Lease | None = None

    @property
    def selector(self) -> str:
        """Field selector of this Lease alone, which a right on its name covers."""
        return f"metadata.name={self.name}"

    async def read(self) -> Lease | None:
        """The Lease; None when there is none."""
        try:
            return decode(await self._client.get(self._path), Lease)
        except ApiError as error:
            if error.status != NOT_FOUND:
                raise
        return None

    async def write(self, record: LeaseRecord) -> Lease:
        """Create it, or replace what `last` is; refused with 409 or 404 when it is another by now."""
        if self.last is None:
            return decode(await self._client.post(self.collection, self._body(record, {})), Lease)
        return decode(await self._client.put(self._path, self._body(record, _kept(self.last.metadata))), Lease)

    def _body(self, record: LeaseRecord, metadata: dict[str, Any]) -> dict[str, Any]:
        spec = {
            "holderIdentity": record.holder,
            "leaseDurationSeconds": record.duration,
            "acquireTime": record.acquired,
            "renewTime": record.renewed,
            "leaseTransitions": record.transitions,
        }
        named = {"name": self.name, "namespace": self.namespace}
        return {"apiVersion": _API_VERSION, "kind": "Lease", "metadata": metadata | named, "spec": spec}

    # --- at the start ---

    async def require_rights(self) -> None:
        """Raise `CannotElect` unless we may list, read, create and update; nothing is stored, but the namespace if there is none."""
        probe = LeaseRecord(duration=1, acquired=micro_stamp(datetime.now(UTC)), renewed=micro_stamp(datetime.now(UTC)))
        absent = self._body(probe, {"resourceVersion": "1"})
        await self._may("list", lambda: self._client.get(self.collection, {"fieldSelector": self.selector, "limit": "1"}))
        await self._may("get", lambda: self._client.get(self._path))
        await self._require_namespace(self._body(probe, {}))
        await self._may("update", lambda: self._client.put(self._path, absent, _DRY_RUN))

    async def _require_namespace(self, body: dict[str, Any]) -> None:
        create = lambda: self._client.post(self.collection, body, _DRY_RUN)  # noqa: E731
        if await self._may("create", create) != NOT_FOUND:
            return
        try:
            await self._client.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}})
        except ApiError as error:
            if error.temporary:
                raise
            if error.status != CONFLICT:
                raise CannotElect(
                    f"replicas elect one by a Lease in namespace {self.namespace!r}, which does not exist and could not be created"
                    f" ({error}); {_WHAT_TO_APPLY}"
                ) from None

    async def _may(self, verb: str, ask: Callable[[], Awaitable[bytes]]) -> int:
        """Ask for something; the status of the answer when it is no success, 0 for one."""
        try:
            await ask()
        except ApiError as error:
            if error.status == FORBIDDEN:
                raise CannotElect(
                    f"replicas elect one by the Lease {self.namespace}/{self.name}, which may not be used"
                    f" ({verb} leases.coordination.k8s.io: {error.message}); {_WHAT_TO_APPLY}"
                ) from None
            if error.temporary:
                raise
            return error.status
        return 0


def _kept(metadata: ObjectMeta) -> dict[str, Any]:
    kept: dict[str, Any] = {"resourceVersion": metadata.resource_version, "uid": metadata.uid}
    if metadata.labels:
        kept["labels"] = dict(metadata.labels)
    if metadata.annotations:
        kept["annotations"] = dict(metadata.annotations)
    return kept

