"""EBSLimits, GCEPDLimits, AzureDiskLimits and CinderLimits against a plain scalar reading of the rules, and case by case."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pairwise import build
from pairwise_worlds import Body, info
from storage_worlds import NODES, StorageDice, StorageWorld, differences, happen, populate, said
from test_judging_apart import judged
from test_volume_restrictions import pod, uses

from placewright.api.objects import Pod
from placewright.api.pods import PodInfo
from placewright.api.storage import CSINode
from placewright.cluster.cluster import Cluster
from placewright.framework.events import Action, ClusterEvent, EventResource, QueueingHint
from placewright.framework.status import Code
from placewright.plugins.catalog import in_tree
from placewright.plugins.legacyvolumelimits import AzureDiskLimits, CinderLimits, EBSLimits, GCEPDLimits
from placewright.profiles.defaults import DEFAULT_PLUGINS

FULL = "node(s) exceed max volume count"
MIGRATED = "storage.alpha.kubernetes.io/migrated-plugins"
ALL = [EBSLimits, GCEPDLimits, AzureDiskLimits, CinderLimits]
#: By plugin: the source in a volume, the field with the disk's name, the in-tree plugin, the resource, the usual limit.
FACTS = {
    EBSLimits: ("awsElasticBlockStore", "volumeID", "kubernetes.io/aws-ebs", "attachable-volumes-aws-ebs", 39),
    GCEPDLimits: ("gcePersistentDisk", "pdName", "kubernetes.io/gce-pd", "attachable-volumes-gce-pd", 16),
    AzureDiskLimits: ("azureDisk", "diskName", "kubernetes.io/azure-disk", "attachable-volumes-azure-disk", 16),
    CinderLimits: ("cinder", "volumeID", "kubernetes.io/cinder", "attachable-volumes-cinder", 256),
}


def disk(plugin: type[Any], name: str) -> Body:
    source, field, *_ = FACTS[plugin]
    return {source: {field: name}}


# --- the scalar reading ---------------------------------------------------------------------------------------------------------


class CloudDice(StorageDice):
    """Chance, for clusters whose nodes say in part how many disks they take, and have in part moved on to CSI drivers."""

    def zoned_node(self, name: str) -> Body:
        node = super().zoned_node(name)
        taken = {facts[3]: str(self.randint(0, 3)) for facts in FACTS.values() if self.maybe(0.4)}
        return node | {"status": {"allocatable": taken | {"pods": "9"}}}

    def csi_node(self) -> tuple[str, Body]:
        kind, body = super().csi_node()
        named = ",".join(facts[2] for facts in FACTS.values() if self.maybe(0.3))
        return kind, body | {"metadata": body["metadata"] | {"annotations": {MIGRATED: named}}}


def disk_behind(plugin: type[Any], world: StorageWorld, owner: Body, volume: Body) -> str | None:
    """The disk's name, or one made up for a claim without a volume; `LookupError` and `ValueError` as for the CSI limits."""
    source, field, provisioner, *_ = FACTS[plugin]
    meta = owner["metadata"]
    if "ephemeral" in volume:
        name = f"{meta['name']}-{volume['name']}"
    elif "persistentVolumeClaim" in volume:
        name = volume["persistentVolumeClaim"]["claimName"]
    else:
        return volume[source][field] if source in volume else None
    claim = world.find("PersistentVolumeClaim", name, meta["namespace"])
    if claim is None:
        raise LookupError(name)
    if "ephemeral" in volume and claim["metadata"]["ownerReferences"][0]["uid"] != meta["uid"]:
        raise ValueError(name)
    bound = world.find("PersistentVolume", claim["spec"].get("volumeName", ""))
    if bound is not None:
        return bound["spec"][source][field] if source in bound["spec"] else None
    made_by = (world.find("StorageClass", claim["spec"].get("storageClassName", "")) or {}).get("provisioner")
    return f"to be made for {meta['namespace']}/{name}" if made_by == provisioner else None


