"""What a write must look like for its type: defaults, status at creation, what may not change, how deletion begins.

Types that need nothing of this pass through untouched. Custom resources are checked by their definition's schema.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from .resources import GroupResource, ResourceType
from .status import Object, forbidden, invalid

PODS: GroupResource = ("", "pods")
NAMESPACES: GroupResource = ("", "namespaces")
_PERMANENT_NAMESPACES = frozenset({"default", "kube-system", "kube-public"})
_STATUS_AT_CREATION = frozenset({("", "nodes"), ("storage.k8s.io", "volumeattachments")})
"""Built-in types whose creators set status (kubelets register nodes with it); it is dropped elsewhere."""


class Defaulting(Protocol):
    """Fills defaults of built-in kinds in place; may raise ApiError."""

    def __call__(self, resource: ResourceType, new: Object) -> None: ...


class CustomAdmission(Protocol):
    """Custom objects by their definitions."""

    def admit(self, resource: ResourceType, new: Object, old: Object | None) -> Object:
        """Prunes, defaults and checks; raises ApiError 422."""
        ...

    def schema(self, resource: ResourceType) -> Object | None:
        """The openAPIV3Schema of the type, if it has one."""
        ...


def _no_defaults(resource: ResourceType, new: Object) -> None:
    return


@dataclass
class Admission:
    """The rules by type. `defaulting` and `custom` are plugged in by the server."""

    defaulting: Defaulting = field(default=_no_defaults)
    custom: CustomAdmission | None = None

    def on_create(self, resource: ResourceType, new: Object, now: str) -> Object:
        """The object to store. Raises ApiError 403 or 422."""
        if resource.has_status and resource.key not in _STATUS_AT_CREATION:
            new.pop("status", None)
        if resource.custom and self.custom:
            return self.custom.admit(resource, new, None)
        self.defaulting(resource, new)
        if resource.key == PODS:
            _begin_pod(resource, new, now)
        elif resource.key == NAMESPACES:
            new.setdefault("spec", {})["finalizers"] = ["kubernetes"]
            new["status"] = {"phase": "Active"}
            new["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = new["metadata"]["name"]
        elif resource.plural in ("persistentvolumes", "persistentvolumeclaims"):
            new["status"] = {"phase": "Pending"}
        return new

    def on_update(self, resource: ResourceType, old: Object, new: Object, subresource: str) -> Object:
        """The object to store. Raises ApiError 422."""
        if resource.custom and self.custom:
            return self.custom.admit(resource, new, old)
        if not subresource:
            self.defaulting(resource, new)
            if resource.key == PODS:
                _check_pod_update(resource, old, new)
        return new

    def schema(self, resource: ResourceType) -> Object | None:
        """The schema of a custom type; None for built-in ones."""
        return self.custom.schema(resource) if self.custom and resource.custom else None

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


def _begin_pod(resource: ResourceType, new: Object, now: str) -> None:
    spec = new.get("spec") or {}
    containers = spec.get("containers")
    name = new["metadata"]["name"]
    if not isinstance(containers, list) or not containers:
        raise invalid(resource, name, [("spec.containers", "Required value")])
    for index, container in enumerate(containers):
        if not isinstance(container, dict) or not container.get("name"):
            raise invalid(resource, name, [(f"spec.containers[{index}].name", "Required value")])
    status: Object = {"phase": "Pending", "qosClass": _qos_class(containers + (spec.get("initContainers") or []))}
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


def _qos_class(containers: list[Object]) -> str:
    guaranteed, any_set = True, False
    for container in containers:
        resources = container.get("resources") or {}
        requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
        any_set = any_set or bool(requests or limits)
        for name in ("cpu", "memory"):
            if name not in limits or requests.get(name, limits[name]) != limits[name]:
                guaranteed = False
    if not any_set:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"


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


def _fixed_part(spec: Object, *, gated: bool) -> Object:
    free = {"activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds", "schedulingGates"}
    if gated:
        free |= {"nodeSelector", "affinity"}
    fixed = {key: value for key, value in spec.items() if key not in free}
    for part in ("containers", "initContainers"):
        if part in fixed:
            fixed[part] = [{**each, "image": None} for each in fixed[part]]
    return fixed
