"""NodePorts: host ports must be free. Implements PreFilter, Filter."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Final

from placewright.api.objects import NodeName
from placewright.api.pods import ANY_ADDRESS, HostPort, PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.events import Action, ClusterEventWithHint, EventResource, QueueingHint, interest
from placewright.framework.interface import BoolColumn, CycleState, PreFilterPlugin, PreFilterResult, Reads, Rows
from placewright.framework.remedies import MOST_PODS, Remedy, RemedyKind, RemedyPlugin, keys, pods_in_words
from placewright.framework.status import SKIP, unschedulable
from placewright.plugins.shared.filters import ConstantReasonFilter

NAME: Final = "NodePorts"
REASON: Final = "node(s) didn't have free ports for the requested pod ports"


class NodePorts(ConstantReasonFilter, RemedyPlugin, PreFilterPlugin):
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

    def remedies(self, state: CycleState, pod: PodInfo, cluster: Cluster, row: int) -> list[Remedy]:
        """The pods on the node that hold the ports go, if they are few."""
        mine = pod.host_ports
        there = cluster.pods_on(NodeName(str(cluster.names[row])))
        holders = [each for each in there if any(conflicts(one, other) for one in mine for other in each.host_ports)]
        if not holders or len(holders) > MOST_PODS:
            return []
        taken = [port for holder in holders for port in holder.host_ports]
        ports = sorted({f"{one.port}/{one.protocol}" for one in mine if any(conflicts(one, other) for other in taken)})
        text = f"host port {', '.join(ports)} free, which {pods_in_words(holders)} holds"
        return [Remedy(self.name, RemedyKind.REMOVE_PODS, text, pods=keys(holders))]

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
