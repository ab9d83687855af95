"""The objects that the kubectl tests send."""

from __future__ import annotations

from typing import Any

from inputs import workloads
from inputs.workloads import Object, template, thing, workload


def a_pod(name: str, node: str = "", **labels: str) -> Object:
    """A pod; with a node it is started by that node's simulated kubelet, without any scheduler."""
    spec: Object = {"schedulerName": "nobody", "containers": [{"name": "main", "image": "app:1"}]}
    return thing("v1", "Pod", name, labels=labels, spec=spec | ({"nodeName": node} if node else {}))


def config_map(name: str, **data: str) -> Object:
    return thing("v1", "ConfigMap", name, data=data)


def deployment(name: str, *containers: Object) -> Object:
    return workload("Deployment", name, template({"app": name}, *containers), replicas=2)


def a_node(name: str) -> Object:
    status = {"capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"}, "conditions": [{"type": "Ready", "status": "True"}]}
    return thing("v1", "Node", name, labels={"node-role.kubernetes.io/worker": ""}, status=status)


def budget(name: str, minimum: int, **labels: str) -> Object:
    return thing("policy/v1", "PodDisruptionBudget", name, spec={"minAvailable": minimum, "selector": {"matchLabels": labels}})


def definition(kind: str) -> Object:
    """A cluster-scoped custom type with a schema, a status and two columns."""
    weights = {"type": "object", "description": "Weights by name.", "additionalProperties": {"type": "integer"}}
    size = {"type": "integer", "minimum": 1, "description": "How large it is."}
    spec = {"type": "object", "description": "What is wanted.", "properties": {"size": size, "weights": weights}}
    schema = {"type": "object", "description": f"{kind} holds things.", "properties": {"spec": spec}}
    columns = [
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]
    more: Any = {"subresources": {"status": {}}, "additionalPrinterColumns": columns}
    return workloads.definition("example.com", kind, f"{kind.lower()}es", schema, scope="Cluster", **more)


def custom(kind: str, name: str, **spec: object) -> Object:
    return thing("example.com/v1", kind, name, spec=spec)
