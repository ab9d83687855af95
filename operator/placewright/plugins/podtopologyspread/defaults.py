"""The selector of default constraints: what the Services that select a pod and its owner have in common."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Final

from placewright.api.objects import KubeObject, OwnerReference
from placewright.api.pods import PodInfo
from placewright.api.selectors import Selector, SelectorError, compile_label_selector, selector_from_pairs
from placewright.api.workloads import SelectingWorkload, Service
from placewright.cluster.objects import ClusterObjects

_NOTHING: Final = Selector(())


def owner_of(pod: PodInfo) -> OwnerReference | None:
    """The pod's controller, or None."""
    for owner in pod.pod.metadata.owner_references or ():
        if owner.controller:
            return owner
    return None


class DefaultSelectors:
    """Default selectors by pod look, forgotten when a Service or workload changes."""

    def __init__(self) -> None:
        self._objects: ClusterObjects | None = None
        self._version = -1
        self._seen: list[list[KubeObject]] = []
        self._services: dict[str, list[Mapping[str, str]]] = {}
        self._known: dict[Hashable, Selector] = {}

    def of(self, pod: PodInfo, objects: ClusterObjects) -> Selector:
        """The selector for this pod; an empty one when nothing selects or owns it."""
        if objects.version != self._version or objects is not self._objects:
            self._look_again(objects)
        owner = owner_of(pod) if pod.pod.metadata.owner_references else None
        if owner is None and not self._services.get(pod.namespace):
            return _NOTHING
        key = (pod.pairwise_key.namespace, pod.pairwise_key.labels, owner and (owner.kind, owner.name, owner.api_version))
        selector = self._known.get(key)
        if selector is None:
            selector = self._known[key] = self._select(pod, owner, objects)
        return selector

    def _look_again(self, objects: ClusterObjects) -> None:
        self._objects, self._version = objects, objects.version
        before = self._seen
        self._seen = [
            [*objects.services.values()],
            [*objects.replication_controllers.values()],
            [*objects.replica_sets.values()],
            [*objects.stateful_sets.values()],
        ]
        if before == self._seen:  # something else changed
            return
        self._known.clear()
        self._services = {}
        for service in objects.services.values():
            if service.spec.selector:
                self._services.setdefault(service.metadata.namespace, []).append(service.spec.selector)

    def _select(self, pod: PodInfo, owner: OwnerReference | None, objects: ClusterObjects) -> Selector:
        pairs: dict[str, str] = {}
        for wanted in self._services.get(pod.namespace, ()):
            if all(pod.labels.get(key) == value for key, value in wanted.items()):
                pairs.update(wanted)
        selected = selector_from_pairs(pairs)
        if owner is None:
            return selected
        return Selector((*selected.expressions, *_owner_selector(owner, pod.namespace, objects).expressions))


def _owner_selector(owner: OwnerReference, namespace: str, objects: ClusterObjects) -> Selector:
    name = f"{namespace}/{owner.name}"
    match (owner.api_version, owner.kind):
        case ("v1", "ReplicationController"):
            controller: Service | None = objects.replication_controllers.get(name)
            return selector_from_pairs((controller.spec.selector if controller else None) or {})
        case ("apps/v1", "ReplicaSet"):
            return _workload_selector(objects.replica_sets.get(name))
        case ("apps/v1", "StatefulSet"):
            return _workload_selector(objects.stateful_sets.get(name))
    return _NOTHING


def _workload_selector(workload: SelectingWorkload | None) -> Selector:
    if workload is None or workload.spec.selector is None:
        return _NOTHING
    try:
        return compile_label_selector(workload.spec.selector)
    except SelectorError:  # kube-scheduler too goes on without a selector that does not parse
        return _NOTHING
