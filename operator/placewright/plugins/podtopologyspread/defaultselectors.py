"""The pods that default constraints count: pods that the pod's Services and owner select."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from placewright.api.boundedcache import forgets_unasked
from placewright.api.bytecount import estimate_bytes, sample
from placewright.api.counts import add_count
from placewright.api.objects import OwnerReference
from placewright.api.pods import PodInfo
from placewright.api.selectors import EVERYTHING, Selector, SelectorError, selector_from_pairs
from placewright.api.workloads import ReplicaSet, ReplicationController, Service, StatefulSet
from placewright.cluster.objects import ClusterObjects
from placewright.cluster.selectorindex import SelectorIndex
from placewright.framework.memory import Memory

#: Most kinds of pods, over all namespaces; each takes about 500 bytes.
_MAX_LOOKS: Final = 16_384
#: Owners that kube-scheduler knows, by (apiVersion, kind).
_OWNERS: Final[dict[tuple[str, str], type[Any]]] = {
    ("v1", "ReplicationController"): ReplicationController,
    ("apps/v1", "ReplicaSet"): ReplicaSet,
    ("apps/v1", "StatefulSet"): StatefulSet,
}
_UNKNOWN: Final = 0
#: Copies of a selector: as read, compiled, and in the index.
_INDEXED: Final = 3


def owner_of(pod: PodInfo) -> OwnerReference | None:
    """Return the pod's controller, or None."""
    for owner in pod.pod.metadata.owner_references or ():
        if owner.controller:
            return owner
    return None


@dataclass(slots=True)
class _Namespace:
    """The Services of one namespace that select pods, and their selectors by label.

    selectors: selectors by name; `index` finds the ones that may select a pod.
        mentioned: keys of labels that these selectors read, and how many do.
        mentioned: keys of labels that these selectors name, and how many do.
        version: number that differs for any two states of any namespaces; 0 if no Service selects pods.
    """

    selectors: dict[str, Mapping[str, str]] = field(default_factory=dict)
    index: SelectorIndex[str] = field(default_factory=SelectorIndex)
    mentioned: Counter[str] = field(default_factory=Counter)
    version: int = 0

    @property
    def nbytes(self) -> int:
        """Bytes of the selectors, as read and in the index."""
        return _INDEXED * estimate_bytes(list(self.selectors.values()))

    def put(self, name: str, selector: Mapping[str, str] | None, version: int) -> None:
        """Set the selector of a Service; None if it has none, or was deleted."""
        before = self.selectors.get(name)
        if before == (selector or None):
            return
        self.version = version
        if before is not None:
            del self.selectors[name]
            self.index.discard(name)
            # `-=` on a Counter walks all of its keys, those of all Services of the namespace.
            for key in before:
                add_count(self.mentioned, key, -1)
        if selector:
            self.selectors[name] = selector
            self.index.add(name, None, selector_from_pairs(selector))
            self.mentioned.update(selector.keys())

    def selecting(self, labels: Iterable[tuple[str, str]]) -> Selector:
        """Combine the selectors of all Services that select a pod with these labels."""
        has = dict(labels)
        pairs: dict[str, str] = {}
        for name in self.index.meeting("", has.items()):
            wanted = self.selectors[name]
            if wanted.items() <= has.items():
                pairs.update(wanted)
        return selector_from_pairs(pairs)


#: Stands for every namespace without selecting Services; there may be many of them, that come and go.
_NO_SERVICES: Final = _Namespace()


class DefaultSelectors:
    """Default selectors by kind of pod.

    Invariant: after `_follow` each namespace with Services has their current selectors, with the version of their last change. `_changed`
    has the last change of each existing workload. Both are part of the key of `_known`, with the pod's labels that selectors read and its
    owner. So results of an earlier state are not found.
    """

    def __init__(self) -> None:
        self._objects = ClusterObjects()
        self._position = self._objects.changes.position
        self._namespaces: dict[str, _Namespace] = {}
        self._changed: dict[tuple[type[Any] | None, str], int] = {}
        self._known = Memory(_MAX_LOOKS)
        self._versions = itertools.count(1)
        forgets_unasked(self)

    @property
    def nbytes(self) -> int:
        """Bytes of the selectors of all Services; the cache counts itself."""
        return round(sum([number * each.nbytes for each, number in sample(list(self._namespaces.values()))]))

    def forget_unasked(self) -> None:
        """Take in deleted objects, although no pod asked since."""
        self._follow(self._objects)

    def of(self, pod: PodInfo, objects: ClusterObjects) -> Selector:
        """Return the selector of a pod's peers, ANDed from its Services and its owner; an empty one if there are none.

        Changes of `objects` since the last call are followed first.
        """
        if objects is not self._objects or objects.changes.position != self._position:
            self._follow(objects)
        owner = owner_of(pod) if pod.pod.metadata.owner_references else None
        here = self._namespaces.get(pod.namespace, _NO_SERVICES)
        if owner is None and here is _NO_SERVICES:
            return EVERYTHING
        labels = frozenset([pair for pair in pod.pairwise_key.labels if pair[0] in here.mentioned])
        if owner is None:
            return self._known.recall((here.version, labels), lambda: here.selecting(labels))
        kind, name = _OWNERS.get((owner.api_version, owner.kind)), f"{pod.namespace}/{owner.name}"
        changed = self._changed.get((kind, name), _UNKNOWN)
        return self._known.recall(
            (here.version, labels, kind, name, changed),
            lambda: Selector((*here.selecting(labels).expressions, *_owner_selector(kind, name, objects).expressions)),
        )

    def _follow(self, objects: ClusterObjects) -> None:
        changes = objects.changes.since(self._position) if objects is self._objects else None
        if changes is None:
            self._start(objects)
            return
        for position, (kind, key) in enumerate(changes, self._position + 1):
            if kind is Service:
                self._set_service(key, objects.services.get(key))
            elif kind in _OWNERS.values():
                self._changed.pop((kind, key), None)
                if key in objects.of_kind(kind):
                    self._changed[kind, key] = position
        self._position = objects.changes.position

    def _start(self, objects: ClusterObjects) -> None:
        self._objects, self._position = objects, objects.changes.position
        self._namespaces = {}
        for key, service in objects.services.items():
            self._set_service(key, service)
        self._changed = {(kind, key): self._position for kind in _OWNERS.values() for key in objects.of_kind(kind)}

    def _set_service(self, key: str, service: Service | None) -> None:
        namespace, _, name = key.partition("/")
        here = self._namespaces.get(namespace)
        if here is None:
            if service is None or not service.spec.selector:
                return
            here = self._namespaces[namespace] = _Namespace()
        here.put(name, None if service is None else service.spec.selector, next(self._versions))
        if not here.selectors:
            del self._namespaces[namespace]


def _owner_selector(kind: type[Any] | None, key: str, objects: ClusterObjects) -> Selector:
    if kind is None:
        return EVERYTHING
    owner = objects.of_kind(kind).get(key)
    if owner is None or owner.spec.selector is None:
        return EVERYTHING
    if kind is ReplicationController:
        return selector_from_pairs(owner.spec.selector)
    try:
        return objects.storage.selectors.of(kind, owner.metadata, owner.spec.selector)
    except SelectorError:  # kube-scheduler, too, continues without a selector that does not parse
        return EVERYTHING
