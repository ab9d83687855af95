"""The objects that the kubectl tests send."""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]


def a_pod(name: str, node: str = "", **labels: str) -> Object:
    """A pod; with a node it is started by that node's simulated kubelet, without any scheduler."""
    spec: Object = {"schedulerName": "nobody", "containers": [{"name": "main", "image": "app:1"}]}
    if node:
        spec["nodeName"] = node
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": spec}


def config_map(name: str, **data: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def deployment(name: str, *containers: Object) -> Object:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": list(containers)}}
    spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def a_node(name: str) -> Object:
    amounts = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"node-role.kubernetes.io/worker": ""}},
        "status": {"capacity": amounts, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def budget(name: str, minimum: int, **labels: str) -> Object:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name},
        "spec": {"minAvailable": minimum, "selector": {"matchLabels": labels}},
    }


def definition(kind: str) -> Object:
    """A cluster-scoped custom type with a schema, a status and two columns."""
    plural = f"{kind.lower()}es"
    weights = {"type": "object", "description": "Weights by name.", "additionalProperties": {"type": "integer"}}
    size = {"type": "integer", "minimum": 1, "description": "How large it is."}
    spec = {"type": "object", "description": "What is wanted.", "properties": {"size": size, "weights": weights}}
    schema = {"type": "object", "description": f"{kind} holds things.", "properties": {"spec": spec}}
    columns = [
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
        "additionalPrinterColumns": columns,
    }
    names = {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.example.com"},
        "spec": {"group": "example.com", "scope": "Cluster", "names": names, "versions": [version]},
    }


def custom(kind: str, name: str, **spec: object) -> Object:
    return {"apiVersion": "example.com/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}
