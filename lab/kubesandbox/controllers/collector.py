"""Garbage collection: the contents of a deleted namespace, and the dependents of a deleted owner.

Dependents are collected after their last owner is deleted. Unlike on a real cluster, an object whose owner never existed stays, because
tests and replays make such pods.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress

from kubesandbox.resources import NAMESPACES, GroupResource, ResourceType
from kubesandbox.status import ApiError, Object
from kubesandbox.storage.store import Change, Stored
from kubesandbox.storage.writes import DeleteOptions, Writes

_Place = tuple[GroupResource, str, str]


class Collector:
    """Listens to every change, and acts a moment later, after the answer to the write."""

    def __init__(self, writes: Writes) -> None:
        self._writes = writes
        self._store = writes.store
        self._dependents: defaultdict[str, set[_Place]] = defaultdict(set)
        self._ending: set[str] = set()
        self._store.listeners.append(self._on_change)

    def _on_change(self, key: GroupResource, change: Change) -> None:
        current, previous = change.current, change.previous
        if current is not None:
            for owner in current.object["metadata"].get("ownerReferences") or ():
                self._dependents[str(owner.get("uid"))].add((key, current.namespace, current.name))
            if key == NAMESPACES and "deletionTimestamp" in current.object["metadata"]:
                self._end(current.name)
        elif previous is not None:
            if previous.uid in self._dependents:
                _soon(self._collect, previous.uid)
            if previous.namespace in self._ending:
                _soon(self._finish, previous.namespace)

    def _collect(self, owner: str) -> None:
        orphaned = owner in self._writes.orphaned
        self._writes.orphaned.discard(owner)
        for key, namespace, name in self._dependents.pop(owner, set()):
            found = self._store.get(key, namespace, name)
            resource = self._type_of(key)
            if found is None or resource is None or owner not in _owners(found.object):
                continue
            if orphaned:
                self._writes.modify(resource, namespace, name, lambda content: _disown(content, owner))
            elif not self._has_other_owner(found.object, owner):
                self._delete(resource, found)

    def _has_other_owner(self, content: Object, gone: str) -> bool:
        namespace = content["metadata"].get("namespace", "")
        for owner in content["metadata"].get("ownerReferences") or ():
            resource = self._writes.registry.by_kind(str(owner.get("apiVersion")), str(owner.get("kind")))
            if resource is None or owner.get("uid") == gone:
                continue
            scope = namespace if resource.namespaced else ""
            found = self._store.get(resource.key, scope, str(owner.get("name")))
            if found is not None and found.uid == owner.get("uid"):
                return True
        return False

    def _end(self, namespace: str) -> None:
        if namespace not in self._ending:
            self._ending.add(namespace)
            _soon(self._empty, namespace)

    def _empty(self, namespace: str) -> None:
        for key in self._store.types():
            resource = self._type_of(key)
            if resource is not None and resource.namespaced:
                for each in self._store.listed(key, namespace):
                    self._delete(resource, each)
        self._finish(namespace)

    def _finish(self, namespace: str) -> None:
        if namespace not in self._ending:
            return
        if any(namespace in self._store.collection(key).namespaces for key in self._store.types()):
            return
        found = self._store.get(NAMESPACES, "", namespace)
        if found is None or found.object["metadata"].get("finalizers"):
            return
        self._ending.discard(namespace)
        self._store.remove(NAMESPACES, "", namespace)

    def _delete(self, resource: ResourceType, found: Stored) -> None:
        with suppress(ApiError):  # deleted meanwhile
            self._writes.delete(resource, found.namespace, found.name, DeleteOptions(uid=found.uid))

    def _type_of(self, key: GroupResource) -> ResourceType | None:
        return next(iter(self._writes.registry.stored_as(key)), None)


def _soon(act: Callable[[str], None], argument: str) -> None:
    asyncio.get_running_loop().call_soon(act, argument)


def _owners(content: Object) -> list[str]:
    return [str(owner.get("uid")) for owner in content["metadata"].get("ownerReferences") or ()]


def _disown(content: Object, owner: str) -> None:
    metadata = content["metadata"]
    kept = [each for each in metadata.get("ownerReferences") or () if each.get("uid") != owner]
    metadata["ownerReferences"] = kept
    if not kept:
        del metadata["ownerReferences"]
