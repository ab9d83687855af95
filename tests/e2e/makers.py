"""Nodes and pods as manifests, in a few words. Nodes of a stage carry its label, and its pods ask for it: other nodes are none of ours."""

from __future__ import annotations

from typing import Final

from manifest import Object, manifest

STAGE: Final = "e2e.placewright.dev/stage"
_READY: Final = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "simulated"}


def a_node(name: str, stage: str, *, cpu: str = "4", pods: int = 110, taint: str = "") -> Object:
    """A node that is ready."""
    amounts = {"cpu": cpu, "memory": "16Gi", "pods": str(pods)}
    spec = {"taints": [{"key": taint, "effect": "NoSchedule"}]} if taint else {}
    status = {"allocatable": amounts, "capacity": amounts, "conditions": [_READY]}
    return manifest("v1", "Node", name, {"labels": {STAGE: stage, "kubernetes.io/hostname": name}}, spec=spec, status=status)


def restricted_container(name: str) -> Object:
    """A container that the `restricted` level of Pod Security lets in, which our own namespace enforces."""
    security = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    return {"name": name, "image": f"example.test/{name}", "securityContext": security}


def a_pod(name: str, namespace: str, stage: str, *, cpu: str = "100m", on: str = "", priority_class: str = "", grace: int = 30) -> Object:
    """A pod for Placewright; `on` names the only node that it wants."""
    wanted = {STAGE: stage} | ({"kubernetes.io/hostname": on} if on else {})
    spec: Object = {
        "schedulerName": "placewright",
        "nodeSelector": wanted,
        "terminationGracePeriodSeconds": grace,
        "automountServiceAccountToken": False,
        "containers": [{"name": "main", "image": "example.test/main", "resources": {"requests": {"cpu": cpu, "memory": "8Mi"}}}],
    }
    if priority_class:
        spec["priorityClassName"] = priority_class
    return manifest("v1", "Pod", name, {"namespace": namespace}, spec=spec)
