"""Admission of writes by type: defaults, status at creation, immutable fields, and the beginning of a deletion.

Types that need nothing of this pass through untouched. Volumes get the phase that the volume controller would give them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kubesandbox.controllers.claims import STORAGE_CLASSES, class_of, default_class
from kubesandbox.definitions.definitions import DEFINITIONS, Definitions
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
from kubesandbox.resources import GroupResource, ResourceType
from kubesandbox.status import Object, forbidden, invalid
from kubesandbox.storage.store import Store

PODS: Final[GroupResource] = ("", "pods")
EVENTS: Final[GroupResource] = ("", "events")
NAMESPACES: Final[GroupResource] = ("", "namespaces")
POD_GROUPS: Final[GroupResource] = ("scheduling.k8s.io", "podgroups")
PRIORITY_CLASSES: Final[GroupResource] = ("scheduling.k8s.io", "priorityclasses")
_PERMANENT_NAMESPACES: Final = frozenset({"default", "kube-system", "kube-public"})
#: Built-in types whose creators set status (kubelets register nodes with it); it is dropped elsewhere.
_STATUS_AT_CREATION: Final = frozenset({("", "nodes"), ("storage.k8s.io", "volumeattachments")})


@dataclass(frozen=True)
class Admission:
    """The rules by type; custom types have theirs in their definitions."""

    store: Store
    definitions: Definitions

    def on_create(self, resource: ResourceType, new: Object, now: str) -> Object:
        """The object to store. Raises ApiError 403 or 422."""
        if resource.has_status and resource.key not in _STATUS_AT_CREATION:
            new.pop("status", None)
        if resource.custom:
            return self.definitions.admit(resource, new, None)
        if resource.key == PODS:
            self._admit_priority(resource, new)
            self._admit_topology(new)
        elif resource.key == EVENTS:
            check_event(resource, new)
        elif resource.plural == "persistentvolumeclaims":
            self._admit_class(new)
        elif resource.group == DEVICES or resource.key == POD_GROUPS:
            default_devices(resource.kind, new, now)
            check_spec(resource, new, None, self._namespace(new))
        default(resource.kind, new)
        return self._with_first_status(resource, new, now)

    def on_update(self, resource: ResourceType, old: Object, new: Object, now: str, subresource: str) -> Object:
        """The object to store; its status counts for definitions only. Raises ApiError 422."""
        if resource.custom:
            return self.definitions.admit(resource, new, old)
        if subresource:
            if subresource == "status" and (resource.group == DEVICES or resource.key == POD_GROUPS):
                check_status(resource, new, old)
            return new
        if resource.key == PODS:
            _keep_priority(old, new)
        elif resource.group == DEVICES or resource.key == POD_GROUPS:
            default_devices(resource.kind, new, now)
            check_spec(resource, new, old, self._namespace(new))
        default(resource.kind, new)
        if resource.key == PODS:
            _check_pod_update(resource, old, new)
        elif resource.key == DEFINITIONS:
            return self.definitions.establish({**new, "status": old.get("status")}, now)
        return new

    def schema(self, resource: ResourceType) -> Object | None:
        """The schema of a custom type; None for built-in ones."""
        return self.definitions.schema(resource)

    def grace(self, resource: ResourceType, current: Object, asked: int | None) -> int:
        """Seconds between the request to delete and the end; 0 for all but running pods."""
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
        """The object as it waits for its end."""
        if resource.key != NAMESPACES:
            return marked
        return {**marked, "status": {**(marked.get("status") or {}), "phase": "Terminating"}}

    def _namespace(self, new: Object) -> Object | None:
        found = self.store.get(NAMESPACES, "", new["metadata"].get("namespace", ""))
        return None if found is None else found.object

    def _admit_priority(self, resource: ResourceType, pod: Object) -> None:
        classes = {each.name: each.object for each in self.store.listed(PRIORITY_CLASSES)}
        try:
            admit_priority(pod, classes)
        except PriorityRefused as refused:
            raise forbidden(resource, pod["metadata"]["name"], str(refused)) from refused

    def _admit_topology(self, pod: Object) -> None:
        """Give a pod that is created on a node the node's zone and region, which replace its own labels."""
        node = (pod.get("spec") or {}).get("nodeName")
        if node and (labels := topology_of(self.store, node)):
            pod["metadata"]["labels"] = {**(pod["metadata"].get("labels") or {}), **labels}

    def _admit_class(self, claim: Object) -> None:
        """A claim that says nothing about its class gets the cluster's default, if there is one."""
        spec = claim.get("spec")
        if isinstance(spec, dict) and class_of(claim) is None:
            name = default_class(each.object for each in self.store.listed(STORAGE_CLASSES))
            if name is not None:
                spec["storageClassName"] = name

    def _with_first_status(self, resource: ResourceType, new: Object, now: str) -> Object:
        if resource.key == PODS:
            _begin_pod(resource, new, now)
        elif resource.key == NAMESPACES:
            new.setdefault("spec", {})["finalizers"] = ["kubernetes"]
            new["status"] = {"phase": "Active"}
            new["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = new["metadata"]["name"]
        elif resource.plural == "persistentvolumes":
            bound = (new.get("spec") or {}).get("claimRef")
            new["status"] = {"phase": "Bound" if bound else "Available"}
        elif resource.plural == "persistentvolumeclaims":
            bound = (new.get("spec") or {}).get("volumeName")
            new["status"] = {"phase": "Bound" if bound else "Pending"}
        elif resource.key == DEFINITIONS:
            return self.definitions.establish(new, now)
        return new


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


def _keep_priority(old: Object, new: Object) -> None:
    """Keep the priority that admission resolved where an update leaves it out."""
    before, after = old.get("spec") or {}, new.get("spec") or {}
    for each in ("priority", "preemptionPolicy"):
        if after.get(each) is None and before.get(each) is not None:
            after[each] = before[each]


def _check_pod_update(resource: ResourceType, old: Object, new: Object) -> None:
    """A pod's spec is fixed, but for a few fields; gates may only go."""
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
