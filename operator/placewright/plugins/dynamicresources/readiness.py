"""Devices that are not ready at once: conditions that a driver must report before a pod may be bound, and how long that may take.

Source: kube-scheduler `dynamicresources.go`, `isClaimReadyForBinding` and `isClaimTimeout`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime

from placewright.api.devices import AllocatedDevice, DeviceCondition, ResourceClaim
from placewright.api.errors import ClaimError

_TRUE = "True"


class DeviceFailed(ClaimError):
    """A driver says that a device will never be ready."""


def must_wait(claim: ResourceClaim) -> bool:
    """Whether any of the claim's devices has something to get ready."""
    return any(device.binding_conditions for device in _devices(claim))


def drivers_awaited(claims: Iterable[ResourceClaim]) -> frozenset[str]:
    """The drivers of devices that have something to get ready."""
    return frozenset(device.driver for claim in claims for device in _devices(claim) if device.binding_conditions)


def ready(claim: ResourceClaim) -> bool:
    """Whether all of the claim's devices are ready; raise `DeviceFailed` when one of them never will be."""
    if claim.status.allocation is None:
        return False
    return all(_device_ready(claim, device) for device in _devices(claim) if device.binding_conditions)


def too_late(claim: ResourceClaim, now: float, limit: float) -> bool:
    """Whether the claim's devices were allocated more than `limit` seconds before `now` (since 1970), and have something to get ready."""
    allocation = claim.status.allocation
    if allocation is None or allocation.allocation_timestamp is None or not must_wait(claim):
        return False
    try:
        since = datetime.fromisoformat(allocation.allocation_timestamp)
    except ValueError:
        return False
    return since.replace(tzinfo=since.tzinfo or UTC).timestamp() + limit < now


def timestamp(now: float) -> str:
    """Seconds since 1970 as Kubernetes writes a moment."""
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
