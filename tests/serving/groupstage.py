"""Groups of pods on a stage whose server knows PodGroups."""

from __future__ import annotations

from typing import Any

from handlers.stage import Stage

GROUP = "scheduling.x-k8s.io"
#: `pluginConfig` with which all nodes may be kept for a group, at once.
KEEPING = [{
    "name": "GangScheduling",
    "args": {"reservationAfterSeconds": 0, "reservations": 1, "reservationPercent": 100, "reservationPercentOfNamespace": 100},
}]  # fmt: skip


def declare(stage: Stage, name: str, members: int, **annotations: str) -> None:
    """A PodGroup of scheduler-plugins."""
    meta: dict[str, Any] = {"name": name, "annotations": {key.replace("_", "-"): value for key, value in annotations.items()}}
    content = {"metadata": meta, "spec": {"minMember": members}}
    stage.sandbox.writes.create(stage.sandbox.resource(GROUP, "v1alpha1", "podgroups"), "default", content)


def join(stage: Stage, name: str, *pods: str, cpu: str = "1") -> None:
    """Members of a group."""
    for pod in pods:
        container = {"name": "main", "image": "example.test/main", "resources": {"requests": {"cpu": cpu}}}
        meta = {"name": pod, "labels": {f"{GROUP}/pod-group": name}}
        spec = {"schedulerName": "placewright", "containers": [container]}
        stage.sandbox.writes.create(stage.sandbox.resource("", "v1", "pods"), "default", {"metadata": meta, "spec": spec})
