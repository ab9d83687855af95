"""Pods and nodes as the API server would show them, and a run in words."""

from __future__ import annotations

import msgspec

from placewright import testing as kit
from placewright.api.annotations import DECISION, Decision
from placewright.api.objects import Node, Pod, PodKey
from placewright.testing.nodes import NodeMaker


def a_node(name: str, **allocatable: str) -> Node:
    resources = {key.replace("gpu", "openb/gpu-milli"): value for key, value in allocatable.items()}
    return NodeMaker(name).offers(resources).build()


def a_pod(name: str, node_name: str = "", *, generation: int | None = None, profile: str = "default", cpu: str = "1") -> Pod:
    made = kit.pod(name, on=node_name, cpu=cpu)
    if generation is not None:
        made = made.annotations({DECISION: msgspec.json.encode(Decision(profile=profile, generation=generation, score=10)).decode()})
    return made.decoded()


def without_place(name: str, message: str, reason: str = "Unschedulable") -> Pod:
    condition = {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
    return kit.pod(name).status(conditions=[condition]).decoded()


def key(name: str) -> PodKey:
    return PodKey(f"default/{name}")
