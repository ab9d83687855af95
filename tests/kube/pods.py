"""Pods for tests of this room."""

from __future__ import annotations

from typing import Any

from placewright.api.decode import convert
from placewright.api.objects import Pod
from placewright.api.pods import PodInfo


def pod(name: str = "web", *, uid: str = "", node: str = "", generation: int = 0, version: str = "1", **status: Any) -> PodInfo:
    """A pod of namespace `shop`, scheduled by `placewright`."""
    return PodInfo(convert(pod_json(name, uid=uid, node=node, generation=generation, version=version, **status), Pod))


def pod_json(
    name: str = "web", *, uid: str = "", node: str = "", generation: int = 0, version: str = "1", **status: Any
) -> dict[str, Any]:
    """The same as the server sends it."""
    meta = {"name": name, "namespace": "shop", "uid": uid or f"uid-{name}", "resourceVersion": version, "generation": generation}
    spec: dict[str, Any] = {"schedulerName": "placewright"}
    if node:
        spec["nodeName"] = node
    return {"metadata": meta, "spec": spec, "status": status}
