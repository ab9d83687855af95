"""Queueing hints of DynamicResources: which changes may help a rejected pod. Source: kube-scheduler `dynamicresources.go`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from placewright.api.devices import ResourceClaim, devices_of
from placewright.api.pods import PodInfo
from placewright.cluster.devices import DeviceObjects, owner_of_extended
from placewright.cluster.storage import key_of
from placewright.framework.events import Action, ClusterEventWithHint, EventKeys, EventResource, QueueingHint, event_with_hint
from placewright.plugins.dynamicresources.claims import NotReady, claims_of, each_claim, named_claims, reserved_for
from placewright.plugins.shared.hints import own_change, was_in_the_way

_NEW_OR_CHANGED = Action.ADD | Action.UPDATE


@dataclass(frozen=True, slots=True)
class DeviceHints:
    """The plugin's events, with hints that read the claims and classes at the time of an event.

    Attributes:
        takes_room: tells whether any device takes resources of its node.
    """

    objects: DeviceObjects
    takes_room: Callable[[], bool] = lambda: False

    def events(self) -> Sequence[ClusterEventWithHint]:
        """Declare the pod's claims, devices that become free, classes, slices and nodes."""
        return (
            event_with_hint(EventResource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_ALLOCATABLE),
            # Upstream ignores deleted claims, and tries such pods again only after minutes.
            event_with_hint(EventResource.RESOURCE_CLAIM, Action.ALL, self.after_claim_change, keys=CLAIM_KEYS),
            own_change(Action.UPDATE_POD_GENERATED_CLAIM, lambda _old, new: self._claims_of(new) is not None),
            # Upstream ignores deleted pods whose devices were reserved but never written, and tries pods that wait for them after minutes.
            event_with_hint(EventResource.ASSIGNED_POD, Action.DELETE, was_in_the_way(PodInfo, self._had_reserved_devices)),
            event_with_hint(EventResource.DEVICE_CLASS, _NEW_OR_CHANGED),
            event_with_hint(EventResource.RESOURCE_SLICE, _NEW_OR_CHANGED),
            # Upstream changes slices by the rules that taint them.
            event_with_hint(EventResource.DEVICE_TAINT_RULE, Action.ALL),
        )

    def _claims_of(self, pod: PodInfo) -> list[ResourceClaim] | None:
        """Return the pod's claims; None if not all exist."""
        try:
            return claims_of(pod, self.objects.claims)
        except NotReady:
            return None

    def after_claim_change(self, pod: PodInfo, old: ResourceClaim | None, new: ResourceClaim | None) -> QueueingHint:
        """Queue any pod if devices became free. Queue a pod whose claims all exist if one of them changed."""
        if new is None:
            return QueueingHint.when(old is not None and _frees(old, pod))
        if new.metadata.deletion_timestamp is not None and reserved_for(new, pod):
            return QueueingHint.QUEUE  # the pod's next attempt releases the claim
        claims = self._claims_of(pod)
        if claims is None:
            return QueueingHint.SKIP
        if old is not None and _loses_devices(old, new):
            return QueueingHint.QUEUE
        own = any(claim.metadata.uid == new.metadata.uid for claim in claims)
        return QueueingHint.when(own and (old is None or old.status != new.status))

    def _had_reserved_devices(self, _pod: PodInfo, gone: PodInfo) -> bool:
        """Return whether a deleted pod has claims without devices, because its reserved devices are free now.

        Any pod counts if devices take resources of nodes, because the waiting pod may lack these. No claim shows that if nothing was
        written. Devices in a claim's status become free with the change of the claim.
        """
        claims = self.objects.claims
        if self.takes_room():
            return True
        if any(claim is not None and claim.status.allocation is None for _, claim, _ in each_claim(gone, claims)):
            return True
        return bool(self.objects.served(gone)) and not any(True for _ in claims.where(gone.uid))


def keys_of_pod(pod: PodInfo) -> Iterator[str]:
    """Yield keys of the claims that the pod names so far. Claims of its extended resources have the key of the pod."""
    yield pod.uid
    yield from (f"{pod.namespace}/{name}" for name in named_claims(pod))


def keys_of_claim_change(old: ResourceClaim | None, new: ResourceClaim | None) -> tuple[str, ...] | None:
    """Return the keys of pods that name or own the claim; None, for all pods, if devices become free."""
    if new is not None:
        return None if old is not None and _loses_devices(old, new) else (key_of(new.metadata),)
    if old is None:
        return ()
    return None if old.status.allocation is not None else (owner_of_extended(old),)


#: Keys by which events of claims find the pods that they concern.
CLAIM_KEYS: Final = EventKeys(keys_of_pod, keys_of_claim_change)


def _loses_devices(before: ResourceClaim, new: ResourceClaim) -> bool:
    had, has = before.status.allocation, new.status.allocation
    return had is not None and (has is None or not set(devices_of(had)) <= set(devices_of(has)))


def _frees(gone: ResourceClaim, pod: PodInfo) -> bool:
    """Return whether a deleted claim had devices, or blocked this pod."""
    return gone.status.allocation is not None or owner_of_extended(gone) == pod.uid
