"""The fake of the port through which claims to devices are written: it keeps claims as an API server would."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine, Iterator, Sequence
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from placewright.api.devices import (
    AllocationResult,
    ConsumerReference,
    DeviceCondition,
    DeviceStatus,
    ResourceClaim,
    ResourceClaimStatus,
)
from placewright.api.errors import ClaimError
from placewright.api.objects import NodeAllocatableClaimStatus, PodExtendedResourceClaimStatus
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.ports import Seconds
from placewright.testing.objectmaker import next_version
from placewright.testing.ports import WatchingPort

#: 2026-01-01T00:00:00Z in seconds since 1970, when a world begins. A fixed moment, so that times in statuses are the same in every run.
_BEGIN: Final = 1_767_225_600.0


class ClaimWrite(NamedTuple):
    """A write of the scheduler: `reserve`, `release`, `create`, `delete` or `tell` (the pod's status)."""

    verb: str
    claim: str


class WaitForDevices(NamedTuple):
    """How long a pod waited for devices of these drivers, and how that ended."""

    profile: str
    drivers: tuple[str, ...]
    status: str
    seconds: float


class FakeClaimWriter(WatchingPort):
    """Records what the scheduler writes of ResourceClaims. Implements the framework's `ClaimWriter`; `answers` go by the claim.

    A call that ends well changes the claim; devices with binding conditions are ready at once.

    Attributes:
        writes: all writes, in order.
        told: statuses of pods with extended resources, in order.
        node_resources: resources of nodes that pods take with their claims, as last told, by the pod's name.
        waits: waits of pods for devices, in order.
    """

    def __init__(
        self,
        cluster: Cluster,
        clock: Callable[[], float],
        shows: Callable[[ResourceClaim], object] = lambda _claim: None,
        hides: Callable[[ResourceClaim], object] = lambda _claim: None,
    ) -> None:
        """Keep the claims of a cluster.

        Args:
            cluster: holds the claims.
            clock: seconds.
            shows: called with each claim that a call changed; without it the scheduler sees no change.
            hides: called with each claim that a call deleted; without it the scheduler keeps seeing the claim.
        """
        super().__init__(clock)
        self.writes: list[ClaimWrite] = []
        self.told: list[PodExtendedResourceClaimStatus] = []
        self.node_resources: dict[str, tuple[NodeAllocatableClaimStatus, ...]] = {}
        self.waits: list[WaitForDevices] = []
        self._table = cluster.objects.devices.claims
        self._shows = shows
        self._hides = hides
        self._beside: set[asyncio.Task[None]] = set()

    async def reserve(
        self, claim: ResourceClaim, allocation: AllocationResult | None, pod: PodInfo, group: ConsumerReference | None = None
    ) -> ResourceClaim:
        """Let the pod use the claim.

        Args:
            claim: the claim as it was when the pod was decided.
            allocation: the devices that the claim gets if it has none; None: it has some.
            pod: is added to the claim's users, once.
            group: the pod's group, which is added instead.

        Returns:
            The claim as it was shown, with a newer resourceVersion.

        Raises:
            ClaimError: the claim is gone, or has other devices.
        """
        await self._write("reserve", claim.metadata.name)
        current = self._current(claim)
        status = current.status
        if status.allocation is None:
            status = replace(status, allocation=allocation, devices=tuple(_ready(allocation)) or None)
        elif allocation is not None and status.allocation.devices.results != allocation.devices.results:
            raise ClaimError(f"claim {claim.metadata.name} got allocated elsewhere in the meantime")
        users, added = status.reserved_for or (), group or ConsumerReference.of_pod(pod.name, pod.uid)
        # The scheduler reserves again after an answer that was lost. The pod is one user nevertheless.
        if all(user.uid != added.uid for user in users):
            users = (*users, added)
        return self._show(replace(current, status=replace(status, reserved_for=users)))

    async def release(self, claim: ResourceClaim, pod: PodInfo, *, deallocate: bool, group: ConsumerReference | None = None) -> None:
        """Remove the pod from the claim's users; the last one with `deallocate` clears the status. Implements `ClaimWriter.release`."""
        await self._write("release", claim.metadata.name)
        shown = self._shown(claim)
        if shown is not None:
            left = tuple(user for user in shown.status.reserved_for or () if user.uid != (group or pod).uid) or None
            kept = left is not None or not deallocate
            self._show(replace(shown, status=replace(shown.status, reserved_for=left) if kept else ResourceClaimStatus()))

    async def create(self, claim: ResourceClaim, generate_name: str) -> ResourceClaim:
        """Make a claim. Its uid is `uid-NAME`, as makers give it.

        Args:
            claim: its spec is taken; its status is not.
            generate_name: beginning of the name. It ends with the number of earlier writes, so that a test can foretell it.

        Returns:
            The claim as it was shown.
        """
        name = f"{generate_name}{len(self.writes)}"
        await self._write("create", name)
        meta = replace(claim.metadata, name=name, uid=f"uid-{name}")
        return self._show(replace(claim, metadata=meta, status=ResourceClaimStatus()))

    async def delete(self, claim: ResourceClaim) -> None:
        """Delete a claim; one that is gone is no error."""
        await self._write("delete", claim.metadata.name)
        shown = self._shown(claim)
        if shown is not None:
            self._hides(shown)

    async def tell_pod(self, pod: PodInfo, status: PodExtendedResourceClaimStatus) -> None:
        """Record the status in `told`, and change no pod. Implements `ClaimWriter.tell_pod`."""
        await self._write("tell", status.resource_claim_name)
        self.told.append(status)

    async def tell_node_resources(self, pod: PodInfo, statuses: Sequence[NodeAllocatableClaimStatus]) -> None:
        """Record the resources in `node_resources` by the pod's name, and change no pod. Implements `ClaimWriter.tell_node_resources`."""
        await self._write("tell", pod.name)
        self.node_resources[pod.name] = tuple(statuses)

    def waited(self, profile: str, drivers: Collection[str], status: str, seconds: Seconds) -> None:
        """Record the wait in `waits`. Implements `ClaimWriter.waited`."""
        self.waits.append(WaitForDevices(profile, tuple(drivers), status, seconds))

    def beside(self, work: Coroutine[Any, Any, None]) -> None:
        """Run work as a task of its own."""
        task = asyncio.get_running_loop().create_task(work)
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)

    def now(self) -> float:
        """Seconds since 1970; the clock's seconds are those since 2026 began."""
        return _BEGIN + self._clock()

    async def _write(self, verb: str, name: str) -> None:
        self.writes.append(ClaimWrite(verb, name))
        await self._answer(name)

    def _shown(self, claim: ResourceClaim) -> ResourceClaim | None:
        shown = self._table.shown(claim.metadata.name, claim.metadata.namespace)
        # A claim that was deleted and made anew under the same name is another claim.
        return shown if shown is not None and shown.metadata.uid == claim.metadata.uid else None

    def _current(self, claim: ResourceClaim) -> ResourceClaim:
        shown = self._shown(claim)
        if shown is None:
            raise ClaimError(f"claim {claim.metadata.namespace}/{claim.metadata.name} got deleted in the meantime")
        return shown

    def _show(self, claim: ResourceClaim) -> ResourceClaim:
        written = replace(claim, metadata=replace(claim.metadata, resource_version=next_version()))
        self._shows(written)
        return written


def _ready(allocation: AllocationResult | None) -> Iterator[DeviceStatus]:
    """Yield what drivers report of devices that have conditions to meet before a pod is bound."""
    for device in () if allocation is None else allocation.devices.results or ():
        if device.binding_conditions:
            conditions = tuple(DeviceCondition(type=kind, status="True") for kind in device.binding_conditions)
            yield DeviceStatus(device.driver, device.pool, device.device, device.share_id, conditions)
