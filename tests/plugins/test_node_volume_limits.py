"""NodeVolumeLimits against a plain scalar reading of the rules and case by case."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pairwise import build
from pairwise_worlds import Body, info
from storage_worlds import BETA, EBS, GA, GCE, StorageWorld, differences, said
from test_volume_restrictions import pod, uses

from placewright.cluster.journal import Log
from placewright.framework.status import Code
from placewright.plugins.nodevolumelimits import NodeVolumeLimits

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


def attachable(world: StorageWorld, owner: Body, volume: Body) -> tuple[str, str] | None:
    """Driver and handle; `LookupError` for a missing claim, `ValueError` for one that is another's."""
    meta = owner["metadata"]
    if "ephemeral" in volume:
        name = f"{meta['name']}-{volume['name']}"
    elif "persistentVolumeClaim" in volume:
        name = volume["persistentVolumeClaim"]["claimName"]
    else:
        return translated(volume, {})
    claim = world.find("PersistentVolumeClaim", name, meta["namespace"])
    if claim is None:
        raise LookupError(name)
    if "ephemeral" in volume and claim["metadata"]["ownerReferences"][0]["uid"] != meta["uid"]:
        raise ValueError(name)
    bound = world.find("PersistentVolume", claim["spec"].get("volumeName", ""))
    if bound is not None:
        csi = bound["spec"].get("csi")
        return (csi["driver"], csi["volumeHandle"]) if csi else translated(bound["spec"], bound["metadata"]["labels"])
    made_by = (world.find("StorageClass", claim["spec"].get("storageClassName", "")) or {}).get("provisioner", "")
    driver = {"kubernetes.io/aws-ebs": EBS, "kubernetes.io/azure-file": ""}.get(made_by, made_by)
    return (driver, f"to be made for {meta['namespace']}/{name}") if driver else None


def used_on(world: StorageWorld, there: list[Body]) -> set[tuple[str, str]]:
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


def attached_to(world: StorageWorld, node: str) -> set[tuple[str, str]]:
    found = set()
    for attachment in world.storage.get("VolumeAttachment", {}).values():
        spec = attachment["spec"]
        volume = world.find("PersistentVolume", spec["source"].get("persistentVolumeName", ""))
        if spec["nodeName"] == node and volume and "csi" in volume["spec"]:
            found.add((spec["attacher"], volume["spec"]["csi"]["volumeHandle"]))
    return found


def scalar(world: StorageWorld, mine: Body) -> tuple[str, dict[str, str]] | None:
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
            return f"PVC {namespace}/{others.args[0]} was not created for pod {namespace}/p0 (pod is not owner)", {}
        if found:
            wanted.add(found)
    return "", {node: FULL for node, there in world.pods_by_node().items() if crowded(world, node, there, wanted)}


def crowded(world: StorageWorld, node: str, there: list[Body], wanted: set[tuple[str, str]]) -> bool:
    drivers = (world.find("CSINode", node) or {"spec": {"drivers": []}})["spec"]["drivers"]
    used = used_on(world, there)
    counts = Counter(driver for driver, _ in used | attached_to(world, node))
    for driver in drivers:
        name, limit = driver["name"], driver.get("allocatable", {}).get("count")
        new = sum(1 for volume in wanted - used if volume[0] == name)
        if new and limit is not None and counts[name] + new > limit:
            return True
    return False


def reading(world: StorageWorld, mine: Body) -> tuple[str, dict[str, str]] | None:
    kinds = ("persistentVolumeClaim", "ephemeral", *MIGRATABLE)
    return scalar(world, mine) if any(kind in v for v in mine["spec"]["volumes"] for kind in kinds) else None


@settings(max_examples=100)
@given(st.integers(0, 2**32))
def test_whatever_happens_it_says_what_the_rules_say(seed: int) -> None:
    assert differences(NodeVolumeLimits, reading, seed) == []


# --- case by case ---------------------------------------------------------------------------------------------------------------


def csi_node(name: str, **limits: int | None) -> Body:
    drivers = [{"name": driver} | ({} if count is None else {"allocatable": {"count": count}}) for driver, count in limits.items()]
    return {"metadata": {"name": name}, "spec": {"drivers": drivers}}


def bind(world: StorageWorld, claim: str, volume: str, driver: str = "a") -> None:
    world.put("PersistentVolumeClaim", {"metadata": {"name": claim, "namespace": "home"}, "spec": {"volumeName": volume}})
    world.put("PersistentVolume", {"metadata": {"name": volume}, "spec": {"csi": {"driver": driver, "volumeHandle": volume}}})


@pytest.fixture
def world() -> StorageWorld:
    """One node that takes two volumes of driver "a" and has one."""
    world = StorageWorld()
    world.set_node({"metadata": {"name": "n0"}})
    world.put("CSINode", csi_node("n0", a=2))
    for number in range(4):
        bind(world, f"c{number}", f"v{number}")
    world.place(pod("1", uses("c0")), "n0")
    return world


