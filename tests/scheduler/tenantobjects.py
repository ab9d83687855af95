"""Objects of every kind that a tenant writes, with one text in all places where a tenant chooses the text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from manifest import Object, manifest
from placewright.api.pods import PodInfo
from placewright.cluster.objects import ClusterObject
from placewright.offline.world import read_object

HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"


def tenant_objects(mark: str) -> Iterator[ClusterObject]:
    """Services, owners of pods, budgets, groups, claims to volumes and devices.

    Args:
        mark: the text; in lower case, as a name has it.

    Returns:
        Objects as a watch shows them.
    """
    labels = {mark: mark}
    selector = {"matchLabels": labels, "matchExpressions": [{"key": f"{mark}-key", "operator": "NotIn", "values": [f"{mark}-value"]}]}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": mark}]}}
    yield made("v1", "Service", f"{mark}-service", spec={"selector": labels})
    yield made("v1", "ReplicationController", f"{mark}-rc", spec={"selector": labels})
    for kind in ("ReplicaSet", "StatefulSet"):
        yield made("apps/v1", kind, f"{mark}-{kind.lower()}", spec={"selector": selector, "template": template})
    budget = {"selector": selector, "minAvailable": 1}
    yield made("policy/v1", "PodDisruptionBudget", f"{mark}-budget", spec=budget, status={"disruptionsAllowed": 0})
    group = {"minMember": 2, "scheduleTimeoutSeconds": 5}
    yield made("scheduling.x-k8s.io/v1alpha1", "PodGroup", f"{mark}-group", spec=group)
    yield made("scheduling.x-k8s.io/v1alpha1", "PodGroup", f"{mark}-hopeless", spec=group)
    claim = {"selector": selector, "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    for name, volume_class in (("delayed", "delayed"), ("absent", f"{mark}-class")):
        yield made("v1", "PersistentVolumeClaim", f"{mark}-{name}", spec=claim | {"storageClassName": volume_class})
    for name, expression in (("device", "true"), ("none", "false"), ("wrong", "device.attributes")):
        selectors = [{"cel": {"expression": f"{expression} || '{mark}' == 'x'"}}]
        exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1, "selectors": selectors}
        requests = [{"name": f"{mark}-request", "exactly": exactly}]
        yield made("resource.k8s.io/v1", "ResourceClaim", f"{mark}-{name}", spec={"devices": {"requests": requests}})


def tenant_pods(mark: str) -> Iterator[PodInfo]:
    """Pods that find a node, pods that wait, and pods that others placed.

    Args:
        mark: as above.

    Returns:
        Pods as a watch shows them.
    """
    number = 0

    def one(meta: Object | None = None, container: Object | None = None, **spec: Any) -> PodInfo:
        nonlocal number
        number += 1
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"{mark}-replicaset", "uid": f"{mark}-owner", "controller": True}
        metadata = {
            "namespace": f"{mark}-space", "uid": f"{mark}-uid-{number}", "resourceVersion": str(number + 1),
            "creationTimestamp": "2026-01-01T00:00:00Z", "labels": {mark: mark}, "annotations": {mark: mark}, "ownerReferences": [owner],
        } | (meta or {})  # fmt: skip
        containers = [{"name": mark, "image": f"{mark}/image", "resources": {"requests": {"cpu": "100m"}}} | (container or {})]
        body = {"schedulerName": "default-scheduler", "containers": containers, "priority": 1, **spec}
        status = {"startTime": f"2026-01-01T00:00:00.{abs(hash(mark)) % 10**6:06}Z"}
        found = read_object(manifest("v1", "Pod", f"{mark}-pod-{number}", metadata, spec=body, status=status), mark)
        assert isinstance(found, PodInfo)
        return found

    term = {"labelSelector": {"matchLabels": {mark: mark}}, "topologyKey": HOST}
    spaces = term | {"namespaceSelector": {"matchLabels": {mark: mark}}, "topologyKey": ZONE}
    far = term | {"labelSelector": {"matchLabels": {"other": mark}}, "topologyKey": f"{mark}-topology"}

    def required(*terms: Object) -> Object:
        return {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}

    def weighted(*terms: Object) -> Object:
        return {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 5, "podAffinityTerm": each} for each in terms]}

    def on_nodes(operator: str, **values: Any) -> Object:
        terms = [{"matchExpressions": [{"key": f"{mark}-label", "operator": operator, **values}]}]
        return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}

    avoiding = {"podAntiAffinity": {**required(term, spaces, far), **weighted(term, far)}}
    near = {"podAffinity": {**required(term), **weighted(spaces, far)}}
    yield one()
    yield one(affinity=avoiding)
    yield one(affinity=near)
    yield one(affinity=near, nodeName="n0")
    yield one(affinity=avoiding, nodeName="n1")
    yield one(affinity=on_nodes("DoesNotExist"))
    yield one(affinity=on_nodes("NotIn", values=[mark]))
    yield one(affinity=on_nodes("In", values=[mark]))
    yield one(nodeSelector={mark: mark})
    yield one(tolerations=[{"key": mark, "operator": "Equal", "value": mark, "effect": "NoSchedule"}])
    for when in ("ScheduleAnyway", "DoNotSchedule"):
        constraint = {"maxSkew": 1, "whenUnsatisfiable": when, "labelSelector": {"matchLabels": {mark: mark}}}
        yield one(topologySpreadConstraints=[constraint | {"topologyKey": HOST, "matchLabelKeys": [mark]}])
        yield one(topologySpreadConstraints=[constraint | {"topologyKey": f"{mark}-spread"}])
    yield one(schedulingGates=[{"name": f"{mark}/gate"}])
    yield one(container={"resources": {"requests": {f"{mark}/resource": "1"}}})
    yield one(container={"ports": [{"hostPort": 80, "hostIP": "10.0.0.1", "containerPort": 80, "name": mark[:15]}]})
    yield one(container={"resources": {"requests": {"cpu": "64"}}}, priority=1000, priorityClassName=mark)
    yield one(container={"resources": {"requests": {"cpu": "15500m"}}}, priority=1000)
    for name in (f"{mark}-delayed", f"{mark}-absent", f"{mark}-unknown"):
        yield one(volumes=[{"name": mark, "persistentVolumeClaim": {"claimName": name}}])
    yield one(volumes=[{"name": mark, "gcePersistentDisk": {"pdName": mark}}, {"name": f"{mark}2", "csi": {"driver": f"{mark}-driver"}}])
    for name in (f"{mark}-device", f"{mark}-none", f"{mark}-wrong", f"{mark}-unknown"):
        yield one(resourceClaims=[{"name": mark, "resourceClaimName": name}], container={"resources": {"claims": [{"name": mark}]}})
    for group, members, cpu in (("group", 2, "10m"), ("hopeless", 2, "64"), ("unknown", 1, "1m"), ("group", 1, "10m")):
        for _ in range(members):
            meta = {"labels": {mark: mark, "scheduling.x-k8s.io/pod-group": f"{mark}-{group}"}}
            yield one(meta, {"resources": {"requests": {"cpu": cpu}}})


def made(version: str, kind: str, name: str, **parts: Any) -> ClusterObject:
    """An object in the tenant's namespace; its labels and annotations have the text, too."""
    mark = name.partition("-")[0]
    meta = {"namespace": f"{mark}-space", "uid": f"{name}-uid", "resourceVersion": "1", "labels": {mark: mark}, "annotations": {mark: mark}}
    found = read_object(manifest(version, kind, name, meta, **parts), name)
    assert found is not None
    assert not isinstance(found, PodInfo)
    return found  # type: ignore[return-value]
