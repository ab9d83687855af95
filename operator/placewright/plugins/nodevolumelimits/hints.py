"""Queueing hints of NodeVolumeLimits: which changes could leave room for a rejected pod's volumes."""

from __future__ import annotations

from typing import Any, Final

from placewright.api.pods import PodInfo
from placewright.api.storage import CSINode, VolumeAttachment
from placewright.framework.events import QueueingHint
from placewright.plugins.nodevolumelimits.attached import limits_of
from placewright.plugins.shared import podclaims
from placewright.plugins.shared.csimigration import TranslationError, from_pod, is_migratable

_UNLIMITED: Final = float("inf")


def after_csi_node_change(_pod: PodInfo, old: Any, new: Any) -> QueueingHint:
    """Some driver takes more volumes than before."""
    if not isinstance(new, CSINode):
        return QueueingHint.SKIP
    before = limits_of(old if isinstance(old, CSINode) else None)
    after = limits_of(new)
    more = any(after.get(driver, _UNLIMITED) > limit for driver, limit in before.items())
    return _hint(more or any(driver not in before for driver in after))


def after_pod_deletion(_pod: PodInfo, old: Any, _new: Any) -> QueueingHint:
    """A pod left a node, and with it volumes that a driver may have attached."""
    if not isinstance(old, PodInfo) or not old.node_name:
        return QueueingHint.SKIP
    return _hint(any(podclaims.claim_name(old, volume) is not None or is_migratable(volume) for volume in old.volumes))


def after_claim_added(pod: PodInfo, _old: Any, new: Any) -> QueueingHint:
    """A claim behind one of the pod's volumes is there now."""
    return _hint(podclaims.names(pod, new, ephemeral=True))


def after_detachment(pod: PodInfo, old: Any, _new: Any) -> QueueingHint:
    """A volume was detached that may have been of a driver that the pod needs; where claims lead is not looked up."""
    if not isinstance(old, VolumeAttachment):
        return QueueingHint.SKIP
    if any(podclaims.claim_name(pod, volume) is not None for volume in pod.volumes):
        return QueueingHint.QUEUE
    try:
        drivers = {migrated.driver for volume in pod.volumes if (migrated := from_pod(volume)) is not None}
    except TranslationError:  # the pod itself must change
        return QueueingHint.SKIP
    return _hint(old.spec.attacher in drivers)


def _hint(worth_it: bool) -> QueueingHint:
    return QueueingHint.QUEUE if worth_it else QueueingHint.SKIP
