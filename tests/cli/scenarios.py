"""Small clusters in files, on which two profiles decide differently."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

NODES = 4
PODS = 6


def scenario_file(folder: Path, *, pods: int = PODS, cpu: str = "1") -> Path:
    """Four nodes of four CPUs; pods that fit on each."""
    path = folder / "scenario.json"
    items = [*map(_node, range(NODES)), *(_pod(i, cpu) for i in range(pods))]
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return path


def profile_file(folder: Path, name: str, **spec: Any) -> Path:
    """A profile for pods that name no scheduler."""
    path = folder / f"{name}.json"
    kind = {"apiVersion": "placewright.dev/v1alpha1", "kind": "SchedulingProfile", "metadata": {"name": name}}
    path.write_text(json.dumps({**kind, "spec": {"schedulerName": "default-scheduler", **spec}}))
    return path


def _node(index: int) -> dict[str, Any]:
    labels = {"kubernetes.io/hostname": f"n{index}", "topology.kubernetes.io/zone": f"zone-{index % 2}"}
    status = {"allocatable": {"cpu": "4", "memory": "16Gi", "pods": "20"}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"n{index}", "labels": labels}, "status": status}


def _pod(index: int, cpu: str) -> dict[str, Any]:
    resources = {"requests": {"cpu": cpu, "memory": "1Gi"}}
    spec = {"containers": [{"name": "c", "image": "i", "resources": resources}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"web-{index}", "namespace": "shop"}, "spec": spec}
