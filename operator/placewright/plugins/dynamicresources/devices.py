"""Which devices claims get on a node: what the plugin asks.

The search is in `allocator`, the devices of pools in `pools`, what is in use in `usage`. This module keeps all of it up to date with the
cluster's tables and says what changed for which row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from placewright.api.devices import (
    EXACT_COUNT,
    AllocatedDevice,
    AllocatedDevices,
    Allocation,
    ResourceClaim,
)
from placewright.api.objects import NodeSelector, NodeSelectorTerm, Requirement
from placewright.api.selectors import NODE_NAME_FIELD
from placewright.cluster.cluster import Cluster
from placewright.framework.interface import BoolColumn
from placewright.framework.status import SUCCESS, Status, unresolvable

CANNOT_ALLOCATE: Final = "cannot allocate all claims"


@dataclass(frozen=True, slots=True)
class Allocated:
    """What each claim gets, in the order in which they were asked for."""

    allocations: tuple[Allocation, ...]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a node cannot serve the claims.

    Attributes:
        message: one line.
        error: something is wrong with a claim, a class or a pool, and the pod is to be tried again later; otherwise devices are lacking.
    """

    message: str
    error: bool = False


class Devices:
    """The devices of the cluster, and who has them."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._version = 0

    def refresh(self) -> None:
        """Take in what changed in the cluster's tables since the last time; costs what changed."""
        tables = self._cluster.objects.devices
        self._version = sum(t.version for t in tables.tables.values()) + self._cluster.node_journal.position

    def version(self, row: int) -> int:
        """Grows whenever what that row could get changed."""
        return self._version

    def check(self, claims: Sequence[ResourceClaim]) -> Status:
        """What is wrong with these claims whatever the node is; names the object and the field."""
        for claim in claims:
            for request in claim.spec.devices.requests or ():
                if request.exactly is None:
                    return unresolvable(f"resource claim {claim.metadata.name}, request {request.name}: unknown request type")
                if self._cluster.objects.devices.classes.get(request.exactly.device_class_name) is None:
                    return unresolvable(f"request {request.name}: device class {request.exactly.device_class_name} does not exist")
        return SUCCESS

    def candidates(self, claims: Sequence[ResourceClaim]) -> BoolColumn | None:
        """Rows that can serve these claims, shape (size,), exact; None where each row has to be searched."""
        return None

    def allocate(self, row: int, claims: Sequence[ResourceClaim]) -> Allocated | Refusal:
        """The first way in which the node of this row serves all these claims."""
        tables = self._cluster.objects.devices
        used = {
            (result.driver, result.pool, result.device)
            for claim in tables.claims.values()
            if claim.status.allocation is not None
            for result in claim.status.allocation.devices.results or ()
        }
        node = self._cluster.names[row]
        free = [
            (slice_.spec.driver, slice_.spec.pool.name, device.name)
            for slice_ in sorted(tables.slices.values(), key=lambda s: (s.spec.driver, s.spec.pool.name, s.metadata.name))
            if slice_.spec.node_name == node
            for device in slice_.spec.devices or ()
            if (slice_.spec.driver, slice_.spec.pool.name, device.name) not in used
        ]
        allocations = []
        for claim in claims:
            results = []
            for request in claim.spec.devices.requests or ():
                exactly = request.exactly
                if exactly is None or exactly.allocation_mode != EXACT_COUNT or exactly.selectors:
                    return Refusal(f"claim {claim.metadata.name}, request {request.name}: is not supported", error=True)
                if len(free) < exactly.count:
                    return Refusal(CANNOT_ALLOCATE)
                results += [AllocatedDevice(request.name, *free.pop(0)) for _ in range(exactly.count)]
            allocations.append(Allocation(AllocatedDevices(tuple(results)), _only(str(node))))
        return Allocated(tuple(allocations))


def _only(node: str) -> NodeSelector:
    return NodeSelector((NodeSelectorTerm(match_fields=(Requirement(NODE_NAME_FIELD, "In", (node,)),)),))
