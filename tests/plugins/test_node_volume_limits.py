"""NodeVolumeLimits against a plain scalar reading of the rules and case by case."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pairwise_worlds
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pairwise import build, load
from pairwise_worlds import Body
from storage_worlds import BETA, EBS, GA, GCE, StorageDice, differences, said

from placewright.api.decode import convert
from placewright.api.storage import VolumeAttachment
from placewright.cluster.cluster import Cluster
from placewright.cluster.journal import Log
from placewright.framework.interface import CycleState
from placewright.framework.status import Code
from placewright.plugins.nodevolumelimits.plugin import NodeVolumeLimits
from placewright.scheduler.attempts import Result
from placewright.testing import (
    PluginCase,
    World,
    assert_waiting,
    csi_driver,
    node,
    persistent_volume,
    persistent_volume_claim,
    pod,
    storage_class,
)
from placewright.testing.objectmaker import ObjectMaker
from placewright.testing.pods import PodMaker
from placewright.testing.volumes import CSINodeMaker, csi_node
from randomcases import cases

FULL = "node(s) exceed max volume count"
MIGRATABLE = ("gcePersistentDisk", "awsElasticBlockStore", "azureFile")


# --- the scalar reading ---------------------------------------------------------------------------------------------------------


def translated(source: Body, labels: Body) -> tuple[str, str] | None:
    if "awsElasticBlockStore" in source:
        written = source["awsElasticBlockStore"]["volumeID"]
        handle = written.split("/")[-1] if written.startswith("aws://") else written
        return (EBS, handle) if handle.startswith("vol-") else None
    if "gcePersistentDisk" in source:
        zone = labels.get(BETA) or labels.get(GA) or "UNSPECIFIED"
        where = f"zones/{zone}"
        if "__" in zone:
            regions = {part.rsplit("-", 1)[0] for part in zone.split("__")}
            if len(regions) > 1 or not all(part.count("-") == 2 for part in zone.split("__")):
                return None
            where = f"regions/{regions.pop()}"
        return GCE, f"projects/UNSPECIFIED/{where}/disks/{source['gcePersistentDisk']['pdName']}"
    return None


def attachable(world: pairwise_worlds.World, owner: Body, volume: Body, *, migrated: bool = True) -> tuple[str, str] | None:
    """Driver and handle; `LookupError` for a missing claim, `ValueError` for one that is another's. In-tree volumes only if `migrated`."""
    meta = owner["metadata"]
    if "ephemeral" in volume:
        name = f"{meta['name']}-{volume['name']}"
    elif "persistentVolumeClaim" in volume:
        name = volume["persistentVolumeClaim"]["claimName"]
    else:
        return translated(volume, {}) if migrated else None
    claim = world.find("PersistentVolumeClaim", name, meta["namespace"])
    if claim is None:
        raise LookupError(name)
    if "ephemeral" in volume and claim["metadata"]["ownerReferences"][0]["uid"] != meta["uid"]:
        raise ValueError(name)
    bound = world.find("PersistentVolume", claim["spec"].get("volumeName", ""))
    if bound is not None:
        csi = bound["spec"].get("csi")
        if csi:
            return csi["driver"], csi["volumeHandle"]
        return translated(bound["spec"], bound["metadata"]["labels"]) if migrated else None
    made_by = (world.find("StorageClass", claim["spec"].get("storageClassName", "")) or {}).get("provisioner", "")
    driver = {"kubernetes.io/aws-ebs": EBS if migrated else "", "kubernetes.io/azure-file": ""}.get(made_by, made_by)
    return (driver, f"to be made for {meta['namespace']}/{name}") if driver else None


def used_on(world: pairwise_worlds.World, there: list[Body]) -> set[tuple[str, str]]:
    used = set()
    for other in there:
        for volume in other["spec"]["volumes"]:
            try:
                found = attachable(world, other, volume)
            except (LookupError, ValueError):
                continue
            if found:
                used.add(found)
    return used


def attached_to(world: pairwise_worlds.World, node: str) -> set[tuple[str, str]]:
    found = set()
    for attachment in world.every("VolumeAttachment"):
        spec = attachment["spec"]
        volume = world.find("PersistentVolume", spec["source"].get("persistentVolumeName", ""))
        if spec["nodeName"] == node and volume and "csi" in volume["spec"]:
            found.add((spec["attacher"], volume["spec"]["csi"]["volumeHandle"]))
    return found


