"""Plugins that look at a pod and a node, or only at the pod."""

from __future__ import annotations

from typing import Final

from hints.rows import Rejected, Row
from placewright.testing import node, pod

PLAIN: Final = pod("me").build()
GATED: Final = pod("me").gates("quota").build()
ELSE, ON_NODE = pod("else"), pod("else", on="n")
LARGE, SMALL = ON_NODE.requests(cpu="2"), ON_NODE.requests(cpu="1")
NODE: Final = node("n")
TAINTED: Final = NODE.taint("k", "v")
CORDON: Final = "node.kubernetes.io/unschedulable"
ON_SSD: Final = pod("me").node_selector(disk="ssd").build()
SSD: Final = {"disk": "ssd"}
SSD_IN_A: Final = SSD | {"pool": "a"}
GPU: Final = {"vendor.com/gpu": "1"}
IN_POOL_A: Final = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "pool", "operator": "In", "values": ["a"]}]}]}
USERS: Final = "UserNamespacesHostNetworkSupport"
DECLARES, DECLARES_OTHER = NODE.features(USERS), NODE.features("Other")
NEEDS_USERS: Final = {"hostNetwork": True, "hostUsers": False}

_gates = Rejected("SchedulingGates", GATED)
_cordon = Rejected("NodeUnschedulable", PLAIN)
_named = Rejected("NodeName", pod("me"))
_taints = Rejected("TaintToleration", PLAIN)
_tolerant = Rejected("TaintToleration", pod("me").tolerates("k"))
_above = Rejected("TaintToleration", pod("me", tolerations=[{"key": "k", "operator": "Gt", "value": "5"}]))
_affinity = Rejected("NodeAffinity", ON_SSD)
_enforced = Rejected("NodeAffinity", ON_SSD, {"addedAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": IN_POOL_A}})
_ports = Rejected("NodePorts", pod("me").host_port(80))
_local_port = Rejected("NodePorts", pod("me").host_port(80, ip="10.0.0.1"))
_fit = Rejected("NodeResourcesFit", pod("me", cpu="3"))
_gpu = Rejected("NodeResourcesFit", pod("me").requests(GPU))
_ignored_gpu = Rejected("NodeResourcesFit", pod("me").requests(GPU), {"ignoredResources": ["vendor.com/gpu"]})
_modest = Rejected("NodeResourcesFit", PLAIN)
_features = Rejected("NodeDeclaredFeatures", pod("me", **NEEDS_USERS))
_preemption = Rejected("DefaultPreemption", PLAIN)

WITHOUT_NODES: Final[tuple[Row, ...]] = (
    _gates.wakes("the removal of its gates", "pod_gates_eliminated", old=GATED, new=PLAIN),
    _gates.rests("the removal of another pod's gates", "pod_gates_eliminated", old=ELSE, new=ELSE),
    _gates.rests("a label of its own", "pod_label", old=GATED, new=pod("me", labels=SSD).gates("quota")),
    _gates.rests("a new node", new=NODE),
    _preemption.rests("a nominated pod that is deleted", old=ELSE.nominated("n")),
    _preemption.rests("a new node", new=NODE),
)  # fmt: skip

NODES: Final[tuple[Row, ...]] = (
    _cordon.rests("a new node that is cordoned", new=NODE.cordoned()),
    _cordon.wakes("a node that is uncordoned", "node_taint", old=NODE.cordoned(), new=NODE),
    _cordon.rests("a node that is cordoned", "node_taint", old=NODE, new=NODE.cordoned()),
    _cordon.rests("a taint that an open node loses", "node_taint", old=TAINTED, new=NODE),
    _cordon.wakes("a toleration of cordons", "pod_toleration", old=PLAIN, new=pod("me").tolerates(CORDON)),
    _cordon.rests("another toleration", "pod_toleration", old=PLAIN, new=pod("me").tolerates("k")),
    _cordon.rests("another pod's toleration", "pod_toleration", old=ELSE, new=ELSE.tolerates(CORDON)),
    _named.rests("a node that gets another label", "node_label", old=NODE, new=NODE.labels(SSD)),
    _named.rests("a node that goes", old=NODE),
    _taints.wakes("a new node without taints", new=NODE),
    _taints.wakes("a new node that only prefers others", new=NODE.taint("k", effect="PreferNoSchedule")),
    _taints.rests("a new node with a taint", new=TAINTED),
    _tolerant.wakes("a new node with a tolerated taint", new=TAINTED),
    _above.wakes("a taint that becomes large enough", "node_taint", old=NODE.taint("k", "5"), new=NODE.taint("k", "6")),
    _above.rests("a taint that becomes no number", "node_taint", old=NODE.taint("k", "5"), new=NODE.taint("k", "six")),
    _taints.wakes("a node that loses its taint", "node_taint", old=TAINTED, new=NODE),
    _taints.rests("a node that was free before", "node_taint", old=NODE, new=NODE.taint("k", effect="PreferNoSchedule")),
    _taints.rests("a node that gets a taint", "node_taint", old=NODE, new=TAINTED),
    _taints.wakes("a toleration of its own", "pod_toleration", old=PLAIN, new=pod("me").tolerates("k")),
    _taints.rests("another pod's toleration", "pod_toleration", old=ELSE, new=ELSE.tolerates("k")),
    _affinity.wakes("a new node that matches", new=NODE.labels(SSD)),
    _affinity.rests("a new node that does not match", new=NODE),
    _affinity.wakes("a node that comes to match", "node_label", old=NODE, new=NODE.labels(SSD)),
    _affinity.rests("a node that matched before", "node_label", old=NODE.labels(SSD), new=NODE.labels(SSD | {"x": ""})),
    _affinity.rests("a node that ceases to match", "node_label", old=NODE.labels(SSD), new=NODE),
    _affinity.rests("a node that goes", old=NODE.labels(SSD)),
    _affinity.rests("a condition of a node", "node_condition", old=NODE, new=NODE.labels(SSD)),
    _enforced.wakes("a new node that also matches the profile's affinity", new=NODE.labels(SSD_IN_A)),
    _enforced.rests("a new node that matches only the pod's affinity", new=NODE.labels(SSD)),
    _enforced.rests("a new node that matches only the profile's affinity", new=NODE.labels({"pool": "a"})),
    _enforced.wakes("a node that comes to match the profile's", "node_label", old=NODE.labels(SSD), new=NODE.labels(SSD_IN_A)),
    _features.wakes("a new node that declares the feature", new=DECLARES),
    _features.rests("a new node that declares another feature", new=DECLARES_OTHER),
    _features.wakes("a node that comes to declare the feature", "node_declared_feature", old=NODE, new=DECLARES),
    _features.rests("a node that declared the feature before", "node_declared_feature", old=DECLARES, new=NODE.features(USERS, "Other")),
    _features.rests("a node that comes to declare another feature", "node_declared_feature", old=NODE, new=DECLARES_OTHER),
    _features.rests("a label of a node that declares the feature", "node_label", old=NODE, new=DECLARES),
    _features.wakes("a need of its own that went", "other", old=pod("me", **NEEDS_USERS), new=PLAIN),
    _features.rests("a label of its own", "pod_label", old=pod("me", **NEEDS_USERS), new=pod("me", labels=SSD, **NEEDS_USERS)),
    _features.rests("a need of another pod that went", "other", old=ON_NODE.spec(**NEEDS_USERS), new=ON_NODE),
)  # fmt: skip

