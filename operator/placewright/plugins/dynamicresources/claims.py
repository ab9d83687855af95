"""The claims of a pod: which they are, whether they are there, which still need devices, and what extended resources add to them.

`example.com/gpu: 2` becomes a claim on nodes that do not offer the resource themselves. Until PreBind that claim is in memory alone, and
there is one for each combination of resources that a node lacks.

Source of the rules and messages: kube-scheduler `dynamicresources/dynamicresources.go`, `dynamicresources/extendeddynamicresources.go`, and
`resourceclaim/claim.go`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec
import numpy as np

from placewright.api.bytecount import short_key
from placewright.api.devices import (
    EXTENDED_CLAIM,
    MAX_RESERVED_FOR,
    MAX_RESULTS,
    ClaimMeta,
    DeviceClaim,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
)
from placewright.api.objects import Container, ContainerExtendedResourceRequest, OwnerReference, PodResourceClaim
from placewright.api.pods import PodInfo
from placewright.api.requests import canonical
from placewright.cluster.cluster import Cluster
from placewright.cluster.devices import ClaimTable
from placewright.framework.interface import IntColumn, Rows

# --- extended resources ----------------------------------------------------------------------------------------------------------


#: Not a name that a claim can have.
SPECIAL_NAME: Final = "<extended-resources>"
_ALWAYS: Final = "Always"
#: Resources that are told apart at a time, in an int64.
_BITS: Final = 62


@dataclass(frozen=True, slots=True)
class Variant:
    """The claim for some of a pod's resources, and which of its requests serves which container."""

    claim: ResourceClaim
    mappings: tuple[ContainerExtendedResourceRequest, ...]


@dataclass(slots=True)
class Extension:
    """The part of a pod's requests that devices may have to serve.

    Attributes:
        classes: resource to class, in order of the resources.
        stale: a claim of an earlier attempt of the pod's, which must go first.
    """

    pod: PodInfo
    classes: dict[str, str]
    stale: ResourceClaim | None = None
    _variants: dict[int, Variant] = field(default_factory=dict)
    #: What each code stands for, as bits, and the other way round; nothing lacking is 0.
    _lacking: list[int] = field(default_factory=lambda: [0])
    _codes: dict[int, int] = field(default_factory=lambda: {0: 0})

    def codes(self, cluster: Cluster, rows: Rows) -> IntColumn:
        """A number for what each row lacks: resources that the node does not offer itself; shape (len(rows),). 0: it offers all."""
        lacking, kinds = [0], np.zeros(len(rows), np.int64)
        names = list(self.classes)
        for begin in range(0, len(names), _BITS):
            bits = np.zeros(len(rows), np.int64)
            for bit, name in enumerate(names[begin : begin + _BITS]):
                bits |= (cluster.resources.column(name).allocatable[rows] == 0).astype(np.int64) << bit
            different, numbers = np.unique(bits, return_inverse=True)
            pairs, kinds = np.unique(kinds * len(different) + numbers, return_inverse=True)
            before = [divmod(pair, len(different)) for pair in pairs.tolist()]
            lacking = [lacking[kind] | int(different[number]) << begin for kind, number in before]
        return np.array([self._code(each) for each in lacking], np.int64)[kinds]

    def code_of(self, cluster: Cluster, row: int) -> int:
        """The number for what one row lacks."""
        return int(self.codes(cluster, np.array([row], np.intp))[0])

    def variant(self, code: int) -> Variant:
        """The claim for the resources that this code stands for."""
        known = self._variants.get(code)
        if known is None:
            bits = self._lacking[code]
            lacking = {name: served_by for bit, (name, served_by) in enumerate(self.classes.items()) if bits >> bit & 1}
            known = self._variants[code] = _variant(self.pod, lacking)
        return known

    @property
    def whole(self) -> Variant:
        """The claim for all of them."""
        return self.variant(self._code((1 << len(self.classes)) - 1))

    def _code(self, bits: int) -> int:
        code = self._codes.setdefault(bits, len(self._lacking))
        if code == len(self._lacking):
            self._lacking.append(bits)
        return code


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
    """One container's request of one resource; `index`: of the container, init containers first; `always`: it restarts whenever it ends."""

    index: int
    container: str
    resource: str
    name: str
    count: int
    always: bool

    def mapping(self, request: str) -> ContainerExtendedResourceRequest:
        return ContainerExtendedResourceRequest(container_name=self.container, resource_name=self.resource, request_name=request)


