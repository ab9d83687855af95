"""What an API server fills in before it stores an object, as far as schedulers and kubectl look at it.

The scheduler reads effective objects: requests that were left out come from limits, a pod without `schedulerName`
belongs to the default scheduler, a deployment without `replicas` has one. Every function changes its object in place
and leaves alone what is already there, so that it may run on every write. Times and names are not set here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from kubesandbox.priorities import PriorityRefused, admit_priority
from kubesandbox.shapes import Object
from placewright.api.quantity import QuantityError, nano

__all__ = ["PriorityRefused", "admit_priority", "default"]

UNSCHEDULABLE_TAINT = "node.kubernetes.io/unschedulable"
_NODE_PROBLEMS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_TOLERATED_SECONDS = 300
_RESOURCES_OF_QOS = ("cpu", "memory")


def default(kind: str, obj: Object) -> None:
    """Fills in the defaults of one object of a built-in `kind`; other kinds are left alone."""
    if kind in _DEFAULTS:
        _DEFAULTS[kind](obj)


def _fill(target: Object, **defaults: Any) -> None:
    for key, value in defaults.items():
        if target.get(key) is None:
            target[key] = value


def _part(obj: Object, name: str) -> Object:
    """The object under `name`, put there when it is missing or no object."""
    if not isinstance(obj.get(name), dict):
        obj[name] = {}
    part: Object = obj[name]
    return part


def _default_pod(pod: Object) -> None:
    spec = _part(pod, "spec")
    _default_pod_spec(spec)
    _fill(spec, serviceAccountName=spec.get("serviceAccount") or "default")
    _fill(spec, serviceAccount=spec["serviceAccountName"], preemptionPolicy="PreemptLowerPriority")
    _tolerate_node_problems(spec)
    status = _part(pod, "status")
    _fill(status, phase="Pending", qosClass=qos_class(spec))


def _default_template(template: Object) -> None:
    _default_pod_spec(_part(template, "spec"))


def _default_pod_spec(spec: Object) -> None:
    _fill(
        spec,
        restartPolicy="Always",
        dnsPolicy="ClusterFirst",
        schedulerName="default-scheduler",
        terminationGracePeriodSeconds=30,
        securityContext={},
        enableServiceLinks=True,
    )
    for name in ("initContainers", "containers", "ephemeralContainers"):
        for container in _objects(spec, name):
            _default_container(container)
    for volume in _objects(spec, "volumes"):
        if set(volume) <= {"name"}:
            volume["emptyDir"] = {}
    if spec.get("hostNetwork"):
        for port in (p for c in _objects(spec, "containers") for p in _objects(c, "ports")):
            _fill(port, hostPort=port.get("containerPort"))


def _default_container(container: Object) -> None:
    image = str(container.get("image") or "")
    latest = "@" not in image and (image.endswith(":latest") or ":" not in image.rpartition("/")[2])
    _fill(
        container,
        resources={},
        terminationMessagePath="/dev/termination-log",
        terminationMessagePolicy="File",
        imagePullPolicy="Always" if latest else "IfNotPresent",
    )
    resources = _part(container, "resources")
    if isinstance(limits := resources.get("limits"), dict):
        requests = resources.get("requests") or {}
        resources["requests"] = {**limits, **requests} if isinstance(requests, dict) else requests
    for port in _objects(container, "ports"):
        _fill(port, protocol="TCP")


def _objects(parent: Object, name: str) -> list[Object]:
    """The objects in the list under `name`; nothing where it is missing or something else."""
    found = parent.get(name)
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def _tolerate_node_problems(spec: Object) -> None:
    """Tolerates a node that is not ready or unreachable for five minutes, as admission does for every pod."""
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
    """`Guaranteed`, `Burstable` or `BestEffort`, from the cpu and memory of all containers after defaulting."""
    containers = [*_objects(dict(spec), "initContainers"), *_objects(dict(spec), "containers")]
    requests = [_compute(container, "requests") for container in containers]
    limits = [_compute(container, "limits") for container in containers]
    if not any(requests) and not any(limits):
        return "BestEffort"
    if all(len(have) == len(_RESOURCES_OF_QOS) for have in limits) and requests == limits:
        return "Guaranteed"
    return "Burstable"


def _compute(container: Mapping[str, Any], which: str) -> dict[str, int]:
    """The amounts of cpu and memory that are not zero, in nano-units; what is no quantity counts as left out."""
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
    """The taint of a cordoned node, which the node controller keeps; allocatable, which the kubelet reports."""
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
        _fill(status, allocatable=dict(status["capacity"]))


def _default_deployment(obj: Object) -> None:
    spec = _part(obj, "spec")
    _fill(spec, replicas=1, revisionHistoryLimit=10, progressDeadlineSeconds=600, strategy={})
    strategy = _part(spec, "strategy")
    _fill(strategy, type="RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        _fill(_part(strategy, "rollingUpdate"), maxUnavailable="25%", maxSurge="25%")
    _default_template(_part(spec, "template"))


def _default_replicas(obj: Object) -> None:
    spec = _part(obj, "spec")
    _fill(spec, replicas=1)
    _default_template(_part(spec, "template"))


def _default_stateful_set(obj: Object) -> None:
    spec = _part(obj, "spec")
    _fill(spec, podManagementPolicy="OrderedReady", revisionHistoryLimit=10, updateStrategy={"type": "RollingUpdate"})
    _default_replicas(obj)


def _default_daemon_set(obj: Object) -> None:
    spec = _part(obj, "spec")
    _fill(spec, revisionHistoryLimit=10, updateStrategy={"type": "RollingUpdate"})
    _default_template(_part(spec, "template"))


def _default_job(obj: Object) -> None:
    _default_job_spec(_part(obj, "spec"))


def _default_job_spec(spec: Object) -> None:
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    _fill(spec, parallelism=1, backoffLimit=6, completionMode="NonIndexed", suspend=False)
    _default_template(_part(spec, "template"))


def _default_cron_job(obj: Object) -> None:
    spec = _part(obj, "spec")
    _fill(spec, concurrencyPolicy="Allow", suspend=False, successfulJobsHistoryLimit=3, failedJobsHistoryLimit=1)
    _default_job_spec(_part(_part(spec, "jobTemplate"), "spec"))


def _default_service(obj: Object) -> None:
    spec = _part(obj, "spec")
    _fill(spec, type="ClusterIP", sessionAffinity="None")
    for port in _objects(spec, "ports"):
        _fill(port, protocol="TCP", targetPort=port.get("port"))
    _part(obj, "status")


def _default_data(obj: Object) -> None:
    """Empty maps are not stored."""
    for name in ("data", "binaryData", "stringData"):
        if name in obj and not obj[name]:
            del obj[name]


def _default_priority_class(obj: Object) -> None:
    _fill(obj, preemptionPolicy="PreemptLowerPriority")


def _default_storage_class(obj: Object) -> None:
    _fill(obj, reclaimPolicy="Delete", volumeBindingMode="Immediate")


def _default_volume(obj: Object) -> None:
    _fill(_part(obj, "spec"), persistentVolumeReclaimPolicy="Retain", volumeMode="Filesystem")


def _default_claim(obj: Object) -> None:
    _fill(_part(obj, "spec"), volumeMode="Filesystem")


def _default_namespace(obj: Object) -> None:
    _fill(_part(obj, "spec"), finalizers=["kubernetes"])
    _fill(_part(obj, "status"), phase="Active")
    metadata = _part(obj, "metadata")
    if metadata.get("name"):
        _part(metadata, "labels")["kubernetes.io/metadata.name"] = metadata["name"]


_DEFAULTS: Mapping[str, Callable[[Object], None]] = MappingProxyType(
    {
        "Pod": _default_pod,
        "Node": _default_node,
        "Deployment": _default_deployment,
        "ReplicaSet": _default_replicas,
        "ReplicationController": _default_replicas,
        "StatefulSet": _default_stateful_set,
        "DaemonSet": _default_daemon_set,
        "Job": _default_job,
        "CronJob": _default_cron_job,
        "Service": _default_service,
        "ConfigMap": _default_data,
        "Secret": _default_data,
        "PriorityClass": _default_priority_class,
        "StorageClass": _default_storage_class,
        "PersistentVolume": _default_volume,
        "PersistentVolumeClaim": _default_claim,
        "Namespace": _default_namespace,
    }
)
