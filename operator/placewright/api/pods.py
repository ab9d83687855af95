"""A pod with everything that the scheduler derives from it, derived once.

Event handlers, queue, cycle, columns and binding pass this one object (`PodInfo`). It is replaced, never changed, when the pod changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import replace

from placewright.api.bytecount import object_bytes, short_key
from placewright.api.objects import Affinity, Node, NodeAllocatableClaimStatus, NodeName, Pod, PodKey, Volume
from placewright.api.podextent import PodExtent, extent_of
from placewright.api.podgroups import GroupRef, group_of
from placewright.api.requests import (
    RESIZE_PENDING,
    pod_requests,
    reports_resources,
    scoring_requests,
    spec_in_effect,
    taken_with_claims,
)

NO_LABELS: Final[Mapping[str, str]] = {}
#: The wildcard address; it conflicts with every other address on the same port.
ANY_ADDRESS: Final = "0.0.0.0"  # noqa: S104 - compared with host ports, never bound to
FINISHED_PHASES: Final = frozenset({"Succeeded", "Failed"})


class HostPort(NamedTuple):
    """A port claimed on the node itself."""

    protocol: str
    port: int
    address: str


class PairwiseKey(NamedTuple):
    """The part of a pod that pairwise plugins see. Pods with equal keys are counted together.

    `affinity` is the canonical JSON of the pod's affinity and anti-affinity, or a digest of it where it is long; empty for most pods. It is
    part of the key because the terms of existing pods apply to new ones.
    """

    namespace: str
    labels: frozenset[tuple[str, str]]
    terminating: bool
    affinity: bytes


class PodInfo:
    """A decoded pod and the values derived from it.

    A known pod whose requests have not changed need not be derived again: with `like` its derived values are shared.

    Args:
        pod: the decoded object.
        like: an earlier version of the pod.

    Attributes:
        pod: the decoded object.
        key: `namespace/name`.
        requests: resource name to amount in column units (milli-CPU, bytes, counts). For a pod on a node that is being resized, the amounts
            that it counts for there.
        scoring_cpu, scoring_memory: requests with defaults for empty containers (milli-CPU, bytes).
        host_ports: ports claimed on the node.
        volumes: provided by claims or disks; volumes that the node itself provides restrict nothing and are left out.
        pairwise_key: pods with equal keys are counted together.
        pod_group: the group that the pod is placed with, all or none; None for most pods.
        extent: counts of the parts of the spec; `extent.excess` tells why a pod is not decided at all.

    Raises:
        QuantityError: a resource quantity does not parse.
    """

    __slots__ = (
        "extent",
        "host_ports",
        "key",
        "name",
        "namespace",
        "node_name",
        "pairwise_key",
        "pod",
        "pod_group",
        "priority",
        "requests",
        "scheduler_name",
        "scoring_cpu",
        "scoring_memory",
        "uid",
        "volumes",
    )  # fmt: skip

    def __init__(self, pod: Pod, like: PodInfo | None = None) -> None:
        meta, spec = pod.metadata, pod.spec
        self.pod = pod
        self.name = meta.name
        self.namespace = meta.namespace
        self.key = PodKey(f"{meta.namespace}/{meta.name}")
        self.uid = meta.uid
        self.node_name = NodeName(spec.node_name)
        self.scheduler_name = spec.scheduler_name
        self.priority = spec.priority or 0
        if like is None or not _asks_alike(pod, like.pod):
            in_effect, taken = (spec_in_effect(spec, pod.status), taken_with_claims(_statuses(pod))) if spec.node_name else (spec, {})
            self.requests = pod_requests(in_effect, taken)
            self.scoring_cpu, self.scoring_memory = scoring_requests(in_effect, taken)
            self.host_ports = _host_ports(pod)
            self.volumes = tuple([volume for volume in spec.volumes or () if _comes_from_storage(volume)])
        else:
            self.requests, self.scoring_cpu, self.scoring_memory = like.requests, like.scoring_cpu, like.scoring_memory
            self.host_ports, self.volumes = like.host_ports, like.volumes
        self.pairwise_key = PairwiseKey(
            meta.namespace, frozenset((meta.labels or {}).items()), meta.deletion_timestamp is not None, _pod_affinity(spec.affinity)
        )
        self.pod_group: GroupRef | None = group_of(pod)
        self.extent: PodExtent = extent_of(pod, len(self.requests), len(self.host_ports), len(self.volumes))

    def __repr__(self) -> str:
        return f"PodInfo({self.key}, uid={self.uid})"

    def on(self, node: NodeName) -> PodInfo:
        """Copy the pod as it will be on a node."""
        placed = copy(self)
        placed.node_name = node
        return placed

    def taking(self, statuses: Sequence[NodeAllocatableClaimStatus]) -> PodInfo:
        """Copy the pod as it will be on a node from which it takes these resources with its claims."""
        taking, taken, spec = copy(self), taken_with_claims(statuses), self.pod.spec
        taking.pod = replace(self.pod, status=replace(self.pod.status, node_allocatable_resource_claim_statuses=tuple(statuses) or None))
        taking.requests = pod_requests(spec, taken)
        taking.scoring_cpu, taking.scoring_memory = scoring_requests(spec, taken)
        return taking

    def annotated(self, annotations: Mapping[str, str | None]) -> PodInfo:
        """Copy the pod with other annotations."""
        noted, meta = copy(self), self.pod.metadata
        merged = {key: value for key, value in {**(meta.annotations or {}), **annotations}.items() if value is not None}
        noted.pod = replace(self.pod, metadata=replace(meta, annotations=merged))
        return noted

    @property
    def labels(self) -> Mapping[str, str]:
        """The pod's labels, never None."""
        return self.pod.metadata.labels or NO_LABELS

    @property
    def created(self) -> str:
        """Creation time, to the second, or empty; RFC 3339 in UTC sorts as text."""
        return self.pod.metadata.creation_timestamp or ""

    @property
    def terminating(self) -> bool:
        """True once the pod's deletion was requested."""
        return self.pod.metadata.deletion_timestamp is not None

    @property
    def may_be_tried(self) -> bool:
        """False for a pod that is being deleted or has a scheduling gate."""
        return not (self.terminating or self.pod.spec.scheduling_gates)

    @property
    def finished(self) -> bool:
        """True for a pod that holds no resources any more (Succeeded, Failed)."""
        return self.pod.status.phase in FINISHED_PHASES

    @property
    def resize_deferred(self) -> bool:
        """True while the kubelet waits for room to resize the pod in place, unless its node forbids preemption for that."""
        deferred = False
        for condition in self.pod.status.conditions or ():
            if condition.type == RESIZE_PENDING:
                deferred = condition.status == "True" and condition.reason == "Deferred"
            elif condition.type == "PodResizePreemptionDisabled" and condition.status == "True":
                return False
        return deferred

    @property
    def nominated_node(self) -> NodeName:
        """The node that preemption made room on; empty for none."""
        return NodeName(self.pod.status.nominated_node_name)


