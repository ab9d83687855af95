"""The pods of one node, for a reader who points at it. They are asked for, and are no part of the feed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.api.requests import CPU, MEMORY
from placewright.cluster.cluster import Cluster
from placewright.serving.rights import Rights

#: Pods that an answer names, the ones with the highest requests for CPU first.
MOST_PODS: Final = 500


def node_page(cluster: Cluster, name: NodeName, nominated: Iterable[PodInfo], rights: Rights) -> dict[str, Any] | None:
    """Collect what runs on a node, what is assumed there, and which pods are nominated for it.

    Args:
        cluster: cluster with the node.
        name: name of the node.
        nominated: pods for which preemption makes room on it.
        rights: rights of the reader. Pods of other namespaces are counted.

    Returns:
        None for an unknown node.
    """
    row = cluster.row(name)
    if row is None:
        return None
    node = cluster.node(row)
    pods = sorted(cluster.pods_on(name), key=lambda pod: (-pod.requests.get(CPU, 0), pod.key))
    seen = [pod for pod in pods if rights.may_see(pod.namespace)]
    waits = list(nominated)
    return {
        "name": name,
        "labels": dict(sorted((node.metadata.labels or {}).items())),
        "taints": [_taint(each.key, each.value, each.effect) for each in node.spec.taints or ()],
        "cordoned": node.spec.unschedulable,
        "pods": [_pod(cluster, pod) for pod in seen[:MOST_PODS]],
        "more": max(len(seen) - MOST_PODS, 0),
        "hidden": len(pods) - len(seen),
        "nominated": [pod.key for pod in waits if rights.may_see(pod.namespace)],
        "nominatedHidden": sum(not rights.may_see(pod.namespace) for pod in waits),
    }


def _taint(key: str, value: str, effect: str) -> str:
    return f"{key}={value}:{effect}" if value else f"{key}:{effect}"


def _pod(cluster: Cluster, pod: PodInfo) -> dict[str, Any]:
    placement = cluster.placement(pod.uid)
    return {
        "namespace": pod.namespace,
        "name": pod.name,
        "cpu": pod.requests.get(CPU, 0),
        "memory": pod.requests.get(MEMORY, 0),
        "others": {name: amount for name, amount in pod.requests.items() if name not in (CPU, MEMORY) and amount},
        "priority": pod.priority,
        "scheduler": pod.scheduler_name,
        "assumed": placement is not None and placement.assumed,
        "leaving": cluster.leaves(pod),
    }
