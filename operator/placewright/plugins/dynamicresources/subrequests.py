"""Requests that can be served in several ways, and how good the way is that was found. Source: kube-scheduler `dynamicresources.go`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from placewright.api.devices import DeviceRequest, ResourceClaim
from placewright.plugins.dynamicresources.devices import Allocated, Refusal

#: As many ways may a request name; the first of them is worth as many points.
MAX_WAYS: Final = 8


def has_preferences(claim: ResourceClaim) -> bool:
    """Whether any request of the claim can be served in several ways."""
    return any(request.first_available for request in claim.spec.devices.requests or ())


def preference(claims: Sequence[ResourceClaim], answer: Allocated | Refusal | None) -> int:
    """Points for what these claims get: 8 for each such request that is served in its first way, one less for each way further down."""
    if not isinstance(answer, Allocated):
        return 0
    points = 0
    for claim, allocation in zip(claims, answer.allocations, strict=True):
        served = {result.request for result in allocation.devices.results or ()}
        points += sum(_points(request, served) for request in claim.spec.devices.requests or ())
    return points


def _points(request: DeviceRequest, served: set[str]) -> int:
    for position, way in enumerate(request.first_available or ()):
        if f"{request.name}/{way.name}" in served:
            return MAX_WAYS - position
    return 0
