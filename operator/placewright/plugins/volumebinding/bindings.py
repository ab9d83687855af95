"""Writes of VolumeBinding, from the choice of a node to bound claims, and the check that they are done.

A static volume gets a reference to its claim (`claimRef`). A claim whose volume is to be provisioned gets its node (an annotation). The
volume controller and the provisioners do the rest, and update both when they are done. Source: kube-scheduler `volumebinding/binder.go`,
`AssumePodVolumes`, `BindPodVolumes`, `checkBindings`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from dataclasses import replace as with_fields
from typing import Any, Final

from msgspec.structs import replace

from placewright.api.errors import VolumeError
from placewright.api.objects import Node, NodeSelector, ObjectMeta
from placewright.api.selectors import compile_node_selector
from placewright.api.storage import SELECTED_NODE, ObjectReference, PersistentVolume, PersistentVolumeClaim
from placewright.cluster.storage import StorageObjects, Table
from placewright.plugins.shared.csimigration import TranslationError, driver_affinity, in_tree_plugin, migrated_plugins
from placewright.plugins.volumebinding.claims import fully_bound
from placewright.plugins.volumebinding.reach import bound_to

#: Annotation of a volume whose claim was not chosen by a user.
BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"


@dataclass(frozen=True, slots=True)
class ReservedVolumes:
    """The writes for a pod on its way to a node.

    Attributes:
        bindings: volumes that now name their claim, with that claim.
        provisions: claims that now name the node.
        assumed: objects of these that changed; pods that share a claim assume it once.
    """

    bindings: tuple[tuple[PersistentVolume, PersistentVolumeClaim], ...]
    provisions: tuple[PersistentVolumeClaim, ...]
    assumed: tuple[PersistentVolume | PersistentVolumeClaim, ...] = ()


def naming_claim(volume: PersistentVolume, claim: PersistentVolumeClaim) -> PersistentVolume:
    """Return the volume as bound to the claim; the same object if it is bound already."""
    meta, reference = claim.metadata, volume.spec.claim_ref
    bound = volume
    if reference is None or (reference.namespace, reference.name, reference.uid) != (meta.namespace, meta.name, meta.uid):
        named = ObjectReference(
            kind="PersistentVolumeClaim",
            api_version="v1",
            namespace=meta.namespace,
            name=meta.name,
            uid=meta.uid,
            resource_version=meta.resource_version,
        )
        bound = replace(volume, spec=replace(volume.spec, claim_ref=named))
    if not bound_to(volume, claim):
        bound = replace(bound, metadata=_annotated(bound.metadata, BOUND_BY_CONTROLLER, "yes"))
    return bound


def naming_node(claim: PersistentVolumeClaim, node: str) -> PersistentVolumeClaim:
    """Return the claim with the node for which its volume is to be provisioned; the same object if it has it already."""
    if (claim.metadata.annotations or {}).get(SELECTED_NODE) == node:
        return claim
    return replace(claim, metadata=_annotated(claim.metadata, SELECTED_NODE, node))


def _annotated(meta: ObjectMeta, key: str, value: str) -> ObjectMeta:
    return replace(meta, annotations={**(meta.annotations or {}), key: value})


def assume(
    bindings: Iterable[tuple[PersistentVolume, PersistentVolumeClaim]], provisions: Iterable[PersistentVolumeClaim], storage: StorageObjects
) -> ReservedVolumes:
    """Assume the objects that will be written, so that the next pods see them."""
    reserved = ReservedVolumes(tuple(bindings), tuple(provisions))
    assumed: list[PersistentVolume | PersistentVolumeClaim] = []
    for volume, _ in reserved.bindings:
        if storage.volumes.get(volume.metadata.name) is not volume:
            storage.volumes.assume(volume)
            assumed.append(volume)
    for claim in reserved.provisions:
        if storage.claims.get(claim.metadata.name, claim.metadata.namespace) is not claim:
            storage.claims.assume(claim)
            assumed.append(claim)
    return with_fields(reserved, assumed=tuple(assumed))


def restore(reserved: ReservedVolumes, storage: StorageObjects) -> None:
    """Restore the objects that the API server has not shown meanwhile."""
    for item in reserved.assumed:
        table: Table[Any] = storage.tables[type(item)]
        if table.get(item.metadata.name, item.metadata.namespace) is item:
            table.restore(item)


def all_bound(written: ReservedVolumes, node: Node, storage: StorageObjects) -> bool:
    """Return whether the API server has shown every claim bound. Raise `VolumeError` if that can no longer happen."""
    bound = [_binding_done(volume, claim, node, storage) for volume, claim in written.bindings]
    bound += [_provision_done(claim, node, storage) for claim in written.provisions]
    return all(bound)


def _binding_done(written: PersistentVolume, claim: PersistentVolumeClaim, node: Node, storage: StorageObjects) -> bool:
    volume = storage.volumes.shown(written.metadata.name)
    if volume is None:
        raise VolumeError(f'failed to check binding: could not find v1.PersistentVolume "{written.metadata.name}"')
    meta = claim.metadata
    shown = storage.claims.shown(meta.name, meta.namespace)
    if shown is None:
        raise VolumeError(f'failed to check binding: could not find v1.PersistentVolumeClaim "{meta.namespace}/{meta.name}"')
    if _older(volume.metadata, written.metadata):
        return False
    _require_reach(volume, node, storage)
    if volume.spec.claim_ref is None or not volume.spec.claim_ref.uid:
        raise VolumeError(f'ClaimRef got reset for pv "{volume.metadata.name}"')
    return fully_bound(shown)


def _provision_done(written: PersistentVolumeClaim, node: Node, storage: StorageObjects) -> bool:
    meta = written.metadata
    claim = storage.claims.shown(meta.name, meta.namespace)
    if claim is None:
        raise VolumeError(f'failed to check provisioning pvc: could not find v1.PersistentVolumeClaim "{meta.namespace}/{meta.name}"')
    if _older(claim.metadata, meta):
        return False
    if claim.metadata.annotations is None:
        raise VolumeError(f'selectedNode annotation reset for PVC "{meta.name}"')
    if claim.metadata.annotations.get(SELECTED_NODE) != node.metadata.name:
        raise VolumeError(f'provisioning failed for PVC "{meta.name}"')
    if claim.spec.volume_name:
        volume = storage.volumes.shown(claim.spec.volume_name)
        if volume is None:
            return False  # the watch has not shown it yet
        _require_reach(volume, node, storage)
    return fully_bound(claim)


def _require_reach(volume: PersistentVolume, node: Node, storage: StorageObjects) -> None:
    required = _affinity_on(volume, node, storage)
    if required is None:
        return
    labels = node.metadata.labels or {}
    terms = compile_node_selector(required)
    if not any(all(each.matches(labels.get(each.key)) for each in term.labels) for term in terms):
        names = f'pv "{volume.metadata.name}" node affinity doesn\'t match node "{node.metadata.name}"'
        raise VolumeError(f"{names}: no matching NodeSelectorTerms")


def _affinity_on(volume: PersistentVolume, node: Node, storage: StorageObjects) -> NodeSelector | None:
    """Return the volume's node affinity, translated for its CSI driver if it has migrated on the node."""
    if in_tree_plugin(volume.spec) not in migrated_plugins(storage.csi_nodes.get(node.metadata.name)):
        return volume.spec.node_affinity.required if volume.spec.node_affinity is not None else None
    try:
        return driver_affinity(volume)
    except TranslationError as problem:
        raise VolumeError(f"failed to translate pv to csi: could not translate pv: {problem}") from None


def _older(shown: ObjectMeta, written: ObjectMeta) -> bool:
    """Return whether the watch has not reached the written version yet. Versions that are no numbers cannot be compared."""
    mine, theirs = written.resource_version, shown.resource_version
    return mine.isdecimal() and theirs.isdecimal() and int(theirs) < int(mine)
