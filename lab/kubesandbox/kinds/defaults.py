"""The defaults that an API server writes before it stores an object, if schedulers and kubectl read them.

The scheduler reads effective objects. Missing requests come from limits. A pod without `schedulerName` belongs to the default scheduler,
and a deployment without `replicas` has one. Every function changes its object in place and keeps existing values, so it may run on every
write. Times and names are not set here.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from functools import reduce
from types import MappingProxyType
from typing import Any, Final

from kubesandbox.resources import Object
from placewright.api.quantity import QuantityError, nano

UNSCHEDULABLE_TAINT: Final = "node.kubernetes.io/unschedulable"
_NODE_PROBLEMS: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_TOLERATED_SECONDS: Final = 300
_RESOURCES_OF_QOS: Final = ("cpu", "memory")


_JOB: Final = {"parallelism": 1, "backoffLimit": 6, "completionMode": "NonIndexed", "suspend": False}
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
        "Job": {"spec": _JOB},
        "CronJob": {
            "spec": {
                "concurrencyPolicy": "Allow",
                "suspend": False,
                "successfulJobsHistoryLimit": 3,
                "failedJobsHistoryLimit": 1,
                "jobTemplate": {"spec": _JOB},
            }
        },
        "Service": {"spec": {"type": "ClusterIP", "sessionAffinity": "None"}, "status": {}},
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
#: Paths of the templates of pods.
_TEMPLATES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        **dict.fromkeys(("Deployment", "ReplicaSet", "ReplicationController", "StatefulSet", "DaemonSet", "Job"), ("spec", "template")),
        "CronJob": ("spec", "jobTemplate", "spec", "template"),
    }
)


def default(kind: str, obj: Object) -> None:
    """Fill in the defaults of one object of a built-in `kind`. Other kinds stay unchanged."""
    if kind in ("Job", "CronJob"):
        _default_completions(_part(obj, "spec") if kind == "Job" else _part(_part(_part(obj, "spec"), "jobTemplate"), "spec"))
    _fill(obj, _DEFAULTS.get(kind, {}))
    if kind in _TEMPLATES:
        _default_pod_spec(_part(reduce(_part, _TEMPLATES[kind], obj), "spec"))
    if kind in _MORE:
        _MORE[kind](obj)


def _fill(target: Object, defaults: Mapping[str, Any]) -> None:
    for key, value in defaults.items():
        if isinstance(value, dict):
            _fill(_part(target, key), value)
        elif target.get(key) is None:
            target[key] = copy.copy(value)


def _part(obj: Object, name: str) -> Object:
    """Return the object under `name`. If it is missing or no object, put one there."""
    if not isinstance(obj.get(name), dict):
        obj[name] = {}
    part: Object = obj[name]
    return part


def _default_pod(pod: Object) -> None:
    spec = _part(pod, "spec")
    _default_pod_spec(spec)
    _fill(spec, {"serviceAccountName": spec.get("serviceAccount") or "default"})
    _fill(spec, {"serviceAccount": spec["serviceAccountName"], "preemptionPolicy": "PreemptLowerPriority"})
    _tolerate_node_problems(spec)
    _fill(_part(pod, "status"), {"phase": "Pending", "qosClass": qos_class(spec)})


def _default_pod_spec(spec: Object) -> None:
    _fill(spec, _POD_SPEC)
    for name in ("initContainers", "containers", "ephemeralContainers"):
        for container in _objects(spec, name):
            _default_container(container)
    for volume in _objects(spec, "volumes"):
        if set(volume) <= {"name"}:
            volume["emptyDir"] = {}
    if spec.get("hostNetwork"):
        for port in (p for c in _objects(spec, "containers") for p in _objects(c, "ports")):
            _fill(port, {"hostPort": port.get("containerPort")})


def _default_container(container: Object) -> None:
    image = str(container.get("image") or "")
    latest = "@" not in image and (image.endswith(":latest") or ":" not in image.rpartition("/")[2])
    policy = "Always" if latest else "IfNotPresent"
    _fill(container, {"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File", "imagePullPolicy": policy})
    resources = _part(container, "resources")
    if isinstance(limits := resources.get("limits"), dict):
        requests = resources.get("requests") or {}
        resources["requests"] = {**limits, **requests} if isinstance(requests, dict) else requests
    for port in _objects(container, "ports"):
        _fill(port, {"protocol": "TCP"})


def _objects(parent: Object, name: str) -> list[Object]:
    """Return the objects in the list under `name`, or nothing if there is no list."""
    found = parent.get(name)
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def _tolerate_node_problems(spec: Object) -> None:
    """Tolerate a node that is not ready or unreachable for five minutes, like admission does for every pod."""
    tolerations = _objects(spec, "tolerations")
    for key in _NODE_PROBLEMS:
        if not any(_covers(toleration, key) for toleration in tolerations):
            tolerations = [
                *tolerations,
                {
                    "key": key,
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": _TOLERATED_SECONDS,
                },
            ]
    spec["tolerations"] = tolerations


def _covers(toleration: Mapping[str, Any], key: str) -> bool:
    return toleration.get("key") in (key, None, "") and toleration.get("effect") in ("NoExecute", None, "")


def qos_class(spec: Mapping[str, Any]) -> str:
    """Return `Guaranteed`, `Burstable` or `BestEffort`, from the cpu and memory of all containers after defaulting."""
    containers = [*_objects(dict(spec), "initContainers"), *_objects(dict(spec), "containers")]
    requests = [_compute(container, "requests") for container in containers]
    limits = [_compute(container, "limits") for container in containers]
    if not any(requests) and not any(limits):
        return "BestEffort"
    if all(len(have) == len(_RESOURCES_OF_QOS) for have in limits) and requests == limits:
        return "Guaranteed"
    return "Burstable"


def _compute(container: Mapping[str, Any], which: str) -> dict[str, int]:
    """Return the amounts of cpu and memory that are not zero, in nano-units. Invalid text counts as missing."""
    resources = container.get("resources")
    found = resources.get(which) if isinstance(resources, dict) else None
    amounts = {name: _nano(found.get(name, 0)) if isinstance(found, dict) else 0 for name in _RESOURCES_OF_QOS}
    return {name: amount for name, amount in amounts.items() if amount}


def _nano(quantity: Any) -> int:
    try:
        return nano(quantity)
    except QuantityError:
        return 0


def _default_node(node: Object) -> None:
    """Set the taint of a cordoned node, like the node controller, and allocatable, like the kubelet."""
    spec, status = _part(node, "spec"), _part(node, "status")
    taints = [taint for taint in _objects(spec, "taints") if taint.get("key") != UNSCHEDULABLE_TAINT]
    present = [taint for taint in _objects(spec, "taints") if taint.get("key") == UNSCHEDULABLE_TAINT]
    if spec.get("unschedulable"):
        taints += present or [{"key": UNSCHEDULABLE_TAINT, "effect": "NoSchedule"}]
    if taints:
        spec["taints"] = taints
    else:
        spec.pop("taints", None)
    if isinstance(status.get("capacity"), dict):
        status["allocatable"] = dict(status["capacity"]) if status.get("allocatable") is None else status["allocatable"]


def _default_deployment(obj: Object) -> None:
    strategy = obj["spec"]["strategy"]
    if strategy["type"] == "RollingUpdate":
        _fill(strategy, {"rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}})


def _default_completions(spec: Object) -> None:
    """Set one completion for a Job that sets neither completions nor parallelism."""
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1


def _default_service(obj: Object) -> None:
    for port in _objects(obj["spec"], "ports"):
        _fill(port, {"protocol": "TCP", "targetPort": port.get("port")})


def _default_data(obj: Object) -> None:
    """Remove empty maps, which are not stored."""
    for name in ("data", "binaryData", "stringData"):
        if name in obj and not obj[name]:
            del obj[name]


def _default_namespace(obj: Object) -> None:
    metadata = _part(obj, "metadata")
    if metadata.get("name"):
        _part(metadata, "labels")["kubernetes.io/metadata.name"] = metadata["name"]


#: Defaults that need more than a value.
_MORE: Final[Mapping[str, Callable[[Object], None]]] = MappingProxyType(
    {
        "Pod": _default_pod,
        "Node": _default_node,
        "Deployment": _default_deployment,
        "Service": _default_service,
        "ConfigMap": _default_data,
        "Secret": _default_data,
        "Namespace": _default_namespace,
    }
)