ROOM_ON_NODES: Final[tuple[Row, ...]] = (
    _ports.wakes("a pod that leaves the port", old=ON_NODE.host_port(80)),
    _ports.wakes("a pod nominated to the port that is deleted", old=ELSE.host_port(80).nominated("n")),
    _ports.rests("a pod that had no node yet", old=ELSE.host_port(80)),
    _ports.rests("a pod that leaves another port", old=ON_NODE.host_port(81)),
    _ports.rests("a pod that leaves the port of another protocol", old=ON_NODE.host_port(80, protocol="UDP")),
    _ports.rests("a pod without ports that leaves", old=ON_NODE),
    _local_port.wakes("a pod that leaves the port on all addresses", old=ON_NODE.host_port(80)),
    _local_port.rests("a pod that leaves another address", old=ON_NODE.host_port(80, ip="10.0.0.2")),
    _ports.rests("a pod that appears on a node", new=ON_NODE.host_port(80)),
    _fit.wakes("a pod that leaves a node", old=ON_NODE),
    _fit.wakes("a nominated pod that is deleted", old=ELSE.nominated("n")),
    _fit.rests("a pod that had no node yet", old=ELSE),
    _fit.rests("a pod that appears on a node", new=ON_NODE),
    _fit.wakes("a request of its own that shrinks", "pod_scale_down", old=pod("me", cpu="3"), new=pod("me", cpu="1")),
    _fit.wakes("a pod on a node that shrinks", "pod_scale_down", old=LARGE, new=SMALL),
    _fit.rests("a pod without a node that shrinks", "pod_scale_down", old=ELSE.requests(cpu="2"), new=ELSE.requests(cpu="1")),
    _gpu.rests("a pod that gives up what it does not ask for", "pod_scale_down", old=LARGE, new=SMALL),
    _fit.rests("another pod's label", "pod_label", old=ON_NODE, new=ON_NODE.labels(SSD)),
    _fit.wakes("a new node that is large enough", new=NODE),
    _fit.rests("a new node that is too small", new=NODE.offers(cpu="2")),
    _modest.rests("a new node that takes no pods", new=NODE.offers(pods="0")),
    _fit.wakes("a node that becomes large enough", "node_allocatable", old=NODE.offers(cpu="2"), new=NODE),
    _fit.rests("a node that grows and is still too small", "node_allocatable", old=NODE.offers(cpu="1"), new=NODE.offers(cpu="2")),
    _fit.rests("a node that gets more of something else", "node_allocatable", old=NODE, new=NODE.offers(memory="32Gi")),
    _fit.rests("a large node that shrinks", "node_allocatable", old=NODE.offers(cpu="8"), new=NODE),
    _fit.wakes("a node that takes more pods", "node_allocatable", old=NODE, new=NODE.offers(pods="111")),
    _gpu.wakes("a node that gets a device", "node_allocatable", old=NODE, new=NODE.offers(GPU)),
    _gpu.rests("a new node without the device", new=NODE),
    _ignored_gpu.wakes("a new node without a device that the profile ignores", new=NODE),
    _fit.rests("a node that gets another label", "node_label", old=NODE, new=NODE.labels(SSD)),
)  # fmt: skip

#: What helps, or does not, the pods of several plugins.
COMMON: Final[tuple[Row, ...]] = (
    *(each.wakes("a new node", new=NODE) for each in (_cordon, _named, _ports)),
    *(each.rests("a pod that leaves a node", old=ON_NODE) for each in (_gates, _preemption, _cordon, _named, _features)),
    *(each.rests("a node that grows", "node_allocatable", old=NODE, new=NODE.offers(cpu="9")) for each in (_cordon, _taints, _ports)),
)

ROWS: Final = (*COMMON, *WITHOUT_NODES, *NODES, *ROOM_ON_NODES)
