"""Plugins that look at a pod and a node, or only at the pod."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from hints.rows import (
    NODE_ADDED,
    NODE_CONDITION,
    NODE_DELETED,
    NODE_FEATURED,
    NODE_LABELLED,
    NODE_RESIZED,
    NODE_TAINTED,
    POD_ADDED,
    POD_CHANGED,
    POD_DELETED,
    POD_LABELLED,
    POD_SHRUNK,
    WAITING_CHANGED,
    WAITING_DELETED,
    WAITING_LABELLED,
    WAITING_SHRUNK,
    WAITING_TOLERATES,
    WAITING_UNGATED,
    Rejected,
    Row,
)
from placewright.api.decode import convert
from placewright.api.objects import Node
from placewright.api.pods import PodInfo
from placewright.testing import node, pod
from placewright.testing.nodes import NodeMaker

PLAIN: Final = pod("me").build()
GATES: Final = {"schedulingGates": [{"name": "quota"}]}
GATED: Final = pod("me", **GATES).build()
LARGE, SMALL = pod("else", on="n", cpu="2").build(), pod("else", on="n", cpu="1").build()
TAINT: Final = {"key": "k", "value": "v", "effect": "NoSchedule"}
SOFT_TAINT: Final = {"key": "k", "effect": "PreferNoSchedule"}
TOLERATES_K: Final = {"tolerations": [{"key": "k", "operator": "Exists"}]}
TOLERATES_ABOVE: Final = {"tolerations": [{"key": "k", "operator": "Gt", "value": "5"}]}
TOLERATES_CORDON: Final = {"tolerations": [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]}
ON_SSD: Final = pod("me", nodeSelector={"disk": "ssd"}).build()
SSD: Final = {"disk": "ssd"}
SSD_IN_A: Final = SSD | {"pool": "a"}
GPU: Final = {"vendor.com/gpu": "1"}
IN_POOL_A: Final = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "pool", "operator": "In", "values": ["a"]}]}]}
USERS: Final = "UserNamespacesHostNetworkSupport"
NEEDS_USERS: Final = {"hostNetwork": True, "hostUsers": False}


def with_taint(taint: dict[str, str]) -> NodeMaker:
    return node("n", spec={"taints": [taint]})


def tainted(value: str) -> dict[str, str]:
    return TAINT | {"value": value}


def ports(*numbers: int, address: str = "", protocol: str = "TCP") -> dict[str, Any]:
    found = [{"hostPort": number, "hostIP": address, "protocol": protocol} for number in numbers]
    return {"containers": [{"name": "main", "ports": found}]}


def asks(**amounts: str) -> PodInfo:
    return pod("me", containers=[{"name": "main", "resources": {"requests": amounts}}]).build()


def nominated(one: PodInfo) -> PodInfo:
    return PodInfo(msgspec.structs.replace(one.pod, status=msgspec.structs.replace(one.pod.status, nominated_node_name="n")))


def declaring(*features: str) -> Node:
    return convert({"metadata": {"name": "n"}, "status": {"declaredFeatures": list(features)}}, Node)


_gates = Rejected("SchedulingGates", GATED)
_cordon = Rejected("NodeUnschedulable", PLAIN)
_named = Rejected("NodeName", pod("me"))
_taints = Rejected("TaintToleration", PLAIN)
_affinity = Rejected("NodeAffinity", ON_SSD)
_enforced = Rejected("NodeAffinity", ON_SSD, {"addedAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": IN_POOL_A}})
_ports = Rejected("NodePorts", pod("me", **ports(80)))
_local_port = Rejected("NodePorts", pod("me", **ports(80, address="10.0.0.1")))
_fit = Rejected("NodeResourcesFit", asks(cpu="3"))
_gpu = Rejected("NodeResourcesFit", asks(**GPU))
_ignored_gpu = Rejected("NodeResourcesFit", asks(**GPU), {"ignoredResources": ["vendor.com/gpu"]})
_modest = Rejected("NodeResourcesFit", PLAIN)
_features = Rejected("NodeDeclaredFeatures", pod("me", **NEEDS_USERS))
_preemption = Rejected("DefaultPreemption", PLAIN)

WITHOUT_NODES: Final[tuple[Row, ...]] = (
    _gates.wakes("the removal of its gates", WAITING_UNGATED, old=GATED, new=PLAIN),
    _gates.rests("the removal of another pod's gates", WAITING_UNGATED, old=pod("else"), new=pod("else")),
    _gates.rests("a label of its own", WAITING_LABELLED, old=GATED, new=pod("me", labels=SSD, **GATES)),
    _gates.rests("a new node", NODE_ADDED, new=node("n")),
    _gates.rests("a pod that leaves a node", POD_DELETED, old=pod("else", on="n")),
    _preemption.rests("a pod that leaves a node", POD_DELETED, old=pod("else", on="n")),
    _preemption.rests("a nominated pod that is deleted", WAITING_DELETED, old=nominated(pod("else").build())),
    _preemption.rests("a new node", NODE_ADDED, new=node("n")),
)  # fmt: skip

NODES: Final[tuple[Row, ...]] = (
    _cordon.wakes("a new node", NODE_ADDED, new=node("n")),
    _cordon.rests("a new node that is cordoned", NODE_ADDED, new=node("n").cordoned()),
    _cordon.wakes("a node that is uncordoned", NODE_TAINTED, old=node("n").cordoned(), new=node("n")),
    _cordon.rests("a node that is cordoned", NODE_TAINTED, old=node("n"), new=node("n").cordoned()),
    _cordon.rests("a taint that an open node loses", NODE_TAINTED, old=with_taint(TAINT), new=node("n")),
    _cordon.rests("a node that grows", NODE_RESIZED, old=node("n"), new=node("n", cpu="9")),
    _cordon.wakes("a toleration of cordons", WAITING_TOLERATES, old=PLAIN, new=pod("me", **TOLERATES_CORDON)),
    _cordon.rests("another toleration", WAITING_TOLERATES, old=PLAIN, new=pod("me", **TOLERATES_K)),
    _cordon.rests("another pod's toleration", WAITING_TOLERATES, old=pod("else"), new=pod("else", **TOLERATES_CORDON)),
    _cordon.rests("a pod that leaves a node", POD_DELETED, old=pod("else", on="n")),
    _named.wakes("a new node", NODE_ADDED, new=node("n")),
    _named.rests("a node that gets another label", NODE_LABELLED, old=node("n"), new=node("n", labels=SSD)),
    _named.rests("a node that goes", NODE_DELETED, old=node("n")),
    _named.rests("a pod that leaves a node", POD_DELETED, old=pod("else", on="n")),
    _taints.wakes("a new node without taints", NODE_ADDED, new=node("n")),
    _taints.wakes("a new node that only prefers others", NODE_ADDED, new=with_taint(SOFT_TAINT)),
    _taints.rests("a new node with a taint", NODE_ADDED, new=with_taint(TAINT)),
    Rejected("TaintToleration", pod("me", **TOLERATES_K)).wakes(
        "a new node with a tolerated taint", NODE_ADDED, new=with_taint(TAINT)
    ),
    Rejected("TaintToleration", pod("me", **TOLERATES_ABOVE)).wakes(
        "a taint that becomes large enough", NODE_TAINTED, old=with_taint(tainted("5")), new=with_taint(tainted("6"))
    ),
    Rejected("TaintToleration", pod("me", **TOLERATES_ABOVE)).rests(
        "a taint that becomes no number", NODE_TAINTED, old=with_taint(tainted("5")), new=with_taint(tainted("six"))
    ),
    _taints.wakes("a node that loses its taint", NODE_TAINTED, old=with_taint(TAINT), new=node("n")),
    _taints.rests("a node that was free before", NODE_TAINTED, old=node("n"), new=with_taint(SOFT_TAINT)),
    _taints.rests("a node that gets a taint", NODE_TAINTED, old=node("n"), new=with_taint(TAINT)),
    _taints.rests("a node that grows", NODE_RESIZED, old=node("n"), new=node("n", cpu="9")),
    _taints.wakes("a toleration of its own", WAITING_TOLERATES, old=PLAIN, new=pod("me", **TOLERATES_K)),
    _taints.rests("another pod's toleration", WAITING_TOLERATES, old=pod("else"), new=pod("else", **TOLERATES_K)),
    _affinity.wakes("a new node that matches", NODE_ADDED, new=node("n", labels=SSD)),
    _affinity.rests("a new node that does not match", NODE_ADDED, new=node("n")),
    _affinity.wakes("a node that comes to match", NODE_LABELLED, old=node("n"), new=node("n", labels=SSD)),
    _affinity.rests("a node that matched before", NODE_LABELLED, old=node("n", labels=SSD), new=node("n", labels=SSD | {"x": ""})),
    _affinity.rests("a node that ceases to match", NODE_LABELLED, old=node("n", labels=SSD), new=node("n")),
    _affinity.rests("a node that goes", NODE_DELETED, old=node("n", labels=SSD)),
    _affinity.rests("a condition of a node", NODE_CONDITION, old=node("n"), new=node("n", labels=SSD)),
    _enforced.wakes("a new node that also matches the profile's affinity", NODE_ADDED, new=node("n", labels=SSD_IN_A)),
    _enforced.rests("a new node that matches only the pod's affinity", NODE_ADDED, new=node("n", labels=SSD)),
    _enforced.rests("a new node that matches only the profile's affinity", NODE_ADDED, new=node("n", labels={"pool": "a"})),
    _enforced.wakes("a node that comes to match the profile's", NODE_LABELLED, old=node("n", labels=SSD), new=node("n", labels=SSD_IN_A)),
    _features.wakes("a new node that declares the feature", NODE_ADDED, new=declaring(USERS)),
    _features.rests("a new node that declares another feature", NODE_ADDED, new=declaring("Other")),
    _features.wakes("a node that comes to declare the feature", NODE_FEATURED, old=declaring(), new=declaring(USERS)),
    _features.rests("a node that declared the feature before", NODE_FEATURED, old=declaring(USERS), new=declaring(USERS, "Other")),
    _features.rests("a node that comes to declare another feature", NODE_FEATURED, old=declaring(), new=declaring("Other")),
    _features.rests("a label of a node that declares the feature", NODE_LABELLED, old=declaring(), new=declaring(USERS)),
    _features.wakes("a need of its own that went", WAITING_CHANGED, old=pod("me", **NEEDS_USERS), new=PLAIN),
    _features.rests("a label of its own", WAITING_LABELLED, old=pod("me", **NEEDS_USERS), new=pod("me", labels=SSD, **NEEDS_USERS)),
    _features.rests("a need of another pod that went", POD_CHANGED, old=pod("else", on="n", **NEEDS_USERS), new=pod("else", on="n")),
    _features.rests("a pod that leaves a node", POD_DELETED, old=pod("else", on="n")),
)  # fmt: skip

ROOM_ON_NODES: Final[tuple[Row, ...]] = (
    _ports.wakes("a pod that leaves the port", POD_DELETED, old=pod("else", on="n", **ports(80))),
    _ports.wakes("a pod nominated to the port that is deleted", POD_DELETED, old=nominated(pod("else", **ports(80)).build())),
    _ports.rests("a pod that had no node yet", POD_DELETED, old=pod("else", **ports(80))),
    _ports.rests("a pod that leaves another port", POD_DELETED, old=pod("else", on="n", **ports(81))),
    _ports.rests("a pod that leaves the port of another protocol", POD_DELETED, old=pod("else", on="n", **ports(80, protocol="UDP"))),
    _ports.rests("a pod without ports that leaves", POD_DELETED, old=pod("else", on="n")),
    _local_port.wakes("a pod that leaves the port on all addresses", POD_DELETED, old=pod("else", on="n", **ports(80))),
    _local_port.rests("a pod that leaves another address", POD_DELETED, old=pod("else", on="n", **ports(80, address="10.0.0.2"))),
    _ports.rests("a pod that appears on a node", POD_ADDED, new=pod("else", on="n", **ports(80))),
    _ports.wakes("a new node", NODE_ADDED, new=node("n")),
    _ports.rests("a node that grows", NODE_RESIZED, old=node("n"), new=node("n", cpu="9")),
    _fit.wakes("a pod that leaves a node", POD_DELETED, old=pod("else", on="n")),
    _fit.wakes("a nominated pod that is deleted", POD_DELETED, old=nominated(pod("else").build())),
    _fit.rests("a pod that had no node yet", POD_DELETED, old=pod("else")),
    _fit.rests("a pod that appears on a node", POD_ADDED, new=pod("else", on="n")),
    _fit.wakes("a request of its own that shrinks", WAITING_SHRUNK, old=asks(cpu="3"), new=asks(cpu="1")),
    _fit.wakes("a pod on a node that shrinks", POD_SHRUNK, old=LARGE, new=SMALL),
    _fit.rests("a pod without a node that shrinks", WAITING_SHRUNK, old=pod("else", cpu="2"), new=pod("else", cpu="1")),
    _gpu.rests("a pod that gives up what it does not ask for", POD_SHRUNK, old=LARGE, new=SMALL),
    _fit.rests("another pod's label", POD_LABELLED, old=pod("else", on="n"), new=pod("else", on="n", labels=SSD)),
    _fit.wakes("a new node that is large enough", NODE_ADDED, new=node("n")),
    _fit.rests("a new node that is too small", NODE_ADDED, new=node("n", cpu="2")),
    _modest.rests("a new node that takes no pods", NODE_ADDED, new=node("n", pods="0")),
    _fit.wakes("a node that becomes large enough", NODE_RESIZED, old=node("n", cpu="2"), new=node("n")),
    _fit.rests("a node that grows and is still too small", NODE_RESIZED, old=node("n", cpu="1"), new=node("n", cpu="2")),
    _fit.rests("a node that gets more of something else", NODE_RESIZED, old=node("n"), new=node("n", memory="32Gi")),
    _fit.rests("a large node that shrinks", NODE_RESIZED, old=node("n", cpu="8"), new=node("n")),
    _fit.wakes("a node that takes more pods", NODE_RESIZED, old=node("n"), new=node("n", pods="111")),
    _gpu.wakes("a node that gets a device", NODE_RESIZED, old=node("n"), new=node("n", **GPU)),
    _gpu.rests("a new node without the device", NODE_ADDED, new=node("n")),
    _ignored_gpu.wakes("a new node without a device that the profile ignores", NODE_ADDED, new=node("n")),
    _fit.rests("a node that gets another label", NODE_LABELLED, old=node("n"), new=node("n", labels=SSD)),
)  # fmt: skip

ROWS: Final = (*WITHOUT_NODES, *NODES, *ROOM_ON_NODES)
