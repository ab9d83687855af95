"""Pods, nodes and objects at random for plugins that the general ones of `placewright.testing` do not reach.

Most are drawn from a few that are written down, so that what one object says concerns another. What is twice as likely stands there twice.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import combinations, product
from random import Random
from typing import Any

import volume_worlds
from storage_worlds import StorageDice

from placewright import testing as kit
from placewright.api.annotations import DOMAIN_LIMITS
from placewright.api.objects import Node
from placewright.api.pods import PodInfo
from placewright.cluster.objects import ClusterObject
from placewright.offline.world import read_object
from placewright.testing.nodes import NodeMaker
from placewright.testing.objectmaker import HOSTNAME, ZONE, ObjectMaker
from placewright.testing.pods import PodMaker
from placewright.testing.randomobjects import NODE_NAMES, drawn

Body = dict[str, Any]
APPS, LABELS = ("web", "db"), {"app": ("web", "db"), "tier": ("front", "back")}
POD, NODE = kit.pod("p"), NodeMaker("n").offers(pods="9")
AVOID = "scheduler.alpha.kubernetes.io/preferAvoidPods"
SHARES = "openb/gpu-milli"
#: A mix of pods that DeviceFragmentation is to expect.
TYPICAL = [{"requests": {SHARES: units, "cpu": "2"}, "popularity": often} for units, often in (("250", 3), ("500", 4), ("1000", 5))]


def one_of(*choices: ObjectMaker[Any]) -> Callable[[Random], Any]:
    return lambda dice: dice.choice(choices).build()


def a_pod_of(*choices: PodMaker) -> Callable[[Random], PodInfo]:
    """One of these, with some label."""
    return lambda dice: dice.choice(choices).labels(app=dice.choice("ab")).build()


def as_read(manifest: Body) -> Any:
    return read_object(manifest, "test")


# --- fields that few pods and nodes have -------------------------------------------------------------------------------------

pod_that_names_a_node = a_pod_of(*(POD.on(name) for name in NODE_NAMES), POD, POD, POD, POD)
_PORTS = tuple(product((80, 443), ("", "10.0.0.1", "10.0.0.2"), ("TCP", "UDP")))
_ONE_PORT = [POD.host_port(port, ip=address, protocol=protocol) for port, address, protocol in _PORTS]
pod_with_ports = a_pod_of(*_ONE_PORT, *_ONE_PORT, *(made.host_port(port) for made in _ONE_PORT for port in (80, 443)), *[POD] * 12)
gated_pod = a_pod_of(*(POD.gates(*names) for names in ("", "g", "h", "gh")))
pod_that_asks_the_kubelet = a_pod_of(
    *(
        POD.spec(containers=[{"name": "main", "restartPolicyRules": rules}], **more)
        for rules in ([], [{"action": "RestartAllContainers"}])
        for more in ({}, {}, {}, {"hostNetwork": True, "hostUsers": False}, {"hostNetwork": True, "hostUsers": False})
    )
)
_FEATURES = ("RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport")
node_with_features = one_of(*(NODE.features(*names) for count in range(3) for names in combinations(_FEATURES, count)))
_SIGNATURES = [{"podSignature": {"podController": {"kind": "ReplicaSet", "uid": app}}} for app in APPS]
#: Nodes that would rather not have the pods of some ReplicaSets.
node_that_avoids = one_of(
    *(
        NODE.annotations({AVOID: json.dumps({"preferAvoidPods": avoided})})
        for avoided in ([], [], *combinations(_SIGNATURES, 1), _SIGNATURES)
    )
)
#: Of one of two apps, which its ReplicaSet and Service select.
_OWNED = [POD.owned_by("ReplicaSet", app, uid=app).labels(app=app) for app in APPS]
owned_pod = one_of(*_OWNED * 3, *(made.node_selector(disk="ssd") for made in _OWNED), *(POD.labels(app=app) for app in APPS))
#: Of the default scheduler or another, and half of them Ready where they stand on a node.
pod_that_may_be_ready = a_pod_of(
    *(
        POD.scheduler(name).status(conditions=conditions)
        for name in ("default-scheduler", "default-scheduler", "other")
        for conditions in ([], [{"type": "Ready", "status": "True"}])
    )
)
big_pod = a_pod_of(*(POD.requests(cpu=cpu, memory="1Gi").priority(priority) for cpu in "124" for priority in (0, 5, 10)))
small_node = one_of(*(NODE.offers(cpu=cpu, memory="8Gi") for cpu in "24"))


def spread_pod(dice: Random) -> PodInfo:
    """With a constraint that may say which nodes are counted."""
    hard = dice.random() < 0.67
    policies: list[Body] = [{}, {}, {"nodeTaintsPolicy": "Honor"}, {"nodeAffinityPolicy": "Ignore"}, {"matchLabelKeys": ["tier"]}]
    more = dice.choice([*policies, {"minDomains": 2}] if hard else policies)
    made = POD.labels(drawn(dice, LABELS, 0.7))
    key, skew = dice.choice((ZONE, HOSTNAME, "rack")), dice.choice((1, 1, 2))
    return made.spread(key, app=dice.choice(APPS), max_skew=skew, hard=hard, **more).build()


def limited_pod(dice: Random) -> PodInfo:
    """With limits of its own, short or in JSON, right or wrong, or none; the profile's may pick it besides."""
    key = dice.choice((ZONE, HOSTNAME, "rack"))
    mode = dice.choice(("Required", "Required", "Preferred"))
    labels = {"app": dice.choice(APPS), **drawn(dice, {"tier": ("front", "back")}, 0.6)}
    selector = {"matchLabels": {"app": labels["app"]}} if dice.random() < 0.9 else {}
    limit = {"selector": selector, "topologyKey": key, "max": dice.choice((1, 2)), "mode": mode}
    most = f"{dice.choice('12')} per {key} of {dice.choice(('app', 'app', 'tier'))}{' preferred' if mode == 'Preferred' else ''}"
    text = dice.choice(("", most, most, json.dumps([limit]), json.dumps([limit | {"matchLabelKeys": ["tier"]}])))
    text = "no limit" if dice.random() < 0.05 else text
    return POD.labels(labels).annotations({DOMAIN_LIMITS: text} if text else {}).build()


