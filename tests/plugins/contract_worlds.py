"""Pods, nodes and objects at random for plugins that the general ones of `placewright.testing` do not reach."""

from __future__ import annotations

import json
import random
from typing import Any

import volume_worlds
from storage_worlds import StorageDice

from placewright import testing as kit
from placewright.api.annotations import DOMAIN_LIMITS
from placewright.api.objects import Node
from placewright.api.pods import PodInfo
from placewright.cluster.objects import ClusterObject
from placewright.offline.world import read_object
from placewright.testing import random_pod
from placewright.testing.nodes import NodeMaker
from placewright.testing.objectmaker import PlainMaker
from placewright.testing.randomobjects import NODE_NAMES

Body = dict[str, Any]
AVOID = "scheduler.alpha.kubernetes.io/preferAvoidPods"
SHARES = "openb/gpu-milli"
#: A mix of pods that DeviceFragmentation is to expect.
TYPICAL = [{"requests": {SHARES: units, "cpu": "2"}, "popularity": often} for units, often in (("250", 3), ("500", 4), ("1000", 5))]


def as_pod(manifest: Body) -> PodInfo:
    pod = read_object({"kind": "Pod", **manifest}, "test")
    assert isinstance(pod, PodInfo)
    return pod


def as_node(manifest: Body) -> Node:
    node = read_object({"kind": "Node", **manifest}, "test")
    assert isinstance(node, Node)
    return node


def as_object(manifest: Body) -> ClusterObject:
    item = read_object(manifest, "test")
    assert item is not None
    assert not isinstance(item, Node | PodInfo)
    return item


def plain_pod(dice: random.Random, spec: Body, **metadata: Any) -> PodInfo:
    """A pod with some label and this spec."""
    return kit.pod("p", labels={"app": dice.choice("ab")}, **spec).metadata(**metadata).build()


# --- fields that few pods and nodes have -------------------------------------------------------------------------------------


def pod_that_names_a_node(dice: random.Random) -> PodInfo:
    return plain_pod(dice, {"nodeName": dice.choice(NODE_NAMES)} if dice.random() < 0.6 else {})


def pod_with_ports(dice: random.Random) -> PodInfo:
    def port() -> Body:
        address = dice.choice(("", "10.0.0.1", "10.0.0.2"))
        return {"hostPort": dice.choice((80, 443)), "hostIP": address, "protocol": dice.choice(("TCP", "UDP"))}

    return plain_pod(dice, {"containers": [{"name": "main", "ports": [port() for _ in range(dice.choice((0, 1, 1, 2)))]}]})


def gated_pod(dice: random.Random) -> PodInfo:
    return plain_pod(dice, {"schedulingGates": [{"name": dice.choice("gh")} for _ in range(dice.choice((0, 1, 2)))]})


def pod_that_asks_the_kubelet(dice: random.Random) -> PodInfo:
    rules = [{"action": "RestartAllContainers"}] if dice.random() < 0.5 else []
    spec: Body = {"containers": [{"name": "main", "restartPolicyRules": rules}]}
    if dice.random() < 0.4:
        spec |= {"hostNetwork": True, "hostUsers": False}
    return plain_pod(dice, spec)


def node_with_features(dice: random.Random) -> Node:
    features = [name for name in ("RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport") if dice.random() < 0.5]
    return NodeMaker("n").offers(pods="9").features(*features).build()


def node_that_avoids(dice: random.Random) -> Node:
    """As any, and it would rather not have the pods of some ReplicaSets."""
    who = [{"podSignature": {"podController": {"kind": "ReplicaSet", "uid": uid}}} for uid in ("web", "db") if dice.random() < 0.4]
    quoted = str({"preferAvoidPods": who}).replace("'", '"')
    return NodeMaker("n").offers(pods="9").annotations({AVOID: quoted}).build()


def owned_pod(dice: random.Random) -> PodInfo:
    """Of one of two apps, which its ReplicaSet and Service select."""
    app = dice.choice(("web", "db"))
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": app, "uid": app, "controller": True}
    spec: Body = {"nodeSelector": {"disk": "ssd"}} if dice.random() < 0.2 else {}
    return plain_pod(dice, spec, labels={"app": app}, ownerReferences=[owner] if dice.random() < 0.8 else [])


