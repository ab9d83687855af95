"""The resources of its node, such as CPU, that a pod takes with its claims: KEP-5517 (DRANodeAllocatableResources).

A device may map to such resources. They count on the node beside the pod's requests, and the pod's status names them. Source of rules and
messages: kube-scheduler `nodeallocatabledynamicresources.go`. It leaves out claims that were allocated before the attempt; here they count,
because the pod takes as much with them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from placewright.api.devices import AllocatedDevice, AllocationResult, NodeResourceMapping, ResourceClaim
from placewright.api.objects import NodeAllocatableClaimStatus, NodeName, NodeResourceOverhead, NodeResourceQuantity
from placewright.api.pods import PodInfo
from placewright.api.quantity import NANO, nano
from placewright.api.requests import (
    CPU,
    EPHEMERAL_STORAGE,
    MEMORY,
    beyond_pod_level,
    pod_requests,
    taken_with_claims,
)
from placewright.cluster.cluster import Cluster
from placewright.cluster.devices import ClaimTable
from placewright.framework.status import SUCCESS, Status, unresolvable, unschedulable
from placewright.plugins.dynamicresources.claims import called, each_claim
from placewright.plugins.dynamicresources.inventory import Inventory
from placewright.plugins.dynamicresources.pools import written

ClaimStatuses = tuple[NodeAllocatableClaimStatus, ...]
#: Allocated claims of a pod, and the allocation of each.
Allocations = Iterable[tuple[ResourceClaim, AllocationResult]]
_NAMES: Final = (CPU, MEMORY, EPHEMERAL_STORAGE)


def statuses_of(pod: PodInfo, allocations: Allocations, table: ClaimTable, inventory: Inventory) -> ClaimStatuses:
    """Compute what the pod takes of its node with each of its claims, by the name of the claim. Raise `ValueError` for a faulty device."""
    users = _users(pod, table)
    found = (_status(claim, allocation, users.get(claim.metadata.uid, ()), inventory) for claim, allocation in allocations)
    return tuple(sorted((status for status in found if status is not None), key=lambda status: status.resource_claim_name))


def fault_of(pod: PodInfo, statuses: ClaimStatuses) -> str:
    """Return why the pod cannot take this of any node, or ""."""
    for status in statuses:
        if not status.containers:
            return f"claim {status.resource_claim_name}: node-allocatable resource claim not referenced by any container within the pod"
    for name in beyond_pod_level(pod.pod.spec, taken_with_claims(statuses)):
        return f"pod level request for {name} is insufficient to cover the aggregated container and node-allocatable DRA requests"
    return ""


def room_for(pod: PodInfo, statuses: ClaimStatuses, cluster: Cluster, row: int) -> Status:
    """Return whether a row has room for the pod's requests and what it takes with its claims. Extended resources are left to others."""
    short, hopeless = [], False
    wanted = pod_requests(pod.pod.spec, taken_with_claims(statuses))
    for name in (*_NAMES, *sorted(name for name in wanted if name.startswith("hugepages-"))):
        column, amount = cluster.resources.column(name), wanted.get(name, 0)
        if amount and amount > column.free[row]:
            short.append(f"Insufficient {name}")
            hopeless = hopeless or bool(amount > column.allocatable[row])
    return (unresolvable if hopeless else unschedulable)(*short) if short else SUCCESS


def used_by_another(pod: PodInfo, claims: Iterable[ResourceClaim], cluster: Cluster, row: int) -> str:
    """Return the reason if another pod on the row takes resources with one of these claims, or "". Overheads may be shared."""
    names = {claim.metadata.name for claim in claims}
    if not names:
        return ""
    others = [
        other for other in cluster.pods_on(NodeName(str(cluster.names[row]))) if other.uid != pod.uid and other.namespace == pod.namespace
    ]
    statuses = (status for other in others for status in other.pod.status.node_allocatable_resource_claim_statuses or ())
    taken = [each.resource_claim_name for each in statuses if each.resource_claim_name in names and (each.resources or each.mapping)]
    for name in sorted(taken):
        shared = "shared by multiple pods" if taken.count(name) > 1 else "is already used by another pod"
        return f"node allocatable resource claim {name} {shared}"
    return ""


def _users(pod: PodInfo, table: ClaimTable) -> Mapping[str, tuple[str, ...]]:
    """Return the names of the containers that use each claim, by the claim's uid."""
    named = {name: claim.metadata.uid for name, claim, _ in each_claim(pod, table) if claim is not None}
    spec, users = pod.pod.spec, dict[str, dict[str, None]]()
    for container in (*(spec.init_containers or ()), *(spec.containers or ())):
        for use in container.resources.claims or ():
            if use.name in named:
                users.setdefault(named[use.name], {})[container.name] = None
    return {uid: tuple(names) for uid, names in users.items()}


def _status(
    claim: ResourceClaim, allocation: AllocationResult, containers: tuple[str, ...], inventory: Inventory
) -> NodeAllocatableClaimStatus | None:
    earlier, mapped, per_pod, per_container = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    for result in allocation.devices.results or ():
        offer = inventory.device(result)
        if offer is None:
            continue
        for name, how in (offer.device.node_allocatable_resource_mappings or {}).items():
            _add(earlier, claim, result, name, how)
        for name, each in (offer.device.node_allocatable_resources or {}).items():
            if each.mapping is not None:
                _add(mapped, claim, result, name, each.mapping)
            if each.overhead is not None:
                per_pod[name] += nano(each.overhead.per_pod or "0")
                per_container[name] += nano(each.overhead.per_container or "0")
    if not (earlier or mapped or per_pod):
        return None
    return NodeAllocatableClaimStatus(
        resource_claim_name=claim.metadata.name,
        containers=containers or None,
        resources={name: written(amount) for name, amount in sorted(earlier.items())} or None,
        mapping=tuple(NodeResourceQuantity(name=name, quantity=written(amount)) for name, amount in sorted(mapped.items())) or None,
        overhead=tuple(
            NodeResourceOverhead(name=name, per_pod=_unless_zero(per_pod[name]), per_container=_unless_zero(per_container[name]))
            for name in sorted(per_pod)
        )
        or None,
    )


def _unless_zero(nanos: int) -> str | float | None:
    return written(nanos) if nanos else None


def _add(total: Counter[str], claim: ResourceClaim, result: AllocatedDevice, name: str, how: NodeResourceMapping) -> None:
    """Add nano-units of a resource that one device takes; nothing if the mapping is about a capacity that was not consumed."""
    if not how.capacity_key:
        total[name] += nano(how.device_multiplier or how.allocation_multiplier or "0")
        return
    if result.consumed_capacity is None:
        raise ValueError(
            f"claim {called(claim)}, device {result.device}: ConsumedCapacity is nil, but Capacity key '{how.capacity_key}' is set in "
            f"NodeAllocatableResourceMappings for resource {name}"
        )
    consumed = result.consumed_capacity.get(how.capacity_key)
    if consumed is not None:
        total[name] += -(-nano(consumed) * nano(how.capacity_multiplier or how.allocation_multiplier or "1") // NANO)
