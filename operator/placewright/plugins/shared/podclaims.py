"""The claims of a pod: which of its volumes name one, and what is said where the claim is not there or is not the pod's."""

from __future__ import annotations

from collections.abc import Iterator

from placewright.api.objects import Volume
from placewright.api.pods import PodInfo
from placewright.api.storage import PersistentVolumeClaim


def claim_name(pod: PodInfo, volume: Volume) -> str | None:
    """The name of the claim behind a volume, or None. A generic ephemeral volume has one that is named after pod and volume."""
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    return f"{pod.name}-{volume.name}" if volume.ephemeral is not None else None


def named_claims(pod: PodInfo) -> Iterator[str]:
    """The claims that the pod itself names, in the order of its volumes; those of ephemeral volumes are not among them."""
    return (volume.persistent_volume_claim.claim_name for volume in pod.volumes if volume.persistent_volume_claim is not None)


def belongs_to(claim: PersistentVolumeClaim, pod: PodInfo) -> bool:
    """True when the claim was made for an ephemeral volume of this very pod."""
    owners = claim.metadata.owner_references or ()
    return claim.metadata.namespace == pod.namespace and any(owner.controller and owner.uid == pod.uid for owner in owners)


def not_found(name: str) -> str:
    """The API's words for a claim that does not exist."""
    return f'persistentvolumeclaim "{name}" not found'


def names(pod: PodInfo, claim: object, *, ephemeral: bool) -> bool:
    """True when this object is a claim behind a volume of the pod; with `ephemeral`, also behind an ephemeral one."""
    if not isinstance(claim, PersistentVolumeClaim) or claim.metadata.namespace != pod.namespace:
        return False
    name = claim.metadata.name
    return any(claim_name(pod, volume) == name for volume in pod.volumes if ephemeral or volume.ephemeral is None)
