"""The claims of a pod: which exist, which still need devices, and which its extended resources add.

`example.com/gpu: 2` becomes a claim on nodes that do not offer the resource themselves. Until PreBind that claim exists in memory alone.
There is one for each combination of resources that a node lacks.

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
    ConsumerReference,
    DeviceClaim,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
)
from placewright.api.objects import Container, ContainerExtendedResourceRequest, OwnerReference, PodResourceClaim
from placewright.api.podgroups import KIND, NATIVE_GROUP, Form
from placewright.api.pods import PodInfo
from placewright.api.requests import canonical
from placewright.cluster.cluster import Cluster
from placewright.cluster.devices import ClaimTable
from placewright.framework.interface import IntColumn, Rows
from placewright.plugins.shared.lookups import combinations

# --- extended resources ----------------------------------------------------------------------------------------------------------


#: A name that no claim in the API can have.
SPECIAL_NAME: Final = "<extended-resources>"
_ALWAYS: Final = "Always"


@dataclass(frozen=True, slots=True)
class Variant:
    """A claim for some of a pod's extended resources, and the request that serves each container."""

    claim: ResourceClaim
    mappings: tuple[ContainerExtendedResourceRequest, ...]


@dataclass(slots=True)
class Extension:
    """The extended resources of a pod that devices may have to serve.

    Attributes:
        classes: device class by resource, in order of the resources.
        stale: claim of an earlier attempt of the pod, which must be deleted first.
    """

    pod: PodInfo
    classes: dict[str, str]
    stale: ResourceClaim | None = None
    _variants: dict[int, Variant] = field(default_factory=dict)
    #: Bits of lacking resources by code, and code by bits. Code 0 lacks nothing.
    _lacking: list[int] = field(default_factory=lambda: [0])
    _codes: dict[int, int] = field(default_factory=lambda: {0: 0})

    def codes(self, cluster: Cluster, rows: Rows) -> IntColumn:
        """Return a code of the resources that each row does not offer itself, 0 for none; shape (len(rows),)."""
        flags = [cluster.resources.column(name).allocatable[rows] == 0 for name in self.classes]
        _, firsts, kinds = np.unique(combinations(flags, len(rows)), return_index=True, return_inverse=True)
        lacking = [sum(int(flag[first]) << bit for bit, flag in enumerate(flags)) for first in firsts.tolist()]
        return np.array([self._code(each) for each in lacking], np.int64)[kinds]

    def code_of(self, cluster: Cluster, row: int) -> int:
        """Return the code of one row."""
        return int(self.codes(cluster, np.array([row], np.intp))[0])

    def variant(self, code: int) -> Variant:
        """Return the claim for the resources that `code` lacks."""
        known = self._variants.get(code)
        if known is None:
            bits = self._lacking[code]
            lacking = {name: served_by for bit, (name, served_by) in enumerate(self.classes.items()) if bits >> bit & 1}
            known = self._variants[code] = _variant(self.pod, lacking)
        return known

    @property
    def whole(self) -> Variant:
        """Claim for all the resources."""
        return self.variant(self._code((1 << len(self.classes)) - 1))

    def _code(self, bits: int) -> int:
        code = self._codes.setdefault(bits, len(self._lacking))
        if code == len(self._lacking):
            self._lacking.append(bits)
        return code


def extension_of(pod: PodInfo, cluster: Cluster) -> Extension | None:
    """Return the extended resources that devices serve for a pod; None if there are none."""
    devices = cluster.objects.devices
    classes = devices.served(pod)
    if not classes:
        return None
    stale = next((claim for claim in devices.claims.where(pod.uid) if claim.metadata.namespace == pod.namespace), None)
    return Extension(pod, dict(sorted(classes.items())), stale)


@dataclass(frozen=True, slots=True)
class _Asked:
    """A container's request of one resource.

    `index` is the container's, init containers first. `always` says that it restarts whenever it ends.
    """

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
    """Group the containers that request each resource, in their order."""
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
    """Yield name and count of each request for one resource, and add its users to `mappings`; `init` counts init containers.

    Containers that run at the same time have devices of their own. Init containers that end use devices of containers that run after them.
    If these do not suffice, all such init containers share as many more as the largest of them needs.
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
    """Return the requests of containers that run later whose devices suffice."""
    used: list[_Asked] = []
    for each in lasting:
        if each.index >= asked.index and sum(one.count for one in used) < asked.count:
            used.append(each)
    return used


# --- claims that a pod names -----------------------------------------------------------------------------------------------------


class NotReady(Exception):
    """A claim of the pod does not exist, or the pod may not use it; the message says which and why."""


@dataclass(frozen=True, slots=True)
class PodDeviceClaims:
    """The claims of a pod, and what they demand of a node.

    Attributes:
        allocated: claims that have devices, or will have them before this pod is bound.
        wanted: claims that are allocated with the pod's node, in the pod's order.
        broken: uids of claims in `allocated` whose devices could not be made ready; no node can use them.
        signature: shapes of `wanted`; equal ones get equal answers.
        extension: extended resources that devices may have to serve; None if there are none.
        kept: claims of nominated pods with the devices that they will get, which this pod must not take.
    """

    allocated: tuple[ResourceClaim, ...] = ()
    wanted: tuple[ResourceClaim, ...] = ()
    broken: frozenset[str] = frozenset()
    signature: tuple[bytes, ...] = ()
    extension: Extension | None = None
    kept: Mapping[str, ResourceClaim] = field(default_factory=dict)

    @property
    def claims(self) -> tuple[ResourceClaim, ...]:
        """Claims with devices, then claims without."""
        return self.allocated + self.wanted

    @property
    def empty(self) -> bool:
        """Whether the pod needs no device at all."""
        return not self.claims and self.extension is None

    def asked(self, code: int) -> tuple[tuple[ResourceClaim, ...], tuple[bytes, ...]]:
        """Return the claims, and their shapes, that need devices on nodes with this code of lacking resources."""
        if self.extension is None or not code:
            return self.wanted, self.signature
        special = self.extension.variant(code).claim
        return (*self.wanted, special), (*self.signature, shape_of(special))


#: The demand of pods without claims.
NOTHING_CLAIMED = PodDeviceClaims()


def shape_of(claim: ResourceClaim) -> bytes:
    """Return the shape of a claim, its spec as canonical text or a digest. Claims of one template have one shape."""
    return short_key(msgspec.json.encode(claim.spec, order="deterministic"))


def claims_of(pod: PodInfo, table: ClaimTable) -> list[ResourceClaim]:
    """Return the pod's claims in the order in which it names them, each once. Raise `NotReady`."""
    found = {}
    for _, claim, problem in each_claim(pod, table):
        if claim is None:
            raise NotReady(problem)
        found[claim.metadata.uid] = claim
    return list(found.values())


