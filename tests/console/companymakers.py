"""Pod groups, devices and claims to them, for the console."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from placewright.api.podgroups import GROUP_LABEL, TOPOLOGY_KEY

from .makers import HOSTILE, Object, claim_profile, file_of, node, pod

DEVICES = {"apiVersion": "resource.k8s.io/v1"}
DRIVER = "gpu.example.com"
RACK = "example.com/rack"


def group(name: str, members: int, *, namespace: str = "ml", topology: str = "") -> Object:
    metadata = {"name": name, "namespace": namespace, "annotations": {TOPOLOGY_KEY: topology} if topology else {}}
    return {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": metadata, "spec": {"minMember": members}}


def member(of: str, name: str, on: str = "", *, namespace: str = "ml", **more: Any) -> Object:
    made = pod(name, on, namespace=namespace, **more)
    made["metadata"]["labels"] = {GROUP_LABEL: of}
    return made


def device_class(name: str = "gpu", driver: str = DRIVER) -> Object:
    spec = {"selectors": [{"cel": {"expression": f"device.driver == '{driver}'"}}]}
    return {**DEVICES, "kind": "DeviceClass", "metadata": {"name": name, "uid": name}, "spec": spec}


def devices(on: str, *names: str | Object, driver: str = DRIVER, generation: int = 1, **spec: Any) -> Object:
    """A slice of the node's pool. A device that is no name is taken as it is."""
    made = [{"name": each} if isinstance(each, str) else each for each in names]
    pool = {"name": on, "generation": generation, "resourceSliceCount": 1}
    content = {"driver": driver, "nodeName": on, "pool": pool, "devices": made, **spec}
    name = f"{driver}-{on}-{generation}"
    return {**DEVICES, "kind": "ResourceSlice", "metadata": {"name": name, "uid": name}, "spec": content}


def claim(
    name: str, *, namespace: str = "ml", count: int = 1, has: tuple[Object, ...] = (), users: tuple[str, ...] = (), **request: Any
) -> Object:
    wish = {"name": "r", "exactly": {"deviceClassName": "gpu", "count": count, **request}}
    status: Object = {"allocation": {"devices": {"results": list(has)}}} if has else {}
    if users:
        status["reservedFor"] = [{"resource": "pods", "name": each, "uid": f"{namespace}-{each}"} for each in users]
    metadata = {"name": name, "namespace": namespace, "uid": f"claim-{namespace}-{name}"}
    return {**DEVICES, "kind": "ResourceClaim", "metadata": metadata, "spec": {"devices": {"requests": [wish]}}, "status": status}


def given(device: str, on: str, driver: str = DRIVER, **more: Any) -> Object:
    """A device of an allocation."""
    return {"request": "r", "driver": driver, "pool": on, "device": device, **more}


def claiming(name: str, *claims: str, on: str = "", namespace: str = "ml", **spec: Any) -> Object:
    named = [{"name": f"c{i}", "resourceClaimName": each} for i, each in enumerate(claims)]
    return pod(name, on, namespace=namespace, resourceClaims=named, **spec)


def laboratory(path: Path) -> Path:
    """Four nodes in two racks; a group that no rack holds, beside a pod of another namespace; and claims for the devices of two nodes."""
    nodes = [node(f"n{i}", cpu=8, **{RACK: f"r{i // 2}"}) for i in range(4)]
    train = [member("train", f"train-{i}", cpu=5000, created=f"2026-11-23T10:0{i}:00Z") for i in range(3)]
    old = [member("old", "old-0", "n0", cpu=2000), member("old", "old-1", cpu=500)]
    slices = [devices("n0", "g0", "g1"), devices("n1", "g0")]
    claims = [
        claim("mine", has=(given("g0", "n0"),), users=("holder",)), claim("wish", count=4, selectors=[{"cel": {"expression": "true"}}]),
        claim(HOSTILE, count=9),
    ]  # fmt: skip
    pods = [
        claiming("holder", "mine", on="n0", cpu=100), claiming("wisher", "wish", cpu=100), claiming(HOSTILE, HOSTILE, cpu=100),
        pod("ledger", "n0", namespace="bank", cpu=4000), pod("small", namespace="ml", cpu=100), member(HOSTILE, "odd", cpu=64000),
    ]  # fmt: skip
    groups = [group("train", 3, topology=RACK), group("old", 1)]
    return file_of(path, [*nodes, *groups, *train, *old, device_class(), *slices, *claims, *pods, claim_profile()])
