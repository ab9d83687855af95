"""VolumeRestrictions against a plain scalar reading of the rules and case by case."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from pairwise_worlds import Body, World
from storage_worlds import differences, said

from placewright.framework.status import Code
from placewright.plugins.volumerestrictions import VolumeRestrictions
from placewright.testing import PluginCase, node, persistent_volume_claim, pod
from randomcases import cases

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


def claims_of(pod: Body) -> list[tuple[str, str]]:
    named = (v["persistentVolumeClaim"]["claimName"] for v in pod["spec"]["volumes"] if "persistentVolumeClaim" in v)
    return [(pod["metadata"]["namespace"], name) for name in named]


def scalar(world: World, pod: Body) -> tuple[str, dict[str, str]] | None:
    in_use = False
    for namespace, name in claims_of(pod):
        claim = world.find("PersistentVolumeClaim", name, namespace)
        if claim is None:
            return f'persistentvolumeclaim "{name}" not found', {}
        users = [other for there in world.pods_by_node().values() for other in there if (namespace, name) in claims_of(other)]
        in_use |= "ReadWriteOncePod" in claim["spec"]["accessModes"] and bool(users)
    verdicts = {}
    for name, there in world.pods_by_node().items():
        theirs = [volume for other in there for volume in other["spec"]["volumes"]]
        if any(conflict(mine, other) for mine in pod["spec"]["volumes"] for other in theirs):
            verdicts[name] = DISK
        elif in_use:
            verdicts[name] = ONE_POD
    return ("", verdicts) if verdicts else None


@settings(max_examples=cases(60))
@given(st.integers(0, 2**32))
def test_whatever_happens_it_says_what_the_rules_say(seed: int) -> None:
    assert differences(VolumeRestrictions, scalar, seed) == []


NODES = (node("n0"), node("n1"))


def test_a_pod_with_only_what_every_pod_has_is_skipped() -> None:
    case = PluginCase(VolumeRestrictions, nodes=NODES)
    status, _ = said(case.plugin, case.cluster, pod("p").volume(configMap={"name": "x"}).volume(projected={}).build())
    assert status.code is Code.SKIP


def test_a_claim_for_one_pod_bars_all_nodes_until_that_pod_is_gone() -> None:
    other, mine = pod("other").volume_claims("c").on("n0").build(), pod("p").volume_claims("c").build()
    claim = persistent_volume_claim("c").access_modes("ReadWriteOncePod")
    case = PluginCase(VolumeRestrictions, nodes=NODES, pods=[other], objects=[claim])
    _, by_node = said(case.plugin, case.cluster, mine)
    assert {node: verdict.message for node, verdict in by_node.items()} == {"n0": ONE_POD, "n1": ONE_POD}
    assert {verdict.code for verdict in by_node.values()} == {Code.UNSCHEDULABLE}
    with case.cluster.dry_run_on_row(remove=[other], row=0):
        assert said(case.plugin, case.cluster, mine)[0].code is Code.SKIP
    assert said(case.plugin, case.cluster, mine)[1]
    case.cluster.remove_pod(other.uid)
    assert said(case.plugin, case.cluster, mine)[0].code is Code.SKIP


def test_a_missing_claim_is_named_and_cannot_be_helped_by_eviction() -> None:
    case = PluginCase(VolumeRestrictions, nodes=NODES)
    status, _ = said(case.plugin, case.cluster, pod("p").volume_claims("nope").build())
    assert (status.code, status.message) == (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, 'persistentvolumeclaim "nope" not found')
