"""Devices of nominated pods. Preemption made room for such a pod, and its claims get their devices with its Binding.

Until then pods of no higher priority see these devices as taken. Otherwise a waiting pod would take a device while the victims end, and the
victims would have left in vain. kube-scheduler keeps no devices for nominated pods.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec.structs import replace

from placewright.api.devices import ResourceClaim
from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.plugins.dynamicresources.claims import NotReady, claims_of, extension_of
from placewright.plugins.dynamicresources.devices import Allocated, ClusterDevices

#: Most nominated pods whose devices are kept, by importance: each costs a search on one node whenever anything changes.
MOST_PODS: Final = 16

#: Claims with the devices that they will get, by a key that no claim in the cluster has.
KeptClaims = Mapping[str, ResourceClaim]
NOTHING_KEPT: Final[KeptClaims] = {}


def devices_kept(nominated: Iterable[tuple[PodInfo, NodeName]], cluster: Cluster, devices: ClusterDevices) -> KeptClaims:
    """Find the devices that nominated pods, the most important first, will get, one pod after another.

    Return the pods' unallocated claims with these devices; afterwards `devices` counts them as taken. A pod that gets none now keeps none.
    """
    kept: dict[str, ResourceClaim] = {}
    devices.keep(kept)
    searched = 0
    for pod, node in nominated:
        row = cluster.row(node)
        claims = [] if row is None else _wanted(pod, cluster, row)
        if row is None or not claims or searched == MOST_PODS:
            continue
        searched += 1
        devices.refresh()
        found = devices.check(claims)
        answer = devices.allocate(row, claims) if found.ok else None
        if isinstance(answer, Allocated):
            for claim, allocation in zip(claims, answer.allocations, strict=True):
                kept[f"nominated/{claim.metadata.uid}"] = replace(claim, status=replace(claim.status, allocation=allocation))
            devices.keep(kept)
    return kept


def _wanted(pod: PodInfo, cluster: Cluster, row: int) -> list[ResourceClaim]:
    """Return the pod's claims that need devices on the node of a row."""
    try:
        wanted = [claim for claim in claims_of(pod, cluster.objects.devices.claims) if claim.status.allocation is None]
    except NotReady:
        return []
    extension = extension_of(pod, cluster)
    if extension is None or extension.stale is not None:
        return wanted
    code = extension.code_of(cluster, row)
    return [*wanted, extension.variant(code).claim] if code else wanted