def held_bytes(*held: object) -> int:
    """Estimate the memory that objects of the API keep alive. Nodes are not counted: they are no tenant's, and stay anyway.

    Args:
        held: any values; only pods and objects of the API count.
    """
    total = 0
    for each in held:
        if isinstance(each, PodInfo):
            total += object_bytes(each.pod)
        elif isinstance(each, msgspec.Struct) and not isinstance(each, Node):
            total += object_bytes(each)
    return total


def _statuses(pod: Pod) -> tuple[NodeAllocatableClaimStatus, ...]:
    return pod.status.node_allocatable_resource_claim_statuses or ()


def _asks_alike(pod: Pod, other: Pod) -> bool:
    """Return whether two versions of a pod have the same requests, ports and volumes. Reported resources may change the requests."""
    one, another = pod.spec, other.spec
    return (
        not (reports_resources(pod.status) or reports_resources(other.status))
        and not (_statuses(pod) or _statuses(other))
        and one.containers == another.containers
        and one.init_containers == another.init_containers
        and one.resources == another.resources
        and one.overhead == another.overhead
        and one.volumes == another.volumes
    )


def _comes_from_storage(volume: Volume) -> bool:
    source = (
        volume.persistent_volume_claim
        or volume.ephemeral
        or volume.gce_persistent_disk
        or volume.aws_elastic_block_store
        or volume.iscsi
        or volume.rbd
        or volume.azure_disk
        or volume.azure_file
        or volume.cinder
        or volume.vsphere_volume
        or volume.portworx_volume
    )
    return source is not None


def _pod_affinity(affinity: Affinity | None) -> bytes:
    if affinity is None or not (affinity.pod_affinity or affinity.pod_anti_affinity):
        return b""
    return short_key(msgspec.json.encode((affinity.pod_affinity, affinity.pod_anti_affinity), order="deterministic"))


def _host_ports(pod: Pod) -> tuple[HostPort, ...]:
    sidecars = (c for c in pod.spec.init_containers or () if c.restart_policy == "Always")
    return tuple(
        HostPort(port.protocol or "TCP", port.host_port, port.host_ip or ANY_ADDRESS)
        for container in (*(pod.spec.containers or ()), *sidecars)
        for port in container.ports or ()
        if port.host_port > 0
    )
