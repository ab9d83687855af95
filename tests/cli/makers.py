"""Pods and nodes as the API server would show them, and a run in words."""

from __future__ import annotations

import msgspec

from placewright.api.annotations import DECISION, Decision
from placewright.api.objects import (
    Condition,
    Container,
    Node,
    NodeStatus,
    ObjectMeta,
    Pod,
    PodKey,
    PodSpec,
    PodStatus,
    ResourceRequirements,
)


def node(name: str, **allocatable: str) -> Node:
    resources = {key.replace("gpu", "openb/gpu-milli"): value for key, value in allocatable.items()}
    return Node(metadata=ObjectMeta(name=name), status=NodeStatus(allocatable={**resources}))


def pod(name: str, node_name: str = "", *, generation: int | None = None, profile: str = "default", cpu: str = "1") -> Pod:
    annotations = None
    if generation is not None:
        decision = Decision(profile=profile, generation=generation, score=10)
        annotations = {DECISION: msgspec.json.encode(decision).decode()}
    container = Container(name="c", resources=ResourceRequirements(requests={"cpu": cpu}))
    meta = ObjectMeta(name=name, namespace="default", annotations=annotations)
    return Pod(metadata=meta, spec=PodSpec(node_name=node_name, containers=[container]))


def without_place(name: str, message: str, reason: str = "Unschedulable") -> Pod:
    condition = Condition(type="PodScheduled", status="False", reason=reason, message=message)
    return Pod(metadata=ObjectMeta(name=name, namespace="default"), status=PodStatus(conditions=[condition]))


def key(name: str) -> PodKey:
    return PodKey(f"default/{name}")
