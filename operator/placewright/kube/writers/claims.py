"""Writes ResourceClaims: patches that reserve and release devices, each only on the version that was read.

Every patch carries the resourceVersion of the claim. After a 409 the claim is read again: the wanted state may be there already, or be
impossible now; otherwise it is tried on top of the new version. So a patch may be repeated after a lost answer: it cannot undo a change of
another writer. If a patch would change the text of a driver's parameters in passing (`claimprotobuf`), the claim is replaced instead.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Collection, Coroutine, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Final, Protocol

import msgspec

from placewright.api.decode import DecodeError, decode
from placewright.api.devices import (
    ALLOCATION_FINALIZER,
    GROUP,
    AllocationResult,
    ConsumerReference,
    ResourceClaim,
    devices_of,
)
from placewright.api.errors import ClaimError
from placewright.api.objects import NodeAllocatableClaimStatus, PodExtendedResourceClaimStatus
from placewright.api.pods import PodInfo
from placewright.kube.client import JSON
from placewright.kube.errors import CONFLICT, INVALID, NOT_FOUND, ApiError, RequestError
from placewright.kube.guarded import GuardedBody
from placewright.kube.writers.claimprotobuf import PROTOBUF, WireError, identity_of, with_consumers, with_finalizers
from placewright.kube.writers.places import RequestOwner
from placewright.kube.writers.writer import RoomWriter, pod_path, precondition

#: Number of times that other writers may change a claim in between before the attempt is given up.
_CONFLICTS: Final = 10
#: Attempts to release a claim: for as long as this replica may write, because a reserved claim keeps its devices from other pods.
_FOR_EVER: Final = sys.maxsize


class ClaimListener(Protocol):
    """Is told about claims, such as metrics."""

    def created(self, *, failed: bool) -> None:
        """Note that the scheduler tried to create a claim."""

    def waited(self, profile: str, drivers: Collection[str], status: str, seconds: float) -> None:
        """Note that a pod waited for drivers."""


@dataclass(eq=False)
class HttpClaimWriter(RoomWriter):
    """Writes claims to the API server; implements the framework's port `ClaimWriter`.

    Attributes:
        version: the API version in which the server has claims.
        listeners: are told about claims.
    """

    ERROR: ClassVar[type[Exception]] = ClaimError

    version: Callable[[], str] = lambda: "v1"
    listeners: Sequence[ClaimListener] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        self._beside: set[asyncio.Task[None]] = set()

    async def reserve(
        self, claim: ResourceClaim, allocation: AllocationResult | None, pod: PodInfo, group: ConsumerReference | None = None
    ) -> ResourceClaim:
        """Reserve a claim for a pod or its group: the finalizer first, then allocation and consumer in one write.

        Args:
            claim: the claim as the decision saw it.
            allocation: the devices that it gets; None for a claim that has its devices.
            pod: the new consumer.
            group: the new consumer instead of the pod.

        Raises:
            ClaimError: the claim was deleted, deallocated or allocated otherwise meanwhile, keeps changing, or cannot be written.
        """
        current, user = claim, group or ConsumerReference.of_pod(pod.name, pod.uid)
        for _ in range(_CONFLICTS):
            _require_possible(current, claim, allocation)
            consumers = current.status.reserved_for or ()
            allocated = current.status.allocation is not None
            if allocated and any(consumer.uid == user.uid for consumer in consumers):
                return current
            try:
                if not allocated:
                    current = await self._protected(current)
                added = (*consumers, user)
                status = {"reservedFor": added} if allocated else {"allocation": allocation, "reservedFor": added}
                return await self._patch_status(current, status, self.attempts)
            except _Changed:
                current = await self._get(claim, self.attempts)
        raise ClaimError(f"claim {_called(claim)} keeps changing")

    async def release(self, claim: ResourceClaim, pod: PodInfo, *, deallocate: bool, group: ConsumerReference | None = None) -> None:
        """Take a pod or its group out of a claim.

        The claim is read first, because the outcome of an earlier write may be unknown. Devices that another writer gave to it stay.

        Args:
            claim: the claim as the decision saw it.
            pod: the consumer that goes.
            group: the consumer that goes instead of the pod.
            deallocate: also give the devices back, if no consumer is left.

        Raises:
            ClaimError: the claim keeps changing, or cannot be written.
        """
        for _ in range(_CONFLICTS):
            try:
                current = await self._get(claim, _FOR_EVER)
            except _Gone:
                return
            named = current.status.reserved_for or ()
            left = tuple(consumer for consumer in named if consumer.uid != (group or pod).uid)
            free = deallocate and not left and _has_still(current, claim.status.allocation)
            if len(left) == len(named) and not free:
                return
            status: dict[str, Any] = {"reservedFor": left or None} | ({"allocation": None, "devices": None} if free else {})
            try:
                await self._patch_status(current, status, _FOR_EVER)
            except _Changed:
                continue
            return
        raise ClaimError(f"claim {_called(claim)} keeps changing")

    async def create(self, claim: ResourceClaim, generate_name: str) -> ResourceClaim:
        """Create a claim for a pod's extended resources. It is sent once: after a lost answer its generated name is unknown.

        Raises:
            ClaimError: the server refused or did not answer.
        """
        meta = claim.metadata
        owners = [msgspec.to_builtins(owner) | {"apiVersion": "v1"} for owner in meta.owner_references or ()]
        body = {
            "apiVersion": f"{GROUP}/{self.version()}",
            "kind": "ResourceClaim",
            "metadata": {"generateName": generate_name, "annotations": meta.annotations or {}, "ownerReferences": owners},
            "spec": claim.spec,
        }
        made: ResourceClaim | None = None
        try:
            post = partial(self.client.post, self._collection(meta.namespace))
            # One attempt: after a lost answer a second one would create a second claim, under another generated name.
            made = decode_claim(await self._write(post, body, 1, meta.namespace))
        finally:
            for listener in self.listeners:
                listener.created(failed=made is None)
        return made

    async def delete(self, claim: ResourceClaim) -> None:
        """Remove our finalizer from a claim and delete it.

        Args:
            claim: the claim of this uid. A claim that is gone is no error.

        Raises:
            ClaimError: the claim keeps changing, or cannot be written.
        """
        for _ in range(_CONFLICTS):
            try:
                current = await self._get(claim, _FOR_EVER)
                finalizers = current.metadata.finalizers or ()
                if ALLOCATION_FINALIZER in finalizers:
                    await self._patch_finalizers(current, [each for each in finalizers if each != ALLOCATION_FINALIZER], _FOR_EVER)
                options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": claim.metadata.uid}}
                await self._write(partial(self.client.delete, self._path(claim)), options, _FOR_EVER, claim.metadata.namespace)
            except _Changed:
                continue
            except _Gone:
                pass
            return
        raise ClaimError(f"claim {_called(claim)} keeps changing")

    async def tell_pod(self, pod: PodInfo, status: PodExtendedResourceClaimStatus) -> None:
        """Patch a pod's `status.extendedResourceClaimStatus`.

        Args:
            pod: the pod of this uid.
            status: the claim, and the requests that it serves.

        Raises:
            ClaimError: the server refused or did not answer.
        """
        await self._patch_pod(pod, {"extendedResourceClaimStatus": status})

    async def tell_node_resources(self, pod: PodInfo, statuses: Sequence[NodeAllocatableClaimStatus]) -> None:
        """Patch a pod's `status.nodeAllocatableResourceClaimStatuses`.

        Args:
            pod: the pod of this uid.
            statuses: resources by claim; none removes the field.

        Raises:
            ClaimError: the server refused or did not answer.
        """
        await self._patch_pod(pod, {"nodeAllocatableResourceClaimStatuses": statuses or None})

    async def _patch_pod(self, pod: PodInfo, status: dict[str, Any]) -> None:
        body = {"metadata": {"uid": pod.uid}, "status": status}
        await self._write(lambda guarded: self.client.patch(f"{pod_path(pod)}/status", guarded), body, self.attempts, pod.namespace)

    def waited(self, profile: str, drivers: Collection[str], status: str, seconds: float) -> None:
        """Tell the listeners that a pod waited for drivers."""
        for listener in self.listeners:
            listener.waited(profile, drivers, status, seconds)

    def beside(self, work: Coroutine[Any, Any, None]) -> None:
        """Run work in a task of its own; `settled` waits for it.

        Args:
            work: such as the release of a claim.
        """
        task = asyncio.get_running_loop().create_task(work)
        self._beside.add(task)
        task.add_done_callback(self._ended)

    async def settled(self) -> None:
        """Return when all work of `beside` has ended."""
        while self._beside:
            await asyncio.wait(tuple(self._beside))

    def now(self) -> float:
        """Return the time of day.

        Returns:
            Seconds since 1970.
        """
        return time.time()

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._beside.discard(task)
        if not task.cancelled() and (problem := task.exception()) is not None:
            task.get_loop().call_exception_handler({"message": "a claim could not be released", "exception": problem})

    # --- requests ------------------------------------------------------------------------------------------------------------

    async def _protected(self, claim: ResourceClaim) -> ResourceClaim:
        """Add our finalizer, unless an earlier attempt has."""
        finalizers = claim.metadata.finalizers or ()
        if ALLOCATION_FINALIZER in finalizers:
            return claim
        return await self._patch_finalizers(claim, [*finalizers, ALLOCATION_FINALIZER], self.attempts)

    async def _patch_finalizers(self, claim: ResourceClaim, finalizers: Sequence[str], attempts: int) -> ResourceClaim:
        body, path = (
            {"metadata": {**precondition(claim.metadata.uid, claim.metadata.resource_version), "finalizers": finalizers}},
            self._path(claim),
        )
        try:
            return decode_claim(await self._write(partial(self.client.patch, path), body, attempts, claim.metadata.namespace))
        except _Invalid as refused:
            return await self._replace(claim, path, lambda there: with_finalizers(there, finalizers), attempts, refused)

    async def _patch_status(self, claim: ResourceClaim, status: dict[str, Any], attempts: int) -> ResourceClaim:
        body = {"metadata": precondition(claim.metadata.uid, claim.metadata.resource_version), "status": status}
        path = f"{self._path(claim)}/status"
        try:
            return decode_claim(await self._write(partial(self.client.patch, path), body, attempts, claim.metadata.namespace))
        except _Invalid as refused:
            if "allocation" in status:  # the stored claim has no allocation whose parameters a patch could change in passing
                raise
            consumers = status["reservedFor"] or ()
            return await self._replace(claim, path, lambda there: with_consumers(there, consumers), attempts, refused)

    async def _replace(
        self, claim: ResourceClaim, path: str, edit: Callable[[bytes], bytes], attempts: int, refused: _Invalid
    ) -> ResourceClaim:
        """Replace the claim if a patch would change the text of parameters in passing: see `claimprotobuf`."""
        if not _has_parameters(claim):
            raise refused
        read = partial(self.client.request, "GET", self._path(claim), accept=f"{PROTOBUF}, {JSON};q=0.5")
        there = await self._answered(read, attempts, claim.metadata.namespace)
        try:
            uid, version = identity_of(there)
            edited = edit(there)
        except WireError as problem:
            raise refused from problem
        if (uid, version) != (claim.metadata.uid, claim.metadata.resource_version):
            raise _Changed(f"claim {_called(claim)} was changed in the meantime")
        put = partial(self.client.put, path, content_type=PROTOBUF)
        return decode_claim(await self._write(put, edited, attempts, claim.metadata.namespace))

    async def _get(self, claim: ResourceClaim, attempts: int) -> ResourceClaim:
        read = partial(self.client.get, self._path(claim))
        current = decode_claim(await self._answered(read, attempts, claim.metadata.namespace))
        if current.metadata.uid != claim.metadata.uid:
            raise _Gone(f"claim {_called(claim)} got deleted in the meantime")
        return current

    async def _write(
        self, request: Callable[[GuardedBody], Awaitable[bytes]], body: dict[str, Any] | bytes, attempts: int, namespace: str
    ) -> bytes:
        return await self._answered(lambda: request(self._guarded(body)), attempts, namespace)

    async def _answered(self, request: Callable[[], Awaitable[bytes]], attempts: int, namespace: str) -> bytes:
        try:
            return await self._send(request, attempts=attempts, whose=RequestOwner(namespace))
        except ApiError as problem:
            kind = {CONFLICT: _Changed, NOT_FOUND: _Gone, INVALID: _Invalid}.get(problem.status, ClaimError)
            raise kind(str(problem)) from problem
        except RequestError as problem:
            raise ClaimError(str(problem)) from problem

    def _collection(self, namespace: str) -> str:
        return f"/apis/{GROUP}/{self.version()}/namespaces/{namespace}/resourceclaims"

    def _path(self, claim: ResourceClaim) -> str:
        return f"{self._collection(claim.metadata.namespace)}/{claim.metadata.name}"


class _Changed(ClaimError):
    """Another writer changed the claim first."""


class _Invalid(ClaimError):
    """The API server refuses the claim in this form."""


class _Gone(ClaimError):
    """The claim is gone."""


def _require_possible(current: ResourceClaim, claim: ResourceClaim, allocation: AllocationResult | None) -> None:
    if current.metadata.deletion_timestamp is not None:
        raise ClaimError(f"claim {_called(claim)} got deleted in the meantime")
    there = current.status.allocation
    if allocation is None and there is None:
        raise ClaimError(f"claim {_called(claim)} got deallocated elsewhere in the meantime")
    if allocation is not None and there is not None and devices_of(there) != devices_of(allocation):
        raise ClaimError(f"claim {_called(claim)} got allocated elsewhere in the meantime")


def _has_still(current: ResourceClaim, allocation: AllocationResult | None) -> bool:
    """Whether the claim has the devices of this allocation (of any, if it is None): another writer may have given it others."""
    there = current.status.allocation
    return there is not None and (allocation is None or devices_of(there) == devices_of(allocation))


def _has_parameters(claim: ResourceClaim) -> bool:
    """Whether the claim has parameters, which the API server keeps as text."""
    allocation = claim.status.allocation
    return bool(claim.spec.devices.config or (allocation is not None and allocation.devices.config))


def decode_claim(raw: bytes) -> ResourceClaim:
    """Decode a claim as the API server answered.

    Raises:
        ClaimError: the text is no claim.
    """
    try:
        return decode(raw, ResourceClaim)
    except DecodeError as problem:
        raise ClaimError(str(problem)) from problem


def _called(claim: ResourceClaim) -> str:
    return f"{claim.metadata.namespace}/{claim.metadata.name}"
