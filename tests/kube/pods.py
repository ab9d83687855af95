"""Pods for tests of this room."""

from __future__ import annotations

from typing import Any

from placewright import testing as kit
from placewright.api.pods import PodInfo
from placewright.testing.pods import PodMaker


def a_pod(name: str = "web", **told: Any) -> PodInfo:
    """A pod of namespace `shop`, scheduled by `placewright`."""
    return _maker(name, **told).build()


def pod_json(name: str = "web", **told: Any) -> dict[str, Any]:
    """The same as the server sends it in a list: without the names of its kind."""
    return {key: value for key, value in _maker(name, **told).manifest.items() if key not in ("apiVersion", "kind")}


def _maker(name: str, *, uid: str = "", node: str = "", generation: int = 0, version: str = "1", **status: Any) -> PodMaker:
    maker = kit.pod(name, on=node).namespace("shop").uid(uid or f"uid-{name}").version(version).metadata(generation=generation)
    return maker.scheduler("placewright").status(**status)
