"""How a claim and its volume are written when they are bound to each other, and when they part. Each function edits a private copy."""

from __future__ import annotations

from collections.abc import Iterable

from kubesandbox.claims import BIND_COMPLETED, BOUND_BY_CONTROLLER, SELECTED_NODE, annotations_of
from kubesandbox.status import Object


def annotate(content: Object, names: Iterable[str], value: object) -> None:
    """Give several annotations one value."""
    noted = {**annotations_of(content)}
    noted.update(dict.fromkeys(names, str(value)))
    content["metadata"]["annotations"] = noted


def drop_selected_node(claim: Object) -> None:
    """Take back the node for which the claim's volume was to be made."""
    noted = {name: value for name, value in annotations_of(claim).items() if name != SELECTED_NODE}
    claim["metadata"]["annotations"] = noted


def name_claim(volume: Object, claim: Object, *, chosen_here: bool) -> None:
    """Bind a volume to a claim, given by its metadata; `chosen_here`: nobody had tied the two before."""
    reference = volume["spec"].get("claimRef") or {}
    if reference.get("uid") != claim["uid"]:
        named = {"kind": "PersistentVolumeClaim", "apiVersion": "v1", "namespace": claim["namespace"], "name": claim["name"]}
        volume["spec"]["claimRef"] = {**named, "uid": claim["uid"], "resourceVersion": claim["resourceVersion"]}
    if chosen_here:
        annotate(volume, [BOUND_BY_CONTROLLER], "yes")
    volume.setdefault("status", {})["phase"] = "Bound"


def name_volume(claim: Object, volume: Object) -> None:
    """Bind a claim to a volume, and say that this is done."""
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
    """One that a person tied to a claim stays tied to its name; one that was tied here is free."""
    if BOUND_BY_CONTROLLER in annotations_of(volume):
        del volume["spec"]["claimRef"]
        volume["metadata"]["annotations"] = {k: v for k, v in annotations_of(volume).items() if k != BOUND_BY_CONTROLLER}
    else:
        volume["spec"]["claimRef"] = {k: v for k, v in volume["spec"]["claimRef"].items() if k not in ("uid", "resourceVersion")}
    volume.setdefault("status", {})["phase"] = "Available"
