"""Valid objects of every kind that is decoded, each with every field that somebody reads."""

from __future__ import annotations

from typing import Any, Final

from placewright.api.objects import KubeObject
from placewright.api.podgroups import VolcanoPodGroup, Workload
from placewright.api.storage import CSIStorageCapacity, VolumeAttachment
from placewright.api.workloads import ReplicationController
from placewright.testing import (
    coscheduling_group,
    csi_driver,
    csi_node,
    disruption_budget,
    namespace,
    node,
    persistent_volume,
    persistent_volume_claim,
    pod,
    pod_group,
    profile,
    service,
    stateful_set,
    storage_capacity,
    storage_class,
)
from placewright.testing.objectmaker import ObjectMaker

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
_RESOURCES: Final = {"requests": {"cpu": "100m", "memory": "1.5Gi", "example.com/gpu": 2}, "limits": {"cpu": 1}}
_META: Final = {
    "namespace": "default",
    "resourceVersion": "7",
    "labels": {"app": "web", "example.com/tier": "front"},
    "annotations": {"a": "b"},
    "creationTimestamp": "2026-01-01T00:00:00Z",
    "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u-2", "controller": True}],
}


def _full(maker: ObjectMaker[Any]) -> Document:
    return maker.manifest | {"metadata": _META | maker.manifest["metadata"]}


def _plain(kind: str, spec: Any, **meta: Any) -> Document:
    return {"apiVersion": "v1", "kind": kind, "metadata": {**_META, "name": "web", "uid": "u-1", **meta}, "spec": spec}


POD: Final = _full(
    pod("web")
    .scheduler("default-scheduler").priority(10).overhead(cpu="10m").node_selector(disk="ssd").tolerates("k", "v", effect="NoSchedule")
    .gates("example.com/wait").volume_claims("data").volumes({"awsElasticBlockStore": {"volumeID": "x"}}).phase("Pending").nominated("n")
    .spec(
        resources=_RESOURCES,
        containers=[{"name": "c", "image": "nginx", "ports": [{"hostPort": 80, "protocol": "TCP"}], "resources": _RESOURCES}],
        initContainers=[{"name": "i", "restartPolicy": "Always", "resources": _RESOURCES}],
        topologySpreadConstraints=[
            {"maxSkew": 1, "minDomains": 2, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": SELECTOR}
        ],
        affinity={
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [TERM]},
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 5, "preference": TERM}],
            },
            "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_POD_TERM]},
            "podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 5, "podAffinityTerm": _POD_TERM}]},
        },
    )
    .status(
        conditions=[{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "m"}],
        containerStatuses=[{"name": "c", "resources": _RESOURCES, "allocatedResources": {"cpu": "1"}}],
    )
)  # fmt: skip
NODE: Final = _full(
    node("n", cpu="4", memory="8Gi", pods="110")
    .labels(zone="a", cores="16", disk="ssd").offers({"example.com/gpu": "2"}).taint("k", "v")
    .image("nginx:latest", size=100_000_000).condition("Ready", "True").spec(unschedulable=False).status(capacity={"cpu": "4"})
)  # fmt: skip
_CLAIM: Final = {"kind": "PersistentVolumeClaim", "namespace": "default", "name": "data", "uid": "u-3"}
_MAKERS: Final[tuple[ObjectMaker[Any], ...]] = (
    namespace("web").labels(_META["labels"]),
    service("web").selects(app="web"),
    stateful_set("web").spec(selector=SELECTOR),
    disruption_budget("web").spec(selector=SELECTOR).allows(1).disrupted("a"),
    persistent_volume("web", "10Gi").access_modes("ReadWriteOnce").storage_class("fast").csi("d", "h").status(phase="Bound")
    .spec(nodeAffinity={"required": {"nodeSelectorTerms": [TERM]}}, claimRef=_CLAIM),
    persistent_volume_claim("web").access_modes("ReadWriteOnce").storage_class("fast").spec(selector=SELECTOR, volumeName="")
    .status(phase="Pending"),
    storage_class("web").provisioner("d").wait_for_first_consumer().allowed("zone", "a"),
    csi_node("web").driver("d", count=3),
    csi_driver("web").tells_capacity(),
)  # fmt: skip
_GANG: Final = {"gang": {"minCount": 4}}
_TOPOLOGY: Final = {"placewright.dev/topology-key": "rack", "placewright.dev/topology-mode": "preferred"}
_GROUP_MAKERS: Final[tuple[ObjectMaker[Any], ...]] = (
    coscheduling_group("web", 3).timeout(30).topology("rack", required=False).spec(minResources={"cpu": "3"})
    .status(phase="Scheduling", running=1, scheduleStartTime="2026-01-01T00:00:00Z", occupiedBy="default/web"),
    pod_group("web", 4).topology("rack").priority(5).annotations(_TOPOLOGY)
    .status(conditions=[{"type": "PodGroupScheduled", "status": "False", "reason": "Unschedulable", "message": "m"}]),
)  # fmt: skip
GROUPS: Final[tuple[tuple[Document, type[KubeObject]], ...]] = (
    *((_full(each), each.kind) for each in _GROUP_MAKERS),
    (_plain("Workload", {"podGroups": [{"name": "workers", "policy": _GANG}]}), Workload),
    (_plain("PodGroup", {"minMember": 3}, annotations=_TOPOLOGY), VolcanoPodGroup),
)
#: Pods that name the groups above, each in another way.
MEMBERS: Final = (
    pod("web").in_coscheduling_group("web").manifest,
    pod("web").in_group("web").manifest,
    pod("web").spec(workloadRef={"name": "web", "podGroup": "workers", "podGroupReplicaKey": "1"}).manifest,
    pod("web").annotations({"scheduling.k8s.io/group-name": "web"}).manifest,
)
_ATTACHED: Final = {"attacher": "d", "nodeName": "n", "source": {"persistentVolumeName": "v"}}
#: A document, and the struct that it becomes.
KINDS: Final[tuple[tuple[Document, type[KubeObject]], ...]] = (
    (POD, pod("web").kind),
    (NODE, node("n").kind),
    *((_full(each), each.kind) for each in _MAKERS),
    (_full(storage_capacity("web", "fast", "10Gi")) | {"nodeTopology": SELECTOR}, CSIStorageCapacity),
    (_plain("ReplicationController", {"selector": {"app": "web"}}), ReplicationController),
    (_plain("VolumeAttachment", _ATTACHED), VolumeAttachment),
    *GROUPS,
)
DOCUMENTS: Final = tuple(document for document, _ in KINDS)
_EXTENDER: Final = {
    "urlPrefix": "https://extender.example:8443/scheduler",
    "filterVerb": "filter",
    "prioritizeVerb": "prioritize",
    "weight": 2,
    "httpTimeout": "500ms",
    "managedResources": [{"name": "example.com/gpu", "ignoredByScheduler": True}],
    "tlsConfig": {"insecure": True},
}
#: As a file has it, with nothing in its metadata that an API server adds.
PROFILE: Final = (
    profile("p").scheduler("p").enable("ImageLocality", weight=3, point="score").disable("VolumeBinding", point="score")
    .args("NodeResourcesFit", scoringStrategy={"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 2}]})
    .args("InterPodAffinity", hardPodAffinityWeight=5).weights(NodeResourcesFit=5, TaintToleration=0).backoff(initial=1, longest=20)
    .spec(preset="bin-packing", percentageOfNodesToScore=50, paused=False, extenders=[_EXTENDER]).manifest
    | {"metadata": {"name": "p", "labels": {"a": "b"}}}
)  # fmt: skip
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
