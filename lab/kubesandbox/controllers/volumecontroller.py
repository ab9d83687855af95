"""Gives claims their volumes, like kube-controller-manager's volume controller and external provisioners.

Claims whose class binds at once get a volume at once. Other claims wait for their consumer. They get a volume after the scheduler has named
the claim in a volume, or the node on the claim. The volume of a deleted claim is released, or deleted with it. Volumes are not attached,
resized or protected.

A controller's queue of objects. A write adds its object, and the controller handles it a moment later, in batches.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Final

from kubesandbox.controllers.claims import (
    BIND_COMPLETED,
    NO_PROVISIONER,
    SELECTED_NODE,
    annotate,
    annotations_of,
    best_volume,
    class_of,
    default_class,
    drop_selected_node,
    forget_claim,
    name_claim,
    name_volume,
    reference_of,
    satisfies,
    waits_for_consumer,
)
from kubesandbox.controllers.provisioner import Place, made_volume, place_for_anybody, place_on_node, topology_keys
from kubesandbox.resources import NODES, STORAGE_CLASSES, VOLUME_CLAIMS, GroupResource
from kubesandbox.status import ApiError, Object
from kubesandbox.storage.store import Change, Store
from kubesandbox.storage.writes import DeleteOptions, Writes

#: Objects of each type in one batch, after which requests get their turn again.
BATCH: Final = 200
#: Namespace and name, with an empty namespace for cluster-scoped objects.
Key = tuple[str, str]
_logger = logging.getLogger(__name__)


class Backlog:
    """Objects by name, each once, in the order in which they were added.

    Objects are stored unchecked, so the failure for one is logged, and does not stop the others.

    Args:
        store: store with the current state of each object; an object that is gone is skipped.
        syncs: work of the controller by type; the types take turns in this order.
    """

    def __init__(self, store: Store, syncs: Mapping[GroupResource, Callable[[Object], None]]) -> None:
        self._store = store
        self._syncs = syncs
        #: Dicts that serve as ordered sets.
        self._due: dict[GroupResource, dict[Key, None]] = {each: {} for each in syncs}
        self._working = False

    def add(self, resource: GroupResource, keys: Iterable[Key]) -> None:
        """Handle these objects soon."""
        self._due[resource].update(dict.fromkeys(keys))
        self._wake()

    def _wake(self) -> None:
        if not self._working and any(self._due.values()):
            self._working = True
            asyncio.get_running_loop().call_soon(self._work)

    def _work(self) -> None:
        for resource, due in self._due.items():
            for key in list(islice(due, BATCH)):
                del due[key]
                self._sync(resource, key)
        self._working = False
        self._wake()

    def _sync(self, resource: GroupResource, key: Key) -> None:
        stored = self._store.get(resource, *key)
        try:
            if stored is not None:
                self._syncs[resource](stored.object)
        except (ApiError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as problem:
            _logger.warning("%s %s is left as it is: %r", resource[1], "/".join(filter(None, key)), problem)


VOLUMES: Final[GroupResource] = ("", "persistentvolumes")
CSI_NODES: Final[GroupResource] = ("storage.k8s.io", "csinodes")
_STORAGE_PROVISIONERS: Final = ("volume.beta.kubernetes.io/storage-provisioner", "volume.kubernetes.io/storage-provisioner")


class VolumeController:
    """Listens to claims, volumes and classes, and acts a moment later, after the answer to the write."""

    def __init__(self, writes: Writes) -> None:
        self._writes = writes
        self._store = writes.store
        self._claims = writes.registry.served(VOLUME_CLAIMS)
        self._volumes = writes.registry.served(VOLUMES)
        self._waiting = _Waiting()
        #: Volumes that name a claim by that claim, and free volumes by class.
        self._named: defaultdict[Key, set[str]] = defaultdict(set)
        self._free: defaultdict[str, set[str]] = defaultdict(set)
        self._backlog = Backlog(self._store, {VOLUME_CLAIMS: self._sync_claim, VOLUMES: self._sync_volume})
        self._store.collection(VOLUME_CLAIMS).listeners.append(self._on_claim)
        self._store.collection(VOLUMES).listeners.append(self._on_volume)
        self._store.collection(STORAGE_CLASSES).listeners.append(self._on_class)

    # --- objects to process ---

    def _on_claim(self, change: Change) -> None:
        claim = change.current or change.departed
        key = (claim.namespace, claim.name)
        self._waiting.drop(key)
        if change.current is not None and BIND_COMPLETED not in annotations_of(claim.object):
            self._waiting.add(key, claim.object)
        asked = str(claim.object["spec"].get("volumeName") or "")
        self._look_at([key], sorted({asked, *self._named.get(key, ())} - {""}))

    def _on_volume(self, change: Change) -> None:
        volume = change.current or change.departed
        keys = self._waiting.for_volume(volume.name)
        if change.previous is not None:
            keys += self._note(change.previous.object, known=False)
        if change.current is not None:
            keys += self._note(change.current.object, known=True)
            storage_class = class_of(volume.object) or ""
            if reference_of(volume.object) is None and not waits_for_consumer(self._class(storage_class)):
                keys += self._waiting.for_class(storage_class)
        self._look_at(keys, [volume.name])

    def _note(self, volume: Object, *, known: bool) -> list[Key]:
        """Remember or forget the claim of a volume. Return the claim that it names, if any."""
        reference, name = reference_of(volume), volume["metadata"]["name"]
        key = (reference.namespace, reference.name) if reference is not None else None
        names = self._free[class_of(volume) or ""] if key is None else self._named[key]
        if known:
            names.add(name)
        else:
            names.discard(name)
            if key is not None and not names:
                del self._named[key]
        return [] if key is None else [key]

    def _on_class(self, change: Change) -> None:
        if change.current is not None:
            self._look_at(self._waiting.for_class(change.current.name) + self._waiting.for_class(""), [])

    def _look_at(self, claims: Iterable[Key], volumes: Iterable[str]) -> None:
        self._backlog.add(VOLUME_CLAIMS, claims)
        self._backlog.add(VOLUMES, (("", name) for name in volumes))

    # --- claims ---

    def _sync_claim(self, claim: Object) -> None:
        if BIND_COMPLETED in annotations_of(claim):
            self._bound_claim(claim)
        else:
            self._unbound_claim(claim)

    def _unbound_claim(self, claim: Object) -> None:
        asked = claim["spec"].get("volumeName")
        if asked:
            volume = self._volume(str(asked))
            if volume is not None and _may_have(claim, volume):
                self._bind(claim, volume)
        elif class_of(claim) is not None or not self._give_default_class(claim):  # the change of the claim leads here again
            self._find_or_make(claim, self._class(class_of(claim)))

    def _find_or_make(self, claim: Object, storage_class: Object | None) -> None:
        """Return the volume that the claim has a right to, or a free one, or a new one. The scheduler may have to choose it."""
        names = {*self._named.get(_key(claim), ())}
        if not waits_for_consumer(storage_class):
            names |= self._free.get(class_of(claim) or "", set())
        volume = best_volume(claim, (each for name in sorted(names) if (each := self._volume(name)) is not None))
        if volume is not None:
            self._bind(claim, volume)
        elif storage_class is not None and storage_class.get("provisioner") != NO_PROVISIONER:
            self._provision(claim, storage_class)

    def _provision(self, claim: Object, storage_class: Object) -> None:
        place = self._place(claim, storage_class)
        if place is None:
            return
        made = made_volume(claim, storage_class, place)
        self._writes.modify(self._claims, *_key(claim), lambda new: annotate(new, _STORAGE_PROVISIONERS, storage_class["provisioner"]))
        if self._volume(made["metadata"]["name"]) is None:
            self._writes.create(self._volumes, "", made)

    def _place(self, claim: Object, storage_class: Object) -> Place | None:
        """Return the place of the claim's new volume, or None if it is not known yet."""
        if not waits_for_consumer(storage_class):
            return place_for_anybody(claim, storage_class, (each.object for each in self._store.listed(NODES)))
        selected = annotations_of(claim).get(SELECTED_NODE)
        node = self._store.get(NODES, "", selected) if selected else None
        if node is None:
            if selected:  # the node is gone, so the scheduler has to select another
                self._writes.modify(self._claims, *_key(claim), drop_selected_node)
            return None
        csi_node = self._store.get(CSI_NODES, "", node.name)
        keys = topology_keys(csi_node.object if csi_node else None, str(storage_class["provisioner"]))
        return place_on_node(node.object["metadata"].get("labels") or {}, keys)

    def _give_default_class(self, claim: Object) -> bool:
        name = default_class(each.object for each in self._store.listed(STORAGE_CLASSES))
        if name is None:
            return False
        self._writes.modify(self._claims, *_key(claim), lambda new: new["spec"].update(storageClassName=name))
        return True

    def _bound_claim(self, claim: Object) -> None:
        """Keep a claim bound, or mark it lost if its volume is gone or another claim's."""
        volume = self._volume(str(claim["spec"].get("volumeName") or ""))
        reference = reference_of(volume) if volume is not None else None
        if volume is None or (reference is not None and not reference.names(claim)):
            self._writes.modify(self._claims, *_key(claim), lambda new: new.setdefault("status", {}).update(phase="Lost"))
        else:
            self._bind(claim, volume)

    def _bind(self, claim: Object, volume: Object) -> None:
        """Write the volume, then the claim, unless they are bound already."""
        meta, name = claim["metadata"], volume["metadata"]["name"]
        chosen_here = reference_of(volume) is None
        self._writes.modify(self._volumes, "", name, lambda new: name_claim(new, meta, chosen_here=chosen_here))
        self._writes.modify(self._claims, *_key(claim), lambda new: name_volume(new, volume))

    # --- volumes ---

    def _sync_volume(self, volume: Object) -> None:
        reference, name = reference_of(volume), volume["metadata"]["name"]
        if reference is None or not reference.uid:
            self._set_phase(name, "Available")
            return
        claim = self._claim((reference.namespace, reference.name))
        if claim is None or not reference.names(claim):
            self._release(volume)
        elif claim["spec"].get("volumeName") == name:
            self._set_phase(name, "Bound")
        elif claim["spec"].get("volumeName"):
            self._unbind(volume)

    def _release(self, volume: Object) -> None:
        name = volume["metadata"]["name"]
        self._set_phase(name, "Released")
        if volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete":
            self._writes.delete(self._volumes, "", name, DeleteOptions(uid=volume["metadata"]["uid"]))

    def _unbind(self, volume: Object) -> None:
        """Free a volume whose claim got another one, or release the volume if its reclaim policy is Delete."""
        if volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete":
            self._release(volume)
        else:
            self._writes.modify(self._volumes, "", volume["metadata"]["name"], forget_claim)

    def _set_phase(self, name: str, phase: str) -> None:
        self._writes.modify(self._volumes, "", name, lambda new: new.setdefault("status", {}).update(phase=phase))

    # --- look-ups ---

    def _claim(self, key: Key) -> Object | None:
        found = self._store.get(VOLUME_CLAIMS, *key)
        return found.object if found is not None else None

    def _volume(self, name: str) -> Object | None:
        found = self._store.get(VOLUMES, "", name)
        return found.object if found is not None else None

    def _class(self, name: str | None) -> Object | None:
        found = self._store.get(STORAGE_CLASSES, "", name) if name else None
        return found.object if found is not None else None


class _Waiting:
    """Claims without a volume, by the volume that they ask for, or else by their class."""

    def __init__(self) -> None:
        self._topics: dict[Key, str] = {}
        self._claims: defaultdict[str, dict[Key, None]] = defaultdict(dict)

    def add(self, key: Key, claim: Object) -> None:
        asked = claim["spec"].get("volumeName")
        topic = f"volume {asked}" if asked else f"class {class_of(claim) or ''}"
        self._topics[key] = topic
        self._claims[topic][key] = None

    def drop(self, key: Key) -> None:
        topic = self._topics.pop(key, None)
        if topic is not None:
            del self._claims[topic][key]

    def for_volume(self, name: str) -> list[Key]:
        return list(self._claims.get(f"volume {name}", ()))

    def for_class(self, name: str) -> list[Key]:
        return list(self._claims.get(f"class {name}", ()))


def _key(claim: Object) -> Key:
    return claim["metadata"]["namespace"], claim["metadata"]["name"]


def _may_have(claim: Object, volume: Object) -> bool:
    """Return whether a claim may be bound to the volume that it asks for by name."""
    reference = reference_of(volume)
    return satisfies(claim, volume) if reference is None else reference.names(claim)