def limit(plugin: type[Any], world: StorageWorld, node: str, otherwise: int) -> int | None:
    *_, provisioner, resource, _ = FACTS[plugin]
    csi_node = world.find("CSINode", node) or {"metadata": {"annotations": {MIGRATED: ""}}}
    if provisioner in csi_node["metadata"]["annotations"][MIGRATED].split(","):
        return None
    stated = world.nodes[node]["status"]["allocatable"].get(resource)
    return otherwise if stated is None else int(stated)


def scalar(plugin: type[Any], most: int, world: StorageWorld, mine: Body) -> tuple[str, dict[str, str]] | None:
    wanted, meta = set(), mine["metadata"]
    for volume in mine["spec"]["volumes"]:
        try:
            wanted.add(disk_behind(plugin, world, mine, volume))
        except LookupError as missing:
            name = missing.args[0]
            reason = f'looking up PVC {meta["namespace"]}/{name}: persistentvolumeclaim "{name}" not found'
            return "", dict.fromkeys(world.nodes, reason)
        except ValueError as others:
            return f"PVC {meta['namespace']}/{others.args[0]} was not created for pod {meta['namespace']}/p0 (pod is not owner)", {}
    wanted.discard(None)
    if not wanted:
        return None
    rejected = {}
    for node, there in world.pods_by_node().items():
        used = set()
        for other in there:
            for volume in other["spec"]["volumes"]:
                try:
                    used.add(disk_behind(plugin, world, other, volume))
                except (LookupError, ValueError):
                    continue
        used.discard(None)
        allowed = limit(plugin, world, node, most)
        if allowed is not None and len(used | wanted) > allowed:
            rejected[node] = FULL
    return "", rejected


def reading(plugin: type[Any], most: int) -> Callable[[StorageWorld, Body], tuple[str, dict[str, str]] | None]:
    return lambda world, mine: scalar(plugin, most, world, mine)


@pytest.mark.parametrize("plugin", [EBSLimits, GCEPDLimits])
@settings(max_examples=50)
@given(seed=st.integers(0, 2**32))
def test_whatever_happens_it_says_what_the_rules_say(plugin: type[Any], seed: int) -> None:
    assert differences(plugin, reading(plugin, 2), seed, chance=CloudDice, args={"maxVolumes": 2}) == []


@settings(max_examples=50)
@given(seed=st.integers(0, 2**32))
def test_in_preemptions_trials_a_row_is_judged_as_if_it_alone_had_changed(seed: int) -> None:
    dice, world = CloudDice(seed), StorageWorld()
    plugin = build(EBSLimits, world.cluster, {"maxVolumes": 2})
    populate(world, dice)
    for _ in range(8):
        happen(world, dice)
        by_judge, by_plugin = judged(plugin, world.cluster, info(dice.pod_with_volumes("0")), dice)
        assert by_judge == by_plugin


# --- case by case ---------------------------------------------------------------------------------------------------------------


def node(name: str = "n0", allocatable: Body | None = None, **labels: str) -> Body:
    named = {key.replace("_", "."): value for key, value in labels.items()}
    return {"metadata": {"name": name, "labels": named}, "status": {"allocatable": allocatable or {}}}


def world_of(*nodes: Body) -> StorageWorld:
    world = StorageWorld()
    for each in nodes:
        world.set_node(each)
    return world


def room(plugin: type[Any], world: StorageWorld, args: Body | None = None) -> int:
    """How many disks the only node takes, tried out: there are none yet."""
    built = build(plugin, world.cluster, args)
    return next(
        count
        for count in range(300)
        if said(built, world.cluster, info(pod("0", *(disk(plugin, f"d{i}") for i in range(count + 1)))))[1]
    )


def rejected(plugin: type[Any], world: StorageWorld, *volumes: Body, args: Body | None = None) -> list[str]:
    _, by_node = said(build(plugin, world.cluster, args), world.cluster, info(pod("0", *volumes)))
    assert all(verdict.code is Code.UNSCHEDULABLE for verdict in by_node.values())
    return [verdict.message for verdict in by_node.values()]


