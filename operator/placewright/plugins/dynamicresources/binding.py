"""Reservation of claims: from the choice of a node to written claims and ready devices, and the rollback.

Allocations are pending in the table of claims from Reserve on, so no other pod gets those devices. Pods that share a claim and are decided
together share its pending allocation. The first of them in PreBind writes it; the others add themselves. A release that was begun runs to
its end, even if the pod is gone. Until then no decision counts on the claim.

Devices may have conditions that a driver must report before a pod may be bound. Source: kube-scheduler `dynamicresources.go`,
`isClaimReadyForBinding` and `isClaimTimeout`.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from msgspec.structs import replace

from placewright.api.devices import AllocatedDevice, AllocationResult, ConsumerReference, DeviceCondition, ResourceClaim
from placewright.api.errors import ClaimError
from placewright.api.objects import PodExtendedResourceClaimStatus
from placewright.api.pods import PodInfo
from placewright.cluster.devices import ClaimTable
from placewright.framework.interface import ClaimWriter
from placewright.framework.preemption.evictions import seconds_of
from placewright.plugins.dynamicresources.claims import Variant, called, reserved_for, reserved_for_group
from placewright.plugins.dynamicresources.noderesources import ClaimStatuses

# --- claims on their way ---------------------------------------------------------------------------------------------------------


_logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Share:
    """A pod's part in a claim.

    Attributes:
        claim: the claim as the decision saw it.
        allocation: allocation to write into the claim; None if it is allocated already.
        tried: whether something may have been written for the pod.
        variant: claim to create for the pod's extended resources; None for existing claims.
        group: the pod's group, for which the claim is reserved; None if it is reserved for the pod.
    """

    claim: ResourceClaim
    allocation: AllocationResult | None
    tried: bool = False
    variant: Variant | None = None
    group: ConsumerReference | None = None


@dataclass(slots=True)
class ReservedClaims:
    """Claims of a pod that is on its way to a node, in the pod's order.

    Attributes:
        node_resources: resources of the node that the pod takes with its claims.
        told: whether these may have been written into the pod's status.
    """

    shares: list[Share] = field(default_factory=list)
    node_resources: ClaimStatuses = ()
    told: bool = False

    @property
    def claims(self) -> list[ResourceClaim]:
        """Claims of all shares."""
        return [share.claim for share in self.shares]


def take(claim: ResourceClaim, allocation: AllocationResult, pod: PodInfo, table: ClaimTable) -> Share:
    """Reserve these devices for the claim, as a pending allocation of this pod."""
    table.allocate(claim, allocation, pod.uid)
    return Share(claim, allocation)


def join(claim: ResourceClaim, pod: PodInfo, table: ClaimTable) -> Share:
    """Add the pod to a claim that is allocated, or about to be allocated with another pod."""
    pending = table.pending(claim)
    if pending is None:
        return Share(claim, None)
    pending.users.add(pod.uid)
    return Share(claim, pending.allocation)


async def write(share: Share, pod: PodInfo, table: ClaimTable, writer: ClaimWriter, allocation: AllocationResult | None) -> None:
    """Write `allocation` and the pod into the claim. Raise `ClaimError` if that fails."""
    if share.allocation is None and (reserved_for(share.claim, pod) or reserved_for_group(share.claim, pod)):
        return
    if share.variant is not None and not share.tried:
        await _make(share, share.variant, pod, table, writer)
    meta = share.claim.metadata
    # The decision saw a pending allocation of a shared claim, so the version that the watch showed is written. A new claim has none yet.
    shown = share.claim if share.variant is not None else table.shown(meta.name, meta.namespace)
    if shown is None or shown.metadata.uid != meta.uid:
        raise ClaimError(f"claim {called(share.claim)} got deleted in the meantime")
    share.tried = True
    share.claim = await writer.reserve(shown, allocation, pod, share.group)
    table.written(share.claim)
    if share.variant is not None:
        name = share.claim.metadata.name
        await writer.tell_pod(pod, PodExtendedResourceClaimStatus(request_mappings=share.variant.mappings, resource_claim_name=name))


async def _make(share: Share, variant: Variant, pod: PodInfo, table: ClaimTable, writer: ClaimWriter) -> None:
    """Create the claim for the pod's extended resources, and move the pending allocation from the one in memory to it."""
    special, allocation = share.claim, share.allocation
    share.claim = await writer.create(variant.claim, f"{pod.name}-extended-resources-")
    share.tried = True
    if allocation is not None:
        table.allocate(share.claim, allocation, pod.uid)
    table.withdraw(special)


async def tell(reserved: ReservedClaims, pod: PodInfo, writer: ClaimWriter) -> None:
    """Write what the pod takes of its node into its status, also to remove what an earlier attempt wrote. Raise `ClaimError`."""
    if reserved.node_resources or pod.pod.status.node_allocatable_resource_claim_statuses:
        reserved.told = True
        await writer.tell_node_resources(pod, reserved.node_resources)


async def _untell(pod: PodInfo, writer: ClaimWriter) -> None:
    try:
        await writer.tell_node_resources(pod, ())
    except ClaimError as problem:
        _logger.warning("the status of pod %s still names resources of a node: %s", pod.key, problem)


def settle(reserved: ReservedClaims, pod: PodInfo, table: ClaimTable) -> None:
    """Leave the pending allocations, because the written claims protect the devices from now on."""
    for share in reserved.shares:
        table.leave(share.claim, pod.uid)


def give_back(reserved: ReservedClaims, pod: PodInfo, table: ClaimTable, writer: ClaimWriter, *, others: bool) -> None:
    """Undo the reservation of a pod that does not go to the node after all. `others` of its group keep the claims of the group."""
    if reserved.told:
        writer.beside(_untell(pod, writer))
    for share in reserved.shares:
        kept = others and share.group is not None
        if not kept and (share.tried or _is_listed(share, pod, table)):
            table.begin_release(share.claim)
            writer.beside(_release(share, pod, table, writer))
        else:
            table.leave(share.claim, pod.uid)
            withdraw_unused(share.claim, table)


