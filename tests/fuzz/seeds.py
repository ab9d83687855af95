"""Valid objects of every kind that is decoded, each with every field that somebody reads."""

from __future__ import annotations

from typing import Any, Final

from placewright.api.objects import KubeObject, Node, Pod
from placewright.api.podgroups import CoschedulingPodGroup, NativePodGroup, VolcanoPodGroup, Workload
from placewright.api.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from placewright.api.workloads import Namespace, PodDisruptionBudget, ReplicationController, Service, StatefulSet

Document = dict[str, Any]

SELECTOR: Final = {
    "matchLabels": {"app": "web"},
    "matchExpressions": [
        {"key": "tier", "operator": "In", "values": ["front", "back"]},
        {"key": "example.com/old", "operator": "DoesNotExist"},
    ],
}
TERM: Final = {
    "matchExpressions": [
        {"key": "zone", "operator": "NotIn", "values": ["a"]},
        {"key": "cores", "operator": "Gt", "values": ["8"]},
    ],
    "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}],
}
_POD_TERM: Final = {"topologyKey": "zone", "labelSelector": SELECTOR, "namespaces": ["default"], "namespaceSelector": {}}
_META: Final = {
    "name": "web",
    "uid": "u-1",
    "resourceVersion": "7",
    "labels": {"app": "web", "example.com/tier": "front"},
    "annotations": {"a": "b"},
    "creationTimestamp": "2026-01-01T00:00:00Z",
    "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u-2", "controller": True}],
}
_RESOURCES: Final = {"requests": {"cpu": "100m", "memory": "1.5Gi", "example.com/gpu": 2}, "limits": {"cpu": 1}}

POD: Final[Document] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {**_META, "namespace": "default"},
    "spec": {
        "schedulerName": "default-scheduler",
        "priority": 10,
        "overhead": {"cpu": "10m"},
        "resources": _RESOURCES,
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"key": "k", "operator": "Equal", "value": "v", "effect": "NoSchedule"}],
        "schedulingGates": [{"name": "example.com/wait"}],
        "containers": [{"name": "c", "image": "nginx", "ports": [{"hostPort": 80, "protocol": "TCP"}], "resources": _RESOURCES}],
        "initContainers": [{"name": "i", "restartPolicy": "Always", "resources": _RESOURCES}],
        "topologySpreadConstraints": [
            {"maxSkew": 1, "minDomains": 2, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": SELECTOR}
        ],
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [TERM]},
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 5, "preference": TERM}],
            },
            "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_POD_TERM]},
            "podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 5, "podAffinityTerm": _POD_TERM}]},
        },
        "volumes": [
            {"name": "v", "persistentVolumeClaim": {"claimName": "data"}},
            {"name": "d", "awsElasticBlockStore": {"volumeID": "x"}},
        ],
    },
    "status": {
        "phase": "Pending",
        "nominatedNodeName": "n",
        "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "m"}],
        "containerStatuses": [{"name": "c", "resources": _RESOURCES, "allocatedResources": {"cpu": "1"}}],
    },
}
NODE: Final[Document] = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {**_META, "name": "n", "labels": {"zone": "a", "cores": "16", "disk": "ssd"}},
    "spec": {"unschedulable": False, "taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]},
    "status": {
        "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110", "example.com/gpu": "2"},
        "capacity": {"cpu": "4"},
        "images": [{"names": ["nginx:latest"], "sizeBytes": 100_000_000}],
        "conditions": [{"type": "Ready", "status": "True"}],
    },
}


def _named(kind: str, **fields: Any) -> Document:
    return {"apiVersion": "v1", "kind": kind, "metadata": {**_META, "namespace": "default"}, **fields}


