"""Makers of the manifests that people write: pods, what makes pods, and what stands beside them."""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]
HOST = "kubernetes.io/hostname"


def thing(api_version: str, kind: str, name: str, namespace: str = "", labels: Object | None = None, **rest: Any) -> Object:
    """Any object; `rest` stands beside its metadata."""
    metadata = {"name": name, **({"namespace": namespace} if namespace else {}), **({"labels": labels} if labels else {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **rest}


def container(name: str, requests: Object | None = None, limits: Object | None = None, **rest: Any) -> Object:
    """A container; without requests it says nothing of resources."""
    asked = {key: value for key, value in (("requests", requests), ("limits", limits)) if value}
    return {"name": name, "image": f"images.test/{name}:2", **({"resources": asked} if asked else {}), **rest}


def template(labels: Object, *containers: Object, **spec: Any) -> Object:
    """A pod template."""
    return {"metadata": {"labels": labels}, "spec": {"containers": list(containers), **spec}}


def workload(kind: str, name: str, pods: Object, namespace: str = "", **spec: Any) -> Object:
    """A Deployment, StatefulSet or DaemonSet that selects its pods by all their labels."""
    labels = pods["metadata"]["labels"]
    return thing("apps/v1", kind, name, namespace, labels, spec={**spec, "selector": {"matchLabels": labels}, "template": pods})


def service(name: str, labels: Object, ports: dict[str, int], namespace: str = "", **spec: Any) -> Object:
    """A Service before the pods with these labels."""
    listed = [{"name": each, "port": port, "targetPort": port} for each, port in ports.items()]
    return thing("v1", "Service", name, namespace, labels, spec={**spec, "selector": labels, "ports": listed})


def a_pod(name: str, only: Object, **spec: Any) -> Object:
    """A pod of one container."""
    return thing("v1", "Pod", name, spec={"containers": [only], **spec})


def apart(*terms: Object, required: bool) -> Object:
    """Anti-affinity, host by host, to pods of these selectors."""
    found = [{"labelSelector": selector, "topologyKey": HOST} for selector in terms]
    if required:
        return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": found}}
    weighted = [{"weight": 50, "podAffinityTerm": term} for term in found]
    return {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": weighted}}


def definition(
    group: str, kind: str, plural: str, schema: Object, *, version: str = "v1", scope: str = "Namespaced", **more: Any
) -> Object:
    """The CustomResourceDefinition of a type of one version; `more` stands in the version."""
    served = {"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, **more}
    names = {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"}
    spec = {"group": group, "scope": scope, "names": names, "versions": [served]}
    return thing("apiextensions.k8s.io/v1", "CustomResourceDefinition", f"{plural}.{group}", spec=spec)


def claim_template(name: str, storage: str) -> Object:
    """For a StatefulSet."""
    return {"metadata": {"name": name}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage}}}}


def tasks_job(name: str, least: int, tasks: dict[str, tuple[int, str]]) -> Object:
    """A Volcano Job: by task, its replicas and the CPUs of each."""
    listed = [
        {"name": task, "replicas": count, "template": {"spec": {"restartPolicy": "Never", "containers": [container(task, {"cpu": cpu})]}}}
        for task, (count, cpu) in tasks.items()
    ]
    return thing("batch.volcano.sh/v1alpha1", "Job", name, spec={"minAvailable": least, "schedulerName": "volcano", "tasks": listed})
