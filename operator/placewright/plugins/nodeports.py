"""NodePorts: host ports must be free. Implements PreFilter, Filter."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from placewright.api.objects import NodeName
from placewright.api.pods import ANY_ADDRESS, HostPort, PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.events import Action, ClusterEventWithHint, EventResource, event_with_hint
from placewright.framework.filters import NOTHING_TO_CHECK, ConstantReasonFilter
from placewright.framework.interface import BoolColumn, CycleState, PreFilterPlugin, PreFilterResult, Reads, Rows
from placewright.framework.remedies import MOST_PODS, Remedy, RemedyKind, RemedyPlugin, keys, pods_in_words
from placewright.framework.status import unschedulable
from placewright.plugins.shared.hints import was_in_the_way


class NodePorts(ConstantReasonFilter, RemedyPlugin, PreFilterPlugin):
    """Rejects nodes where a requested host port is taken."""

    name = "NodePorts"
    reads = Reads.NODE_AND_ITS_PODS
    rejection = unschedulable("node(s) didn't have free ports for the requested pod ports")

    def sign(self, pod: PodInfo) -> Hashable:
        """Sign the pod by the requested host ports."""
        return pod.host_ports

    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: Cluster) -> PreFilterResult:
        """Skip pods without host ports."""
        return PreFilterResult() if pod.host_ports else NOTHING_TO_CHECK

    def filter(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> BoolColumn:
        """Allow rows where all requested ports are free."""
        return cluster.ports.free(pod.host_ports, rows)

    def remedies(self, state: CycleState, pod: PodInfo, cluster: Cluster, row: int) -> list[Remedy]:
        """Propose to remove the pods on the node that hold the ports, if they are few."""
        mine = ClaimedPorts(pod.host_ports)
        there = cluster.pods_on(NodeName(str(cluster.names[row])))
        holders = [each for each in there if mine.conflict_with(each.host_ports)]
        if not holders or len(holders) > MOST_PODS:
            return []
        taken = ClaimedPorts([port for holder in holders for port in holder.host_ports])
        ports = sorted({f"{one.port}/{one.protocol}" for one in pod.host_ports if taken.conflict_with((one,))})
        text = f"host port {', '.join(ports)} free, which {pods_in_words(holders)} holds"
        return [Remedy(self.name, RemedyKind.REMOVE_PODS, text, pods=keys(holders))]

    def events(self) -> Sequence[ClusterEventWithHint]:
        """Declare pods that free one of the ports, and new nodes."""
        return (
            event_with_hint(EventResource.POD, Action.DELETE, was_in_the_way(PodInfo, _held_a_port)),
            event_with_hint(EventResource.NODE, Action.ADD),
        )


class ClaimedPorts:
    """Requested host ports by port, to be compared with others without comparing each with each."""

    def __init__(self, ports: Sequence[HostPort]) -> None:
        self._addresses: dict[tuple[str, int], set[str]] = {}
        for protocol, port, address in ports:
            self._addresses.setdefault((protocol, port), set()).add(address)

    def conflict_with(self, others: Sequence[HostPort]) -> bool:
        """Return whether any of the other ports conflicts with these on one node."""
        return any(self._conflicts(other) for other in others)

    def _conflicts(self, other: HostPort) -> bool:
        addresses = self._addresses.get((other.protocol, other.port))
        return addresses is not None and (other.address == ANY_ADDRESS or other.address in addresses or ANY_ADDRESS in addresses)


def _held_a_port(pod: PodInfo, other: PodInfo) -> bool:
    return bool(other.node_name or other.nominated_node) and ClaimedPorts(pod.host_ports).conflict_with(other.host_ports)
