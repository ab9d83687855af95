"""EBSLimits, GCEPDLimits, AzureDiskLimits and CinderLimits against a plain scalar reading of the rules, and case by case."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pairwise import build, load
from pairwise_worlds import Body, World, info
from storage_worlds import StorageDice, differences, happen, populate, said
from test_judging_apart import judged

from placewright.api.storage import CSINode
from placewright.cluster.cluster import Cluster
from placewright.framework.events import Action, ClusterEvent, EventResource, QueueingHint
from placewright.framework.status import Code
from placewright.plugins.catalog import in_tree
from placewright.plugins.legacyvolumelimits import AzureDiskLimits, CinderLimits, EBSLimits, GCEPDLimits
from placewright.profiles.defaults import DEFAULT_PLUGINS
from placewright.testing import csi_node, node, persistent_volume, persistent_volume_claim, pod, storage_class
from placewright.testing.nodes import NodeMaker
from placewright.testing.pods import PodMaker
from randomcases import cases

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


def disk_behind(plugin: type[Any], world: World, owner: Body, volume: Body) -> str | None:
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


def limit(plugin: type[Any], world: World, node: str, otherwise: int) -> int | None:
    *_, provisioner, resource, _ = FACTS[plugin]
    csi_node = world.find("CSINode", node) or {"metadata": {"annotations": {MIGRATED: ""}}}
    if provisioner in csi_node["metadata"]["annotations"][MIGRATED].split(","):
        return None
    stated = world.nodes[node]["status"]["allocatable"].get(resource)
    return otherwise if stated is None else int(stated)


def scalar(plugin: type[Any], most: int, world: World, mine: Body) -> tuple[str, dict[str, str]] | None:
    wanted, meta = set(), mine["metadata"]
    for volume in mine["spec"]["volumes"]:
        try:
            wanted.add(disk_behind(plugin, world, mine, volume))
        except LookupError as missing:
            name = missing.args[0]
            reason = f'looking up PVC {meta["namespace"]}/{name}: persistentvolumeclaim "{name}" not found'
            return "", dict.fromkeys(world.nodes, reason)
        except ValueError as others:
            reason = f"PVC {meta['namespace']}/{others.args[0]} was not created for pod {meta['namespace']}/p0 (pod is not owner)"
            return "", dict.fromkeys(world.nodes, reason)
    wanted.discard(None)
    if not wanted:
        return None
    rejected = {}
    for name, there in world.pods_by_node().items():
        used = set()
        for other in there:
            for volume in other["spec"]["volumes"]:
                try:
                    used.add(disk_behind(plugin, world, other, volume))
                except (LookupError, ValueError):
                    continue
        used.discard(None)
        allowed = limit(plugin, world, name, most)
        if allowed is not None and len(used | wanted) > allowed:
            rejected[name] = FULL
    return "", rejected


def reading(plugin: type[Any], most: int) -> Callable[[World, Body], tuple[str, dict[str, str]] | None]:
    return lambda world, mine: scalar(plugin, most, world, mine)


@pytest.mark.parametrize("plugin", [EBSLimits, GCEPDLimits])
@settings(max_examples=cases(50))
@given(seed=st.integers(0, 2**32))
def test_whatever_happens_it_says_what_the_rules_say(plugin: type[Any], seed: int) -> None:
    assert differences(plugin, reading(plugin, 2), seed, chance=CloudDice, args={"maxVolumes": 2}) == []


@settings(max_examples=cases(50))
@given(seed=st.integers(0, 2**32))
def test_in_preemptions_trials_a_row_is_judged_as_if_it_alone_had_changed(seed: int) -> None:
    dice, world = CloudDice(seed), World()
    plugin = build(EBSLimits, world.cluster, {"maxVolumes": 2})
    populate(world, dice)
    for _ in range(8):
        happen(world, dice)
        by_judge, by_plugin = judged(plugin, world.cluster, info(dice.pod_with_volumes("0")), dice)
        assert by_judge == by_plugin


# --- case by case ---------------------------------------------------------------------------------------------------------------


NODE = node("n0")


def room(plugin: type[Any], of: NodeMaker, args: Body | None = None) -> int:
    """How many disks the node takes, tried out: there are none yet."""
    cluster = load([of])
    built = build(plugin, cluster, args)
    tried = (pod("0").volumes(*(disk(plugin, f"d{i}") for i in range(count + 1))) for count in range(300))
    return next(count for count, each in enumerate(tried) if said(built, cluster, each.build())[1])


def rejected(plugin: type[Any], cluster: Cluster, asked: PodMaker, args: Body | None = None) -> list[str]:
    _, by_node = said(build(plugin, cluster, args), cluster, asked.build())
    assert all(verdict.code is Code.UNSCHEDULABLE for verdict in by_node.values())
    return [verdict.message for verdict in by_node.values()]


@pytest.mark.parametrize("plugin", ALL)
def test_a_node_that_says_nothing_takes_what_the_clouds_machines_take(plugin: type[Any]) -> None:
    assert room(plugin, NODE) == FACTS[plugin][4]


@pytest.mark.parametrize("plugin", ALL)
def test_what_the_profile_says_goes_before_what_is_usual_and_what_the_node_says_before_both(plugin: type[Any]) -> None:
    args = {"maxVolumes": 3}
    assert room(plugin, NODE, args) == 3
    assert room(plugin, NODE.offers({FACTS[plugin][3]: "5"}), args) == 5
    assert room(plugin, NODE.offers({FACTS[plugin][3]: "0"}), args) == 0
    others = {facts[3]: "1" for other, facts in FACTS.items() if other is not plugin}
    assert room(plugin, NODE.offers(others), args) == 3


@pytest.mark.parametrize(
    ("machine", "most"), [("m5.large", 25), ("c5d.xlarge", 25), ("t3.micro", 25), ("z1d.large", 25), ("m4.large", 39), ("xm5", 39)]
)
@pytest.mark.parametrize("label", ["node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type"])
def test_machines_on_nitro_take_fewer_volumes_of_ebs(machine: str, most: int, label: str) -> None:
    assert room(EBSLimits, NODE.labels({label: machine})) == most


@pytest.mark.parametrize("plugin", ALL)
def test_a_disk_behind_a_claim_is_the_disk_that_another_pod_names_itself(plugin: type[Any]) -> None:
    volume = persistent_volume("v").spec(**disk(plugin, "shared"))
    cluster = load([NODE, persistent_volume_claim("c").bound_to("v"), volume, pod("1", on="n0").volume_claims("c")])
    one = {"maxVolumes": 1}
    assert rejected(plugin, cluster, pod("0").volumes(disk(plugin, "shared")), one) == []
    assert rejected(plugin, cluster, pod("0").volumes(disk(plugin, "another")), one) == [FULL]


def test_a_node_with_too_many_takes_not_even_a_pod_that_shares_one() -> None:
    cluster = load([NODE, pod("1", on="n0").volumes(disk(EBSLimits, "a"), disk(EBSLimits, "b"))])
    sharing = pod("0").volumes(disk(EBSLimits, "a"))
    assert rejected(EBSLimits, cluster, sharing, {"maxVolumes": 2}) == []
    assert rejected(EBSLimits, cluster, sharing, {"maxVolumes": 1}) == [FULL]


@pytest.mark.parametrize("plugin", ALL)
def test_a_claim_without_a_volume_counts_where_its_class_makes_such_disks(plugin: type[Any]) -> None:
    classes = [storage_class("mine").provisioner(FACTS[plugin][2]), storage_class("other").provisioner("example.com/other")]
    claims = [
        persistent_volume_claim("waits").storage_class("mine"),
        persistent_volume_claim("lost").storage_class("mine").bound_to("gone"),
        persistent_volume_claim("other").storage_class("other"),
        persistent_volume_claim("none").spec(storageClassName=None),
    ]
    cluster = load([NODE, *classes, *claims, pod("1", on="n0").volumes(disk(plugin, "there"))])
    full = {each.name: bool(rejected(plugin, cluster, pod("0").volume_claims(each.name), {"maxVolumes": 1})) for each in claims}
    assert full == {"waits": True, "lost": True, "other": False, "none": False}


@pytest.mark.parametrize("plugin", ALL)
def test_where_a_csi_driver_has_taken_over_there_is_no_limit_here(plugin: type[Any]) -> None:
    cluster = load([NODE, node("n1")])
    moved = csi_node("n1").annotations({MIGRATED: f"kubernetes.io/other,{FACTS[plugin][2]}"}).build()
    built = build(plugin, cluster, {"maxVolumes": 1})
    two = pod("0").volumes(disk(plugin, "a"), disk(plugin, "b")).build()
    assert set(said(built, cluster, two)[1]) == {"n0", "n1"}
    cluster.objects.put(moved)
    assert set(said(built, cluster, two)[1]) == {"n0"}
    cluster.objects.remove(moved)
    assert set(said(built, cluster, two)[1]) == {"n0", "n1"}


def test_a_pod_without_such_disks_asks_no_column() -> None:
    cluster = load([NODE])
    plugin = build(EBSLimits, cluster)
    for asked in (pod("0"), pod("0").volume(configMap={"name": "x"}), pod("0").volumes(disk(CinderLimits, "d"))):
        status, _ = said(plugin, cluster, asked.build())
        assert status.code is Code.SKIP
    assert plugin._attached is None


def test_a_claim_without_a_name_is_an_error_of_the_pod() -> None:
    status, _ = said(build(EBSLimits, load([NODE])), Cluster(), pod("0").volume_claims("").build())
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


def taken_over(plugins: str) -> CSINode:
    return csi_node("n0").annotations({MIGRATED: plugins}).build()


OTHER = pod("other", on="n0")
GONE = ClusterEvent(EventResource.ASSIGNED_POD, Action.DELETE)
NODE_ADDED = ClusterEvent(EventResource.NODE, Action.ADD)
MORE_ROOM = ClusterEvent(EventResource.NODE, Action.UPDATE_NODE_ALLOCATABLE)
TAINTED = ClusterEvent(EventResource.NODE, Action.UPDATE_NODE_TAINT)
CSI_CHANGED = ClusterEvent(EventResource.CSI_NODE, Action.UPDATE)
CSI_GONE = ClusterEvent(EventResource.CSI_NODE, Action.DELETE)


@pytest.mark.parametrize(
    ("event", "old", "new", "wakes"),
    [
        (GONE, OTHER.volumes(disk(EBSLimits, "a")).build(), None, True),
        (GONE, OTHER.volume_claims("c").build(), None, True),
        (GONE, pod("other").volumes(disk(EBSLimits, "a")).build(), None, False),
        (GONE, OTHER.volumes(disk(GCEPDLimits, "a")).build(), None, False),
        (GONE, OTHER.volume(configMap={"name": "x"}).build(), None, False),
        (NODE_ADDED, None, None, True),
        (MORE_ROOM, None, None, True),
        (TAINTED, None, None, False),
        (CSI_CHANGED, taken_over(""), taken_over("kubernetes.io/aws-ebs"), True),
        (CSI_CHANGED, taken_over("kubernetes.io/aws-ebs"), taken_over("kubernetes.io/aws-ebs,kubernetes.io/cinder"), False),
        (CSI_CHANGED, taken_over("kubernetes.io/aws-ebs"), taken_over(""), False),
        (CSI_GONE, taken_over("kubernetes.io/aws-ebs"), None, False),
    ],
)
def test_an_event_wakes_the_pods_that_it_could_help_and_no_others(event: ClusterEvent, old: Any, new: Any, wakes: bool) -> None:
    interests = [known for known in build(EBSLimits, Cluster()).events() if event.concerns(known.event)]
    waiting = pod("0").volumes(disk(EBSLimits, "mine")).build()
    assert any(known.hint(waiting, old, new) is QueueingHint.QUEUE for known in interests) is wakes
