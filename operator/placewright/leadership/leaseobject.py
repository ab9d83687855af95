"""Reads and writes the Lease, and checks the rights to do so.

The Lease is written by PUT with the resourceVersion that was read. So of two simultaneous writers one is refused. Labels and annotations
that people put on it stay.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Annotated, Any, Final

import msgspec

from placewright.api.decode import DECODE_ERRORS, decode
from placewright.api.objects import KubeObject, ObjectMeta
from placewright.api.writers import Writer
from placewright.kube.client import ApiClient
from placewright.kube.errors import CONFLICT, FORBIDDEN, NOT_FOUND, ApiError
from placewright.kube.writers.events import micro_time
from placewright.leadership.leaserule import LeaseRecord, Sight

LEASE_NAME: Final = "placewright"
_API_VERSION: Final = "coordination.k8s.io/v1"
_DRY_RUN: Final = {"dryRun": "All"}
_WHAT_TO_APPLY: Final = "apply manifests/base (role.yaml, rolebinding.yaml), or run the only replica with --leader-elect=false"


class CannotElect(Exception):
    """Replicas cannot settle which of them is active. The message names the manifests to apply."""


class Lease(KubeObject, frozen=True):
    """A Lease. `spec` is decoded separately, so that a Lease with a strange one can still be read and replaced."""

    metadata: Annotated[ObjectMeta, Writer.OWNER] = ObjectMeta()
    spec: Annotated[msgspec.Raw, Writer.OWNER] = msgspec.Raw(b"{}")


class _Spec(KubeObject, frozen=True):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


_SPEC: Final = msgspec.json.Decoder(_Spec | None)


def sight_of(lease: Lease) -> Sight:
    """Read the record of a Lease.

    Returns:
        Identity, version and record of the object.
    """
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
    """Compare resourceVersions.

    Returns:
        True when `version` is known to be older. Versions that are no numbers have no known order, and either may be news.
    """
    return version.isdecimal() and other.isdecimal() and int(version) < int(other)


class LeaseStore:
    """Reads and writes one Lease.

    Every method raises `RequestError` when the server refuses or does not answer. It raises `DecodeError` for an answer that is no Lease.

    Attributes:
        namespace: namespace of the Lease.
        name: name of the Lease.
        collection: path of the namespace's Leases.
        last: the object as last seen; a write keeps its labels and annotations.
    """

    def __init__(self, client: ApiClient, namespace: str) -> None:
        self.namespace = namespace
        self.name = LEASE_NAME
        self.collection = f"/apis/{_API_VERSION}/namespaces/{namespace}/leases"
        self._client = client
        self._path = f"{self.collection}/{LEASE_NAME}"
        self.last: Lease | None = None

    @property
    def selector(self) -> str:
        """Field selector of this Lease alone; a right on its name is enough for it."""
        return f"metadata.name={self.name}"

    async def read(self) -> Lease | None:
        """Read the Lease.

        Returns:
            The Lease; None when there is none.
        """
        try:
            return decode(await self._client.get(self._path), Lease)
        except ApiError as error:
            if error.status != NOT_FOUND:
                raise
        return None

    async def write(self, record: LeaseRecord) -> Lease:
        """Create the Lease, or replace `last`.

        Returns:
            The Lease as stored. The server answers 409 or 404 when it was changed or deleted since `last`.
        """
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
        """Check that this replica may list, read, create and update the Lease.

        Requests are dry runs, so nothing is stored; only a missing namespace is created.

        Raises:
            CannotElect: a right or the namespace is missing; the message names the manifests to apply.
            RequestError: the server did not answer.
        """
        now = micro_time(datetime.now(UTC))
        probe = LeaseRecord(duration=1, acquired=now, renewed=now)
        # With a version that no Lease has, even a server that ignores the dry run changes nothing.
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
            if error.status != CONFLICT:  # a conflict: another replica has created it meanwhile
                raise CannotElect(
                    f"replicas elect one by a Lease in namespace {self.namespace!r}, which does not exist and could not be created"
                    f" ({error}); {_WHAT_TO_APPLY}"
                ) from None

    async def _may(self, verb: str, ask: Callable[[], Awaitable[bytes]]) -> int:
        """Try a request. Returns the status of a refusal, 0 for a success."""
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
    kept = {
        "resourceVersion": metadata.resource_version,
        "uid": metadata.uid,
        "labels": metadata.labels,
        "annotations": metadata.annotations,
    }
    return {name: value for name, value in kept.items() if value}