def _variant(pod: PodInfo, classes: Mapping[str, str]) -> Variant:
    requests: list[DeviceRequest] = []
    mappings: list[ContainerExtendedResourceRequest] = []
    init = pod.pod.spec.init_containers or ()
    asking = _asking([*init, *(pod.pod.spec.containers or ())], classes)
    for resource, served_by in classes.items():
        for name, count in _requests(asking[resource], len(init), mappings):
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


def _asking(containers: Sequence[Container], classes: Mapping[str, str]) -> dict[str, list[_Asked]]:
    """By resource, the containers that ask for it, in their order."""
    asking: dict[str, list[_Asked]] = {resource: [] for resource in classes}
    for index, container in enumerate(containers):
        amounts = canonical(container.resources.requests or {})
        for place, resource in enumerate(sorted(amounts)):
            if resource in asking and amounts[resource]:
                lasts = container.restart_policy == _ALWAYS
                name = f"container-{index}-request-{place}"
                asking[resource].append(_Asked(index, container.name, resource, name, amounts[resource], lasts))
    return asking


def _requests(asking: Sequence[_Asked], init: int, mappings: list[ContainerExtendedResourceRequest]) -> Iterator[tuple[str, int]]:
    """(name, count) of the requests for one resource; who uses which is added to `mappings`. `init`: how many init containers there are.

    Containers that run side by side have each its own devices. Init containers that end use those of the containers that run after them,
    and where that is not enough all share as many more as any of them needs.
    """
    lasting = [asked for asked in asking if asked.index >= init or asked.always]
    for asked in lasting:
        mappings.append(asked.mapping(asked.name))
        yield asked.name, asked.count
    if len(lasting) > MAX_RESULTS:
        return  # more than a claim may have, even if the others use none
    passing = [(asked, _reused(asked, lasting)) for asked in asking if asked.index < init and not asked.always]
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


# --- claims that a pod names -----------------------------------------------------------------------------------------------------


class NotReady(Exception):
    """A claim of the pod is not there, or not the pod's to use; the message says which and why."""


@dataclass(frozen=True, slots=True)
class PodDeviceClaims:
    """The demand of a pod's claims on a node.

    Attributes:
        allocated: claims that have their devices, or will have them before this pod is bound.
        wanted: claims that get theirs with the pod's node, in the pod's order.
        broken: uids of those of `allocated` whose devices could not be made ready: they are of no use on any node.
        signature: equal ones promise equal answers to what `wanted` asks.
        extension: what devices may have to serve beside claims; None for nothing.
        kept: what nominated pods will get, which is taken for this one.
    """

    allocated: tuple[ResourceClaim, ...] = ()
    wanted: tuple[ResourceClaim, ...] = ()
    broken: frozenset[str] = frozenset()
    signature: tuple[bytes, ...] = ()
    extension: Extension | None = None
    kept: Mapping[str, ResourceClaim] = field(default_factory=dict)

    @property
    def claims(self) -> tuple[ResourceClaim, ...]:
        """All of them."""
        return self.allocated + self.wanted

    @property
    def empty(self) -> bool:
        """Whether no device has anything to do with the pod."""
        return not self.claims and self.extension is None

    def asked(self, code: int) -> tuple[tuple[ResourceClaim, ...], tuple[bytes, ...]]:
        """(claims, their shapes) that want devices on nodes that lack the extended resources of these bits."""
        if self.extension is None or not code:
            return self.wanted, self.signature
        special = self.extension.variant(code).claim
        return (*self.wanted, special), (*self.signature, shape_of(special))


#: Of pods without claims.
NOTHING_CLAIMED = PodDeviceClaims()


def shape_of(claim: ResourceClaim) -> bytes:
    """The demand of a claim, as canonical text or its digest: claims made from one template have one shape."""
    return short_key(msgspec.json.encode(claim.spec, order="deterministic"))


