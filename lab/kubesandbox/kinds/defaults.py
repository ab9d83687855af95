"""The defaults that an API server writes before it stores an object, if schedulers and kubectl read them.

The scheduler reads effective objects. Missing requests come from limits. A pod without `schedulerName` belongs to the default scheduler,
and a deployment without `replicas` has one. Every function changes its object in place and keeps existing values, so it may run on every
write. Times and names are not set here.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from kubesandbox.resources import Object
from placewright.api.quantity import nano

UNSCHEDULABLE_TAINT: Final = "node.kubernetes.io/unschedulable"
_NODE_PROBLEMS: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_TOLERATED_SECONDS: Final = 300
_RESOURCES_OF_QOS: Final = ("cpu", "memory")


_ROLLING: Final = {"updateStrategy": {"type": "RollingUpdate"}, "revisionHistoryLimit": 10}
#: Defaults of missing fields.
_DEFAULTS: Final[Mapping[str, Object]] = MappingProxyType(
    {
        "Deployment": {
            "spec": {"replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600, "strategy": {"type": "RollingUpdate"}}
        },
        "ReplicaSet": {"spec": {"replicas": 1}},
        "ReplicationController": {"spec": {"replicas": 1}},
        "StatefulSet": {"spec": {"replicas": 1, "podManagementPolicy": "OrderedReady", **_ROLLING}},
        "DaemonSet": {"spec": _ROLLING},
        "Job": {"spec": {"parallelism": 1, "backoffLimit": 6, "completionMode": "NonIndexed", "suspend": False}},
        "PriorityClass": {"preemptionPolicy": "PreemptLowerPriority"},
        "StorageClass": {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"},
        "PersistentVolume": {"spec": {"persistentVolumeReclaimPolicy": "Retain", "volumeMode": "Filesystem"}},
        "PersistentVolumeClaim": {"spec": {"volumeMode": "Filesystem"}},
        "Namespace": {"spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}},
    }
)
_POD_SPEC: Final[Object] = {
    "restartPolicy": "Always",
    "dnsPolicy": "ClusterFirst",
    "schedulerName": "default-scheduler",
    "terminationGracePeriodSeconds": 30,
    "securityContext": {},
    "enableServiceLinks": True,
}
_WITH_TEMPLATES: Final = frozenset({"Deployment", "ReplicaSet", "ReplicationController", "StatefulSet", "DaemonSet", "Job"})


def default(kind: str, obj: Object) -> None:
    """Fill in the defaults of one object of a built-in `kind`, whose fields have the right types. Other kinds stay unchanged."""
    if kind == "Job":
        _default_completions(obj.setdefault("spec", {}))
    _fill(obj, _DEFAULTS.get(kind, {}))
    if kind in _WITH_TEMPLATES:
        _default_pod_spec(obj["spec"].setdefault("template", {}).setdefault("spec", {}))
    if kind in _MORE:
        _MORE[kind](obj)


def _fill(target: Object, defaults: Mapping[str, Any]) -> None:
    for key, value in defaults.items():
        if isinstance(value, dict):
            _fill(target.setdefault(key, {}), value)
        elif target.get(key) is None:
            target[key] = copy.copy(value)


def _default_pod(pod: Object) -> None:
    spec = pod.setdefault("spec", {})
    _default_pod_spec(spec)
    _fill(spec, {"serviceAccountName": spec.get("serviceAccount") or "default"})
    _fill(spec, {"serviceAccount": spec["serviceAccountName"], "preemptionPolicy": "PreemptLowerPriority"})
    _tolerate_node_problems(spec)
    _fill(pod, {"status": {"phase": "Pending", "qosClass": qos_class(spec)}})


def _default_pod_spec(spec: Object) -> None:
    _fill(spec, _POD_SPEC)
    for name in ("initContainers", "containers", "ephemeralContainers"):
        for container in spec.get(name) or ():
            _default_container(container)
    for volume in spec.get("volumes") or ():
        if set(volume) <= {"name"}:
            volume["emptyDir"] = {}
    if spec.get("hostNetwork"):
        for port in (p for c in spec.get("containers") or () for p in c.get("ports") or ()):
            _fill(port, {"hostPort": port.get("containerPort")})


def _default_container(container: Object) -> None:
    image = container.get("image") or ""
    latest = "@" not in image and (image.endswith(":latest") or ":" not in image.rpartition("/")[2])
    policy = "Always" if latest else "IfNotPresent"
    _fill(container, {"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File", "imagePullPolicy": policy})
    resources = container.setdefault("resources", {})
    if limits := resources.get("limits"):
        resources["requests"] = {**limits, **(resources.get("requests") or {})}
    for port in container.get("ports") or ():
        _fill(port, {"protocol": "TCP"})


def _tolerate_node_problems(spec: Object) -> None:
    """Tolerate a node that is not ready or unreachable for five minutes, like admission does for every pod."""
    tolerations = list(spec.get("tolerations") or ())
    for key in _NODE_PROBLEMS:
        if not any(_covers(toleration, key) for toleration in tolerations):
            tolerations.append({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _TOLERATED_SECONDS})
    spec["tolerations"] = tolerations


def _covers(toleration: Mapping[str, Any], key: str) -> bool:
    return toleration.get("key") in (key, None, "") and toleration.get("effect") in ("NoExecute", None, "")


def qos_class(spec: Mapping[str, Any]) -> str:
    """Return `Guaranteed`, `Burstable` or `BestEffort`, from the cpu and memory of all containers after defaulting."""
    containers = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    requests = [_compute(container, "requests") for container in containers]
    limits = [_compute(container, "limits") for container in containers]
    if not any(requests) and not any(limits):
        return "BestEffort"
    if all(len(have) == len(_RESOURCES_OF_QOS) for have in limits) and requests == limits:
        return "Guaranteed"
    return "Burstable"


def _compute(container: Mapping[str, Any], which: str) -> dict[str, int]:
    """Return the amounts of cpu and memory that are not zero, in nano-units."""
    found = (container.get("resources") or {}).get(which) or {}
    amounts = {name: nano(found.get(name, 0)) for name in _RESOURCES_OF_QOS}
    return {name: amount for name, amount in amounts.items() if amount}


def _default_node(node: Object) -> None:
    """Set the taint of a cordoned node, like the node controller, and allocatable, like the kubelet."""
    spec, status = node.setdefault("spec", {}), node.setdefault("status", {})
    taints = [taint for taint in spec.get("taints") or () if spec.get("unschedulable") or taint.get("key") != UNSCHEDULABLE_TAINT]
    if spec.get("unschedulable") and all(taint.get("key") != UNSCHEDULABLE_TAINT for taint in taints):
        taints.append({"key": UNSCHEDULABLE_TAINT, "effect": "NoSchedule"})
    spec["taints"] = taints
    if not taints:
        del spec["taints"]
    if "capacity" in status:
        status.setdefault("allocatable", dict(status["capacity"]))


def _default_deployment(obj: Object) -> None:
    strategy = obj["spec"]["strategy"]
    if strategy["type"] == "RollingUpdate":
        _fill(strategy, {"rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}})


def _default_completions(spec: Object) -> None:
    """Set one completion for a Job that sets neither completions nor parallelism."""
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1


def _default_volume(obj: Object) -> None:
    """Set the phase that the volume controller would set for a volume or a claim."""
    spec, free = obj["spec"], "Available" if obj["kind"] == "PersistentVolume" else "Pending"
    _fill(obj, {"status": {"phase": "Bound" if spec.get("claimRef") or spec.get("volumeName") else free}})


def _default_namespace(obj: Object) -> None:
    obj["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = obj["metadata"]["name"]


#: Defaults that need more than a value.
_MORE: Final[Mapping[str, Callable[[Object], None]]] = MappingProxyType(
    {
        "Pod": _default_pod,
        "Node": _default_node,
        "Deployment": _default_deployment,
        "PersistentVolume": _default_volume,
        "PersistentVolumeClaim": _default_volume,
        "Namespace": _default_namespace,
    }
)
