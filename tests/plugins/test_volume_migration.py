"""VolumeBinding and in-tree volumes where CSI drivers have taken over: their zones are then the drivers' labels, on those nodes alone."""

from __future__ import annotations

import copy
from random import Random
from typing import Any

import pytest

from placewright.api.errors import VolumeError
from placewright.api.objects import NodeName
from placewright.cluster.cluster import Cluster
from placewright.framework.status import Code, Status
from placewright.plugins.shared.csimigration import driver_affinity
from placewright.plugins.volumebinding.bindings import ReservedVolumes, all_bound
from placewright.plugins.volumebinding.plugin import VolumeBinding
from placewright.testing import csi_node, node, persistent_volume, persistent_volume_claim, storage_class
from placewright.testing.nodes import NodeMaker
from placewright.testing.volumes import CSINodeMaker, VolumeMaker
from plugins.pairwise import build
from plugins.test_volume_binding import NODE, Shown, answers, judged, opened, web
from plugins.volume_worlds import AFFINITY, NO_VOLUME
from randomcases import cases

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
CLAIM = persistent_volume_claim("data").bound_to("v")
USED = (CLAIM.manifest, web("data").manifest)
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
    return [*nodes, *csi_nodes, volume, *USED]


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
    for seed in range(cases(1500)):
        objects = world(Random(seed))
        found = judged(objects)
        expected = {f"n{i}": [] if reached(objects, f"n{i}") else [AFFINITY] for i in range(5)}
        assert found == expected, (seed, objects)
        answers_seen.update(map(tuple, expected.values()))
    assert answers_seen == {(), (AFFINITY,)}


# --- one rule at a time ----------------------------------------------------------------------------------------------------------


GCE = "kubernetes.io/gce-pd"


def volume(source: Body | None = None) -> VolumeMaker:
    return persistent_volume("v").spec(**(source or PLUGINS[GCE][0]))


def taken_over(name: str, *plugins: str) -> CSINodeMaker:
    """A node whose drivers have taken over the volumes of these plugins."""
    return csi_node(name).annotations({TAKEN_OVER: ",".join(plugins)})


def placed(name: str, zone: str = "", gke: str = "") -> NodeMaker:
    """A node with these values of the zone label, and of the driver's."""
    return node(name).labels({key: value for key, value in ((ZONE, zone), ("topology.gke.io/zone", gke)) if value})


IN_A = volume().reachable(ZONE, "a")


def test_a_zone_is_the_drivers_label_where_it_has_taken_over_and_only_there() -> None:
    nodes = [placed("before", "a"), placed("after", "a"), placed("ready", "a", "a"), placed("far", "a", "b")]
    objects = [*nodes, *(taken_over(name, GCE) for name in ("after", "ready", "far")), CLAIM, web("data"), IN_A]
    assert judged(objects) == {"before": [], "after": [AFFINITY], "ready": [], "far": [AFFINITY]}


def test_another_plugins_driver_changes_nothing() -> None:
    assert judged([placed("n1", "a"), taken_over("n1", "kubernetes.io/aws-ebs"), CLAIM, web("data"), IN_A]) == {"n1": []}


def test_a_volume_that_nobody_has_yet_is_matched_as_it_is_written() -> None:
    nodes = [placed("n1", "a"), placed("n2", gke="a"), *(taken_over(name, GCE) for name in ("n1", "n2"))]
    assert judged([*nodes, storage_class(), persistent_volume_claim("data"), web("data"), IN_A]) == {"n1": [], "n2": [NO_VOLUME]}


def test_a_driver_that_takes_over_later_is_noticed() -> None:
    cluster, pod = opened([placed("n1", "a"), CLAIM, web("data"), IN_A])
    plugin = build(VolumeBinding, cluster)
    assert answers(plugin, cluster, pod) == {"n1": []}
    cluster.objects.put(taken_over("n1", GCE).build())
    assert answers(plugin, cluster, pod) == {"n1": [AFFINITY]}
    cluster.set_node(placed("n1", "a", "a").build())
    assert answers(plugin, cluster, pod) == {"n1": []}


BROKEN: list[tuple[Body, str]] = [
    ({"awsElasticBlockStore": {"volumeID": "aws://z/disk"}}, "invalid format for AWS volume (aws://z/disk)"),
    ({"azureDisk": {"diskName": "d", "diskURI": "/d", "kind": "Dedicated"}}, "kind(Dedicated) is not supported in csi migration"),
]


@pytest.mark.parametrize(("source", "problem"), BROKEN)
def test_a_volume_that_no_driver_could_know_is_named_once_a_driver_has_taken_over(source: Body, problem: str) -> None:
    plugin = "kubernetes.io/aws-ebs" if "awsElasticBlockStore" in source else "kubernetes.io/azure-disk"
    objects = [NODE, CLAIM, web("data"), volume(source)]
    assert judged(objects) == {"n1": []}
    status = judged([*objects, taken_over("n1", plugin)])
    assert isinstance(status, Status)
    assert (status.code, status.message) == (Code.ERROR, f'persistentvolume "v": could not translate pv: {problem}')


def test_a_disk_of_azure_is_managed_in_whatever_case_that_is_written() -> None:
    made = volume({"azureDisk": {"diskName": "d", "diskURI": "/d", "kind": "managed"}}).reachable(ZONE, "a").build()
    assert made.spec.node_affinity is not None
    assert driver_affinity(made) == made.spec.node_affinity.required


def test_a_volume_that_was_bound_meanwhile_is_held_to_the_same_words() -> None:
    def shown(*csi_nodes: Shown, **source: Any) -> Cluster:
        return opened([placed("n1", "a"), CLAIM, web("data"), IN_A.bound_to("data").spec(**source), *csi_nodes])[0]

    def done(cluster: Cluster) -> bool:
        storage = cluster.objects.storage
        written, demanded = storage.volumes.get("v"), storage.claims.get("data", "default")
        assert written is not None and demanded is not None
        row = cluster.row(NodeName("n1"))
        assert row is not None
        return all_bound(ReservedVolumes(((written, demanded),), ()), cluster.node(row), storage)

    assert done(shown())
    with pytest.raises(VolumeError, match='pv "v" node affinity doesn\'t match node "n1"'):
        done(shown(taken_over("n1", GCE)))
    broken = shown(taken_over("n1", "kubernetes.io/aws-ebs"), awsElasticBlockStore={"volumeID": "aws://z/disk"})
    with pytest.raises(VolumeError, match="failed to translate pv to csi: could not translate pv: invalid format"):
        done(broken)
