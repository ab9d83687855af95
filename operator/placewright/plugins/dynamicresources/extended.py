"""Extended resources that devices serve: `example.com/gpu: 2` becomes a claim, on nodes that do not offer the resource themselves.

Until PreBind the claim is in memory alone, and there is one for each combination of resources that a node lacks. Source: kube-scheduler
`dynamicresources/extendeddynamicresources.go`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from placewright.api.devices import (
    EXTENDED_CLAIM,
    ClaimMeta,
    DeviceClaim,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
)
from placewright.api.objects import Container, ContainerExtendedResourceRequest, OwnerReference
from placewright.api.pods import PodInfo
from placewright.api.requests import canonical
from placewright.cluster.cluster import Cluster
from placewright.framework.interface import IntColumn, Rows

#: Not a name that a claim can have.
SPECIAL_NAME: Final = "<extended-resources>"
_ALWAYS: Final = "Always"


@dataclass(frozen=True, slots=True)
class Variant:
    """The claim for some of a pod's resources, and which of its requests serves which container."""

    claim: ResourceClaim
    mappings: tuple[ContainerExtendedResourceRequest, ...]


@dataclass(slots=True)
class Extension:
    """What of a pod's requests devices may have to serve.

    Attributes:
        classes: resource to class, in order of the resources.
        stale: a claim of an earlier attempt of the pod's, which must go first.
    """

    pod: PodInfo
    classes: dict[str, str]
    stale: ResourceClaim | None = None
    _variants: dict[int, Variant] = field(default_factory=dict)

    def codes(self, cluster: Cluster, rows: Rows) -> IntColumn:
        """Which of the resources each row lacks, as bits: those that the node does not offer itself; shape (len(rows),)."""
        codes = np.zeros(len(rows), np.int64)
        for bit, name in enumerate(self.classes):
            codes |= (cluster.resources.column(name).allocatable[rows] == 0).astype(np.int64) << bit
        return codes

    def variant(self, code: int) -> Variant:
        """The claim for the resources of these bits."""
        known = self._variants.get(code)
        if known is None:
            lacking = {name: served_by for bit, (name, served_by) in enumerate(self.classes.items()) if code >> bit & 1}
            known = self._variants[code] = _variant(self.pod, lacking)
        return known

    @property
    def whole(self) -> Variant:
        """The claim for all of them."""
        return self.variant((1 << len(self.classes)) - 1)


def extension_of(pod: PodInfo, cluster: Cluster) -> Extension | None:
    """None for pods that ask for nothing that devices serve."""
    devices = cluster.objects.devices
    classes = devices.served(pod)
    if not classes:
        return None
    stale = next((claim for claim in devices.claims.where(pod.uid) if claim.metadata.namespace == pod.namespace), None)
    return Extension(pod, dict(sorted(classes.items())), stale)


@dataclass(frozen=True, slots=True)
class _Asked:
    """What one container asks of one resource; `index`: of the container, init containers first."""

    index: int
    container: str
    resource: str
    name: str
    count: int

    def mapping(self, request: str) -> ContainerExtendedResourceRequest:
        return ContainerExtendedResourceRequest(container_name=self.container, resource_name=self.resource, request_name=request)


def _variant(pod: PodInfo, classes: Mapping[str, str]) -> Variant:
    requests: list[DeviceRequest] = []
    mappings: list[ContainerExtendedResourceRequest] = []
    for resource, served_by in classes.items():
        for name, count in _requests(pod, resource, mappings):
            exactly = ExactDeviceRequest(device_class_name=served_by, count=count)
            requests.append(DeviceRequest(name=name, exactly=exactly))
    requests.sort(key=lambda request: request.name)
    owner = OwnerReference(kind="Pod", name=pod.name, uid=pod.uid, api_version="v1", controller=True)
    meta = ClaimMeta(
        name=f"{SPECIAL_NAME}/{pod.uid}",
        namespace=pod.namespace,
        uid=f"{SPECIAL_NAME}/{pod.uid}",
        annotations={EXTENDED_CLAIM: "true"},
        owner_references=(owner,),
    )
    claim = ResourceClaim(metadata=meta, spec=ResourceClaimSpec(devices=DeviceClaim(requests=tuple(requests))))
    return Variant(claim, tuple(mappings))


def _requests(pod: PodInfo, resource: str, mappings: list[ContainerExtendedResourceRequest]) -> Iterator[tuple[str, int]]:
    """(name, count) of the requests for one resource; who uses which is added to `mappings`.

    Containers that run side by side have each its own devices. Init containers that end use those of the containers that run after them,
    and where that is not enough all share as many more as any of them needs.
    """
    init = pod.pod.spec.init_containers or ()
    containers = [*init, *(pod.pod.spec.containers or ())]
    asking = [asked for index, one in enumerate(containers) if (asked := _asked(index, one, resource)) is not None]
    lasting = [asked for asked in asking if asked.index >= len(init) or containers[asked.index].restart_policy == _ALWAYS]
    for asked in lasting:
        mappings.append(asked.mapping(asked.name))
        yield asked.name, asked.count
    passing = [(asked, _reused(asked, lasting)) for asked in asking if asked not in lasting]
    more = {asked: asked.count - sum(each.count for each in used) for asked, used in passing}
    extra = max(more.values(), default=0)
    shared = next((asked.name for asked, rest in more.items() if rest == extra), "")
    for asked, used in passing:
        mappings += [asked.mapping(each.name) for each in used] + ([asked.mapping(shared)] if more[asked] > 0 else [])
    if extra > 0:
        yield shared, extra


def _reused(asked: _Asked, lasting: Sequence[_Asked]) -> list[_Asked]:
    """The devices of containers that run later, as many as are needed."""
    used: list[_Asked] = []
    for each in lasting:
        if each.index >= asked.index and sum(one.count for one in used) < asked.count:
            used.append(each)
    return used


def _asked(index: int, container: Container, resource: str) -> _Asked | None:
    amounts = canonical(container.resources.requests or {})
    count = amounts.get(resource, 0)
    if not count:
        return None
    return _Asked(index, container.name, resource, f"container-{index}-request-{sorted(amounts).index(resource)}", count)
