"""Shares of GPUs with a real operator: which device a pod has is on the pod, and the next operator reads it there."""

from __future__ import annotations

import json
from typing import Any

from .stage import Stage, operator

RESOURCE = "openb/gpu-milli"


def put_gpu_node(stage: Stage, name: str, gpus: int) -> None:
    amounts = {"cpu": "64", "memory": "256Gi", "pods": "110", RESOURCE: str(1000 * gpus)}
    node = {"metadata": {"name": name}, "status": {"allocatable": amounts, "capacity": amounts}}
    stage.sandbox.writes.create(stage.sandbox.resource("", "v1", "nodes"), "", node)


def put_gpu_pod(stage: Stage, name: str, units: int) -> None:
    resources = {"requests": {"cpu": "1", RESOURCE: str(units)}, "limits": {RESOURCE: str(units)}}
    container: dict[str, Any] = {"name": "main", "image": "example.test/main", "resources": resources}
    pod = {"metadata": {"name": name}, "spec": {"schedulerName": "placewright", "containers": [container]}}
    stage.sandbox.writes.create(stage.sandbox.resource("", "v1", "pods"), "default", pod)


def devices(stage: Stage, name: str) -> list[int]:
    text = stage.show(name)["metadata"]["annotations"]["placewright.dev/devices"]
    found: list[int] = json.loads(text)[RESOURCE]
    return found


async def test_a_second_operator_knows_which_gpus_the_first_one_gave_away(stage: Stage) -> None:
    stage.edit_profile(preset="gpu-fragmentation")
    put_gpu_node(stage, "gpus", 3)
    async with operator(stage):
        for name in ("a", "b", "c"):
            put_gpu_pod(stage, name, 600)
        await stage.until(lambda: stage.placed("a", "b", "c"))
    assert sorted(devices(stage, name) for name in "abc") == [[0], [1], [2]]
    freed = devices(stage, "b")
    async with operator(stage):
        put_gpu_pod(stage, "d", 800)
        wanted = f"Insufficient {RESOURCE} on one device"
        await stage.until(lambda: wanted in stage.condition("d").get("message", ""))
        assert not stage.placed("d")
        stage.delete_pod("b")
        await stage.until(lambda: stage.placed("d"))
    assert devices(stage, "d") == freed
