"""NodePorts: host ports must be free. Implements PreFilter, Filter."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Final

from placewright.api.pods import ANY_ADDRESS, HostPort, PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.events import Action, ClusterEventWithHint, EventResource, QueueingHint, interest
from placewright.framework.interface import BoolColumn, CycleState, PreFilterPlugin, PreFilterResult, Reads, Rows
from placewright.framework.status import SKIP, unschedulable
from placewright.plugins.constantreason import ConstantReasonFilter

NAME: Final = "NodePorts"
REASON: Final = "node(s) didn't have free ports for the requested pod ports"


class NodePorts(ConstantReasonFilter, PreFilterPlugin):
    """Rejects nodes where a requested host port is taken."""

    name = NAME
    reads = Reads.NODE_AND_ITS_PODS
    rejection = unschedulable(REASON)

    def sign(self, pod: PodInfo) -> Hashable:
        """The requested host ports."""
        return pod.host_ports

    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: Cluster) -> PreFilterResult:
        """Skip pods without host ports."""
        return PreFilterResult() if pod.host_ports else PreFilterResult(SKIP)

    def filter(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> BoolColumn:
        """True where all requested ports are free."""
        return cluster.ports.free(pod.host_ports, rows)

    def events(self) -> Sequence[ClusterEventWithHint]:
        """A pod that frees one of the ports; a new node."""
        return (
            interest(EventResource.POD, Action.DELETE, _frees_a_port),
            interest(EventResource.NODE, Action.ADD),
        )


def conflicts(one: HostPort, other: HostPort) -> bool:
    """True when two claims cannot both hold on one node."""
    same_port = one.protocol == other.protocol and one.port == other.port
    return same_port and (one.address == other.address or ANY_ADDRESS in (one.address, other.address))


def _frees_a_port(pod: PodInfo, old: Any, _new: Any) -> QueueingHint:
    if not isinstance(old, PodInfo) or not (old.node_name or old.nominated_node):
        return QueueingHint.SKIP
    freed = any(conflicts(mine, theirs) for mine in pod.host_ports for theirs in old.host_ports)
    return QueueingHint.QUEUE if freed else QueueingHint.SKIP
