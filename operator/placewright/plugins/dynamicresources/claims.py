"""The claims of a pod: which they are, whether they are there, and which of them still need devices.

Source of the rules and messages: kube-scheduler `dynamicresources/dynamicresources.go`, and `resourceclaim/claim.go`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec

from placewright.api.devices import MAX_RESERVED_FOR, ResourceClaim
from placewright.api.objects import PodResourceClaim
from placewright.api.pods import PodInfo
from placewright.cluster.devices import ClaimTable
from placewright.plugins.dynamicresources.extended import Extension


class NotReady(Exception):
    """A claim of the pod is not there, or not the pod's to use; the message says which and why."""


@dataclass(frozen=True, slots=True)
class Demand:
    """What a pod's claims ask of a node.

    Attributes:
        allocated: claims that have their devices, or will have them before this pod is bound.
        wanted: claims that get theirs with the pod's node, in the pod's order.
        broken: uids of those of `allocated` whose devices could not be made ready: they are of no use on any node.
        signature: equal ones promise equal answers to what `wanted` asks.
        extension: what devices may have to serve beside claims; None for nothing.
    """

    allocated: tuple[ResourceClaim, ...] = ()
    wanted: tuple[ResourceClaim, ...] = ()
    broken: frozenset[str] = frozenset()
    signature: tuple[bytes, ...] = ()
    extension: Extension | None = None

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
NOTHING_CLAIMED = Demand()


def shape_of(claim: ResourceClaim) -> bytes:
    """What a claim asks for, as canonical text: claims made from one template have one shape."""
    return msgspec.json.encode(claim.spec, order="deterministic")


def claims_of(pod: PodInfo, table: ClaimTable) -> list[ResourceClaim]:
    """The pod's claims in the order in which it names them, each once; raise `NotReady`."""
    found = {}
    for entry in pod.pod.spec.resource_claims or ():
        claim = _claim(pod, entry, table)
        if claim is not None:
            found[claim.metadata.uid] = claim
    return list(found.values())


def each_claim(pod: PodInfo, table: ClaimTable) -> Iterator[tuple[str, ResourceClaim | None, str]]:
    """(the pod's name for it, the claim or None, why it cannot be used) of everything that the pod claims, in its order."""
    for entry in pod.pod.spec.resource_claims or ():
        try:
            claim = _claim(pod, entry, table)
        except NotReady as problem:
            yield entry.name, None, str(problem)
        else:
            if claim is not None:
                yield entry.name, claim, ""


def named_claims(pod: PodInfo) -> Iterator[str]:
    """The names of the pod's claims, as far as they are known by now."""
    for entry in pod.pod.spec.resource_claims or ():
        try:
            name, _ = _name(pod, entry)
        except NotReady:
            continue
        if name is not None:
            yield name


def reserved_for(claim: ResourceClaim, pod: PodInfo) -> bool:
    """Whether the claim names the pod among those that use it."""
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


def _claim(pod: PodInfo, entry: PodResourceClaim, table: ClaimTable) -> ResourceClaim | None:
    name, made_for_pod = _name(pod, entry)
    if name is None:
        return None  # it was found that the pod needs none
    claim = table.get(name, pod.namespace)
    if claim is None:
        raise NotReady(f'could not find ResourceClaim "{pod.namespace}/{name}"')
    if claim.metadata.deletion_timestamp is not None:
        raise NotReady(f'resourceclaim "{name}" is being deleted')
    if made_for_pod and not _owned(claim, pod):
        raise NotReady(f"ResourceClaim {called(claim)} was not created for Pod {pod.key} (Pod is not owner)")
    return claim


def _name(pod: PodInfo, entry: PodResourceClaim) -> tuple[str | None, bool]:
    """(name, whether the claim was made for this pod)."""
    if entry.resource_claim_name is not None:
        return entry.resource_claim_name, False
    if entry.resource_claim_template_name is None:
        raise NotReady(f'pod "{pod.key}", spec.resourceClaim "{entry.name}": none of the supported fields are set')
    for status in pod.pod.status.resource_claim_statuses or ():
        if status.name == entry.name:
            return status.resource_claim_name, True
    raise NotReady(f'pod "{pod.key}": ResourceClaim not created yet')


def _owned(claim: ResourceClaim, pod: PodInfo) -> bool:
    return any(owner.controller and owner.uid == pod.uid for owner in claim.metadata.owner_references or ())
