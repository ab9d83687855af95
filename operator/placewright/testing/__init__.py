"""The kit for tests of plugins and of schedulers: objects in a few words, and a scheduler without an API server.

Makers (`pod`, `node`, `resource_claim`, …) build objects step by step, decoded as the scheduler decodes those of an API server.
`PluginCase` asks one plugin as the scheduler would. `check_plugin` runs one against the plugin contract, on random clusters. `World` is a
whole scheduler whose clock and ports a test holds in its hand.

This package is public: it changes only with a note in the changelog. `docs/testing.md` is its reference.

Example:
    from placewright.testing import PluginCase, node, pod

    def test_nodes_with_few_pods_are_better():
        case = PluginCase(QuietNodes, nodes=[node("a"), node("b")], pods=[pod("other").on("a")])
        assert case.scores(pod("web")) == {"a": 99, "b": 100}
"""

from placewright.testing.assertions import (
    assert_bound,
    assert_event,
    assert_evicted,
    assert_gated,
    assert_placed,
    assert_waiting,
    state_of,
)
from placewright.testing.devices import device_class, device_taint_rule, resource_claim, resource_slice
from placewright.testing.nodes import node
from placewright.testing.plugincase import PluginCase, built
from placewright.testing.plugincheck import check_plugin
from placewright.testing.pluginreport import BrokenPromiseError, CallTime, PluginReport, Promise
from placewright.testing.pods import pod
from placewright.testing.ports import FakeExtender
from placewright.testing.profiles import profile
from placewright.testing.randomobjects import random_node, random_node_maker, random_object, random_pod, random_pod_maker
from placewright.testing.virtualtime import VirtualTime
from placewright.testing.volumes import (
    csi_driver,
    csi_node,
    persistent_volume,
    persistent_volume_claim,
    storage_capacity,
    storage_class,
)
from placewright.testing.workloads import coscheduling_group, disruption_budget, namespace, pod_group, replica_set, service, stateful_set
from placewright.testing.world import World

__all__ = [
    "BrokenPromiseError",
    "CallTime",
    "FakeExtender",
    "PluginCase",
    "PluginReport",
    "Promise",
    "VirtualTime",
    "World",
    "assert_bound",
    "assert_event",
    "assert_evicted",
    "assert_gated",
    "assert_placed",
    "assert_waiting",
    "built",
    "check_plugin",
    "coscheduling_group",
    "csi_driver",
    "csi_node",
    "device_class",
    "device_taint_rule",
    "disruption_budget",
    "namespace",
    "node",
    "persistent_volume",
    "persistent_volume_claim",
    "pod",
    "pod_group",
    "profile",
    "random_node",
    "random_node_maker",
    "random_object",
    "random_pod",
    "random_pod_maker",
    "replica_set",
    "resource_claim",
    "resource_slice",
    "service",
    "state_of",
    "stateful_set",
    "storage_capacity",
    "storage_class",
]