def each_claim(pod: PodInfo, table: ClaimTable) -> Iterator[tuple[str, ResourceClaim | None, str]]:
    """Yield the pod's name for each claim, the claim or None, and why it cannot be used."""
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
    """Yield the names of the pod's claims, as far as they are known."""
    made = _made_claims(pod)
    for entry in pod.pod.spec.resource_claims or ():
        try:
            name, _ = _name(pod, entry, made)
        except NotReady:
            continue
        if name is not None:
            yield name


def ending_claims(pod: PodInfo, table: ClaimTable) -> Iterator[ResourceClaim]:
    """Yield the pod's claims that are being deleted and still list it among their users."""
    for name in named_claims(pod):
        claim = table.get(name, pod.namespace)
        if claim is not None and claim.metadata.deletion_timestamp is not None and reserved_for(claim, pod):
            yield claim


def reserved_for(claim: ResourceClaim, pod: PodInfo) -> bool:
    """Return whether the claim lists the pod among its users."""
    return any(consumer.uid == pod.uid for consumer in claim.status.reserved_for or ())


def reserved_for_group(claim: ResourceClaim, pod: PodInfo) -> bool:
    """Return whether the claim lists the pod's PodGroup among its users. Pods do not know its uid."""
    group, users = native_group(pod), claim.status.reserved_for or ()
    return bool(group) and any((each.api_group, each.resource, each.name) == (NATIVE_GROUP, "podgroups", group) for each in users)


def native_group(pod: PodInfo) -> str:
    """Return the name of the pod's PodGroup of Kubernetes itself, or ""."""
    ref = pod.pod_group
    return ref.name if ref is not None and ref.form is Form.NATIVE else ""


def group_claims(pod: PodInfo, cluster: Cluster) -> tuple[ConsumerReference | None, frozenset[str]]:
    """Return the pod's group as a consumer, and the uids of the claims that are reserved for it: both name them in the same way."""
    group = cluster.pod_groups.get(pod.pod_group) if pod.pod_group is not None else None
    shared = {entry.name for entry in pod.pod.spec.resource_claims or () if group is not None and entry in group.claims}
    if group is None or not shared:
        return None, frozenset()
    found = each_claim(pod, cluster.objects.devices.claims)
    uids = frozenset(claim.metadata.uid for name, claim, _ in found if claim is not None and name in shared)
    return ConsumerReference.of_pod_group(group.ref.name, group.uid), uids


def has_room(claim: ResourceClaim) -> bool:
    """Return whether another pod may use the claim."""
    return len(claim.status.reserved_for or ()) < MAX_RESERVED_FOR


def unused_but_by(claim: ResourceClaim, pod: PodInfo) -> bool:
    """Return whether no other pod uses the claim."""
    return all(consumer.uid == pod.uid for consumer in claim.status.reserved_for or ())


def called(claim: ResourceClaim) -> str:
    """Return `namespace/name`, as messages name a claim."""
    return f"{claim.metadata.namespace}/{claim.metadata.name}"


def shapes(claims: Sequence[ResourceClaim]) -> tuple[bytes, ...]:
    """Return the shapes of claims, in their order."""
    return tuple([shape_of(claim) for claim in claims])


def _made_claims(pod: PodInfo) -> dict[str, str | None]:
    """Map the pod's names for claims to the claims made for it; None if it needs no claim."""
    return {status.name: status.resource_claim_name for status in reversed(pod.pod.status.resource_claim_statuses or ())}


def _claim(pod: PodInfo, entry: PodResourceClaim, made: Mapping[str, str | None], table: ClaimTable) -> ResourceClaim | None:
    name, made_for_pod = _name(pod, entry, made)
    if name is None:
        return None  # the status says that the pod needs none
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
    """Return the claim's name, and whether it was made for this pod."""
    if entry.resource_claim_name is not None:
        return entry.resource_claim_name, False
    if entry.resource_claim_template_name is None:
        raise NotReady(f'pod "{pod.key}", spec.resourceClaim "{entry.name}": none of the supported fields are set')
    if entry.name in made:
        return made[entry.name], True
    raise NotReady(f'pod "{pod.key}": ResourceClaim not created yet')


def _owned(claim: ResourceClaim, pod: PodInfo) -> bool:
    owner = next((each for each in claim.metadata.owner_references or () if each.controller), None)
    if owner is None:
        return False
    of_group = owner.kind == KIND and owner.api_version.startswith(f"{NATIVE_GROUP}/")
    return owner.uid == pod.uid or (of_group and owner.name == native_group(pod))
