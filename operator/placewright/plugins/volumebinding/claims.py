"""A pod's claims: which exist, whether they can be used, and which of them still need a volume.

Source of the rules and messages: kube-scheduler `volumebinding/{volume_binding,binder}.go`, `podHasPVCs` and `GetPodVolumeClaims`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from placewright.api.objects import Volume
from placewright.api.podextent import CLAIM_SELECTORS, CLAIM_VALUES
from placewright.api.pods import PodInfo
from placewright.api.quantity import QuantityError, nano
from placewright.api.selectors import Selector, SelectorError
from placewright.api.storage import BIND_COMPLETED, WAIT_FOR_FIRST_CONSUMER, PersistentVolumeClaim
from placewright.cluster.storage import StorageObjects, claim_class
from placewright.framework.status import Status, error, unresolvable
from placewright.plugins.shared import podclaims
from placewright.plugins.shared.csimigration import TranslationError, driver_affinity, in_tree_plugin, migrated_plugins

STORAGE: Final = "storage"


class VolumeDemand(NamedTuple):
    """A claim that waits for its first consumer, and the requirements for its volume.

    Attributes:
        size: nano-bytes; 0 if the claim requests no size.
        sized: whether the claim requests a size.
        modes: access modes that the volume must have.
        selector: selector that the volume's labels must match; None for any volume.
    """

    claim: PersistentVolumeClaim
    storage_class: str
    size: int
    sized: bool
    modes: frozenset[str]
    selector: Selector | None


@dataclass(frozen=True, slots=True)
class PodVolumeClaims:
    """The claims of a pod that may go on to the filters.

    Attributes:
        bound: claims that have their volume.
        to_bind: claims that will get one with the pod's node, in the order of the pod's volumes.
    """

    bound: tuple[PersistentVolumeClaim, ...]
    to_bind: tuple[VolumeDemand, ...]


class _Refused(Exception):
    """A claim of the pod cannot be used now."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.message)
        self.status = status


def claim_names(pod: PodInfo) -> Iterator[tuple[str, Volume]]:
    """Iterate over the names of the pod's claims, also of claims made for it, each with its volume."""
    return ((name, volume) for volume in pod.volumes if (name := podclaims.claim_name(pod, volume)) is not None)


def claims_of(pod: PodInfo, storage: StorageObjects) -> PodVolumeClaims | Status | None:
    """Sort the pod's claims; a status if no node will do, None if it has no claims."""
    try:
        found = [_usable(pod, name, volume, storage) for name, volume in claim_names(pod)]
        if not found:
            return None
        unbound = [claim for claim in found if not fully_bound(claim)]
        _require_few_requirements(unbound)
        waiting = [_waits_for_consumer(claim, storage) for claim in unbound]
        if not all(waiting):
            return unresolvable("pod has unbound immediate PersistentVolumeClaims")
        bound = tuple(claim for claim in found if fully_bound(claim))
        _require_known_to_drivers(bound, storage)
        return PodVolumeClaims(bound, tuple(_demand(claim, storage) for claim in unbound))
    except _Refused as refusal:
        return refusal.status


def fully_bound(claim: PersistentVolumeClaim) -> bool:
    """Return whether the claim has its volume, and its binding is complete."""
    return bool(claim.spec.volume_name) and BIND_COMPLETED in (claim.metadata.annotations or {})


def _usable(pod: PodInfo, name: str, volume: Volume, storage: StorageObjects) -> PersistentVolumeClaim:
    claim = storage.claims.get(name, pod.namespace)
    if claim is None:
        awaited = f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
        raise _Refused(unresolvable(awaited if volume.ephemeral is not None else podclaims.not_found(name)))
    if claim.metadata.excess:
        raise _Refused(unresolvable(f'persistentvolumeclaim "{name}": {claim.metadata.excess}'))
    if claim.status.phase == "Lost":
        gone = claim.spec.volume_name
        raise _Refused(unresolvable(f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{gone}"'))
    if claim.metadata.deletion_timestamp is not None:
        raise _Refused(unresolvable(f'persistentvolumeclaim "{name}" is being deleted'))
    if volume.ephemeral is not None and not podclaims.belongs_to(claim, pod):
        raise _Refused(unresolvable(f"PVC {pod.namespace}/{name} was not created for pod {pod.key} (pod is not owner)"))
    return claim


def _require_few_requirements(unbound: list[PersistentVolumeClaim]) -> None:
    """Refuse too many requirements, counted over all claims of a pod, because one decision compiles and compares them all."""
    selectors = [claim.spec.selector for claim in unbound if claim.spec.selector is not None]
    written = [requirement for selector in selectors for requirement in selector.match_expressions or ()]
    pairs = sum(len(selector.match_labels or ()) for selector in selectors)
    values = sum(len(requirement.values or ()) for requirement in written)
    excess = CLAIM_SELECTORS.complaint(pairs + len(written)) or CLAIM_VALUES.complaint(pairs + values)
    if excess:
        raise _Refused(unresolvable(excess))


def _waits_for_consumer(claim: PersistentVolumeClaim, storage: StorageObjects) -> bool:
    """Return whether the claim gets its volume with the pod's node. A claim that names a volume is for others to bind."""
    name = claim_class(claim)
    storage_class = storage.classes.get(name) if name else None
    if storage_class is None:
        return False
    if storage_class.volume_binding_mode is None:
        raise _Refused(error(f'VolumeBindingMode not set for StorageClass "{name}"'))
    return storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER and not claim.spec.volume_name


def _require_known_to_drivers(bound: tuple[PersistentVolumeClaim, ...], storage: StorageObjects) -> None:
    """Require that a CSI driver to which a volume has migrated on some node can know it. Upstream fails at the first such node."""
    for claim in bound:
        volume = storage.volumes.get(claim.spec.volume_name)
        if volume is None:
            return
        try:
            driver_affinity(volume)
        except TranslationError as problem:
            plugin = in_tree_plugin(volume.spec)
            if any(plugin in migrated_plugins(csi_node) for csi_node in storage.csi_nodes.values()):
                what = f'persistentvolume "{volume.metadata.name}": could not translate pv: {problem}'
                raise _Refused(error(what)) from None


def _demand(claim: PersistentVolumeClaim, storage: StorageObjects) -> VolumeDemand:
    where = f'persistentvolumeclaim "{claim.metadata.name}": spec'
    requests = claim.spec.resources.requests or {}
    try:
        size = nano(requests.get(STORAGE, 0))
        written = claim.spec.selector
        selector = None if written is None else storage.selectors.of(PersistentVolumeClaim, claim.metadata, written)
    except QuantityError as problem:
        raise _Refused(unresolvable(f"{where}.resources.requests.storage: {problem}")) from None
    except SelectorError as problem:
        raise _Refused(unresolvable(f"{where}.selector: {problem}")) from None
    modes = frozenset(claim.spec.access_modes or ())
    return VolumeDemand(claim, claim_class(claim), size, STORAGE in requests, modes, selector)
