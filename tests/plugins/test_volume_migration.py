"""VolumeBinding and in-tree volumes where CSI drivers have taken over: their zones are then the drivers' labels, on those nodes alone."""

from __future__ import annotations

import copy
from random import Random
from typing import Any

import pytest

from placewright.api.errors import VolumeError
from placewright.api.objects import NodeName
from placewright.api.storage import CSINode, PersistentVolume
from placewright.cluster.cluster import Cluster
from placewright.framework.status import Code, Status
from placewright.offline.world import world_from
from placewright.plugins.shared.csimigration import driver_affinity
from placewright.plugins.volumebinding import VolumeBinding
from placewright.plugins.volumebinding.bindings import ReservedVolumes, all_bound
from plugins.pairwise import build
from plugins.test_volume_binding import answers, bound_to, claim, judged, opened, static_class, web
from plugins.volume_worlds import AFFINITY, NO_VOLUME

Body = dict[str, Any]
ZONE, BETA = "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"
REGION, BETA_REGION = "topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region"
TAKEN_OVER = "storage.alpha.kubernetes.io/migrated-plugins"
#: By in-tree plugin: a source, and the label that the driver puts in the zone's place.
PLUGINS: dict[str, tuple[Body, str]] = {
    "kubernetes.io/aws-ebs": ({"awsElasticBlockStore": {"volumeID": "vol-1"}}, "topology.ebs.csi.aws.com/zone"),
    "kubernetes.io/gce-pd": ({"gcePersistentDisk": {"pdName": "d"}}, "topology.gke.io/zone"),
    "kubernetes.io/cinder": ({"cinder": {"volumeID": "u"}}, "topology.cinder.csi.openstack.org/zone"),
    "kubernetes.io/azure-disk": ({"azureDisk": {"diskName": "d", "diskURI": "/d"}}, ""),
    "kubernetes.io/portworx-volume": ({"portworxVolume": {"volumeID": "p"}}, ""),
    "": ({"csi": {"driver": "ebs.csi.aws.com", "volumeHandle": "vol-1"}}, ""),
}
LABELS = (ZONE, BETA, REGION, BETA_REGION, *(label for _, label in PLUGINS.values() if label))


# --- the rules, one node at a time, on bare manifests ----------------------------------------------------------------------------


def world(dice: Random) -> list[Body]:
    """Nodes with zones of all sorts, CSINodes of some, and a pod whose claim has a volume."""
    nodes = [_node(dice, f"n{i}") for i in range(5)]
    csi_nodes = [_csi_node(dice, f"n{i}") for i in range(5) if dice.random() < 0.8]
    spec: Body = {"capacity": {"storage": "1Gi"}, **dice.choice([source for source, _ in PLUGINS.values()])}
    if dice.random() < 0.7:
        terms = [{"matchExpressions": [_expression(dice) for _ in range(dice.randint(0, 2))]} for _ in range(dice.randint(0, 2))]
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
    labels = {key: dice.choice(["z1", "z2", "z1__z2", "z2__", "__"]) for key in (ZONE, BETA) if dice.random() < 0.4}
    if "gcePersistentDisk" in spec:  # several zones must be a region's there
        labels = {key: value.replace("__", "").replace("z1z2", "z1") for key, value in labels.items()}
    volume = {"kind": "PersistentVolume", "metadata": {"name": "v", "labels": labels}, "spec": spec, "status": {"phase": "Bound"}}
    return [*nodes, *csi_nodes, volume, claim("data", **bound_to("v")), web("data")]


def _node(dice: Random, name: str) -> Body:
    return {"kind": "Node", "metadata": {"name": name, "labels": {key: dice.choice(["z1", "z2"]) for key in LABELS if dice.random() < 0.6}}}


def _csi_node(dice: Random, name: str) -> Body:
    named = ",".join(plugin for plugin in PLUGINS if plugin and dice.random() < 0.6)
    return {"kind": "CSINode", "metadata": {"name": name, "annotations": {TAKEN_OVER: named} if dice.random() < 0.9 else {}}}


def _expression(dice: Random) -> Body:
    operator = dice.choice(["In", "In", "NotIn", "Exists"])
    values = [] if operator == "Exists" else [dice.choice(["z1", "z2"])]
    return {"key": dice.choice(LABELS[:5]), "operator": operator, "values": values}


