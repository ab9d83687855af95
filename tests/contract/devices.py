"""Makers of the resource.k8s.io objects that the contract tests send, and where they are sent."""

from __future__ import annotations

from typing import Any

from contract.client import Object
from contract.cluster import Cluster
from manifest import manifest

GROUP = "resource.k8s.io"
VERSION = 34
"""The minor version that serves the group as v1."""
FINALIZER = "resource.kubernetes.io/delete-protection"
DRIVER = "gpu.example.com"


def request(name: str = "gpu", device_class: str = "gpus", **exactly: Any) -> Object:
    return {"name": name, "exactly": {"deviceClassName": device_class, **exactly}}


def alternatives(name: str, *subs: Object) -> Object:
    return {"name": name, "firstAvailable": list(subs)}


def alternative(name: str, device_class: str = "gpus", **fields: Any) -> Object:
    return {"name": name, "deviceClassName": device_class, **fields}


def claim_spec(*requests: Object, **devices: Any) -> Object:
    return {"devices": {"requests": list(requests) or [request()], **devices}}


def a_claim(name: str, *requests: Object, **devices: Any) -> Object:
    return manifest(f"{GROUP}/v1", "ResourceClaim", name, spec=claim_spec(*requests, **devices))


def template(name: str, *requests: Object, **devices: Any) -> Object:
    spec = {"metadata": {"labels": {"made": "so"}}, "spec": claim_spec(*requests, **devices)}
    return manifest(f"{GROUP}/v1", "ResourceClaimTemplate", name, spec=spec)


def device_class(name: str, expression: str = f'device.driver == "{DRIVER}"', **spec: Any) -> Object:
    selectors = [{"cel": {"expression": expression}}]
    return manifest(f"{GROUP}/v1", "DeviceClass", name, spec={"selectors": selectors, **spec})


def device(name: str, **fields: Any) -> Object:
    return {"name": name, "attributes": {"model": {"string": "a"}}, "capacity": {"memory": {"value": "80Gi"}}, **fields}


def resource_slice(name: str, *devices: Object, pool: Object | None = None, **spec: Any) -> Object:
    where = {} if {"nodeSelector", "allNodes", "perDeviceNodeSelection"} & spec.keys() else {"nodeName": "node-a"}
    whole = {"name": "node-a", "generation": 1, "resourceSliceCount": 1, **(pool or {})}
    usual = {"driver": DRIVER, "pool": whole, "devices": list(devices) or [device("gpu-0")]}
    return manifest(f"{GROUP}/v1", "ResourceSlice", name, spec=usual | where | spec)


def result(request: str = "gpu", device: str = "gpu-0", **fields: Any) -> Object:
    return {"request": request, "driver": DRIVER, "pool": "node-a", "device": device, **fields}


def allocation(*results: Object, **fields: Any) -> Object:
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-a"]}]}
    return {"devices": {"results": list(results) or [result()], **fields}, "nodeSelector": {"nodeSelectorTerms": [term]}}


def user(name: str = "web", uid: str = "11111111-1111-4111-8111-111111111111") -> Object:
    return {"resource": "pods", "name": name, "uid": uid}


def claims_path(cluster: Cluster, *rest: str) -> str:
    return cluster.path("resourceclaims", *rest, group=GROUP)


def shared_path(plural: str, *rest: str, version: str = "v1") -> str:
    """The path of what belongs to no namespace."""
    return "/".join(["/apis", GROUP, version, plural, *rest])
