"""The objects that a workload creates. They are the same for every scheduler, and so are their names. Pure.

Upstream lets the API server choose names (`generateName`). Here names have numbers, so that two schedulers get equal clusters. A pod that
one of them leaves unbound can then be found with the other. Upstream adds some fields to nodes, claims and volumes after their creation.
Here they are in the object from the start, if the result is the same and nothing is measured meanwhile.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from placewright.api.bad_input import InputError
from placewright.api.yamldocs import read_documents
from placewright.offline.kinds import Manifest
from placewright_lab.bench.schedulerperf.gotemplates import TemplateRefused, has_actions, render
from placewright_lab.bench.schedulerperf.operations import CreateNodes, CreatePods, NodePreparation, Template
from placewright_lab.bench.schedulerperf.opfields import NotKnown

HOSTNAME: Final = "kubernetes.io/hostname"
MIGRATED: Final = "storage.alpha.kubernetes.io/migrated-plugins"
#: Upstream's node for operations without a template.
_USUAL_CAPACITY: Final = {"pods": "110", "cpu": "4", "memory": "32Gi"}
_USUAL_NODE: Final[Manifest] = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"generateName": "node-"},
    "status": {"capacity": _USUAL_CAPACITY, "phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
}
_USUAL_REQUESTS: Final = {"cpu": "100m", "memory": "500Mi"}
#: Upstream's pod for operations without a template.
_USUAL_POD: Final[Manifest] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"generateName": "pod-"},
    "spec": {
        "containers": [
            {
                "name": "pause",
                "image": "registry.k8s.io/pause:3.10",
                "ports": [{"containerPort": 80}],
                "resources": {"limits": _USUAL_REQUESTS, "requests": _USUAL_REQUESTS},
            }
        ]
    },
}


def rendered(template: Template, index: int, count: int) -> Manifest:
    """Return the template's object for one number. Callers do not change it. Raises `NotKnown`."""
    if not has_actions(template.text):
        return _parsed(template.path, template.text)
    try:
        return _parsed(template.path, render(template.text, index, count))
    except TemplateRefused as refused:
        raise NotKnown(f"{template.path.name}: {refused}") from None


def nodes(operation: CreateNodes, number: int, *, hostnames: bool) -> Iterator[tuple[Manifest, Manifest | None]]:
    """Yield the nodes of the operation with this number, each with its CSINode if it gets one."""
    preparation = operation.preparation
    for index in range(operation.count):
        base = rendered(operation.template, index, operation.count) if operation.template else _USUAL_NODE
        name = _name(base, number, index)
        status = dict(base.get("status") or {})
        if preparation.allocatable:
            usual = status.get("allocatable") or status.get("capacity") or {}
            status["allocatable"] = {**usual, **preparation.allocatable}
        labels = {**_labels(base), **({HOSTNAME: name} if hostnames else {}), **_prepared_labels(preparation, name, index)}
        yield {**_named(base, name, labels), "status": status}, _csi_node(preparation, name)


def pods(operation: CreatePods, default: Template | None, number: int, namespace: str) -> Iterator[tuple[Manifest, tuple[Manifest, ...]]]:
    """Make the pods of operation `number`, each with the bound claim and volume that must exist before."""
    template = operation.template or default
    for index in range(operation.count):
        base = rendered(template, index, operation.count) if template else _USUAL_POD
        pod = _named(base, _name(base, number, index), _labels(base))
        if operation.volume is None or operation.claim is None:
            yield pod, ()
            continue
        claim = _claim(rendered(operation.claim, index, operation.count), namespace, index)
        volume = _volume(rendered(operation.volume, index, operation.count), claim, namespace, index)
        mounted = [{"name": "vol", "persistentVolumeClaim": {"claimName": claim["metadata"]["name"]}}]
        yield {**pod, "spec": {**pod["spec"], "volumes": mounted}}, (claim, volume)


def numbered(template: Template, index: int, count: int, number: int) -> Manifest:
    """Return an object of any kind, with its own name or with a number."""
    base = rendered(template, index, count)
    return _named(base, _name(base, number, index), _labels(base))


def namespaces(template: Template | None, prefix: str, count: int) -> Iterator[Manifest]:
    """Yield `count` namespaces, from `prefix-0` on."""
    for index in range(count):
        base = rendered(template, index, count) if template else {"apiVersion": "v1", "kind": "Namespace"}
        yield _named(base, f"{prefix}-{index}", _labels(base))


@lru_cache(maxsize=4096)
def _parsed(path: Path, text: str) -> Manifest:
    try:
        value = next((document.value for document in read_documents(text, path.name)), None)
    except InputError as error:
        raise NotKnown(str(error)) from None
    if not isinstance(value, dict) or not isinstance(value.get("kind"), str):
        raise NotKnown(f"{path.name} holds no object with a kind")
    return value


def _name(base: Manifest, operation: int, index: int) -> str:
    metadata = base.get("metadata") or {}
    return str(metadata.get("name") or f"{metadata.get('generateName', '')}{operation}-{index:05d}")


def _labels(base: Manifest) -> dict[str, str]:
    return dict((base.get("metadata") or {}).get("labels") or {})


def _named(base: Manifest, name: str, labels: Mapping[str, str]) -> Manifest:
    metadata: dict[str, Any] = {key: value for key, value in (base.get("metadata") or {}).items() if key != "generateName"}
    return {**base, "metadata": {**metadata, "name": name, **({"labels": dict(labels)} if labels else {})}}


def _prepared_labels(preparation: NodePreparation, name: str, index: int) -> dict[str, str]:
    if preparation.unique_label_key:
        return {preparation.unique_label_key: str(uuid.uuid5(uuid.NAMESPACE_DNS, name))}
    if preparation.label_key and preparation.label_values:
        return {preparation.label_key: preparation.label_values[index % len(preparation.label_values)]}
    return {}


def _csi_node(preparation: NodePreparation, name: str) -> Manifest | None:
    if preparation.csi_drivers is None:
        return None
    drivers = [{"name": driver, "nodeID": name, "allocatable": room} for driver, room in preparation.csi_drivers.items()]
    metadata = {"name": name, "annotations": {MIGRATED: ",".join(preparation.migrated_plugins)}}
    return {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": metadata, "spec": {"drivers": drivers}}


def _claim(base: Manifest, namespace: str, index: int) -> Manifest:
    name = f"pvc-{index}"
    spec = {**base.get("spec", {}), "volumeName": f"{namespace}-vol-{index}"}
    return {**_named(base, name, _labels(base)), "spec": spec, "status": {"phase": "Bound"}}


def _volume(base: Manifest, claim: Manifest, namespace: str, index: int) -> Manifest:
    name = claim["spec"]["volumeName"]
    spec = dict(base.get("spec", {}))
    if "csi" in spec:
        spec["csi"] = {**spec["csi"], "volumeHandle": name}
    elif "awsElasticBlockStore" in spec:
        spec["awsElasticBlockStore"] = {**spec["awsElasticBlockStore"], "volumeID": f"vol-{index}"}
    claimed = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": namespace, "name": claim["metadata"]["name"]}
    return {**_named(base, name, _labels(base)), "spec": {**spec, "claimRef": claimed}, "status": {"phase": "Bound"}}
