"""The relations of claims, volumes and classes, and the writes that bind a claim to a volume or free it.

The functions that find the class of a claim, or the best volume, change nothing. The functions at the end edit a private copy each. The
rules come from kube-controller-manager's `persistentvolume` controller, and from component-helpers `storage/volume`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from kubesandbox.status import ApiError, Object
from kubesandbox.storage.selectors import label_selector
from placewright.api.quantity import QuantityError, nano

BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"
NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
IS_DEFAULT_CLASS: Final = "storageclass.kubernetes.io/is-default-class"
_IS_DEFAULT_BETA: Final = "storageclass.beta.kubernetes.io/is-default-class"
_BETA_CLASS: Final = "volume.beta.kubernetes.io/storage-class"


def annotations_of(content: Object) -> dict[str, str]:
    """Return the annotations of an object, which may have none."""
    return content["metadata"].get("annotations") or {}


def class_of(content: Object) -> str | None:
    """Return the class of a claim or a volume. It is None for a claim without the field, which may get a default."""
    beta = annotations_of(content).get(_BETA_CLASS)
    named = (content.get("spec") or {}).get("storageClassName")
    return beta if beta is not None else None if named is None else str(named)


def default_class(classes: Iterable[Object]) -> str | None:
    """Return the name of the newest class that is marked as default. Of several from one second, return the first by name."""
    marked = [each["metadata"] for each in classes if _is_default(each)]
    marked.sort(key=lambda meta: str(meta["name"]))
    newest = max(marked, key=lambda meta: str(meta.get("creationTimestamp")), default=None)
    return None if newest is None else str(newest["name"])


def _is_default(storage_class: Object) -> bool:
    noted = annotations_of(storage_class)
    return "true" in (noted.get(IS_DEFAULT_CLASS), noted.get(_IS_DEFAULT_BETA))


def waits_for_consumer(storage_class: Object) -> bool:
    """Return True if claims of the class get their volume once a pod has a node."""
    return storage_class.get("volumeBindingMode") == "WaitForFirstConsumer"


@dataclass(frozen=True, slots=True)
class Reference:
    """The claim that a volume names. An empty uid means any claim of that name."""

    namespace: str
    name: str
    uid: str

    def names(self, claim: Object) -> bool:
        """Return whether it names this claim."""
        meta = claim["metadata"]
        return (self.namespace, self.name) == (meta["namespace"], meta["name"]) and self.uid in ("", meta["uid"])


def reference_of(volume: Object) -> Reference | None:
    """Return the claim that a volume names, if any."""
    found = (volume.get("spec") or {}).get("claimRef")
    if not isinstance(found, dict):
        return None
    return Reference(*(str(found.get(part) or "") for part in ("namespace", "name", "uid")))


def best_volume(claim: Object, volumes: Iterable[Object]) -> Object | None:
    """Return the first volume that names the claim, or else the first of the smallest free ones that serve it."""
    best: Object | None = None
    for volume in volumes:
        reference = reference_of(volume)
        if (reference is not None and not reference.names(claim)) or not _suits(claim, volume):
            continue
        if reference is not None:
            return volume
        if _is_chosen_by(claim, volume) and (best is None or size_of(volume) < size_of(best)):
            best = volume
    return best


def satisfies(claim: Object, volume: Object) -> bool:
    """Return whether the claim that asks for a volume by name may be bound to it."""
    return _suits(claim, volume) and (class_of(volume) or "") == (class_of(claim) or "")


def size_of(volume: Object) -> int:
    """Return the nano-bytes of a volume, or 0 if its size is missing or invalid."""
    return _storage(volume["spec"].get("capacity"))


def requested(claim: Object) -> int:
    """Return the nano-bytes that a claim asks for, or 0 like for a volume."""
    return _storage((claim["spec"].get("resources") or {}).get("requests"))


def _storage(amounts: object) -> int:
    try:
        return nano(amounts.get("storage") or 0) if isinstance(amounts, dict) else 0
    except QuantityError:
        return 0


def _suits(claim: Object, volume: Object) -> bool:
    wanted, has = claim["spec"], volume["spec"]
    return (
        set(wanted.get("accessModes") or ()) <= set(has.get("accessModes") or ())
        and size_of(volume) >= requested(claim)
        and (wanted.get("volumeMode") or "Filesystem") == (has.get("volumeMode") or "Filesystem")
        and (wanted.get("volumeAttributesClassName") or "") == (has.get("volumeAttributesClassName") or "")
        and "deletionTimestamp" not in volume["metadata"]
    )


def _is_chosen_by(claim: Object, volume: Object) -> bool:
    """Test class and selector, which a volume that names the claim need not satisfy."""
    if (class_of(volume) or "") != (class_of(claim) or ""):
        return False
    selector = claim["spec"].get("selector")
    try:
        return selector is None or label_selector(selector)(volume["metadata"].get("labels") or {})
    except ApiError:
        return False


# --- how a claim and its volume are written ---


def annotate(content: Object, names: Iterable[str], value: object) -> None:
    """Give several annotations one value."""
    noted = {**annotations_of(content)}
    noted.update(dict.fromkeys(names, str(value)))
    content["metadata"]["annotations"] = noted


def drop_selected_node(claim: Object) -> None:
    """Take back the node for the claim's new volume."""
    noted = {name: value for name, value in annotations_of(claim).items() if name != SELECTED_NODE}
    claim["metadata"]["annotations"] = noted


def name_claim(volume: Object, claim: Object, *, chosen_here: bool) -> None:
    """Bind a volume to a claim, given by its metadata. `chosen_here` is False if a user or a scheduler chose the volume."""
    reference = volume["spec"].get("claimRef") or {}
    if reference.get("uid") != claim["uid"]:
        named = {"kind": "PersistentVolumeClaim", "apiVersion": "v1", "namespace": claim["namespace"], "name": claim["name"]}
        volume["spec"]["claimRef"] = {**named, "uid": claim["uid"], "resourceVersion": claim["resourceVersion"]}
    if chosen_here:
        annotate(volume, [BOUND_BY_CONTROLLER], "yes")
    volume.setdefault("status", {})["phase"] = "Bound"


def name_volume(claim: Object, volume: Object) -> None:
    """Bind a claim to a volume, and mark it as done."""
    name = volume["metadata"]["name"]
    marks = [BIND_COMPLETED]
    if claim["spec"].get("volumeName") != name:
        claim["spec"]["volumeName"] = name
        marks.append(BOUND_BY_CONTROLLER)
    if BIND_COMPLETED not in annotations_of(claim):
        annotate(claim, marks, "yes")
    has = {"accessModes": volume["spec"].get("accessModes") or [], "capacity": volume["spec"].get("capacity") or {}}
    claim["status"] = {**(claim.get("status") or {}), "phase": "Bound", **has}


def forget_claim(volume: Object) -> None:
    """Free a volume that this controller tied to a claim. A person's tie to a claim's name stays."""
    if BOUND_BY_CONTROLLER in annotations_of(volume):
        del volume["spec"]["claimRef"]
        volume["metadata"]["annotations"] = {k: v for k, v in annotations_of(volume).items() if k != BOUND_BY_CONTROLLER}
    else:
        volume["spec"]["claimRef"] = {k: v for k, v in volume["spec"]["claimRef"].items() if k not in ("uid", "resourceVersion")}
    volume.setdefault("status", {})["phase"] = "Available"