def reached(objects: list[Body], node: str) -> bool:
    of = {(each["kind"], each["metadata"]["name"]): each for each in objects}
    volume = of["PersistentVolume", "v"]
    plugin, key = next((name, key) for name, (source, key) in PLUGINS.items() if source.items() <= volume["spec"].items())
    annotations = of.get(("CSINode", node), {"metadata": {"annotations": {}}})["metadata"]["annotations"]
    affinity = volume["spec"].get("nodeAffinity")
    if plugin and plugin in annotations.get(TAKEN_OVER, "").split(","):
        affinity = translated(affinity, volume["metadata"]["labels"], key)
    if affinity is None:
        return True
    labels = of["Node", node]["metadata"]["labels"]
    terms = [term["matchExpressions"] for term in affinity["required"]["nodeSelectorTerms"]]
    return any(term and all(matches(each, labels) for each in term) for term in terms)


def matches(expression: Body, labels: Body) -> bool:
    value = labels.get(expression["key"])
    known = {"In": value in expression["values"], "NotIn": value not in expression["values"], "Exists": value is not None}
    return known[expression["operator"]]


def translated(affinity: Body | None, labels: Body, key: str) -> Body | None:
    if not key:
        return affinity
    affinity = copy.deepcopy(affinity)
    terms = affinity["required"]["nodeSelectorTerms"] if affinity else []
    written = [each for term in terms for each in term["matchExpressions"]]
    keys = {each["key"] for each in written}
    order = [key for known in (keys, set(labels)) for key in (ZONE, BETA) if key in known]
    zone = order[0] if order else ZONE
    regions = [each for each in written if each["key"] == BETA_REGION] if zone == BETA else []
    if any(each["values"] for each in written if each["key"] == zone):
        for each in written:
            each["key"] = key if each["key"] == zone else each["key"]
    else:
        zones = sorted({part.strip() for part in labels.get(zone, "").split("__")} - {""})
        if zones:
            affinity = affinity or {"required": {"nodeSelectorTerms": []}}
            terms = affinity["required"]["nodeSelectorTerms"] or [{"matchExpressions": []}]
            affinity["required"]["nodeSelectorTerms"] = terms
            for term in terms:
                term["matchExpressions"] = [*term["matchExpressions"], {"key": key, "operator": "In", "values": zones}]
    for each in regions if any(each["values"] for each in regions) else ():
        each["key"] = REGION
    return affinity


def test_random_volumes_are_reached_from_the_nodes_that_the_rules_name() -> None:
    answers_seen = set()
    for seed in range(1500):
        objects = world(Random(seed))
        found = judged(objects)
        expected = {f"n{i}": [] if reached(objects, f"n{i}") else [AFFINITY] for i in range(5)}
        assert found == expected, (seed, objects)
        answers_seen.update(map(tuple, expected.values()))
    assert answers_seen == {(), (AFFINITY,)}


# --- one rule at a time ----------------------------------------------------------------------------------------------------------


def volume(source: Body | None = None, labels: Body | None = None, **spec: Any) -> Body:
    body = {"capacity": {"storage": "1Gi"}, "storageClassName": "static", **(source or PLUGINS["kubernetes.io/gce-pd"][0]), **spec}
    return {"kind": "PersistentVolume", "metadata": {"name": "v", "labels": labels or {}}, "spec": body, "status": {"phase": "Available"}}


def in_zone(zone: str, key: str = ZONE) -> Body:
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": key, "operator": "In", "values": [zone]}]}]}}


def csi_node(name: str, *plugins: str) -> Body:
    return {"kind": "CSINode", "metadata": {"name": name, "annotations": {TAKEN_OVER: ",".join(plugins)}}}


def node(name: str, **labels: str) -> Body:
    keys = {"zone": ZONE, "gke": "topology.gke.io/zone"}
    return {"kind": "Node", "metadata": {"name": name, "labels": {keys[key]: value for key, value in labels.items()}}}


def test_a_zone_is_the_drivers_label_where_it_has_taken_over_and_only_there() -> None:
    nodes = [node("before", zone="a"), node("after", zone="a"), node("ready", zone="a", gke="a"), node("far", zone="a", gke="b")]
    taken_over = [csi_node(name, "kubernetes.io/gce-pd") for name in ("after", "ready", "far")]
    objects = [*nodes, *taken_over, claim("data", **bound_to("v")), web("data"), volume(nodeAffinity=in_zone("a"))]
    assert judged(objects) == {"before": [], "after": [AFFINITY], "ready": [], "far": [AFFINITY]}


