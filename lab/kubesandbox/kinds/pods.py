"""The subresources of pods that a scheduler uses: binding and eviction, with the real server's rules.

Like in the real server, the node of a binding is not checked. It may be overcommitted, or missing.
"""

from __future__ import annotations

from typing import Any, Final

from kubesandbox.controllers.disruptions import Disruptions
from kubesandbox.kinds.podrules import topology_of
from kubesandbox.kinds.structure import check_structure
from kubesandbox.resources import PODS
from kubesandbox.status import ApiError, Object, bad_request, conflict, too_many_requests, unspecific
from kubesandbox.storage.metadata import NAMESPACE_MISMATCH, check_preconditions
from kubesandbox.storage.store import Stored
from kubesandbox.storage.writes import DeleteOptions, Writes

_FINISHED: Final = ("Succeeded", "Failed")


class PodOperations:
    """Binding and evicting, with `Writes`."""

    def __init__(self, writes: Writes, disruptions: Disruptions) -> None:
        self._writes = writes
        self._pods = writes.registry.served(PODS)
        self._disruptions = disruptions

    def bind(self, namespace: str, name: str, binding: object, *, through_pod: bool = True, dry_run: bool = False) -> None:
        """Put a pod on a node, together with the Binding's annotations and labels.

        A Binding with a Node as its target also brings that node's zone and region, which replace its own labels. A Binding in the
        namespace's `bindings`, for which `through_pod` is False, does not.

        Raises ApiError 400 and 422 for an invalid Binding, and 404 for an unknown pod. Raises 409 if the pod is bound, being deleted or
        gated. The same is raised if the Binding's uid or resourceVersion is not the pod's.
        """
        target, metadata = self._check_binding(namespace, name, binding)
        current = self._writes.current(self._pods, namespace, name)
        self._check_identity(name, current.object["metadata"], metadata)
        self._refuse_unbindable(current.object)
        if dry_run:
            return
        labels: dict[str, str] = {**(metadata.get("labels") or {})}
        if through_pod and target.get("kind") == "Node":
            labels |= topology_of(self._writes.store, target["name"])
        given = {"annotations": metadata.get("annotations") or {}, "labels": labels}
        bound = _bound(current.object, target["name"], given, self._writes.identity.now())
        self._writes.store.put(self._pods.key, namespace, name, bound)

    def evict(self, namespace: str, name: str, options: DeleteOptions) -> None:
        """Delete a pod unless a disruption budget forbids it. Raises ApiError 404, 409 and 429."""
        current = self._writes.current(self._pods, namespace, name)
        check_preconditions(self._pods, current.object, options.uid, options.version)
        if _counts_for_budgets(current.object):
            self._refuse_over_budget(namespace, current)
        self._writes.delete(self._pods, namespace, name, options)

    def _check_binding(self, namespace: str, name: str, binding: object) -> tuple[Object, Object]:
        """Return the target and the metadata of a valid Binding."""
        if not isinstance(binding, dict):
            raise bad_request("Binding: the body must be an object")
        if binding.get("kind", "Binding") != "Binding" or binding.get("apiVersion", "v1") != "v1":
            raise bad_request(f"{binding.get('kind')} in version {binding.get('apiVersion')} cannot be handled as a Binding")
        check_structure("Binding", binding, custom=False)
        metadata, target = binding.get("metadata") or {}, binding.get("target") or {}
        found = metadata.get("name")
        if found and found != name:
            raise bad_request("name in URL does not match name in Binding object")
        if metadata.get("namespace") and metadata["namespace"] != namespace:
            raise bad_request(NAMESPACE_MISMATCH)
        kind = target.get("kind") or "Node"
        if kind != "Node":
            raise unspecific(f'target.kind: Unsupported value: "{kind}": supported values: "Node", "<empty>"')
        if not target.get("name"):
            raise unspecific("target.name: Required value")
        return target, metadata

    def _check_identity(self, name: str, found: Object, wanted: Object) -> None:
        for what, field in (("UID", "uid"), ("ResourceVersion", "resourceVersion")):
            if wanted.get(field) and wanted[field] != found[field]:
                precondition = f"{what} in precondition: {wanted[field]}, {what} in object meta: {found[field]}"
                raise conflict(self._pods, name, f"Precondition failed: {precondition}")

    def _refuse_unbindable(self, pod: Object) -> None:
        metadata, spec = pod["metadata"], pod.get("spec") or {}
        name = metadata["name"]
        if "deletionTimestamp" in metadata:
            why = f"pod {name} is being deleted, cannot be assigned to a host"
        elif spec.get("nodeName"):
            why = f'pod {name} is already assigned to node "{spec["nodeName"]}"'
        elif spec.get("schedulingGates"):
            why = f"pod {name} has non-empty .spec.schedulingGates"
        else:
            return
        raise conflict(self._pods, name, why, "binding")

    def _refuse_over_budget(self, namespace: str, pod: Stored) -> None:
        budgets = self._disruptions.covering(namespace, pod.object)
        if len(budgets) > 1:
            raise ApiError(
                500,
                "InternalError",
                "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
            )
        for budget in budgets:
            name, found = budget.object["metadata"]["name"], budget.object.get("status") or {}
            if found.get("disruptionsAllowed", 0) > 0:
                continue
            why = (
                f"The disruption budget {name} needs {found.get('desiredHealthy', 0)} healthy pods"
                f" and has {found.get('currentHealthy', 0)} currently"
            )
            cause = {"reason": "DisruptionBudget", "message": why}
            raise too_many_requests("Cannot evict pod as it would violate the pod's disruption budget.", causes=[cause])


def _bound(pod: Object, node: str, given: dict[str, dict[str, str]], now: str) -> Object:
    """Return a new pod object that shares with the old one everything that a binding keeps.

    `given` are labels and annotations, which replace the pod's. The generation stays, and the nomination ends.
    """
    metadata: dict[str, Any] = {**pod["metadata"]}
    for part, added in given.items():
        if added:
            metadata[part] = {**(metadata.get(part) or {}), **added}
    status = {key: value for key, value in (pod.get("status") or {}).items() if key != "nominatedNodeName"}
    conditions = _scheduled(status.get("conditions") or [], now)
    return {**pod, "metadata": metadata, "spec": {**pod["spec"], "nodeName": node}, "status": {**status, "conditions": conditions}}


def _scheduled(conditions: list[Object], now: str) -> list[Object]:
    """Return the conditions of a pod that has a node, with PodScheduled in its old place."""
    scheduled = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": now}
    kinds = [each.get("type") for each in conditions]
    if "PodScheduled" not in kinds:
        return [*conditions, scheduled]
    place = kinds.index("PodScheduled")
    if conditions[place].get("status") == "True":
        scheduled["lastTransitionTime"] = conditions[place].get("lastTransitionTime")
    return [*conditions[:place], scheduled, *conditions[place + 1 :]]


def _counts_for_budgets(pod: Object) -> bool:
    """Return False for pods that do not run yet, have finished or are being deleted, which may always be evicted."""
    phase = (pod.get("status") or {}).get("phase")
    running = phase not in (*_FINISHED, "Pending")
    return running and "deletionTimestamp" not in pod["metadata"]
