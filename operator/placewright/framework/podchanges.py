"""Changes of a pod as events: the kinds of change that plugins register for."""

from __future__ import annotations

from typing import Final

from placewright.api.objects import PodResourceClaimStatus
from placewright.api.pods import PodInfo
from placewright.framework.events import Action, ClusterEvent, EventResource

_SHORT: Final = {
    Action.UPDATE_POD_LABEL: "UpdateLabel",
    Action.UPDATE_POD_SCALE_DOWN: "UpdateScaleDown",
    Action.UPDATE_POD_GATES_ELIMINATED: "UpdateGatesEliminated",
    Action.UPDATE_POD_TOLERATION: "UpdateToleration",
    Action.UPDATE_POD_GENERATED_CLAIM: "UpdateGeneratedResourceClaim",
    Action.UPDATE_POD_TERMINATING: "UpdateTerminating",
    Action.UPDATE_OTHER: "Update",
}


def pod_update_events(old: PodInfo, new: PodInfo) -> list[ClusterEvent]:
    """Say what an update of a pod amounts to.

    Returns:
        One event for each kind of change, or one plain update; at least one. They are about an assigned pod if `new` is on a node.
    """
    resource = EventResource.ASSIGNED_POD if new.node_name else EventResource.UNSCHEDULED_POD
    return [ClusterEvent(resource, action, f"{resource}{_SHORT[action]}") for action in _changes(old, new)]


def same_version(old: PodInfo, new: PodInfo) -> bool:
    """Compare versions, so that an update which says nothing new is passed over.

    Returns:
        True if both have the same resourceVersion. False if it is empty, as in manifests that people write, because then the
        versions cannot be told apart.
    """
    version = new.pod.metadata.resource_version
    return bool(version) and version == old.pod.metadata.resource_version


def _changes(old: PodInfo, new: PodInfo) -> list[Action]:
    before, after = old.pod.spec, new.pod.spec
    found = [
        (old.labels != new.labels, Action.UPDATE_POD_LABEL),
        (_scaled_down(old, new), Action.UPDATE_POD_SCALE_DOWN),
        (bool(before.scheduling_gates) and not after.scheduling_gates, Action.UPDATE_POD_GATES_ELIMINATED),
        ((before.tolerations or ()) != (after.tolerations or ()), Action.UPDATE_POD_TOLERATION),
        (_made_claims(old) != _made_claims(new), Action.UPDATE_POD_GENERATED_CLAIM),
        (old.terminating != new.terminating, Action.UPDATE_POD_TERMINATING),
    ]
    return [action for changed, action in found if changed] or [Action.UPDATE_OTHER]


def _scaled_down(old: PodInfo, new: PodInfo) -> bool:
    return any(new.requests.get(name, 0) < amount for name, amount in old.requests.items())


def _made_claims(pod: PodInfo) -> tuple[PodResourceClaimStatus, ...]:
    return pod.pod.status.resource_claim_statuses or ()