@pytest.mark.parametrize("plugin", ALL)
def test_a_node_that_says_nothing_takes_what_the_clouds_machines_take(plugin: type[Any]) -> None:
    assert room(plugin, world_of(node())) == FACTS[plugin][4]


@pytest.mark.parametrize("plugin", ALL)
def test_what_the_profile_says_goes_before_what_is_usual_and_what_the_node_says_before_both(plugin: type[Any]) -> None:
    args = {"maxVolumes": 3}
    assert room(plugin, world_of(node()), args) == 3
    assert room(plugin, world_of(node(allocatable={FACTS[plugin][3]: "5"})), args) == 5
    assert room(plugin, world_of(node(allocatable={FACTS[plugin][3]: "0"})), args) == 0
    others = {facts[3]: "1" for other, facts in FACTS.items() if other is not plugin}
    assert room(plugin, world_of(node(allocatable=others)), args) == 3


@pytest.mark.parametrize(
    ("machine", "most"), [("m5.large", 25), ("c5d.xlarge", 25), ("t3.micro", 25), ("z1d.large", 25), ("m4.large", 39), ("xm5", 39)]
)
@pytest.mark.parametrize("label", ["node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type"])
def test_machines_on_nitro_take_fewer_volumes_of_ebs(machine: str, most: int, label: str) -> None:
    world = world_of({"metadata": {"name": "n0", "labels": {label: machine}}})
    assert room(EBSLimits, world) == most


@pytest.mark.parametrize("plugin", ALL)
def test_a_disk_behind_a_claim_is_the_disk_that_another_pod_names_itself(plugin: type[Any]) -> None:
    world = world_of(node())
    world.put("PersistentVolumeClaim", {"metadata": {"name": "c", "namespace": "home"}, "spec": {"volumeName": "v"}})
    world.put("PersistentVolume", {"metadata": {"name": "v"}, "spec": disk(plugin, "shared")})
    world.place(pod("1", uses("c")), "n0")
    one = {"maxVolumes": 1}
    assert rejected(plugin, world, disk(plugin, "shared"), args=one) == []
    assert rejected(plugin, world, disk(plugin, "another"), args=one) == [FULL]


def test_a_node_with_too_many_takes_not_even_a_pod_that_shares_one() -> None:
    world = world_of(node())
    world.place(pod("1", disk(EBSLimits, "a"), disk(EBSLimits, "b")), "n0")
    assert rejected(EBSLimits, world, disk(EBSLimits, "a"), args={"maxVolumes": 2}) == []
    assert rejected(EBSLimits, world, disk(EBSLimits, "a"), args={"maxVolumes": 1}) == [FULL]


@pytest.mark.parametrize("plugin", ALL)
def test_a_claim_without_a_volume_counts_where_its_class_makes_such_disks(plugin: type[Any]) -> None:
    world = world_of(node())
    world.put("StorageClass", {"metadata": {"name": "mine"}, "provisioner": FACTS[plugin][2]})
    world.put("StorageClass", {"metadata": {"name": "other"}, "provisioner": "example.com/other"})
    claims: dict[str, Body] = {
        "waits": {"storageClassName": "mine"},
        "lost": {"storageClassName": "mine", "volumeName": "gone"},
        "other": {"storageClassName": "other"},
        "none": {},
    }
    for name, spec in claims.items():
        world.put("PersistentVolumeClaim", {"metadata": {"name": name, "namespace": "home"}, "spec": spec})
    world.place(pod("1", disk(plugin, "there")), "n0")
    full = {name: bool(rejected(plugin, world, uses(name), args={"maxVolumes": 1})) for name in claims}
    assert full == {"waits": True, "lost": True, "other": False, "none": False}


