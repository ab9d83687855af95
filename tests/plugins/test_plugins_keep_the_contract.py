"""Every plugin in the tree, and of the package beside it, keeps the contract that a third party's is held to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import contract_worlds as worlds
import pytest

from placewright.framework.interface import Plugin
from placewright.plugins.catalog import in_tree
from placewright.plugins.noderesources.fit import NodeResourcesFit
from placewright.plugins.nodevolumelimits.plugin import NodeVolumeLimits
from placewright.plugins.volumebinding.plugin import VolumeBinding
from placewright.testing import check_plugin
from placewright_legacy_plugins import NodeLabel, NodePreferAvoidPods, SelectorSpread, ServiceAffinity
from randomcases import cases


@dataclass(frozen=True)
class Case:
    """How a plugin is checked, and what the check has to reach at least.

    Attributes:
        given: arguments of `check_plugin`.
        rejected, told_apart, gated, nominated: the floors, as in `PluginReport`.
        unreached: of promises that the check does not reach, what their sentences begin with.
        clusters: how many it takes.
    """

    given: dict[str, Any] = field(default_factory=dict)
    rejected: int = 0
    told_apart: int = 0
    gated: int = 0
    nominated: int = 0
    unreached: tuple[str, ...] = ()
    clusters: int = 4


DISKS: dict[str, Any] = {"pods": worlds.pod_with_disks, "objects": worlds.storage, "nodes": worlds.zoned_node}
OLD_DISKS: dict[str, Any] = {"pods": worlds.pod_with_any_disk, "objects": worlds.storage, "nodes": worlds.zoned_node}
CASES: dict[str, Case] = {
    "SchedulingGates": Case({"pods": worlds.gated_pod}, gated=30),
    "PrioritySort": Case(),
    "NodeUnschedulable": Case(rejected=18),
    "NodeName": Case({"pods": worlds.pod_that_names_a_node}, rejected=60),
    "TaintToleration": Case(rejected=60, told_apart=6),
    "NodeAffinity": Case(rejected=60, told_apart=12),
    "NodePorts": Case({"pods": worlds.pod_with_ports}, rejected=60),
    "NodeResourcesFit": Case(rejected=60, told_apart=60),
    "VolumeRestrictions": Case(DISKS, rejected=30),
    "NodeVolumeLimits": Case({"pods": worlds.pod_with_bound_claims, "objects": worlds.limited_storage}, rejected=30),
    "VolumeBinding": Case(
        {
            "pods": worlds.pod_with_claims, "objects": worlds.provisioning, "nodes": worlds.node_of_a_zone,
            "args": {"shape": [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]},
        },
        rejected=60, clusters=8,
        unreached=("score never",),  # what its scores are made of: test_volume_binding_scores.py
    ),
    "VolumeZone": Case(
        {"pods": worlds.pod_with_claims, "objects": worlds.zoned_storage, "nodes": worlds.zoned_node}, rejected=18, clusters=8
    ),
    "PodTopologySpread": Case({"pods": worlds.spread_pod}, rejected=60, told_apart=12),
    "InterPodAffinity": Case({"pods": worlds.loving_pod}, rejected=60),
    "DynamicResources": Case(
        {"pods": worlds.pod_with_device_claims, "objects": worlds.device_object}, rejected=100, gated=30, clusters=8,
        # PostFilter frees a claim, and names no node. What its scores are made of: devices/test_device_order.py.
        unreached=("PostFilter never", "score never"),
    ),
    "DefaultPreemption": Case(
        {"pods": worlds.big_pod, "nodes": worlds.small_node, "beside": (NodeResourcesFit,)}, nominated=1,
        unreached=("PreEnqueue never",),  # it gates a pod while its victims leave, and here nobody leaves
    ),
    "NodeResourcesBalancedAllocation": Case(told_apart=60),
    "ImageLocality": Case(told_apart=6),
    "DefaultBinder": Case(),
    "NodeDeclaredFeatures": Case({"pods": worlds.pod_that_asks_the_kubelet, "nodes": worlds.node_with_features}, rejected=60),
    # Without `typicalPods` its scores depend on the pods that it has seen: it learns, and one that is built now knows nothing yet.
    "DeviceFragmentation": Case(
        {"pods": worlds.pod_with_a_share, "nodes": worlds.node_with_shares, "args": {"typicalPods": worlds.TYPICAL}},
        rejected=18, told_apart=18,
        unreached=("PreEnqueue never",),  # it sees pods there, and keeps none back
    ),
    "DomainLimit": Case({"pods": worlds.limited_pod, "args": {"limits": worlds.LIMITS}}, rejected=60, told_apart=12),
    # A pod of the profile's own waits on nodes where others are not Ready.
    "NodeStartRate": Case(
        {"pods": worlds.pod_that_may_be_ready, "args": {"maxStarting": 1, "domains": [{"topologyKey": "rack", "maxStarting": 2}]}},
        rejected=60,
    ),
    # Kubelets turn nobody away here: test_node_rejections.py.
    "NodeRejections": Case(unreached=("filter never",)),
    "GangScheduling": Case({"pods": worlds.pod_of_a_group, "objects": worlds.pod_group}, gated=18),
    "NodePreferAvoidPods": Case({"pods": worlds.owned_pod, "nodes": worlds.node_that_avoids}, told_apart=30),
    "SelectorSpread": Case({"pods": worlds.owned_pod}, told_apart=12),
    "NodeLabel": Case({"args": {"presentLabels": ["disk"], "presentLabelsPreference": ["rack"]}}, rejected=60, told_apart=12),
    "ServiceAffinity": Case(
        {"pods": worlds.owned_pod, "args": {"affinityLabels": ["disk"], "antiAffinityLabelsPreference": ["rack"]}},
        rejected=30, told_apart=12,
    ),
    "EBSLimits": Case(OLD_DISKS, rejected=18),
    "GCEPDLimits": Case(OLD_DISKS, rejected=18),
    "AzureDiskLimits": Case(OLD_DISKS, rejected=18),
    "CinderLimits": Case(OLD_DISKS, rejected=18),
}  # fmt: skip


LEGACY = (NodeLabel, NodePreferAvoidPods, SelectorSpread, ServiceAffinity)


#: Plugins whose rules differ under a later version.
LATER: dict[type[Plugin], Case] = {
    NodeVolumeLimits: Case(CASES["NodeVolumeLimits"].given | {"objects": worlds.driven_storage, "compatibility": "1.37"}, rejected=60),
    VolumeBinding: Case(
        CASES["VolumeBinding"].given | {"args": None, "compatibility": "1.37"}, rejected=60, clusters=8, unreached=("score never",)
    ),
}


@pytest.mark.parametrize("plugin", [*in_tree().values(), *LEGACY], ids=lambda plugin: plugin.name)
def test_every_plugin_keeps_the_contract(plugin: type[Plugin]) -> None:
    check(plugin, CASES[plugin.name])


@pytest.mark.parametrize("plugin", LATER, ids=lambda plugin: plugin.name)
def test_plugins_keep_the_contract_under_the_rules_of_a_later_version(plugin: type[Plugin]) -> None:
    check(plugin, LATER[plugin])


def check(plugin: type[Plugin], case: Case) -> None:
    report = check_plugin(plugin, seed=1, clusters=cases(case.clusters, fewest=1), **case.given)
    if report.clusters < case.clusters:
        return  # one cluster breaks no promise; the floors are those of all clusters
    assert report.rejected >= case.rejected, report
    assert report.told_apart >= case.told_apart, report
    assert report.gated >= case.gated, report
    assert report.nominated >= case.nominated, report
    assert [each for each in report.unreached if not each.startswith(case.unreached or ("-",))] == [], report