_OTHERS: Final[tuple[tuple[Document, type[KubeObject]], ...]] = (
    (POD, Pod),
    (NODE, Node),
    (_named("Namespace"), Namespace),
    (_named("Service", spec={"selector": {"app": "web"}}), Service),
    (_named("ReplicationController", spec={"selector": {"app": "web"}}), ReplicationController),
    (_named("StatefulSet", spec={"selector": SELECTOR}), StatefulSet),
    (
        _named("PodDisruptionBudget", spec={"selector": SELECTOR}, status={"disruptionsAllowed": 1, "disruptedPods": {"a": "b"}}),
        PodDisruptionBudget,
    ),
    (
        _named(
            "PersistentVolume",
            spec={
                "capacity": {"storage": "10Gi"},
                "accessModes": ["ReadWriteOnce"],
                "claimRef": {"kind": "PersistentVolumeClaim", "namespace": "default", "name": "data", "uid": "u-3"},
                "storageClassName": "fast",
                "nodeAffinity": {"required": {"nodeSelectorTerms": [TERM]}},
                "csi": {"driver": "d", "volumeHandle": "h"},
            },
            status={"phase": "Bound"},
        ),
        PersistentVolume,
    ),
    (
        _named(
            "PersistentVolumeClaim",
            spec={
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
                "storageClassName": "fast",
                "selector": SELECTOR,
                "volumeName": "",
            },
            status={"phase": "Pending"},
        ),
        PersistentVolumeClaim,
    ),
    (
        _named(
            "StorageClass",
            provisioner="d",
            volumeBindingMode="WaitForFirstConsumer",
            allowedTopologies=[{"matchLabelExpressions": [{"key": "zone", "values": ["a"]}]}],
        ),
        StorageClass,
    ),
    (_named("CSINode", spec={"drivers": [{"name": "d", "allocatable": {"count": 3}}]}), CSINode),
    (_named("CSIDriver", spec={"storageCapacity": True}), CSIDriver),
    (_named("CSIStorageCapacity", nodeTopology=SELECTOR, storageClassName="fast", capacity="10Gi"), CSIStorageCapacity),
    (_named("VolumeAttachment", spec={"attacher": "d", "nodeName": "n", "source": {"persistentVolumeName": "v"}}), VolumeAttachment),
)
_TOPOLOGY: Final = {"placewright.dev/topology-key": "rack", "placewright.dev/topology-mode": "preferred"}
_GANG: Final = {"gang": {"minCount": 4}}
GROUPS: Final[tuple[tuple[Document, type[KubeObject]], ...]] = (
    (
        {
            "metadata": {**_META, "namespace": "default", "annotations": _TOPOLOGY},
            "spec": {"minMember": 3, "scheduleTimeoutSeconds": 30, "minResources": {"cpu": "3"}},
            "status": {"phase": "Scheduling", "running": 1, "scheduleStartTime": "2026-01-01T00:00:00Z", "occupiedBy": "default/web"},
        },
        CoschedulingPodGroup,
    ),
    (
        {
            "metadata": {**_META, "namespace": "default", "annotations": _TOPOLOGY},
            "spec": {"schedulingPolicy": _GANG, "schedulingConstraints": {"topology": [{"key": "rack"}]}, "priority": 5},
            "status": {"conditions": [{"type": "PodGroupScheduled", "status": "False", "reason": "Unschedulable", "message": "m"}]},
        },
        NativePodGroup,
    ),
    ({"metadata": {**_META, "namespace": "default"}, "spec": {"podGroups": [{"name": "workers", "policy": _GANG}]}}, Workload),
    ({"metadata": {**_META, "namespace": "default", "annotations": _TOPOLOGY}, "spec": {"minMember": 3}}, VolcanoPodGroup),
)
#: Pods that name the groups above, each in another way.
MEMBERS: Final[tuple[Document, ...]] = (
    {"metadata": {**_META, "namespace": "default", "labels": {"scheduling.x-k8s.io/pod-group": "web"}}},
    {"metadata": {**_META, "namespace": "default"}, "spec": {"schedulingGroup": {"podGroupName": "web"}}},
    {
        "metadata": {**_META, "namespace": "default"},
        "spec": {"workloadRef": {"name": "web", "podGroup": "workers", "podGroupReplicaKey": "1"}},
    },
    {"metadata": {**_META, "namespace": "default", "annotations": {"scheduling.k8s.io/group-name": "web"}}},
)
#: A document, and the struct that it becomes.
KINDS: Final = (*_OTHERS, *GROUPS)
DOCUMENTS: Final = tuple(document for document, _ in KINDS)
PROFILE: Final[Document] = {
    "apiVersion": "placewright.dev/v1alpha1",
    "kind": "SchedulingProfile",
    "metadata": {"name": "p", "labels": {"a": "b"}},
    "spec": {
        "schedulerName": "p",
        "preset": "bin-packing",
        "plugins": {"score": {"enabled": [{"name": "ImageLocality", "weight": 3}], "disabled": [{"name": "VolumeBinding"}]}},
        "pluginConfig": [
            {
                "name": "NodeResourcesFit",
                "args": {"scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 2}]}},
            },
            {"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 5}},
        ],
        "percentageOfNodesToScore": 50,
        "weights": {"NodeResourcesFit": 5, "TaintToleration": 0},
        "backoff": {"initialSeconds": 1, "maxSeconds": 20},
        "paused": False,
        "extenders": [
            {
                "urlPrefix": "https://extender.example:8443/scheduler",
                "filterVerb": "filter",
                "prioritizeVerb": "prioritize",
                "weight": 2,
                "httpTimeout": "500ms",
                "managedResources": [{"name": "example.com/gpu", "ignoredByScheduler": True}],
                "tlsConfig": {"insecure": True},
            }
        ],
    },
}
CONFIGURATION: Final[Document] = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "leaderElection": {"leaderElect": True},
    "clientConnection": {"kubeconfig": "/nowhere", "qps": 50, "burst": 100},
    "podInitialBackoffSeconds": 1,
    "profiles": [{**{key: PROFILE["spec"][key] for key in ("schedulerName", "plugins", "pluginConfig")}}],
    "extenders": PROFILE["spec"]["extenders"],
}
OLD_CONFIGURATION: Final[Document] = {
    "apiVersion": "kubescheduler.config.k8s.io/v1beta2",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [{"schedulerName": "old", "plugins": {"score": {"enabled": [{"name": "NodeResourcesLeastAllocated", "weight": 3}]}}}],
}
POLICY: Final[Document] = {
    "apiVersion": "v1",
    "kind": "Policy",
    "predicates": [{"name": "PodFitsResources"}, {"name": "x", "argument": {"labelsPresence": {"labels": ["a"], "presence": True}}}],
    "priorities": [{"name": "LeastRequestedPriority", "weight": 1}],
    "extenders": [{"urlPrefix": "http://127.0.0.1:1", "filterVerb": "filter", "enableHttps": True, "nodeCacheCapable": True}],
    "hardPodAffinitySymmetricWeight": 10,
}
PROFILES: Final = (PROFILE, CONFIGURATION, OLD_CONFIGURATION, POLICY)