def scalar(world: pairwise_worlds.World, mine: Body) -> tuple[str, dict[str, str]] | None:
    wanted = set()
    for volume in mine["spec"]["volumes"]:
        try:
            found = attachable(world, mine, volume)
        except LookupError as missing:
            name, namespace = missing.args[0], mine["metadata"]["namespace"]
            reason = f'looking up PVC {namespace}/{name}: persistentvolumeclaim "{name}" not found'
            return "", dict.fromkeys(world.nodes, reason)
        except ValueError as others:
            namespace = mine["metadata"]["namespace"]
            reason = f"PVC {namespace}/{others.args[0]} was not created for pod {namespace}/p0 (pod is not owner)"
            return "", dict.fromkeys(world.nodes, reason)
        if found:
            wanted.add(found)
    return "", {node: FULL for node, there in world.pods_by_node().items() if crowded(world, node, there, wanted)}


def crowded(world: pairwise_worlds.World, node: str, there: list[Body], wanted: set[tuple[str, str]]) -> bool:
    drivers = (world.find("CSINode", node) or {"spec": {"drivers": []}})["spec"]["drivers"]
    used = used_on(world, there)
    counts = Counter(driver for driver, _ in used | attached_to(world, node))
    for driver in drivers:
        name, limit = driver["name"], driver.get("allocatable", {}).get("count")
        new = sum(1 for volume in wanted - used if volume[0] == name)
        if new and limit is not None and counts[name] + new > limit:
            return True
    return False


def reading(world: pairwise_worlds.World, mine: Body) -> tuple[str, dict[str, str]] | None:
    kinds = ("persistentVolumeClaim", "ephemeral", *MIGRATABLE)
    return scalar(world, mine) if any(kind in v for v in mine["spec"]["volumes"] for kind in kinds) else None


def missing(world: pairwise_worlds.World, node: str, mine: Body) -> str:
    """The first driver by name that a node must have and has not; empty for none."""
    csi_node = world.find("CSINode", node)
    found = [attachable(world, mine, volume, migrated=csi_node is not None) for volume in mine["spec"]["volumes"]]
    installed = [each["name"] for each in csi_node["spec"]["drivers"]] if csi_node else []
    for driver in sorted(volume[0] for volume in found if volume):
        says = world.find("CSIDriver", driver)
        if says and says["spec"].get("preventPodSchedulingIfMissing") and driver not in installed:
            return driver
    return ""


def reading_of_1_37(world: pairwise_worlds.World, mine: Body) -> tuple[str, dict[str, str]] | None:
    said = reading(world, mine)
    if said is None or not set(said[1].values()) <= {FULL}:
        return said
    without = {node: driver for node in world.nodes if (driver := missing(world, node, mine))}
    return "", said[1] | {node: f"{driver} CSI driver is not installed on the node" for node, driver in without.items()}


class DriverDice(StorageDice):
    """Chance, for CSI drivers that may have to be installed, too."""

    def storage(self) -> tuple[str, Body]:
        if self.maybe(0.8):
            return super().storage()
        spec = {"preventPodSchedulingIfMissing": self.choice([True, True, False, None])}
        return "CSIDriver", {"metadata": {"name": self.choice(["a", EBS, GCE])}, "spec": spec}


@settings(max_examples=cases(100))
@given(st.integers(0, 2**32))
def test_whatever_happens_it_says_what_the_rules_say(seed: int) -> None:
    assert differences(NodeVolumeLimits, reading, seed, chance=DriverDice) == []


@settings(max_examples=cases(100))
@given(st.integers(0, 2**32))
def test_under_the_rules_of_1_37_nodes_must_have_drivers_that_say_so(seed: int) -> None:
    assert differences(NodeVolumeLimits, reading_of_1_37, seed, chance=DriverDice, compatibility="1.37") == []


# --- case by case ---------------------------------------------------------------------------------------------------------------


def drivers(name: str, **limits: int | None) -> CSINodeMaker:
    """A node whose drivers take so many volumes each."""
    made = csi_node(name)
    for driver, count in limits.items():
        made = made.driver(driver, count=count)
    return made


def bound(claim: str, volume: str, driver: str = "a") -> tuple[ObjectMaker[Any], ...]:
    """A claim, and its volume of this driver."""
    return persistent_volume_claim(claim).bound_to(volume), persistent_volume(volume).csi(driver)


def put(cluster: Cluster, *objects: Any) -> None:
    for each in objects:
        cluster.objects.put(each.build())


TWO = drivers("n0", a=2)
ONE = pod("1", on="n0").volume_claims("c0").build()
WAIT = storage_class("wait").provisioner("a")
LATE = persistent_volume_claim("late").storage_class("wait")


