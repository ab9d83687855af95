"""Gives claims their volumes, like kube-controller-manager's volume controller and external provisioners.

Claims whose class binds at once get a volume at once. Other claims wait for their consumer. They get a volume after the scheduler has named
the claim in a volume, or the node on the claim. The volume of a deleted claim is released, or deleted with it. Volumes are not attached,
resized or protected.

A controller's queue of objects. A write adds its object, and the controller handles it a moment later, in batches.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
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
from kubesandbox.storage.store import Change, Index, Key, Store
from kubesandbox.storage.writes import DeleteOptions, Writes

#: Objects of each type in one batch, after which requests get their turn again.
BATCH: Final = 200
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
        self._claims_by = Index(self._store, VOLUME_CLAIMS, _wishes)
        self._volumes_by = Index(self._store, VOLUMES, _offers)
        self._backlog = Backlog(self._store, {VOLUME_CLAIMS: self._sync_claim, VOLUMES: self._sync_volume})
        self._store.collection(VOLUME_CLAIMS).listeners.append(self._on_claim)
        self._store.collection(VOLUMES).listeners.append(self._on_volume)
        self._store.collection(STORAGE_CLASSES).listeners.append(self._on_class)

    # --- objects to process ---

    def _on_claim(self, change: Change) -> None:
        claim = change.current or change.departed
        volumes = {*self._volumes_by["claim", claim.namespace, claim.name]}
        if asked := claim.object["spec"].get("volumeName"):
            volumes.add(("", str(asked)))
        self._backlog.add(VOLUME_CLAIMS, [(claim.namespace, claim.name)])
        self._backlog.add(VOLUMES, sorted(volumes))

    def _on_volume(self, change: Change) -> None:
        volume = change.current or change.departed
        keys = self._claims_by["volume", volume.name]
        for each in (change.previous, change.current):
            if each is not None and (reference := reference_of(each.object)) is not None:
                keys.append((reference.namespace, reference.name))
        storage_class = class_of(volume.object) or ""
        if change.current is not None and reference_of(volume.object) is None and not waits_for_consumer(self._class(storage_class)):
            keys += self._claims_by["class", storage_class]
        self._backlog.add(VOLUME_CLAIMS, keys)
        self._backlog.add(VOLUMES, [("", volume.name)])

    def _on_class(self, change: Change) -> None:
        if change.current is not None:
            self._backlog.add(VOLUME_CLAIMS, self._claims_by["class", change.current.name] + self._claims_by["class", ""])

    # --- claims ---

    def _sync_claim(self, claim: Object) -> None:
        if BIND_COMPLETED in annotations_of(claim):
            self._bound_claim(claim)
        else:
            self._unbound_claim(claim)

    def _unbound_claim(self, claim: Object) -> None:
        asked = claim["spec"].get("volumeName")
        if asked:
            volume = self._volume(asked)
            if volume and _may_have(claim, volume):
                self._bind(claim, volume)
        elif class_of(claim) is not None or not self._give_default_class(claim):  # the change of the claim leads here again
            self._find_or_make(claim, self._class(class_of(claim)))

    def _find_or_make(self, claim: Object, storage_class: Object) -> None:
        """Return the volume that the claim has a right to, or a free one, or a new one. The scheduler may have to choose it."""
        keys = self._volumes_by["claim", *_key(claim)]
        if not waits_for_consumer(storage_class):
            keys += self._volumes_by["class", class_of(claim) or ""]
        volume = best_volume(claim, (self._store.content(VOLUMES, *key) for key in sorted(keys)))
        if volume is not None:
            self._bind(claim, volume)
        elif storage_class and storage_class.get("provisioner") != NO_PROVISIONER:
            self._provision(claim, storage_class)

    def _provision(self, claim: Object, storage_class: Object) -> None:
        place = self._place(claim, storage_class)
        if place is None:
            return
        made = made_volume(claim, storage_class, place)
        self._writes.modify(self._claims, *_key(claim), lambda new: annotate(new, _STORAGE_PROVISIONERS, storage_class["provisioner"]))
        if not self._volume(made["metadata"]["name"]):
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
        keys = topology_keys(self._store.content(CSI_NODES, "", node.name), str(storage_class["provisioner"]))
        return place_on_node(node.object["metadata"].get("labels") or {}, keys)

    def _give_default_class(self, claim: Object) -> bool:
        name = default_class(each.object for each in self._store.listed(STORAGE_CLASSES))
        if name is None:
            return False
        self._writes.modify(self._claims, *_key(claim), lambda new: new["spec"].update(storageClassName=name))
        return True

    def _bound_claim(self, claim: Object) -> None:
        """Keep a claim bound, or mark it lost if its volume is gone or another claim's."""
        volume = self._volume(claim["spec"].get("volumeName") or "")
        reference = reference_of(volume)
        if not volume or (reference is not None and not reference.names(claim)):
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
        claim = self._store.content(VOLUME_CLAIMS, reference.namespace, reference.name)
        if not claim or not reference.names(claim):
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

    def _volume(self, name: object) -> Object:
        return self._store.content(VOLUMES, "", str(name))

    def _class(self, name: str | None) -> Object:
        return self._store.content(STORAGE_CLASSES, "", name or "")


def _wishes(claim: Object) -> Iterator[Hashable]:
    """Yield the topic of a claim without a volume: the volume that it asks for, or else its class."""
    if BIND_COMPLETED not in annotations_of(claim):
        asked = claim["spec"].get("volumeName")
        yield ("volume", asked) if asked else ("class", class_of(claim) or "")


def _offers(volume: Object) -> Iterator[Hashable]:
    """Yield the claim that a volume names, or the class of a free volume."""
    reference = reference_of(volume)
    yield ("class", class_of(volume) or "") if reference is None else ("claim", reference.namespace, reference.name)


def _key(claim: Object) -> Key:
    return claim["metadata"]["namespace"], claim["metadata"]["name"]


def _may_have(claim: Object, volume: Object) -> bool:
    """Return whether a claim may be bound to the volume that it asks for by name."""
    reference = reference_of(volume)
    return satisfies(claim, volume) if reference is None else reference.names(claim)