@pytest.mark.parametrize("plugin", ALL)
def test_where_a_csi_driver_has_taken_over_there_is_no_limit_here(plugin: type[Any]) -> None:
    world = world_of(node("n0"), node("n1"))
    moved = {"metadata": {"name": "n1", "annotations": {MIGRATED: f"kubernetes.io/other,{FACTS[plugin][2]}"}}}
    built = build(plugin, world.cluster, {"maxVolumes": 1})
    two = info(pod("0", disk(plugin, "a"), disk(plugin, "b")))
    assert set(said(built, world.cluster, two)[1]) == {"n0", "n1"}
    world.put("CSINode", moved)
    assert set(said(built, world.cluster, two)[1]) == {"n0"}
    world.drop("CSINode", moved)
    assert set(said(built, world.cluster, two)[1]) == {"n0", "n1"}


def test_a_pod_without_such_disks_asks_no_column() -> None:
    world = world_of(node())
    plugin = build(EBSLimits, world.cluster)
    for volumes in ([], [{"configMap": {"name": "x"}}], [disk(CinderLimits, "d")]):
        status, _ = said(plugin, world.cluster, info(pod("0", *volumes)))
        assert status.code is Code.SKIP
    assert plugin._attached is None


def test_a_claim_without_a_name_is_an_error_of_the_pod() -> None:
    status, _ = said(build(EBSLimits, world_of(node()).cluster), Cluster(), info(pod("0", uses(""))))
    assert status.code is Code.ERROR
    assert status.message == "PersistentVolumeClaim had no name"


def test_they_are_known_by_name_and_off_by_default() -> None:
    names = {plugin.name for plugin in ALL}
    assert names <= set(in_tree())
    assert not names & set(DEFAULT_PLUGINS)


def test_an_argument_that_nobody_knows_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError):
        build(EBSLimits, Cluster(), {"maxVolume": 1})


# --- events ---------------------------------------------------------------------------------------------------------------------


def on(node_name: str, *volumes: Body) -> PodInfo:
    body = pod("other", *volumes)
    return PodInfo(msgspec.convert(body | {"spec": body["spec"] | {"nodeName": node_name}}, Pod))


def csi(annotation: str) -> CSINode:
    return msgspec.convert({"metadata": {"name": NODES[0], "annotations": {MIGRATED: annotation}}}, CSINode)


GONE = ClusterEvent(EventResource.ASSIGNED_POD, Action.DELETE)
NODE_ADDED = ClusterEvent(EventResource.NODE, Action.ADD)
MORE_ROOM = ClusterEvent(EventResource.NODE, Action.UPDATE_NODE_ALLOCATABLE)
TAINTED = ClusterEvent(EventResource.NODE, Action.UPDATE_NODE_TAINT)
CSI_CHANGED = ClusterEvent(EventResource.CSI_NODE, Action.UPDATE)
CSI_GONE = ClusterEvent(EventResource.CSI_NODE, Action.DELETE)


@pytest.mark.parametrize(
    ("event", "old", "new", "wakes"),
    [
        (GONE, on("n0", disk(EBSLimits, "a")), None, True),
        (GONE, on("n0", uses("c")), None, True),
        (GONE, on("", disk(EBSLimits, "a")), None, False),
        (GONE, on("n0", disk(GCEPDLimits, "a")), None, False),
        (GONE, on("n0", {"configMap": {"name": "x"}}), None, False),
        (NODE_ADDED, None, None, True),
        (MORE_ROOM, None, None, True),
        (TAINTED, None, None, False),
        (CSI_CHANGED, csi(""), csi("kubernetes.io/aws-ebs"), True),
        (CSI_CHANGED, csi("kubernetes.io/aws-ebs"), csi("kubernetes.io/aws-ebs,kubernetes.io/cinder"), False),
        (CSI_CHANGED, csi("kubernetes.io/aws-ebs"), csi(""), False),
        (CSI_GONE, csi("kubernetes.io/aws-ebs"), None, False),
    ],
)
def test_an_event_wakes_the_pods_that_it_could_help_and_no_others(event: ClusterEvent, old: Any, new: Any, wakes: bool) -> None:
    interests = [known for known in build(EBSLimits, Cluster()).events() if event.concerns(known.event)]
    waiting = info(pod("0", disk(EBSLimits, "mine")))
    assert any(known.hint(waiting, old, new) is QueueingHint.QUEUE for known in interests) is wakes
