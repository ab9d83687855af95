"""Admission of writes by type: defaults, status at creation, immutable fields, and the beginning of a deletion.

Other types pass unchanged. Volumes get the phase that the volume controller would give them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from kubesandbox.controllers.claims import class_of, default_class
from kubesandbox.definitions.definitions import Definitions
from kubesandbox.devices.claimrules import check_pod_claims
from kubesandbox.devices.defaults import GROUP as DEVICES
from kubesandbox.devices.defaults import default_devices
from kubesandbox.devices.rules import check_spec, check_status
from kubesandbox.kinds.defaults import default, qos_class
from kubesandbox.kinds.eventrules import check_event
from kubesandbox.kinds.podrules import (
    PriorityRefused,
    admit_priority,
    check_tolerations,
    topology_of,
)
from kubesandbox.resources import DEFINITIONS, NAMESPACES, PODS, PRIORITY_CLASSES, STORAGE_CLASSES, ResourceType
from kubesandbox.status import Object, forbidden, invalid
from kubesandbox.storage.store import Store

_PERMANENT_NAMESPACES: Final = frozenset({"default", "kube-system", "kube-public"})
#: Built-in types whose creators set status, like kubelets for nodes. Creations of other types lose it.
_STATUS_AT_CREATION: Final = frozenset({("", "nodes"), ("storage.k8s.io", "volumeattachments")})


@dataclass(frozen=True)
class Admission:
    """The rules by type. Definitions have the rules of custom types."""

    store: Store
    definitions: Definitions

    def on_create(self, resource: ResourceType, new: Object, now: str) -> Object:
        """Return the object to store. Raises ApiError 403 or 422."""
        if resource.has_status and resource.key not in _STATUS_AT_CREATION:
            new.pop("status", None)
        if resource.custom:
            return self.definitions.admit(resource, new, None)
        if resource.kind in _PREPARE:
            _PREPARE[resource.kind](self, resource, new, None, now)
        default(resource.kind, new)
        if resource.kind in _BEGIN:
            _BEGIN[resource.kind](resource, new, now)
        return self.definitions.establish(new, now) if resource.key == DEFINITIONS else new

    def on_update(self, resource: ResourceType, old: Object, new: Object, now: str, subresource: str) -> Object:
        """Return the object to store. Its status counts for definitions only. Raises ApiError 422."""
        if resource.custom:
            return self.definitions.admit(resource, new, old)
        if subresource:
            if subresource == "status" and resource.group == DEVICES:
                check_status(resource, new, old)
            return new
        if resource.kind in _PREPARE:
            _PREPARE[resource.kind](self, resource, new, old, now)
        default(resource.kind, new)
        if resource.key == PODS:
            _check_pod_update(resource, old, new)
        elif resource.key == DEFINITIONS:
            return self.definitions.establish({**new, "status": old.get("status")}, now)
        return new

    def schema(self, resource: ResourceType) -> Object | None:
        """Return the schema of a custom type, or None for a built-in one."""
        return self.definitions.schema(resource)

    def grace(self, resource: ResourceType, current: Object, asked: int | None) -> int:
        """Return the seconds from the request to delete to the end, 0 for all except running pods."""
        if resource.key == NAMESPACES and current["metadata"]["name"] in _PERMANENT_NAMESPACES:
            raise forbidden(resource, current["metadata"]["name"], "this namespace may not be deleted")
        if resource.key != PODS:
            return 0
        spec, status = current.get("spec") or {}, current.get("status") or {}
        if not spec.get("nodeName") or status.get("phase") in ("Succeeded", "Failed"):
            return 0
        default = spec.get("terminationGracePeriodSeconds")
        wanted = asked if asked is not None else 30 if default is None else default
        return max(0, int(wanted))

    def on_deletion_begun(self, resource: ResourceType, marked: Object) -> Object:
        """Return the object in the state in which it waits for its end."""
        if resource.key != NAMESPACES:
            return marked
        return {**marked, "status": {**(marked.get("status") or {}), "phase": "Terminating"}}

    def _prepare_pod(self, resource: ResourceType, pod: Object, old: Object | None, _now: str) -> None:
        if old is not None:
            _keep_priority(old, pod)
            return
        classes = {each.name: each.object for each in self.store.listed(PRIORITY_CLASSES)}
        try:
            admit_priority(pod, classes)
        except PriorityRefused as refused:
            raise forbidden(resource, pod["metadata"]["name"], str(refused)) from refused
        self._admit_topology(pod)

    def _prepare_devices(self, resource: ResourceType, new: Object, old: Object | None, now: str) -> None:
        default_devices(resource.kind, new, now)
        check_spec(resource, new, old, self.store.content(NAMESPACES, "", new["metadata"].get("namespace", "")))

    def _admit_topology(self, pod: Object) -> None:
        """Give a pod that is created on a node the node's zone and region, which replace its own labels."""
        node = (pod.get("spec") or {}).get("nodeName")
        if node and (labels := topology_of(self.store, node)):
            pod["metadata"]["labels"] = {**(pod["metadata"].get("labels") or {}), **labels}

    def _prepare_claim(self, _resource: ResourceType, claim: Object, old: Object | None, _now: str) -> None:
        """Give a new claim without the field for its class the cluster's default class, if there is one."""
        spec = claim.get("spec")
        if old is None and isinstance(spec, dict) and class_of(claim) is None:
            name = default_class(each.object for each in self.store.listed(STORAGE_CLASSES))
            if name is not None:
                spec["storageClassName"] = name


