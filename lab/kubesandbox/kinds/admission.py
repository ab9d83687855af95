"""Admission of writes by type: defaults, status at creation, immutable fields, and the beginning of a deletion.

Other types pass unchanged. Volumes get the phase that the volume controller would give them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kubesandbox.controllers.claims import class_of, default_class
from kubesandbox.definitions.definitions import Definitions
from kubesandbox.devices.claimrules import check_pod_claims
from kubesandbox.devices.defaults import GROUP as DEVICES
from kubesandbox.devices.defaults import default_devices
from kubesandbox.devices.rules import check_spec, check_status
from kubesandbox.fields import forbidden as forbidden_field
from kubesandbox.fields import required
from kubesandbox.kinds.defaults import default
from kubesandbox.kinds.eventrules import check_event
from kubesandbox.kinds.podrules import admit_priority, check_tolerations, topology_of
from kubesandbox.resources import DEFINITIONS, EVENTS, NAMESPACES, PODS, STORAGE_CLASSES, VOLUME_CLAIMS, ResourceType
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
        self._prepare(resource, new, None, now)
        if resource.key == PODS:
            _begin_pod(resource, new, now)
        return self.definitions.establish(new, now) if resource.key == DEFINITIONS else new

    def on_update(self, resource: ResourceType, old: Object, new: Object, now: str, subresource: str) -> Object:
        """Return the object to store. Its status counts for definitions only. Raises ApiError 422."""
        if resource.custom:
            return self.definitions.admit(resource, new, old)
        if subresource:
            if subresource == "status" and resource.group == DEVICES:
                check_status(resource, new, old)
            return new
        self._prepare(resource, new, old, now)
        if resource.key == PODS:
            _check_pod_update(resource, old, new)
        elif resource.key == DEFINITIONS:
            return self.definitions.establish({**new, "status": old.get("status")}, now)
        return new

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

    def _prepare(self, resource: ResourceType, new: Object, old: Object | None, now: str) -> None:
        """Refuse or complete an object, and give it its defaults. The former object is None at creation."""
        if resource.key == PODS and old is None:
            admit_priority(resource, new, self.store)
            self._admit_topology(new)
        elif resource.key == PODS and old is not None:
            _keep_priority(old, new)
        elif resource.key == EVENTS and old is None:
            check_event(resource, new)
        elif resource.key == VOLUME_CLAIMS and old is None:
            self._admit_class(new)
        elif resource.group == DEVICES or resource.kind in ("PodGroup", "CompositePodGroup"):
            default_devices(resource.kind, new, now)
            check_spec(resource, new, old, self.store.content(NAMESPACES, "", new["metadata"].get("namespace", "")))
        default(resource.kind, new)

    def _admit_topology(self, pod: Object) -> None:
        """Give a pod that is created on a node the node's zone and region, which replace its own labels."""
        node = pod["spec"].get("nodeName")
        if node and (labels := topology_of(self.store, node)):
            pod["metadata"]["labels"] = {**(pod["metadata"].get("labels") or {}), **labels}

    def _admit_class(self, claim: Object) -> None:
        """Give a claim without the field for its class the cluster's default class, if there is one."""
        if class_of(claim) is None:
            name = default_class(each.object for each in self.store.listed(STORAGE_CLASSES))
            if name is not None:
                claim.setdefault("spec", {})["storageClassName"] = name


def _begin_pod(resource: ResourceType, pod: Object, now: str) -> None:
    """Refuse an invalid new pod, and show that a gated one waits."""
    spec = pod["spec"]
    containers = spec.get("containers") or ()
    faults = [] if containers else [required("spec.containers")]
    faults += [required(f"spec.containers[{at}].name") for at, each in enumerate(containers) if not each.get("name")]
    faults += [*check_pod_claims(spec), *check_tolerations(spec)]
    if spec.get("schedulingGates") and spec.get("nodeName"):
        faults.append(forbidden_field("spec.nodeName", "cannot be set until all schedulingGates have been cleared"))
    if faults:
        raise invalid(resource, pod["metadata"]["name"], faults)
    if spec.get("schedulingGates"):
        gated = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated", "lastProbeTime": None, "lastTransitionTime": now}
        pod["status"]["conditions"] = [{**gated, "message": "Scheduling is blocked due to non-empty scheduling gates"}]


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