def pod_that_may_be_ready(dice: random.Random) -> PodInfo:
    """Of the default scheduler or another, and half of them Ready where they stand on a node."""
    ready = {"conditions": [{"type": "Ready", "status": "True"}]} if dice.random() < 0.5 else {}
    made = kit.pod("p").scheduler(dice.choice(("default-scheduler", "default-scheduler", "other")))
    return made.labels(app=dice.choice("ab")).status(**ready).build()


def spread_pod(dice: random.Random) -> PodInfo:
    """With a constraint or two, and node affinity and tolerations that decide which nodes are counted."""
    pod = random_pod(dice).pod
    spec = {
        "maxSkew": dice.choice((1, 1, 2)),
        "topologyKey": dice.choice(("topology.kubernetes.io/zone", "kubernetes.io/hostname", "rack")),
        "whenUnsatisfiable": dice.choice(("DoNotSchedule", "DoNotSchedule", "ScheduleAnyway")),
        "labelSelector": {"matchLabels": {"app": dice.choice(("web", "db"))}},
    }
    policies: list[Body] = [{"nodeTaintsPolicy": "Honor"}, {"nodeAffinityPolicy": "Ignore"}, {"matchLabelKeys": ["tier"]}]
    more = dice.choice([{}, {}, {"minDomains": 2}, *policies])
    if spec["whenUnsatisfiable"] == "ScheduleAnyway":
        more = {key: value for key, value in more.items() if key != "minDomains"}
    labels = dict(pod.metadata.labels or {})
    return plain_pod(dice, {"topologySpreadConstraints": [spec | more]}, labels=labels)


def limited_pod(dice: random.Random) -> PodInfo:
    """With limits of its own, short or in JSON, right or wrong, or none; the profile's may pick it besides."""
    key = dice.choice(("topology.kubernetes.io/zone", "kubernetes.io/hostname", "rack"))
    mode = dice.choice(("Required", "Required", "Preferred"))
    labels = {"app": dice.choice(("web", "db"))} | ({"tier": dice.choice(("front", "back"))} if dice.random() < 0.6 else {})
    selector = {"matchLabels": {"app": labels["app"]}} if dice.random() < 0.9 else {}
    limit = {"selector": selector, "topologyKey": key, "max": dice.choice((1, 2)), "mode": mode}
    most = f"{dice.choice('12')} per {key} of {dice.choice(('app', 'app', 'tier'))}{' preferred' if mode == 'Preferred' else ''}"
    text = dice.choice(("", most, most, json.dumps([limit]), json.dumps([limit | {"matchLabelKeys": ["tier"]}])))
    text = "no limit" if dice.random() < 0.05 else text
    return plain_pod(dice, {}, labels=labels, annotations={DOMAIN_LIMITS: text} if text else {})