def rejected(world: StorageWorld, *volumes: Body, plugin: Any = None) -> list[str]:
    plugin = plugin or build(NodeVolumeLimits, world.cluster)
    _, by_node = said(plugin, world.cluster, info(pod("0", *volumes)))
    assert all(verdict.code is Code.UNSCHEDULABLE for verdict in by_node.values())
    return [verdict.message for verdict in by_node.values()]


def test_a_node_takes_volumes_up_to_its_limit(world: StorageWorld) -> None:
    assert rejected(world, uses("c1")) == []
    assert rejected(world, uses("c1"), uses("c2")) == [FULL]


def test_a_volume_that_is_there_already_counts_once(world: StorageWorld) -> None:
    assert rejected(world, uses("c0"), uses("c1")) == []


def test_a_volume_of_another_driver_has_a_limit_of_its_own(world: StorageWorld) -> None:
    bind(world, "c1", "v1", driver="b")
    world.place(pod("2", uses("c2")), "n0")
    assert rejected(world, uses("c1")) == []


def test_a_volume_that_is_still_attached_counts_though_its_pod_is_gone(world: StorageWorld) -> None:
    plugin = build(NodeVolumeLimits, world.cluster)
    assert rejected(world, uses("c1"), plugin=plugin) == []
    attachment = {
        "metadata": {"name": "at"},
        "spec": {"attacher": "a", "nodeName": "n0", "source": {"persistentVolumeName": "v3"}},
    }
    world.put("VolumeAttachment", attachment)
    assert rejected(world, uses("c1"), plugin=plugin) == [FULL]
    world.drop("VolumeAttachment", attachment)
    assert rejected(world, uses("c1"), plugin=plugin) == []


def test_a_node_without_a_stated_limit_takes_any_number(world: StorageWorld) -> None:
    world.put("CSINode", csi_node("n0", a=None))
    assert rejected(world, uses("c1"), uses("c2"), uses("c3")) == []


def test_a_claim_that_is_bound_later_is_followed_to_its_new_volume(world: StorageWorld) -> None:
    plugin = build(NodeVolumeLimits, world.cluster)
    world.put("StorageClass", {"metadata": {"name": "wait"}, "provisioner": "a"})
    world.put("PersistentVolumeClaim", {"metadata": {"name": "late", "namespace": "home"}, "spec": {"storageClassName": "wait"}})
    world.place(pod("2", uses("late")), "n0")
    assert rejected(world, uses("c1"), plugin=plugin) == [FULL]
    bind(world, "late", "v0")  # the volume that the other pod has already
    assert rejected(world, uses("c1"), plugin=plugin) == []


def test_pods_that_are_taken_away_for_a_trial_leave_room_until_they_are_put_back(world: StorageWorld) -> None:
    plugin = build(NodeVolumeLimits, world.cluster)
    assert rejected(world, uses("c1"), uses("c2"), plugin=plugin) == [FULL]
    with world.without(["1"], "n0"):
        assert rejected(world, uses("c1"), uses("c2"), plugin=plugin) == []
    assert rejected(world, uses("c1"), uses("c2"), plugin=plugin) == [FULL]


def test_a_plugin_that_was_not_asked_for_too_long_counts_everything_anew(world: StorageWorld) -> None:
    world.cluster.objects.storage.claims.changes = Log(keep=1)
    plugin = build(NodeVolumeLimits, world.cluster)
    assert rejected(world, uses("c1"), plugin=plugin) == []
    world.put("StorageClass", {"metadata": {"name": "wait"}, "provisioner": "a"})
    unbound = {"metadata": {"name": "late", "namespace": "home"}, "spec": {"storageClassName": "wait"}}
    world.place(pod("2", uses("late")), "n0")
    assert rejected(world, uses("c1"), plugin=plugin) == []
    world.put("PersistentVolumeClaim", unbound)
    for number in range(4):
        world.put("PersistentVolumeClaim", {"metadata": {"name": f"other{number}", "namespace": "home"}, "spec": {}})
    assert rejected(world, uses("c1"), plugin=plugin) == [FULL]


def test_a_pod_without_volumes_asks_no_column(world: StorageWorld) -> None:
    plugin = build(NodeVolumeLimits, world.cluster)
    status, _ = said(plugin, world.cluster, info(pod("0", {"configMap": {"name": "x"}}, {"iscsi": {"iqn": "i"}})))
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
    world = StorageWorld()
    world.set_node({"metadata": {"name": "n0"}})
    world.put("CSINode", csi_node("n0", **{driver: 1}))
    bind(world, "other", "v-other", driver=driver)
    world.place(pod("1", uses("other")), "n0")
    assert rejected(world, source) == [FULL]
    bind(world, "other", handle, driver=driver)
    assert rejected(world, source) == []


def test_a_disk_that_cannot_exist_is_named(world: StorageWorld) -> None:
    plugin = build(NodeVolumeLimits, world.cluster)
    status, _ = said(plugin, world.cluster, info(pod("0", {"awsElasticBlockStore": {"volumeID": "aws://z/disk"}})))
    assert status.code is Code.ERROR
    assert status.message == "converting volume(v) from inline to csi: invalid format for AWS volume (aws://z/disk)"
