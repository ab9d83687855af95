"""Small makers of the objects that the contract tests send."""

from __future__ import annotations

from contract.client import Object
from manifest import manifest

NO_SCHEDULER = "contract-no-scheduler"
"""A scheduler that does not exist: pods of it stay as the test made them."""


def config_map(name: str, data: dict[str, str] | None = None, **metadata: object) -> Object:
    return manifest("v1", "ConfigMap", name, metadata, data=data or {})


def lease(name: str, holder: str = "nobody", **metadata: object) -> Object:
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 15}
    return manifest("coordination.k8s.io/v1", "Lease", name, metadata, spec=spec)


def a_pod(name: str, labels: dict[str, str] | None = None, **spec: object) -> Object:
    containers = [{"name": "main", "image": "registry.invalid/app:1"}]
    usual = {"schedulerName": NO_SCHEDULER, "automountServiceAccountToken": False, "containers": containers}
    return manifest("v1", "Pod", name, {"labels": labels or {}}, spec=usual | spec)


def binding(name: str, node: str, **metadata: object) -> Object:
    return manifest("v1", "Binding", name, metadata, target={"apiVersion": "v1", "kind": "Node", "name": node})


def a_node(name: str, **spec: object) -> Object:
    return manifest("v1", "Node", name, spec=spec)


def running() -> Object:
    """What a kubelet reports of a pod that is up."""
    ready = [{"type": kind, "status": "True"} for kind in ("Ready", "ContainersReady", "Initialized")]
    state = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
    main = {"name": "main", "image": "app", "imageID": "", "ready": True, "restartCount": 0, "state": state}
    return {"status": {"phase": "Running", "conditions": ready, "containerStatuses": [main]}}