@pytest.fixture
def cluster() -> Cluster:
    """One node that takes two volumes of driver "a" and has one."""
    cluster = load([node("n0"), TWO, *(each for number in range(4) for each in bound(f"c{number}", f"v{number}"))])
    cluster.set_pod(ONE)
    return cluster


def with_claims(*claims: str) -> PodMaker:
    return pod("0").volume_claims(*claims)


def rejected(cluster: Cluster, asked: PodMaker, plugin: Any = None) -> list[str]:
    _, by_node = said(plugin or build(NodeVolumeLimits, cluster), cluster, asked.build())
    assert all(verdict.code is Code.UNSCHEDULABLE for verdict in by_node.values())
    return [verdict.message for verdict in by_node.values()]


def test_a_node_takes_volumes_up_to_its_limit(cluster: Cluster) -> None:
    assert rejected(cluster, with_claims("c1")) == []
    assert rejected(cluster, with_claims("c1", "c2")) == [FULL]


def test_a_volume_that_is_there_already_counts_once(cluster: Cluster) -> None:
    assert rejected(cluster, with_claims("c0", "c1")) == []


def test_a_volume_of_another_driver_has_a_limit_of_its_own(cluster: Cluster) -> None:
    put(cluster, *bound("c1", "v1", driver="b"))
    cluster.set_pod(pod("2", on="n0").volume_claims("c2").build())
    assert rejected(cluster, with_claims("c1")) == []


def test_a_volume_that_is_still_attached_counts_though_its_pod_is_gone(cluster: Cluster) -> None:
    plugin = build(NodeVolumeLimits, cluster)
    assert rejected(cluster, with_claims("c1"), plugin) == []
    spec = {"attacher": "a", "nodeName": "n0", "source": {"persistentVolumeName": "v3"}}
    attachment = convert({"metadata": {"name": "at"}, "spec": spec}, VolumeAttachment)
    cluster.objects.put(attachment)
    assert rejected(cluster, with_claims("c1"), plugin) == [FULL]
    cluster.objects.remove(attachment)
    assert rejected(cluster, with_claims("c1"), plugin) == []


def test_a_node_without_a_stated_limit_takes_any_number(cluster: Cluster) -> None:
    put(cluster, drivers("n0", a=None))
    assert rejected(cluster, with_claims("c1", "c2", "c3")) == []


def test_a_claim_that_is_bound_later_is_followed_to_its_new_volume(cluster: Cluster) -> None:
    plugin = build(NodeVolumeLimits, cluster)
    put(cluster, WAIT, LATE)
    cluster.set_pod(pod("2", on="n0").volume_claims("late").build())
    assert rejected(cluster, with_claims("c1"), plugin) == [FULL]
    put(cluster, *bound("late", "v0"))  # the volume that the other pod has already
    assert rejected(cluster, with_claims("c1"), plugin) == []


def test_pods_that_are_taken_away_for_a_trial_leave_room_until_they_are_put_back(cluster: Cluster) -> None:
    plugin = build(NodeVolumeLimits, cluster)
    assert rejected(cluster, with_claims("c1", "c2"), plugin) == [FULL]
    with cluster.dry_run_on_row(remove=[ONE], row=0):
        assert rejected(cluster, with_claims("c1", "c2"), plugin) == []
    assert rejected(cluster, with_claims("c1", "c2"), plugin) == [FULL]


def test_a_plugin_that_was_not_asked_for_too_long_counts_everything_anew(cluster: Cluster) -> None:
    cluster.objects.storage.claims.changes = Log(keep=1)
    plugin = build(NodeVolumeLimits, cluster)
    assert rejected(cluster, with_claims("c1"), plugin) == []
    put(cluster, WAIT)
    cluster.set_pod(pod("2", on="n0").volume_claims("late").build())
    assert rejected(cluster, with_claims("c1"), plugin) == []
    put(cluster, LATE, *(persistent_volume_claim(f"other{number}") for number in range(4)))
    assert rejected(cluster, with_claims("c1"), plugin) == [FULL]


def test_under_the_rules_of_1_37_a_driver_that_begins_to_need_its_nodes_is_heard_at_once(cluster: Cluster) -> None:
    put(cluster, drivers("n0"))
    plugin, asked = build(NodeVolumeLimits, cluster, compatibility="1.37"), with_claims("c1").build()

    def fingerprint() -> Any:
        state = CycleState()
        assert plugin.pre_filter(state, asked, cluster).status.ok
        return plugin.fingerprint(state, cluster)

    before = fingerprint()
    put(cluster, csi_driver("a").spec(preventPodSchedulingIfMissing=True))
    assert fingerprint() != before


