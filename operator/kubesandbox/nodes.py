"""Nodes to start with: plain, alike but for their names and zones, and ready."""

from __future__ import annotations

from kubesandbox.status import Object

ZONES = 3


def simulated_node(number: int, now: str) -> Object:
    """Node `node-<number>` with 16 CPUs, 64 GiB and room for 110 pods, in one of three zones."""
    name = f"node-{number:04d}"
    amounts = {"cpu": "16", "memory": "64Gi", "ephemeral-storage": "100Gi", "pods": "110"}
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "topology.kubernetes.io/region": "sandbox",
        "topology.kubernetes.io/zone": f"sandbox-{'abc'[number % ZONES]}",
    }
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "KubeletReady",
        "message": "simulated kubelet is ready",
        "lastHeartbeatTime": now,
        "lastTransitionTime": now,
    }
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [ready],
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}, {"type": "Hostname", "address": name}],
            "nodeInfo": {"kubeletVersion": "v1.36.0-sandbox", "operatingSystem": "linux", "architecture": "amd64"},
        },
    }
