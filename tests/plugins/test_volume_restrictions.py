"""VolumeRestrictions against a plain scalar reading of the rules and case by case."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pairwise_worlds import Body, info
from storage_worlds import StorageWorld, differences, said

from placewright.framework.status import Code
from placewright.plugins.volumerestrictions import VolumeRestrictions

DISK = "node(s) had no available disk"
ONE_POD = "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"


def conflict(one: Body, other: Body) -> bool:
    """Whether two volumes of two pods cannot be on one node, the long way."""
    for source in ("gcePersistentDisk", "awsElasticBlockStore", "iscsi", "rbd"):
        if source not in one or source not in other:
            continue
        a, b = one[source], other[source]
        both_read = bool(a.get("readOnly") and b.get("readOnly"))
        if source == "gcePersistentDisk" and a["pdName"] == b["pdName"] and not both_read:
            return True
        if source == "awsElasticBlockStore" and a["volumeID"] == b["volumeID"]:
            return True
        if source == "iscsi" and a["iqn"] == b["iqn"] and not both_read:
            return True
        if source == "rbd":
            same = (a["pool"], a["image"]) == (b["pool"], b["image"]) and set(a["monitors"]) & set(b["monitors"])
            if same and not both_read:
                return True
    return False


def claims(pod: Body) -> list[tuple[str, str]]:
    named = (v["persistentVolumeClaim"]["claimName"] for v in pod["spec"]["volumes"] if "persistentVolumeClaim" in v)
    return [(pod["metadata"]["namespace"], name) for name in named]


def scalar(world: StorageWorld, pod: Body) -> tuple[str, dict[str, str]] | None:
    in_use = False
    for namespace, name in claims(pod):
        claim = world.find("PersistentVolumeClaim", name, namespace)
        if claim is None:
            return f'persistentvolumeclaim "{name}" not found', {}
        users = [other for there in world.pods_by_node().values() for other in there if (namespace, name) in claims(other)]
        in_use |= "ReadWriteOncePod" in claim["spec"]["accessModes"] and bool(users)
    verdicts = {}
    for node, there in world.pods_by_node().items():
        theirs = [volume for other in there for volume in other["spec"]["volumes"]]
        if any(conflict(mine, other) for mine in pod["spec"]["volumes"] for other in theirs):
            verdicts[node] = DISK
        elif in_use:
            verdicts[node] = ONE_POD
    return ("", verdicts) if verdicts else None


@settings(max_examples=60)
@given(st.integers(0, 2**32))
def test_whatever_happens_it_says_what_the_rules_say(seed: int) -> None:
    assert differences(VolumeRestrictions, scalar, seed) == []


def pod(uid: str, *volumes: Body, node: str = "") -> Any:
    meta = {"uid": uid, "name": uid, "namespace": "home"}
    return {"metadata": meta, "spec": {"volumes": [volume | {"name": "v"} for volume in volumes], "nodeName": node}}


def claim(name: str, mode: str = "ReadWriteOncePod") -> Body:
    return {"metadata": {"name": name, "namespace": "home"}, "spec": {"accessModes": [mode]}}


def uses(name: str) -> Body:
    return {"persistentVolumeClaim": {"claimName": name}}


@pytest.fixture
def world() -> StorageWorld:
    world = StorageWorld()
    for name in ("n0", "n1"):
        world.set_node({"metadata": {"name": name}})
    return world


def test_a_pod_with_only_what_every_pod_has_is_skipped(world: StorageWorld) -> None:
    plugin = VolumeRestrictions(None, None)  # type: ignore[arg-type]
    status, _ = said(plugin, world.cluster, info(pod("p", {"configMap": {"name": "x"}}, {"projected": {}})))
    assert status.code is Code.SKIP


def test_a_claim_for_one_pod_bars_all_nodes_until_that_pod_is_gone(world: StorageWorld) -> None:
    plugin = VolumeRestrictions(None, None)  # type: ignore[arg-type]
    world.put("PersistentVolumeClaim", claim("c"))
    world.place(pod("other", uses("c")), "n0")
    mine = info(pod("p", uses("c")))
    _, by_node = said(plugin, world.cluster, mine)
    assert {node: verdict.message for node, verdict in by_node.items()} == {"n0": ONE_POD, "n1": ONE_POD}
    assert {verdict.code for verdict in by_node.values()} == {Code.UNSCHEDULABLE}
    with world.without(["other"], "n0"):
        assert said(plugin, world.cluster, mine)[0].code is Code.SKIP
    assert said(plugin, world.cluster, mine)[1]
    world.remove_pod("other")
    assert said(plugin, world.cluster, mine)[0].code is Code.SKIP


def test_a_missing_claim_is_named_and_cannot_be_helped_by_eviction(world: StorageWorld) -> None:
    plugin = VolumeRestrictions(None, None)  # type: ignore[arg-type]
    status, _ = said(plugin, world.cluster, info(pod("p", uses("nope"))))
    assert (status.code, status.message) == (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, 'persistentvolumeclaim "nope" not found')