#: Limits of a profile: each app by itself, and one app of two namespaces together.
LIMITS: list[Body] = [
    {"selector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}, "matchLabelKeys": ["app"], "topologyKey": "rack", "max": 2},
    {
        "selector": {"matchLabels": {"app": "web"}}, "namespaces": ["default", "other"],
        "topologyKey": "topology.kubernetes.io/zone", "max": 1, "mode": "Preferred",
    },
]  # fmt: skip


def loving_pod(dice: random.Random) -> PodInfo:
    """With required affinity or anti-affinity to pods of an app."""

    def term() -> Body:
        labels = {"matchLabels": {"app": dice.choice(("web", "db"))}}
        return {"labelSelector": labels, "topologyKey": dice.choice(("topology.kubernetes.io/zone", "kubernetes.io/hostname"))}

    sides: Body = {}
    for side, chance in (("podAffinity", 0.5), ("podAntiAffinity", 0.4)):
        if dice.random() < chance:
            sides[side] = {"requiredDuringSchedulingIgnoredDuringExecution": [term()]}
    labels = {"app": dice.choice(("web", "db"))} | ({"tier": "front"} if dice.random() < 0.3 else {})
    return plain_pod(dice, {"affinity": sides}, labels=labels)


def big_pod(dice: random.Random) -> PodInfo:
    """Of some priority, and rarely two to a node."""
    requests = {"cpu": dice.choice(("1", "2", "4")), "memory": "1Gi"}
    return plain_pod(dice, {"containers": [{"name": "main", "resources": {"requests": requests}}], "priority": dice.choice((0, 5, 10))})


def small_node(dice: random.Random) -> Node:
    return NodeMaker("n").offers(cpu=dice.choice("24"), memory="8Gi", pods="9").build()


# --- groups ------------------------------------------------------------------------------------------------------------------


def pod_of_a_group(dice: random.Random) -> PodInfo:
    return plain_pod(dice, {}, labels={"scheduling.x-k8s.io/pod-group": dice.choice("gh")} if dice.random() < 0.8 else {})


def pod_group(dice: random.Random) -> ClusterObject:
    return kit.coscheduling_group(dice.choice("gh"), dice.choice((1, 2, 3))).build()


# --- volumes -----------------------------------------------------------------------------------------------------------------


def pod_with_disks(dice: random.Random) -> PodInfo:
    """With disks of its own and behind claims, or with none."""
    pod = StorageDice(dice.random()).pod_with_volumes(dice.choice("12"))
    return as_pod(pod) if dice.random() < 0.9 else plain_pod(dice, {})


def storage(dice: random.Random) -> ClusterObject:
    kind, body = StorageDice(dice.random()).storage()
    return as_object({"kind": kind, **body})


def zoned_storage(dice: random.Random) -> ClusterObject:
    """A claim that is bound to one of two volumes, or one of these, of a zone."""
    if dice.random() < 0.5:
        return kit.persistent_volume_claim(dice.choice(("c0", "c1"))).bound_to(dice.choice(("v0", "v1"))).build()
    labels = {"topology.kubernetes.io/zone": dice.choice(("z1", "z2", "z1__z2"))} if dice.random() < 0.9 else {}
    return kit.persistent_volume(dice.choice(("v0", "v1"))).labels(labels).build()


def pod_with_bound_claims(dice: random.Random) -> PodInfo:
    names = dice.sample(["c0", "c1", "c2", "c3"], dice.choice((0, 1, 1, 2)))
    return plain_pod(dice, {"volumes": [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names]})


def limited_storage(dice: random.Random) -> ClusterObject:
    """A claim bound to a volume of the same number, a volume of a CSI driver, or how many of these a node takes."""
    number = dice.choice("0123")
    most = dice.choice((0, 1, 2))
    made: ClusterObject = dice.choice([
        kit.persistent_volume_claim(f"c{number}").bound_to(f"v{number}"),
        kit.persistent_volume(f"v{number}").csi("a", f"h{number}"),
        kit.csi_node(dice.choice(NODE_NAMES[:4])).driver("a", count=most),
    ]).build()  # fmt: skip
    return made


def zoned_node(dice: random.Random) -> Node:
    node = StorageDice(dice.random()).zoned_node("n")
    clouds = [cloud for cloud in ("aws-ebs", "gce-pd", "azure-disk", "cinder") if dice.random() < 0.6]
    offers = {f"attachable-volumes-{cloud}": dice.choice("012") for cloud in clouds}
    return as_node({**node, "status": {"allocatable": {"pods": "9", **offers}}})


def pod_with_any_disk(dice: random.Random) -> PodInfo:
    """With disks of the four kinds that the limits of the time before CSI count."""
    kinds: list[Body] = [
        {"awsElasticBlockStore": {"volumeID": dice.choice(("vol-1", "vol-2", "vol-3"))}},
        {"gcePersistentDisk": {"pdName": dice.choice("def")}},
        {"azureDisk": {"diskName": dice.choice("def")}},
        {"cinder": {"volumeID": dice.choice("def")}},
    ]
    volumes = [{"name": f"v{at}", **dice.choice(kinds)} for at in range(dice.choice((1, 2, 3)))]
    return plain_pod(dice, {"volumes": volumes})


def pod_with_claims(dice: random.Random) -> PodInfo:
    """With claims of `volume_worlds`, bound and unbound."""
    names = dice.sample(["c0", "c1"], dice.choice((1, 1, 1, 2)))
    return plain_pod(dice, {"volumes": [{"name": f"v{i}", "persistentVolumeClaim": {"claimName": name}} for i, name in enumerate(names)]})


def provisioning(dice: random.Random) -> ClusterObject:
    """A claim, a volume, a class, a driver or a capacity."""
    world = [each for each in volume_worlds.world(dice) if each["metadata"]["name"] not in {"c2", "c3", "zonal"}]
    kinds = {"PersistentVolumeClaim": 4, "PersistentVolume": 4, "StorageClass": 4, "CSIStorageCapacity": 1, "CSIDriver": 1}
    kind = dice.choices(list(kinds), list(kinds.values()))[0]
    return as_object(dice.choice([each for each in world if each["kind"] == kind] or [each for each in world if each["kind"] in kinds]))


def node_of_a_zone(dice: random.Random) -> Node:
    made = kit.node("n", pods="9")
    return (made.zone(dice.choice("ab")) if dice.random() < 0.8 else made).build()


# --- devices -----------------------------------------------------------------------------------------------------------------


def pod_with_device_claims(dice: random.Random) -> PodInfo:
    names = [dice.choice(("d0", "d1", "d2", "d2"))] if dice.random() < 0.7 else dice.sample(["d0", "d1", "d2"], dice.choice((0, 2)))
    return plain_pod(dice, {"resourceClaims": [{"name": name, "resourceClaimName": name} for name in names]})


def device_object(dice: random.Random) -> ClusterObject:
    """A slice of one node, a class, or a claim that has devices or not."""
    kinds = {_slice: 8, _device_claim: 5, _class: 4, _rule: 1}
    made: ClusterObject = dice.choices(list(kinds), list(kinds.values()))[0](dice).build()
    return made


def _slice(dice: random.Random) -> PlainMaker[Any]:
    node = dice.choice(NODE_NAMES[:4])
    made = kit.resource_slice(f"slice-{node}").on(node)
    for number in range(dice.choice((1, 2, 3))):
        made = made.device(f"g{number}", attributes={"model": dice.choice("ab")})
    return made


def _class(dice: random.Random) -> PlainMaker[Any]:
    any_device, some_devices = "device.driver == 'gpu.example.com'", "device.attributes['gpu.example.com'].model == 'a'"
    name, expression = dice.choice((("any", any_device), ("some", some_devices), ("some", any_device)))
    return kit.device_class(name).selects(expression)


def _device_claim(dice: random.Random) -> PlainMaker[Any]:
    """One of three claims. The API server lets nobody change the spec of one, so that is always the same."""
    name, count, kind, plain = dice.choice((("d0", 1, "any", True), ("d1", 2, "any", True), ("d2", 1, "some", False)))
    made = kit.resource_claim(name)
    made = made.request(kind, count=count, name="r") if plain else made.request_first_of("some", "any", name="r")
    if dice.random() < 0.25:
        result = {"request": "r", "driver": "gpu.example.com", "pool": dice.choice(NODE_NAMES[:3]), "device": "g0"}
        selector = {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [result["pool"]]}]}]}
        users = [{"resource": "pods", "name": "s0", "uid": "s0"}] if dice.random() < 0.8 else []
        made = made.status(allocation={"devices": {"results": [result]}, "nodeSelector": selector}, reservedFor=users)
    return made


def _rule(dice: random.Random) -> PlainMaker[Any]:
    rule = kit.device_taint_rule("rule", "broken", effect=dice.choice(("NoSchedule", "NoExecute")))
    return rule.devices(pool=dice.choice(NODE_NAMES[:3]))


def pod_with_a_share(dice: random.Random) -> PodInfo:
    amount = dice.choice(("", "250", "500", "1000", "2000", "1500"))
    requests = {"cpu": "1"} | ({SHARES: amount} if amount else {})
    return plain_pod(dice, {"containers": [{"name": "main", "resources": {"requests": requests, "limits": requests}}]})


def node_with_shares(dice: random.Random) -> Node:
    made = NodeMaker("n").offers(cpu="16", memory="16Gi", pods="9")
    return (made.offers({SHARES: dice.choice(("1000", "2000", "4000"))}) if dice.random() < 0.8 else made).build()
