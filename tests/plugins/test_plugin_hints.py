"""Which events bring a rejected pod back, and which do not: kube-scheduler's table, plugin by plugin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from framework.makers import Scene, node, pod
from placewright.api.objects import Node
from placewright.api.pods import PodInfo
from placewright.framework.events import Action, ClusterEvent, EventResource, Hint
from placewright.plugins.catalog import in_tree

REGISTRY = in_tree()
ADDED = ClusterEvent(EventResource.NODE, Action.ADD)
DELETED = ClusterEvent(EventResource.ASSIGNED_POD, Action.DELETE)
NODE_GONE = ClusterEvent(EventResource.NODE, Action.DELETE)
SHRUNK = ClusterEvent(EventResource.ASSIGNED_POD, Action.UPDATE_POD_SCALE_DOWN)
OWN_SHRUNK = ClusterEvent(EventResource.UNSCHEDULED_POD, Action.UPDATE_POD_SCALE_DOWN)
TOLERATES = ClusterEvent(EventResource.UNSCHEDULED_POD, Action.UPDATE_POD_TOLERATION)
UNGATED = ClusterEvent(EventResource.UNSCHEDULED_POD, Action.UPDATE_POD_GATES_ELIMINATED)


def updated(what: Action) -> ClusterEvent:
    return ClusterEvent(EventResource.NODE, what)


LABELLED, RESIZED, TAINTED = (
    updated(action) for action in (Action.UPDATE_NODE_LABEL, Action.UPDATE_NODE_ALLOCATABLE, Action.UPDATE_NODE_TAINT)
)
TAINT = {"key": "k", "value": "v", "effect": "NoSchedule"}
SOFT = {"key": "k", "effect": "PreferNoSchedule"}
TOLERATES_K = {"tolerations": [{"key": "k", "operator": "Exists"}]}
TOLERATES_CORDON = {"tolerations": [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]}
SSD = {"disk": "ssd"}
ON_SSD = {"nodeSelector": {"disk": "ssd"}}


def ports(*numbers: int, **rest: Any) -> dict[str, Any]:
    return {"containers": [{"ports": [{"hostPort": number} for number in numbers]}], **rest}


def nominated(one: PodInfo, where: str) -> PodInfo:
    status = msgspec.structs.replace(one.pod.status, nominated_node_name=where)
    return PodInfo(msgspec.structs.replace(one.pod, status=status))


def hears(plugin: str, event: ClusterEvent, rejected: PodInfo, old: Any, new: Any, args: dict[str, Any] | None = None) -> bool:
    """True when the plugin has the pod tried again."""
    kind = REGISTRY[plugin]
    interests = kind(msgspec.convert(args or {}, kind.Args), Scene().handle()).events()
    assert interests is not None, "a plugin that says nothing hears everything"
    asked = [i for i in interests if event.concerns(i.event)]
    return any(i.hint(rejected, old, new) is Hint.QUEUE for i in asked)


PENDING = pod("me")
WITH_GPU = {"vendor.com/gpu": "1"}
WANTS_GPU = pod("me", spec={"containers": [{"resources": {"requests": {"vendor.com/gpu": "1"}}}]})
CASES: Sequence[Any] = [
    # (plugin, event, rejected pod, object before, object after, wakes)
    ("SchedulingGates", UNGATED, PENDING, PENDING, pod("me"), True),
    ("SchedulingGates", UNGATED, PENDING, pod("else"), pod("else"), False),
    ("SchedulingGates", ADDED, PENDING, None, node("n"), False),
    ("NodeUnschedulable", ADDED, PENDING, None, node("n"), True),
    ("NodeUnschedulable", ADDED, PENDING, None, node("n", cordoned=True), False),
    ("NodeUnschedulable", TAINTED, PENDING, node("n", cordoned=True), node("n"), True),
    ("NodeUnschedulable", TAINTED, PENDING, node("n"), node("n"), False),
    ("NodeUnschedulable", TOLERATES, PENDING, PENDING, pod("me", spec=TOLERATES_CORDON), True),
    ("NodeUnschedulable", TOLERATES, PENDING, PENDING, pod("me", spec=TOLERATES_K), False),
    ("NodeUnschedulable", TOLERATES, PENDING, PENDING, pod("else", spec=TOLERATES_CORDON), False),
    ("NodeUnschedulable", RESIZED, PENDING, node("n", cordoned=True), node("n"), False),
    ("NodeName", ADDED, PENDING, None, node("n"), True),
    ("NodeName", LABELLED, PENDING, node("n"), node("n"), False),
    ("TaintToleration", ADDED, PENDING, None, node("n", taints=[SOFT]), True),
    ("TaintToleration", ADDED, PENDING, None, node("n", taints=[TAINT]), False),
    ("TaintToleration", ADDED, pod("me", spec=TOLERATES_K), None, node("n", taints=[TAINT]), True),
    ("TaintToleration", TAINTED, PENDING, node("n", taints=[TAINT]), node("n"), True),
    ("TaintToleration", TAINTED, PENDING, node("n"), node("n", taints=[SOFT]), False),
    ("TaintToleration", TOLERATES, PENDING, PENDING, pod("me", spec=TOLERATES_K), True),
    ("TaintToleration", TOLERATES, PENDING, PENDING, pod("else", spec=TOLERATES_K), False),
    ("NodeAffinity", ADDED, pod("me", spec=ON_SSD), None, node("n", labels=SSD), True),
    ("NodeAffinity", ADDED, pod("me", spec=ON_SSD), None, node("n"), False),
    ("NodeAffinity", LABELLED, pod("me", spec=ON_SSD), node("n"), node("n", labels=SSD), True),
    ("NodeAffinity", LABELLED, pod("me", spec=ON_SSD), node("n", labels=SSD), node("n", labels=SSD | {"x": ""}), False),
    ("NodeAffinity", NODE_GONE, pod("me", spec=ON_SSD), node("n"), None, False),
    ("NodePorts", DELETED, pod("me", spec=ports(80)), pod("else", node="n", spec=ports(80)), None, True),
    ("NodePorts", DELETED, pod("me", spec=ports(80)), nominated(pod("else", spec=ports(80)), "n"), None, True),
    ("NodePorts", DELETED, pod("me", spec=ports(80)), pod("else", spec=ports(80)), None, False),
    ("NodePorts", DELETED, pod("me", spec=ports(80)), pod("else", node="n", spec=ports(81)), None, False),
    ("NodePorts", ADDED, pod("me", spec=ports(80)), None, node("n"), True),
    ("NodePorts", RESIZED, pod("me", spec=ports(80)), node("n"), node("n"), False),
    ("NodeResourcesFit", DELETED, PENDING, pod("else", node="n"), None, True),
    ("NodeResourcesFit", DELETED, PENDING, nominated(pod("else"), "n"), None, True),
    ("NodeResourcesFit", DELETED, PENDING, pod("else"), None, False),
    ("NodeResourcesFit", OWN_SHRUNK, pod("me", cpu="9"), pod("me", cpu="9"), pod("me", cpu="1"), True),
    ("NodeResourcesFit", SHRUNK, pod("me", cpu="9"), pod("else", node="n", cpu="2"), pod("else", node="n", cpu="1"), True),
    ("NodeResourcesFit", SHRUNK, WANTS_GPU, pod("else", node="n", cpu="2"), pod("else", node="n", cpu="1"), False),
    ("NodeResourcesFit", OWN_SHRUNK, pod("me", cpu="9"), pod("else", cpu="2"), pod("else", cpu="1"), False),
    ("NodeResourcesFit", ADDED, pod("me", cpu="3"), None, node("n"), True),
    ("NodeResourcesFit", ADDED, pod("me", cpu="5"), None, node("n"), False),
    ("NodeResourcesFit", ADDED, PENDING, None, node("n", pods="0"), False),
    ("NodeResourcesFit", RESIZED, pod("me", cpu="3"), node("n", cpu="2"), node("n"), True),
    ("NodeResourcesFit", RESIZED, pod("me", cpu="3"), node("n"), node("n", memory="32Gi"), False),
    ("NodeResourcesFit", RESIZED, pod("me", cpu="3"), node("n"), node("n", pods="11"), True),
    ("NodeResourcesFit", RESIZED, pod("me", cpu="3"), node("n", cpu="1"), node("n", cpu="2"), False),
    ("NodeResourcesFit", RESIZED, WANTS_GPU, node("n"), node("n", **WITH_GPU), True),
    ("NodeResourcesFit", LABELLED, PENDING, node("n"), node("n"), False),
]


@pytest.mark.parametrize(("plugin", "event", "rejected", "old", "new", "wakes"), CASES)
def test_an_event_wakes_the_pods_that_it_could_help_and_no_others(
    plugin: str, event: ClusterEvent, rejected: PodInfo, old: Any, new: Any, wakes: bool
) -> None:
    assert hears(plugin, event, rejected, old, new) is wakes


@pytest.mark.parametrize(("labels", "wakes"), [({"disk": "ssd", "pool": "a"}, True), ({"disk": "ssd"}, False), ({"pool": "a"}, False)])
def test_a_new_node_must_also_match_what_the_profile_enforces(labels: dict[str, str], wakes: bool) -> None:
    required = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "pool", "operator": "In", "values": ["a"]}]}]}
    args = {"addedAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    assert hears("NodeAffinity", ADDED, pod("me", spec=ON_SSD), None, node("n", labels=labels), args) is wakes


def test_a_resource_that_the_profile_ignores_need_not_be_offered() -> None:
    args = {"ignoredResources": ["vendor.com/gpu"]}
    assert hears("NodeResourcesFit", ADDED, WANTS_GPU, None, node("n"), args)
    assert not hears("NodeResourcesFit", ADDED, WANTS_GPU, None, node("n"))


def test_an_object_that_is_no_node_helps_nobody() -> None:
    for plugin in ("NodeUnschedulable", "TaintToleration", "NodeAffinity", "NodeResourcesFit"):
        assert not hears(plugin, ADDED, PENDING, None, None)
    assert isinstance(node("n"), Node)