#: Limits of a profile: each app by itself, and one app of two namespaces together.
LIMITS: list[Body] = [
    {"selector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}, "matchLabelKeys": ["app"], "topologyKey": "rack", "max": 2},
    {
        "selector": {"matchLabels": {"app": "web"}}, "namespaces": ["default", "other"],
        "topologyKey": ZONE, "max": 1, "mode": "Preferred",
    },
]  # fmt: skip


def loving_pod(dice: Random) -> PodInfo:
    """With required affinity or anti-affinity to pods of an app."""
    made = POD.labels({"app": dice.choice(APPS), **drawn(dice, {"tier": ("front",)}, 0.3)})
    if dice.random() < 0.5:
        made = made.pod_affinity(dice.choice((ZONE, HOSTNAME)), app=dice.choice(APPS))
    if dice.random() < 0.4:
        made = made.pod_anti_affinity(dice.choice((ZONE, HOSTNAME)), app=dice.choice(APPS))
    return made.build()


# --- groups ------------------------------------------------------------------------------------------------------------------

pod_of_a_group = one_of(*(POD.in_coscheduling_group(name) for name in "ghgh"), POD)
pod_group = one_of(*(kit.coscheduling_group(name, members) for name in "gh" for members in (1, 2, 3)))


# --- volumes -----------------------------------------------------------------------------------------------------------------


def pod_with_disks(dice: Random) -> PodInfo:
    """With disks of its own and behind claims, or with none."""
    made: PodInfo = as_read({"kind": "Pod", **StorageDice(dice.random()).pod_with_volumes(dice.choice("12"))})
    return made if dice.random() < 0.9 else POD.build()


def storage(dice: Random) -> ClusterObject:
    kind, body = StorageDice(dice.random()).storage()
    found: ClusterObject = as_read({"kind": kind, **body})
    return found


#: A claim that is bound to one of two volumes, or one of these, of a zone.
zoned_storage = one_of(
    *(kit.persistent_volume_claim(f"c{claim}").bound_to(f"v{volume}") for claim, volume in product("01", "01011")),
    *(kit.persistent_volume(f"v{number}").labels({ZONE: zone}) for number in "01" for zone in ("z1", "z2", "z1__z2", "z1__z2")),
    *(kit.persistent_volume(f"v{number}") for number in "01"),
)
_CLAIMS = [[POD.volume_claims(*names) for names in combinations(("c0", "c1", "c2", "c3"), count)] for count in range(3)]
pod_with_bound_claims = a_pod_of(*_CLAIMS[0] * 3, *_CLAIMS[1] * 2, *_CLAIMS[2])
#: A claim bound to a volume of the same number, a volume of a CSI driver, or how many of these a node takes.
_LIMITED: tuple[ObjectMaker[Any], ...] = (
    *[kit.persistent_volume_claim(f"c{number}").bound_to(f"v{number}") for number in range(4)] * 3,
    *[kit.persistent_volume(f"v{number}").csi("a", f"h{number}") for number in range(4)] * 3,
    *(kit.csi_node(name).driver("a", count=count) for name in NODE_NAMES[:4] for count in range(3)),
)

limited_storage = one_of(*_LIMITED)
#: The same, and whether nodes must have the driver; some CSINodes do not name it.
driven_storage = one_of(
    *_LIMITED,
    *[kit.csi_driver("a").spec(preventPodSchedulingIfMissing=prevents) for prevents in (True, True, False)],
    *[kit.csi_node(name) for name in NODE_NAMES[:4]],
)


def zoned_node(dice: Random) -> Node:
    clouds = {f"attachable-volumes-{cloud}": "012" for cloud in ("aws-ebs", "gce-pd", "azure-disk", "cinder")}
    labels = StorageDice(dice.random()).zoned_node("n")["metadata"]["labels"]
    return NODE.labels(labels).offers(drawn(dice, clouds, 0.6)).build()


#: Disks of the four kinds that the limits of the time before CSI count.
_DISKS: list[Body] = [
    *({"awsElasticBlockStore": {"volumeID": name}} for name in ("vol-1", "vol-2", "vol-3")),
    *({"gcePersistentDisk": {"pdName": name}} for name in "def"),
    *({"azureDisk": {"diskName": name}} for name in "def"),
    *({"cinder": {"volumeID": name}} for name in "def"),
]


def pod_with_any_disk(dice: Random) -> PodInfo:
    return POD.volumes(*dice.choices(_DISKS, k=dice.choice((1, 2, 3)))).build()


#: Pods with claims of `volume_worlds`, bound and unbound.
pod_with_claims = a_pod_of(*(POD.volume_claims(*names) for names in (*[("c0",), ("c1",)] * 3, ("c0", "c1"), ("c1", "c0"))))


def provisioning(dice: Random) -> ClusterObject:
    """A claim, a volume, a class, a driver or a capacity."""
    world = [each for each in volume_worlds.world(dice) if each["metadata"]["name"] not in {"c2", "c3", "zonal"}]
    kinds = {"PersistentVolumeClaim": 4, "PersistentVolume": 4, "StorageClass": 4, "CSIStorageCapacity": 1, "CSIDriver": 1}
    kind = dice.choices(list(kinds), list(kinds.values()))[0]
    found = [each for each in world if each["kind"] == kind] or [each for each in world if each["kind"] in kinds]
    made: ClusterObject = as_read(dice.choice(found))
    return made


node_of_a_zone = one_of(*(kit.node("n", pods="9").zone(zone) for zone in "abab"), kit.node("n", pods="9"))


# --- devices -----------------------------------------------------------------------------------------------------------------

_USED = POD.spec(containers=[{"name": "main", "resources": {"requests": {"cpu": "1500m"}, "claims": [{"name": "d2"}]}}])
pod_with_device_claims = a_pod_of(
    *[POD.resource_claims(name) for name in ("d0", "d1", "d2", "d2")] * 3, *[_USED.resource_claims("d2")] * 4,
    *[POD] * 3, *(POD.resource_claims(*names) for names in combinations(("d0", "d1", "d2"), 2)),
)  # fmt: skip
_ANY, _SOME = "device.driver == 'gpu.example.com'", "device.attributes['gpu.example.com'].model == 'a'"
_CLASSES = [kit.device_class(name).selects(expression) for name, expression in (("any", _ANY), ("some", _SOME), ("some", _ANY))]
#: The API server refuses changes to the spec of a claim, so all states have one spec.
_DEVICE_CLAIMS = [
    kit.resource_claim("d0").request("any", name="r"), kit.resource_claim("d1").request("any", count=2, name="r"),
    kit.resource_claim("d2").request_first_of("some", "any", name="r"),
]  # fmt: skip
_RULES = [
    kit.device_taint_rule("rule", "broken", effect=effect).devices(pool=pool)
    for effect, pool in product(("NoSchedule", "NoExecute"), NODE_NAMES[:3])
]


def device_object(dice: Random) -> ClusterObject:
    """A slice of one node, a class, or a claim that has devices or not."""
    kinds: dict[Callable[[Random], ObjectMaker[Any]], int] = {
        _slice: 8, _device_claim: 5, lambda dice: dice.choice(_CLASSES): 4, lambda dice: dice.choice(_RULES): 1
    }  # fmt: skip
    made: ClusterObject = dice.choices(list(kinds), list(kinds.values()))[0](dice).build()
    return made


def _slice(dice: Random) -> ObjectMaker[Any]:
    node = dice.choice(NODE_NAMES[:4])
    made = kit.resource_slice(f"slice-{node}").on(node)
    for number in range(dice.choice((1, 2, 3))):
        takes = {"nodeAllocatableResources": {"cpu": {"mapping": {"deviceMultiplier": "500m"}}}} if dice.random() < 0.2 else {}
        made = made.device(f"g{number}", attributes={"model": dice.choice("ab")}, **takes)
    return made


def _device_claim(dice: Random) -> ObjectMaker[Any]:
    made = dice.choice(_DEVICE_CLAIMS)
    if dice.random() < 0.25:
        pool = dice.choice(NODE_NAMES[:3])
        selector = {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [pool]}]}]}
        result = {"request": "r", "driver": "gpu.example.com", "pool": pool, "device": "g0"}
        users = [{"resource": "pods", "name": "s0", "uid": "s0"}] if dice.random() < 0.8 else []
        made = made.status(allocation={"devices": {"results": [result]}, "nodeSelector": selector}, reservedFor=users)
    return made


_AMOUNTS = ({}, {SHARES: "250"}, {SHARES: "500"}, {SHARES: "1000"}, {SHARES: "2000"}, {SHARES: "1500"})
pod_with_a_share = a_pod_of(*(POD.requests(amount, cpu="1").limits(amount, cpu="1") for amount in _AMOUNTS))
_SHARING = NODE.offers(cpu="16", memory="16Gi")
node_with_shares = one_of(_SHARING, *(_SHARING.offers({SHARES: amount}) for amount in ("1000", "2000", "4000")))