def _is_listed(share: Share, pod: PodInfo, table: ClaimTable) -> bool:
    """Return whether the claim lists the pod, or by now its group, which another member may have written."""
    meta = share.claim.metadata
    shown = table.shown(meta.name, meta.namespace) if share.group is not None else None
    return reserved_for(share.claim, pod) or (shown is not None and reserved_for_group(shown, pod))


def withdraw_unused(claim: ResourceClaim, table: ClaimTable) -> None:
    """Withdraw a pending allocation that was not written and that no pod needs any more."""
    pending = table.pending(claim)
    if pending is not None and not pending.users and not pending.written:
        table.withdraw(claim)


async def _release(share: Share, pod: PodInfo, table: ClaimTable, writer: ClaimWriter) -> None:
    claim, allocation = share.claim, share.allocation
    try:
        if share.variant is not None:
            await writer.delete(claim)
        else:
            if allocation is not None:
                claim = replace(claim, status=replace(claim.status, allocation=allocation))
            await writer.release(claim, pod, deallocate=allocation is not None, group=share.group)
    except ClaimError as problem:
        _logger.warning("resourceclaim %s still names pod %s: %s", called(claim), pod.key, problem)
    finally:
        _end_release(claim, pod, table)


def _end_release(claim: ResourceClaim, pod: PodInfo, table: ClaimTable) -> None:
    """End the release, and tell waiting pods: the watch may have shown the change before the API server answered."""
    meta = claim.metadata
    before = table.get(meta.name, meta.namespace)
    table.end_release(claim)
    table.leave(claim, pod.uid)
    pending = table.pending(claim)
    if pending is not None and not pending.users:
        table.withdraw(claim)
    now = table.get(meta.name, meta.namespace)
    if before is not None and before is not now:
        table.tell(before, now)


async def remove(claim: ResourceClaim, table: ClaimTable, writer: ClaimWriter) -> None:
    """Delete a claim of an earlier attempt, after `begin_release`."""
    try:
        await writer.delete(claim)
    except ClaimError as problem:
        _logger.warning("resourceclaim %s is of no use and still there: %s", called(claim), problem)
    finally:
        table.end_release(claim)


async def leave_group(claim: ResourceClaim, pod: PodInfo, group: ConsumerReference, table: ClaimTable, writer: ClaimWriter) -> None:
    """Take the pod's group off the users of a claim, after `begin_release`. The claim keeps its devices for now."""
    try:
        await writer.release(claim, pod, deallocate=False, group=group)
    except ClaimError as problem:
        _logger.warning("resourceclaim %s still names group %s: %s", called(claim), group.name, problem)
    finally:
        table.end_release(claim)


async def deallocate(claim: ResourceClaim, pod: PodInfo, table: ClaimTable, writer: ClaimWriter) -> None:
    """Free the devices of a claim that no pod uses, after `begin_release`."""
    try:
        await writer.release(claim, pod, deallocate=True)
    except ClaimError as problem:
        _logger.warning("resourceclaim %s keeps its devices, which no pod uses: %s", called(claim), problem)
    finally:
        table.end_release(claim)


# --- devices that are not ready at once ------------------------------------------------------------------------------------------


_TRUE = "True"


class DeviceFailed(ClaimError):
    """A driver says that a device will never be ready."""


def must_wait(claim: ResourceClaim) -> bool:
    """Return whether any of the claim's devices has binding conditions."""
    return any(device.binding_conditions for device in _devices(claim))


def drivers_awaited(claims: Iterable[ResourceClaim]) -> frozenset[str]:
    """Collect the drivers of devices that have binding conditions."""
    return frozenset(device.driver for claim in claims for device in _devices(claim) if device.binding_conditions)


def ready(claim: ResourceClaim) -> bool:
    """Return whether all of the claim's devices are ready. Raise `DeviceFailed` if one never will be."""
    if claim.status.allocation is None:
        return False
    return all(_device_ready(claim, device) for device in _devices(claim) if device.binding_conditions)


def too_late(claim: ResourceClaim, now: float, limit: float) -> bool:
    """Return whether devices with binding conditions were allocated more than `limit` seconds before `now` (since 1970)."""
    allocation = claim.status.allocation
    since = seconds_of(allocation.allocation_timestamp) if allocation is not None and must_wait(claim) else None
    return since is not None and since + limit < now


def timestamp(now: float) -> str:
    """Format seconds since 1970 as Kubernetes writes a timestamp."""
    return datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _device_ready(claim: ResourceClaim, device: AllocatedDevice) -> bool:
    conditions = _conditions(claim, device)
    for kind in device.binding_failure_conditions or ():
        failed = conditions.get(kind)
        if failed is not None and failed.status == _TRUE:
            said = json.dumps(failed.message, ensure_ascii=False)
            raise DeviceFailed(f"device binding failed: claim={claim.metadata.name}, reason={failed.reason}, message={said}")
    return all(kind in conditions and conditions[kind].status == _TRUE for kind in device.binding_conditions or ())


def _conditions(claim: ResourceClaim, device: AllocatedDevice) -> dict[str, DeviceCondition]:
    for status in claim.status.devices or ():
        if (status.driver, status.pool, status.device) == (device.driver, device.pool, device.device):
            return {condition.type: condition for condition in status.conditions or ()}
    return {}


def _devices(claim: ResourceClaim) -> Iterable[AllocatedDevice]:
    allocation = claim.status.allocation
    return () if allocation is None else allocation.devices.results or ()