def claims_of(pod: PodInfo, table: ClaimTable) -> list[ResourceClaim]:
    """The pod's claims in the order in which it names them, each once; raise `NotReady`."""
    found, made = {}, _made_claims(pod)
    for entry in pod.pod.spec.resource_claims or ():
        claim = _claim(pod, entry, made, table)
        if claim is not None:
            found[claim.metadata.uid] = claim
    return list(found.values())


def each_claim(pod: PodInfo, table: ClaimTable) -> Iterator[tuple[str, ResourceClaim | None, str]]:
    """(the pod's name for it, the claim or None, why it cannot be used) of everything that the pod claims, in its order."""
    made = _made_claims(pod)
    for entry in pod.pod.spec.resource_claims or ():
        try:
            claim = _claim(pod, entry, made, table)
        except NotReady as problem:
            yield entry.name, None, str(problem)
        else:
            if claim is not None:
                yield entry.name, claim, ""


def named_claims(pod: PodInfo) -> Iterator[str]:
    """The names of the pod's claims, as far as they are known by now."""
    made = _made_claims(pod)
    for entry in pod.pod.spec.resource_claims or ():
        try:
            name, _ = _name(pod, entry, made)
        except NotReady:
            continue
        if name is not None:
            yield name


def reserved_for(claim: ResourceClaim, pod: PodInfo) -> bool:
    """Whether the claim lists the pod among its users."""
    return any(consumer.uid == pod.uid for consumer in claim.status.reserved_for or ())


def has_room(claim: ResourceClaim) -> bool:
    """Whether another pod may use the claim."""
    return len(claim.status.reserved_for or ()) < MAX_RESERVED_FOR


def unused_but_by(claim: ResourceClaim, pod: PodInfo) -> bool:
    """Whether no other pod uses the claim."""
    return all(consumer.uid == pod.uid for consumer in claim.status.reserved_for or ())


def called(claim: ResourceClaim) -> str:
    """`namespace/name`, as messages name a claim."""
    return f"{claim.metadata.namespace}/{claim.metadata.name}"


def shapes(claims: Sequence[ResourceClaim]) -> tuple[bytes, ...]:
    """The shapes of several."""
    return tuple([shape_of(claim) for claim in claims])


def _made_claims(pod: PodInfo) -> dict[str, str | None]:
    """By the pod's name for it, the claim that was made for the pod; None where it was found that it needs none."""
    return {status.name: status.resource_claim_name for status in reversed(pod.pod.status.resource_claim_statuses or ())}


def _claim(pod: PodInfo, entry: PodResourceClaim, made: Mapping[str, str | None], table: ClaimTable) -> ResourceClaim | None:
    name, made_for_pod = _name(pod, entry, made)
    if name is None:
        return None  # it was found that the pod needs none
    claim = table.get(name, pod.namespace)
    if claim is None:
        raise NotReady(f'could not find ResourceClaim "{pod.namespace}/{name}"')
    if claim.metadata.deletion_timestamp is not None:
        raise NotReady(f'resourceclaim "{name}" is being deleted')
    if claim.metadata.excess:
        raise NotReady(f'resourceclaim "{name}": {claim.metadata.excess}')
    if made_for_pod and not _owned(claim, pod):
        raise NotReady(f"ResourceClaim {called(claim)} was not created for Pod {pod.key} (Pod is not owner)")
    return claim


def _name(pod: PodInfo, entry: PodResourceClaim, made: Mapping[str, str | None]) -> tuple[str | None, bool]:
    """(name, whether the claim was made for this pod)."""
    if entry.resource_claim_name is not None:
        return entry.resource_claim_name, False
    if entry.resource_claim_template_name is None:
        raise NotReady(f'pod "{pod.key}", spec.resourceClaim "{entry.name}": none of the supported fields are set')
    if entry.name in made:
        return made[entry.name], True
    raise NotReady(f'pod "{pod.key}": ResourceClaim not created yet')


def _owned(claim: ResourceClaim, pod: PodInfo) -> bool:
    return any(owner.controller and owner.uid == pod.uid for owner in claim.metadata.owner_references or ())
