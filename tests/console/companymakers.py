"""Pod groups, devices and claims to them, for the console."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from placewright.api.podgroups import GROUP_LABEL, TOPOLOGY_KEY
from placewright.testing import coscheduling_group, device_class, resource_claim, resource_slice

from .makers import HOSTILE, Object, a_node, a_pod, claim_profile, file_of

DRIVER = "gpu.example.com"
RACK = "example.com/rack"


def group(name: str, members: int, *, namespace: str = "ml", topology: str = "") -> Object:
    made = coscheduling_group(name, members).namespace(namespace)
    return (made.annotations({TOPOLOGY_KEY: topology}) if topology else made).manifest


def member(of: str, name: str, on: str = "", *, namespace: str = "ml", **more: Any) -> Object:
    made = a_pod(name, on, namespace=namespace, **more)
    made["metadata"]["labels"] = {GROUP_LABEL: of}
    return made


def gpu_class() -> Object:
    return device_class("gpu").selects(f"device.driver == '{DRIVER}'").manifest


def devices(on: str, *names: str | Object, driver: str = DRIVER, generation: int = 1, **spec: Any) -> Object:
    """A slice of the node's pool. A device that is no name is taken as it is."""
    made = [{"name": each} if isinstance(each, str) else each for each in names]
    found = resource_slice(f"{driver}-{on}-{generation}", driver=driver).on(on).pool(on, generation=generation)
    return found.spec(devices=made, **spec).manifest


def device_claim(
    name: str, *, namespace: str = "ml", count: int = 1, has: tuple[Object, ...] = (), users: tuple[str, ...] = (), **request: Any
) -> Object:
    made = resource_claim(name).namespace(namespace).request("gpu", count=count, name="r", **request)
    made = made.status(allocation={"devices": {"results": list(has)}}) if has else made.status()
    reserved = [{"resource": "pods", "name": each, "uid": f"{namespace}-{each}"} for each in users]
    return (made.status(reservedFor=reserved) if users else made).manifest


def given(device: str, on: str, driver: str = DRIVER, **more: Any) -> Object:
    """A device of an allocation."""
    return {"request": "r", "driver": driver, "pool": on, "device": device, **more}


def claiming(name: str, *claims: str, on: str = "", namespace: str = "ml", **spec: Any) -> Object:
    named = [{"name": f"c{i}", "resourceClaimName": each} for i, each in enumerate(claims)]
    return a_pod(name, on, namespace=namespace, resourceClaims=named, **spec)


def laboratory(path: Path) -> Path:
    """Four nodes in two racks; a group that no rack holds, beside a pod of another namespace; and claims for the devices of two nodes."""
    nodes = [a_node(f"n{i}", cpu=8, **{RACK: f"r{i // 2}"}) for i in range(4)]
    train = [member("train", f"train-{i}", cpu=5000, created=f"2026-11-23T10:0{i}:00Z") for i in range(3)]
    old = [member("old", "old-0", "n0", cpu=2000), member("old", "old-1", cpu=500)]
    slices = [devices("n0", "g0", "g1"), devices("n1", "g0")]
    claims = [
        device_claim("mine", has=(given("g0", "n0"),), users=("holder",)),
        device_claim("wish", count=4, selectors=[{"cel": {"expression": "true"}}]), device_claim(HOSTILE, count=9),
    ]  # fmt: skip
    pods = [
        claiming("holder", "mine", on="n0", cpu=100), claiming("wisher", "wish", cpu=100), claiming(HOSTILE, HOSTILE, cpu=100),
        a_pod("ledger", "n0", namespace="bank", cpu=4000), a_pod("small", namespace="ml", cpu=100), member(HOSTILE, "odd", cpu=64000),
    ]  # fmt: skip
    groups = [group("train", 3, topology=RACK), group("old", 1)]
    return file_of(path, [*nodes, *groups, *train, *old, gpu_class(), *slices, *claims, *pods, claim_profile()])