def _prepare_event(_admission: Admission, resource: ResourceType, event: Object, old: Object | None, _now: str) -> None:
    if old is None:
        check_event(resource, event)


#: Function that refuses or completes an object before it gets defaults. The former object is None at creation.
_PREPARE: Final[Mapping[str, Callable[[Admission, ResourceType, Object, Object | None, str], None]]] = {
    "Pod": Admission._prepare_pod,  # noqa: SLF001 - a part of the class
    "PersistentVolumeClaim": Admission._prepare_claim,  # noqa: SLF001 - a part of the class
    "Event": _prepare_event,
    **dict.fromkeys(
        ("ResourceClaim", "ResourceClaimTemplate", "ResourceSlice", "DeviceClass", "DeviceTaintRule", "PodGroup"),
        Admission._prepare_devices,  # noqa: SLF001 - a part of the class
    ),
}


def _begin_namespace(_resource: ResourceType, new: Object, _now: str) -> None:
    new.setdefault("spec", {})["finalizers"] = ["kubernetes"]
    new["status"] = {"phase": "Active"}
    new["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = new["metadata"]["name"]


def _begin_volume(_resource: ResourceType, new: Object, _now: str) -> None:
    new["status"] = {"phase": "Bound" if (new.get("spec") or {}).get("claimRef") else "Available"}


def _begin_claim(_resource: ResourceType, new: Object, _now: str) -> None:
    new["status"] = {"phase": "Bound" if (new.get("spec") or {}).get("volumeName") else "Pending"}


def _begin_pod(resource: ResourceType, new: Object, now: str) -> None:
    spec = new.get("spec") or {}
    containers = spec.get("containers")
    name = new["metadata"]["name"]
    if not isinstance(containers, list) or not containers:
        raise invalid(resource, name, [("spec.containers", "Required value")])
    for index, container in enumerate(containers):
        if not isinstance(container, dict) or not container.get("name"):
            raise invalid(resource, name, [(f"spec.containers[{index}].name", "Required value")])
    if faults := [*check_pod_claims(spec), *check_tolerations(spec)]:
        raise invalid(resource, name, faults)
    status: Object = {"phase": "Pending", "qosClass": qos_class(spec)}
    if spec.get("schedulingGates"):
        if spec.get("nodeName"):
            raise invalid(
                resource,
                name,
                [("spec.nodeName", "Forbidden: cannot be set until all schedulingGates have been cleared")],
            )
        status["conditions"] = [
            {
                "type": "PodScheduled",
                "status": "False",
                "reason": "SchedulingGated",
                "message": "Scheduling is blocked due to non-empty scheduling gates",
                "lastProbeTime": None,
                "lastTransitionTime": now,
            }
        ]
    new["status"] = status


#: Function that writes the first status of a created object.
_BEGIN: Final[Mapping[str, Callable[[ResourceType, Object, str], None]]] = {
    "Pod": _begin_pod,
    "Namespace": _begin_namespace,
    "PersistentVolume": _begin_volume,
    "PersistentVolumeClaim": _begin_claim,
}


def _keep_priority(old: Object, new: Object) -> None:
    """Keep the priority from admission if an update leaves it out."""
    before, after = old.get("spec") or {}, new.get("spec") or {}
    for each in ("priority", "preemptionPolicy"):
        if after.get(each) is None and before.get(each) is not None:
            after[each] = before[each]


def _check_pod_update(resource: ResourceType, old: Object, new: Object) -> None:
    """Refuse new gates, and changes of a pod's spec beyond a few fields."""
    before, after = old.get("spec") or {}, new.get("spec") or {}
    name = old["metadata"]["name"]
    old_gates = {gate.get("name") for gate in before.get("schedulingGates") or []}
    added = [gate for gate in after.get("schedulingGates") or [] if gate.get("name") not in old_gates]
    if added:
        raise invalid(resource, name, [("spec.schedulingGates", "Forbidden: only deletion is allowed")])
    if _fixed_part(before, gated=bool(old_gates)) != _fixed_part(after, gated=bool(old_gates)):
        why = (
            "Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
            "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations`,"
            "`spec.terminationGracePeriodSeconds`,`spec.schedulingGates`"
        )
        raise invalid(resource, name, [("spec", why)])
    if faults := list(check_tolerations(after)):
        raise invalid(resource, name, faults)


def _fixed_part(spec: Object, *, gated: bool) -> Object:
    free = {"activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds", "schedulingGates"}
    if gated:
        free |= {"nodeSelector", "affinity"}
    fixed = {key: value for key, value in spec.items() if key not in free}
    for part in ("containers", "initContainers"):
        if part in fixed:
            fixed[part] = [{**each, "image": None} for each in fixed[part]]
    return fixed
