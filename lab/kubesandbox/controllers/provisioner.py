"""The volume that a CSI driver's provisioner would make for a claim, and the nodes that could reach it. Pure.

Every provisioner except `kubernetes.io/no-provisioner` is simulated. Volumes have no content. Like external provisioners, it makes the
volume on the selected node's topology if the claim waited for a pod. Otherwise the claim's name picks one zone.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kubesandbox.controllers.claims import IS_DEFAULT_CLASS, PROVISIONED_BY
from kubesandbox.status import Object

ZONE: Final = "topology.kubernetes.io/zone"
PROVISIONER: Final = "sandbox.placewright.dev/disks"
#: The name of the first class in kind and minikube.
DEFAULT_CLASS: Final = "standard"


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a new volume: labels of its nodes, or no labels if every node reaches it."""

    labels: tuple[tuple[str, str], ...]


def simulated_class(name: str) -> Object:
    """Return a default StorageClass whose volumes are made near the pod."""
    metadata = {"name": name, "annotations": {IS_DEFAULT_CLASS: "true"}}
    return {"metadata": metadata, "provisioner": PROVISIONER, "volumeBindingMode": "WaitForFirstConsumer"}


def place_on_node(labels: Mapping[str, object], keys: Sequence[str] | None) -> Place:
    """Return a node's labels in the keys that its driver registered. If the driver registered none, return the zone."""
    return Place(tuple((key, str(labels[key])) for key in ([ZONE] if keys is None else keys) if key in labels))


def place_for_anybody(claim: Object, storage_class: Object, nodes: Iterable[Object]) -> Place:
    """Return the place of a volume that waits for no pod: the class' first topology, or one of the zones."""
    for term in storage_class.get("allowedTopologies") or ():
        wanted = term.get("matchLabelExpressions") or ()
        return Place(tuple((each["key"], _picked(claim, each["values"])) for each in wanted if each.get("values")))
    labels = ((node["metadata"].get("labels") or {}).get(ZONE) for node in nodes)
    zones = sorted({str(zone) for zone in labels if zone})
    return Place(((ZONE, _picked(claim, zones)),) if zones else ())


def made_volume(claim: Object, storage_class: Object, place: Place) -> Object:
    """Make a claim's PersistentVolume, which names the claim."""
    meta, wanted, driver = claim["metadata"], claim["spec"], str(storage_class["provisioner"])
    name = f"pvc-{meta['uid']}"
    reference = {"kind": "PersistentVolumeClaim", "apiVersion": "v1", "namespace": meta["namespace"], "name": meta["name"]}
    spec: Object = {
        "capacity": {"storage": ((wanted.get("resources") or {}).get("requests") or {}).get("storage", "1Gi")},
        "accessModes": wanted.get("accessModes") or ["ReadWriteOnce"],
        "volumeMode": wanted.get("volumeMode") or "Filesystem",
        "claimRef": {**reference, "uid": meta["uid"], "resourceVersion": meta["resourceVersion"]},
        "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy") or "Delete",
        "storageClassName": storage_class["metadata"]["name"],
        "csi": {"driver": driver, "volumeHandle": name},
    }
    if place.labels:
        expressions = [{"key": key, "operator": "In", "values": [value]} for key, value in place.labels]
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": expressions}]}}
    if wanted.get("volumeAttributesClassName"):
        spec["volumeAttributesClassName"] = wanted["volumeAttributesClassName"]
    return {"metadata": {"name": name, "annotations": {PROVISIONED_BY: driver}}, "spec": spec}


def topology_keys(csi_node: Object, driver: str) -> Sequence[str] | None:
    """Return the topology keys that a driver registered on a node, or None if it is not registered."""
    drivers = (csi_node.get("spec") or {}).get("drivers") or ()
    return next((each.get("topologyKeys") or () for each in drivers if each.get("name") == driver), None)


def _picked(claim: Object, values: Sequence[str]) -> str:
    """Pick one of several. A name always picks the same one, and many names pick evenly."""
    return values[zlib.crc32(str(claim["metadata"]["name"]).encode()) % len(values)]