def test_another_plugins_driver_changes_nothing() -> None:
    nodes = [node("n1", zone="a"), csi_node("n1", "kubernetes.io/aws-ebs")]
    assert judged([*nodes, claim("data", **bound_to("v")), web("data"), volume(nodeAffinity=in_zone("a"))]) == {"n1": []}


def test_a_volume_that_nobody_has_yet_is_matched_as_it_is_written() -> None:
    nodes = [node("n1", zone="a"), node("n2", gke="a"), *(csi_node(name, "kubernetes.io/gce-pd") for name in ("n1", "n2"))]
    objects = [*nodes, static_class(), claim("data"), web("data"), volume(nodeAffinity=in_zone("a"))]
    assert judged(objects) == {"n1": [], "n2": [NO_VOLUME]}


def test_a_driver_that_takes_over_later_is_noticed() -> None:
    cluster, pod = opened([node("n1", zone="a"), claim("data", **bound_to("v")), web("data"), volume(nodeAffinity=in_zone("a"))])
    plugin = build(VolumeBinding, cluster)
    assert answers(plugin, cluster, pod) == {"n1": []}
    cluster.objects.put(stored(CSINode, csi_node("n1", "kubernetes.io/gce-pd")))
    assert answers(plugin, cluster, pod) == {"n1": [AFFINITY]}
    cluster.set_node(world_from([node("n1", zone="a", gke="a")], "test").cluster.node(0))
    assert answers(plugin, cluster, pod) == {"n1": []}


BROKEN: list[tuple[Body, str]] = [
    ({"awsElasticBlockStore": {"volumeID": "aws://z/disk"}}, "invalid format for AWS volume (aws://z/disk)"),
    ({"azureDisk": {"diskName": "d", "diskURI": "/d", "kind": "Dedicated"}}, "kind(Dedicated) is not supported in csi migration"),
]


@pytest.mark.parametrize(("source", "problem"), BROKEN)
def test_a_volume_that_no_driver_could_know_is_named_once_a_driver_has_taken_over(source: Body, problem: str) -> None:
    plugin = "kubernetes.io/aws-ebs" if "awsElasticBlockStore" in source else "kubernetes.io/azure-disk"
    objects = [node("n1"), claim("data", **bound_to("v")), web("data"), volume(source)]
    assert judged(objects) == {"n1": []}
    status = judged([*objects, csi_node("n1", plugin)])
    assert isinstance(status, Status)
    assert (status.code, status.message) == (Code.ERROR, f'persistentvolume "v": could not translate pv: {problem}')


def stored(kind: type[Any], body: Body) -> Any:
    (found,) = world_from([body], "test").cluster.objects.storage.tables[kind].values()
    return found


def test_a_disk_of_azure_is_managed_in_whatever_case_that_is_written() -> None:
    body = volume({"azureDisk": {"diskName": "d", "diskURI": "/d", "kind": "managed"}}, nodeAffinity=in_zone("a"))
    made: PersistentVolume = stored(PersistentVolume, body)
    assert made.spec.node_affinity is not None
    assert driver_affinity(made) == made.spec.node_affinity.required


def test_a_volume_that_was_bound_meanwhile_is_held_to_the_same_words() -> None:
    def shown(*csi_nodes: Body, **more: Any) -> Cluster:
        bound = volume(nodeAffinity=in_zone("a"), claimRef={"namespace": "default", "name": "data", "uid": "data"}, **more)
        return opened([node("n1", zone="a"), claim("data", **bound_to("v")), web("data"), bound, *csi_nodes])[0]

    def done(cluster: Cluster) -> bool:
        storage = cluster.objects.storage
        written, demanded = storage.volumes.get("v"), storage.claims.get("data", "default")
        assert written is not None and demanded is not None
        row = cluster.row(NodeName("n1"))
        assert row is not None
        return all_bound(ReservedVolumes(((written, demanded),), ()), cluster.node(row), storage)

    assert done(shown())
    with pytest.raises(VolumeError, match='pv "v" node affinity doesn\'t match node "n1"'):
        done(shown(csi_node("n1", "kubernetes.io/gce-pd")))
    broken = shown(csi_node("n1", "kubernetes.io/aws-ebs"), awsElasticBlockStore={"volumeID": "aws://z/disk"})
    with pytest.raises(VolumeError, match="failed to translate pv to csi: could not translate pv: invalid format"):
        done(broken)
