"""Which Services select a pod."""

from __future__ import annotations

from typing import Final

from placewright.api.pods import PodInfo
from placewright.api.workloads import Service
from placewright.cluster.objects import ClusterObjects
from placewright.plugins.shared.memory import Memory

_MAX_LOOKS: Final = 4096


class PodServices:
    """The Services of pods, by look; forgotten when a Service changes."""

    def __init__(self) -> None:
        self._objects: ClusterObjects | None = None
        self._version = -1
        self._seen: list[Service] = []
        self._by_namespace: dict[str, list[Service]] = {}
        self._known = Memory(_MAX_LOOKS)

    def of(self, pod: PodInfo, objects: ClusterObjects) -> tuple[Service, ...]:
        """Those that select this pod, by name; kube-scheduler has them in no order."""
        if objects.version != self._version or objects is not self._objects:
            self._look_again(objects)
        if pod.namespace not in self._by_namespace:
            return ()
        return self._known.recall((pod.namespace, pod.pairwise_key.labels), lambda: self._select(pod))

    def _look_again(self, objects: ClusterObjects) -> None:
        self._objects, self._version = objects, objects.version
        before, self._seen = self._seen, [*objects.services.values()]
        if before == self._seen:  # something else changed
            return
        self._known.forget()
        self._by_namespace = {}
        for service in sorted(self._seen, key=lambda service: service.metadata.name):
            self._by_namespace.setdefault(service.metadata.namespace, []).append(service)

    def _select(self, pod: PodInfo) -> tuple[Service, ...]:
        return tuple(service for service in self._by_namespace[pod.namespace] if selects(service, pod))


def selects(service: Service, pod: PodInfo) -> bool:
    """True when the Service's selector matches the pod's labels; one without a selector selects nothing."""
    wanted = service.spec.selector
    same_namespace = service.metadata.namespace == pod.namespace
    return same_namespace and bool(wanted) and (wanted or {}).items() <= pod.labels.items()
