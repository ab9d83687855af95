"""The relations of pods and claims: the claims of a pod, its right to use them, the owner of a claim. Pure functions.

The rules come from dynamic-resource-allocation's `resourceclaim` package and from kube-controller-manager's controller of that name.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from kubesandbox.status import Object

#: Annotation of a claim from a template, with its name in the pod.
POD_CLAIM_NAME: Final = "resource.kubernetes.io/pod-claim-name"
#: Finalizer of a claim with an allocation, so that it cannot vanish while it has devices.
FINALIZER: Final = "resource.kubernetes.io/delete-protection"
MAX_CONSUMERS: Final = 256
#: Number of characters before the random part of a generated name.
LONGEST_BASE: Final = 57
_FINISHED: Final = ("Succeeded", "Failed")
#: Fields that name an allocated device.
DEVICE: Final = ("driver", "pool", "device", "shareID")


class PodClaim(NamedTuple):
    """An entry of a pod's `spec.resourceClaims`.

    Attributes:
        name: name in the pod; empty for the claim that a scheduler made for extended resources.
        claim: name of the ResourceClaim; empty until one is made from the template.
        template: name of the template; empty if the pod names the claim itself.
        owned: True if the claim must be this pod's own.
    """

    name: str
    claim: str
    template: str
    owned: bool


def pod_claims(pod: Object) -> Iterator[PodClaim]:
    """Yield the claims that a pod needs, without entries whose claim turned out to be unnecessary."""
    status = pod.get("status") or {}
    made = {each.get("name"): each.get("resourceClaimName") for each in status.get("resourceClaimStatuses") or ()}
    for each in (pod.get("spec") or {}).get("resourceClaims") or ():
        name, template = each.get("name", ""), each.get("resourceClaimTemplateName")
        if not template:
            yield PodClaim(name, each.get("resourceClaimName") or "", "", owned=False)
        elif name not in made or made[name]:
            yield PodClaim(name, made.get(name) or "", template, owned=True)
    extended = (status.get("extendedResourceClaimStatus") or {}).get("resourceClaimName")
    if extended:
        yield PodClaim("", extended, "", owned=True)


def is_done(pod: Object) -> bool:
    """Return whether none of the pod's containers runs, or ever will."""
    finished = (pod.get("status") or {}).get("phase") in _FINISHED
    return finished or ("deletionTimestamp" in pod["metadata"] and not (pod.get("spec") or {}).get("nodeName"))


def consumer(pod: Object) -> Object:
    """Return a pod in the form of `status.reservedFor`."""
    return {"resource": "pods", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}


def consumers(claim: Object) -> list[Object]:
    """Return the current consumers of a claim."""
    return list((claim.get("status") or {}).get("reservedFor") or ())


def allocation(claim: Object) -> Object | None:
    """Return the allocation of a claim; None without one."""
    return (claim.get("status") or {}).get("allocation")


def results(claim: Object) -> list[Object]:
    """Return the allocated devices of a claim."""
    return list(((allocation(claim) or {}).get("devices") or {}).get("results") or ())


def device_key(device: Object) -> tuple[str, ...]:
    """Return driver, pool, name and share of an allocated device."""
    return tuple(str(device.get(part) or "") for part in DEVICE)


def is_reserved_for(claim: Object, pod: Object) -> bool:
    """Return whether the pod may use the claim."""
    return any(each.get("uid") == pod["metadata"]["uid"] for each in consumers(claim))


def may_be_reserved(claim: Object) -> bool:
    """Return whether one more pod may use the claim."""
    return "deletionTimestamp" not in claim["metadata"] and len(consumers(claim)) < MAX_CONSUMERS


def owner(claim: Object) -> tuple[str, str]:
    """Return name and uid of the pod that owns a claim, both empty for a claim without one."""
    for each in claim["metadata"].get("ownerReferences") or ():
        if each.get("controller") and each.get("apiVersion") == "v1" and each.get("kind") == "Pod":
            return str(each.get("name")), str(each.get("uid"))
    return "", ""


def generated_claim(pod: Object, wanted: PodClaim, template: Object) -> Object:
    """Return the claim that a pod gets from a template. It has the template's labels and annotations, and the pod owns it."""
    meta, spec = pod["metadata"], template.get("spec") or {}
    like = spec.get("metadata") or {}
    base = f"{meta['name']}-{wanted.name}-"
    if len(base) > LONGEST_BASE:  # cut both in proportion, so that some of both stays
        cut = LONGEST_BASE / len(base)
        base = f"{meta['name'][: int(len(meta['name']) * cut)]}-{wanted.name[: int(len(wanted.name) * cut)]}"
    reference = {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"]}
    metadata = {
        "generateName": base,
        "annotations": {**(like.get("annotations") or {}), POD_CLAIM_NAME: wanted.name},
        "labels": {**(like.get("labels") or {})},
        "ownerReferences": [{**reference, "controller": True, "blockOwnerDeletion": True}],
    }
    return {"metadata": metadata, "spec": {**(spec.get("spec") or {})}}