@pytest.mark.parametrize(
    "objects",
    [
        (persistent_volume_claim("c").bound_to("v"), persistent_volume("v").spec(awsElasticBlockStore={"volumeID": "vol-1"})),
        (persistent_volume_claim("c").storage_class("aws"), storage_class("aws").provisioner("kubernetes.io/aws-ebs")),
    ],
)
def test_under_the_rules_of_1_37_in_tree_volumes_need_no_driver_on_a_node_without_a_csi_node(objects: tuple[ObjectMaker[Any], ...]) -> None:
    needed = csi_driver(EBS).spec(preventPodSchedulingIfMissing=True)
    case = PluginCase(
        NodeVolumeLimits, compatibility="1.37", nodes=[node("bare"), node("without")], objects=[needed, drivers("without"), *objects]
    )
    assert case.rejections(with_claims("c")) == {"without": f"{EBS} CSI driver is not installed on the node"}


def test_under_the_rules_of_1_37_no_pod_has_to_leave_a_node_without_the_driver(cluster: Cluster) -> None:
    put(cluster, csi_driver("a").spec(preventPodSchedulingIfMissing=True))
    for name in ("n1", "n2"):
        cluster.set_node(node(name).build())
    put(cluster, drivers("n1", a=0))
    plugin, state, asked, rows = (
        build(NodeVolumeLimits, cluster, compatibility="1.37"),
        CycleState(),
        with_claims("c1").build(),
        cluster.rows(),
    )
    assert plugin.pre_filter(state, asked, cluster).status.ok
    judge = plugin.judge(state, asked, cluster)
    assert judge.passes(rows).tolist() == plugin.filter(state, asked, cluster, rows).tolist() == [True, False, False]
    said = [(status.message, group.tolist()) for status, group in judge.explain(rows[1:])]
    assert said == [("a CSI driver is not installed on the node", [2]), (FULL, [1])]


def test_a_pod_without_volumes_asks_no_column(cluster: Cluster) -> None:
    plugin = build(NodeVolumeLimits, cluster)
    status, _ = said(plugin, cluster, pod("0").volume(configMap={"name": "x"}).volume(iscsi={"iqn": "i"}).build())
    assert status.code is Code.SKIP
    assert plugin._attached is None


@pytest.mark.parametrize(
    ("source", "driver", "handle"),
    [
        ({"awsElasticBlockStore": {"volumeID": "aws://eu-1/vol-7"}}, EBS, "vol-7"),
        ({"gcePersistentDisk": {"pdName": "d"}}, GCE, "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d"),
        ({"azureDisk": {"diskName": "d", "diskURI": "/subscriptions/d"}}, "disk.csi.azure.com", "/subscriptions/d"),
        ({"cinder": {"volumeID": "u-1"}}, "cinder.csi.openstack.org", "u-1"),
        ({"portworxVolume": {"volumeID": "px"}}, "pxd.portworx.com", "px"),
    ],
)
def test_a_disk_that_the_pod_names_itself_is_its_csi_drivers_volume(source: Body, driver: str, handle: str) -> None:
    other = pod("1", on="n0").volume_claims("other")
    cluster = load([node("n0"), drivers("n0", **{driver: 1}), *bound("other", "v-other", driver), other])
    assert rejected(cluster, pod("0").volumes(source)) == [FULL]
    put(cluster, *bound("other", handle, driver))
    assert rejected(cluster, pod("0").volumes(source)) == []


def test_a_disk_that_cannot_exist_is_named(cluster: Cluster) -> None:
    plugin = build(NodeVolumeLimits, cluster)
    status, _ = said(plugin, cluster, pod("0").volume(awsElasticBlockStore={"volumeID": "aws://z/disk"}).build())
    assert status.code is Code.ERROR
    assert status.message == "converting volume(volume-0) from inline to csi: invalid format for AWS volume (aws://z/disk)"


def test_an_ephemeral_volume_whose_claim_belongs_to_another_object_makes_the_pod_unschedulable_under_the_default_profile() -> None:
    theirs = persistent_volume_claim("web-scratch").bound_to("v")
    world = World(nodes=[node("n0"), drivers("n0", a=2)], objects=[theirs, persistent_volume("v").csi("a")])
    world.add(pod("web").spec(volumes=[{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}]))
    assert_waiting(world, "web", because="PVC default/web-scratch was not created for pod default/web (pod is not owner)")
    attempt = world.last_attempt("web")
    assert attempt is not None
    assert attempt.result is Result.UNSCHEDULABLE
    assert attempt.failure is not None
    assert attempt.failure.unschedulable_plugins == {"VolumeBinding"}
