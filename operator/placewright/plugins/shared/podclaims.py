"""The claims of a pod: the volumes that name one, and the messages for a claim that is missing or another pod's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeGuard

from placewright.api.objects import Volume
from placewright.api.pods import PodInfo
from placewright.api.storage import PersistentVolumeClaim
from placewright.framework.events import QueueingHint


def claim_name(pod: PodInfo, volume: Volume) -> str | None:
    """Return the name of a volume's claim, or None. A generic ephemeral volume's is named after pod and volume."""
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    return f"{pod.name}-{volume.name}" if volume.ephemeral is not None else None


def named_claims(pod: PodInfo) -> Iterator[str]:
    """Iterate over the claims that the pod itself names, in the order of its volumes, without ephemeral ones."""
    return (volume.persistent_volume_claim.claim_name for volume in pod.volumes if volume.persistent_volume_claim is not None)


def belongs_to(claim: PersistentVolumeClaim, pod: PodInfo) -> bool:
    """Return whether the claim was made for an ephemeral volume of this very pod."""
    owners = claim.metadata.owner_references or ()
    return claim.metadata.namespace == pod.namespace and any(owner.controller and owner.uid == pod.uid for owner in owners)


def not_found(name: str) -> str:
    """Return the API's message for a claim that does not exist."""
    return f'persistentvolumeclaim "{name}" not found'


def after_claim_change(pod: PodInfo, _old: PersistentVolumeClaim | None, new: PersistentVolumeClaim | None) -> QueueingHint:
    """Queue if the new or changed claim is the claim of one of the pod's volumes."""
    return QueueingHint.when(_is_in_namespace(new, pod) and any(claim_name(pod, volume) == new.metadata.name for volume in pod.volumes))


def after_named_claim_change(pod: PodInfo, _old: PersistentVolumeClaim | None, new: PersistentVolumeClaim | None) -> QueueingHint:
    """Queue if the pod itself names the new or changed claim. Claims of generic ephemeral volumes do not count."""
    return QueueingHint.when(_is_in_namespace(new, pod) and new.metadata.name in named_claims(pod))


def _is_in_namespace(claim: PersistentVolumeClaim | None, pod: PodInfo) -> TypeGuard[PersistentVolumeClaim]:
    return isinstance(claim, PersistentVolumeClaim) and claim.metadata.namespace == pod.namespace
