"""Queueing hints of DynamicResources: which changes may help a rejected pod. Source: kube-scheduler `dynamicresources.go`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from placewright.api.devices import ResourceClaim, devices_of
from placewright.api.pods import PodInfo
from placewright.cluster.devices import ClaimTable, DeviceObjects, owner_of_extended
from placewright.cluster.storage import key_of
from placewright.framework.assignedpods import is_itself
from placewright.framework.events import Action, ClusterEventWithHint, EventKeys, EventResource, QueueingHint, event_with_hint
from placewright.plugins.dynamicresources.claims import NotReady, claims_of, each_claim, named_claims

_NEW_OR_CHANGED = Action.ADD | Action.UPDATE


def interests(objects: Callable[[], DeviceObjects]) -> Sequence[ClusterEventWithHint]:
    """Declare the plugin's events. `objects` returns the claims and classes at the time of an event."""

    def claim_changed(pod: PodInfo, old: ResourceClaim | None, new: ResourceClaim | None) -> QueueingHint:
        return after_claim_change(pod, old, new, objects().claims)

    def pod_changed(pod: PodInfo, _old: PodInfo | None, new: PodInfo | None) -> QueueingHint:
        return after_pod_change(pod, new, objects().claims)

    def pod_left(_pod: PodInfo, old: PodInfo | None, _new: PodInfo | None) -> QueueingHint:
        return after_pod_left(old, objects())

    return (
        event_with_hint(EventResource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_ALLOCATABLE),
        # Upstream ignores deleted claims, and tries such pods again only after minutes.
        event_with_hint(EventResource.RESOURCE_CLAIM, Action.ALL, claim_changed, keys=CLAIM_KEYS),
        event_with_hint(EventResource.POD, Action.UPDATE_POD_GENERATED_CLAIM, pod_changed, is_itself),
        # Upstream ignores deleted pods whose devices were reserved but never written, and tries pods that wait for them after minutes.
        event_with_hint(EventResource.ASSIGNED_POD, Action.DELETE, pod_left),
        event_with_hint(EventResource.DEVICE_CLASS, _NEW_OR_CHANGED),
        event_with_hint(EventResource.RESOURCE_SLICE, _NEW_OR_CHANGED),
        # Upstream changes slices by the rules that taint them.
        event_with_hint(EventResource.DEVICE_TAINT_RULE, Action.ALL),
    )


def after_claim_change(pod: PodInfo, old: ResourceClaim | None, new: ResourceClaim | None, table: ClaimTable) -> QueueingHint:
    """Queue any pod if devices became free. Queue a pod whose claims all exist if one of them changed."""
    if not isinstance(new, ResourceClaim):
        return QueueingHint.when(isinstance(old, ResourceClaim) and _frees(old, pod))
    try:
        claims = claims_of(pod, table)
    except NotReady:
        return QueueingHint.SKIP
    before = old if isinstance(old, ResourceClaim) else None
    if before is not None and _loses_devices(before, new):
        return QueueingHint.QUEUE
    if all(claim.metadata.uid != new.metadata.uid for claim in claims):
        return QueueingHint.SKIP
    return QueueingHint.when(not (before is not None and before.status == new.status))


def keys_of_pod(pod: PodInfo) -> Iterator[str]:
    """Yield keys of the claims that the pod names so far. Claims of its extended resources have the key of the pod."""
    yield pod.uid
    yield from (f"{pod.namespace}/{name}" for name in named_claims(pod))


def keys_of_claim_change(old: ResourceClaim | None, new: ResourceClaim | None) -> tuple[str, ...] | None:
    """Return the keys of pods that name or own the claim; None, for all pods, if devices become free."""
    before = old if isinstance(old, ResourceClaim) else None
    if isinstance(new, ResourceClaim):
        return None if before is not None and _loses_devices(before, new) else (key_of(new.metadata),)
    if before is None:
        return ()
    return None if before.status.allocation is not None else (owner_of_extended(before),)


#: Keys by which events of claims find the pods that they concern.
CLAIM_KEYS: Final = EventKeys(keys_of_pod, keys_of_claim_change)


def _loses_devices(before: ResourceClaim, new: ResourceClaim) -> bool:
    had, has = before.status.allocation, new.status.allocation
    return had is not None and (has is None or not set(devices_of(had)) <= set(devices_of(has)))


def _frees(gone: ResourceClaim, pod: PodInfo) -> bool:
    """Return whether a deleted claim had devices, or blocked this pod."""
    return gone.status.allocation is not None or owner_of_extended(gone) == pod.uid


def after_pod_left(gone: PodInfo | None, objects: DeviceObjects) -> QueueingHint:
    """Queue if the deleted pod has claims without devices, because its reserved devices are free now.

    No claim shows that if nothing was written. Devices in a claim's status become free with the change of the claim.
    """
    if not isinstance(gone, PodInfo):
        return QueueingHint.SKIP
    without = any(claim is not None and claim.status.allocation is None for _, claim, _ in each_claim(gone, objects.claims))
    if without or (objects.served(gone) and not any(True for _ in objects.claims.where(gone.uid))):
        return QueueingHint.QUEUE
    return QueueingHint.SKIP


def after_pod_change(pod: PodInfo, new: PodInfo | None, table: ClaimTable) -> QueueingHint:
    """Queue once all claims of the pod itself exist."""
    if not isinstance(new, PodInfo) or new.uid != pod.uid:
        return QueueingHint.SKIP
    try:
        claims_of(new, table)
    except NotReady:
        return QueueingHint.SKIP
    return QueueingHint.QUEUE
