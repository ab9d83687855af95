"""A kubelet's checks before it runs a pod on its node, and the messages of its refusals.

The rules are the kubelet's own: room for each request beside the running pods, required node affinity and node selector, free host ports,
and NoExecute taints. NoSchedule taints and `unschedulable` concern only the scheduler. An unknown node refuses nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from placewright.api.objects import Node, NodeName, Pod
from placewright.api.pods import ANY_ADDRESS, HostPort, PodInfo
from placewright.api.requests import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, canonical, is_extended_resource
from placewright.api.selectors import compile_node_selector, selector_from_pairs
from placewright.api.tolerations import tolerated

_FIRST = (CPU, MEMORY, EPHEMERAL_STORAGE)


@dataclass(frozen=True, slots=True)
class Refusal:
    """The reason why a pod does not run, in its status.

    Attributes:
        reason: word such as `OutOfcpu` or `NodeAffinity`.
        message: a kubelet's words.
    """

    reason: str
    message: str


class Admission:
    """The pods that run on each node, and the decision about further ones."""

    def __init__(self) -> None:
        self._nodes: dict[NodeName, Node] = {}
        self._running: defaultdict[NodeName, dict[str, PodInfo]] = defaultdict(dict)

    def node_is(self, node: Node) -> None:
        """Take over the node's present state."""
        self._nodes[NodeName(node.metadata.name)] = node

    def node_is_gone(self, name: NodeName) -> None:
        """Forget the node."""
        self._nodes.pop(name, None)

    def admit(self, pod: Pod) -> Refusal | None:
        """Return None if the pod may run, which then counts until `end`. A second call for an admitted pod changes nothing."""
        info = PodInfo(pod)
        running = self._running[info.node_name]
        if pod.metadata.uid in running:
            return None
        node = self._nodes.get(info.node_name)
        refusal = None if node is None else next(_refusals(info, node, running.values()), None)
        if refusal is None:
            running[pod.metadata.uid] = info
        return refusal

    def runs_already(self, pod: Pod) -> None:
        """Count a pod that was started before this admission began."""
        self._running[NodeName(pod.spec.node_name)].setdefault(pod.metadata.uid, PodInfo(pod))

    def end(self, node: NodeName, uid: str) -> None:
        """Free the room of a pod that has ended or is gone."""
        self._running[node].pop(uid, None)


def _refusals(pod: PodInfo, node: Node, running: Collection[PodInfo]) -> Iterator[Refusal]:
    """Yield all refusals in a kubelet's order. A kubelet tells only the first."""
    yield from _short_of(pod, node, running)
    if not _wants(pod, node):
        yield _failed("NodeAffinity", "node(s) didn't match Pod's node affinity/selector")
    if any(_conflict(ours, theirs) for other in running for theirs in other.host_ports for ours in pod.host_ports):
        yield _failed("NodePorts", "node(s) didn't have free ports for the requested pod ports")
    tolerations = pod.pod.spec.tolerations or ()
    if any(taint.effect == "NoExecute" and not tolerated(taint, tolerations) for taint in node.spec.taints or ()):
        yield _failed("TaintToleration", "node(s) had taints that the pod didn't tolerate")


def _failed(predicate: str, why: str) -> Refusal:
    return Refusal(predicate, f"Predicate {predicate} failed: {why}")


def _short_of(pod: PodInfo, node: Node, running: Collection[PodInfo]) -> Iterator[Refusal]:
    capacity = canonical(node.status.allocatable or {})
    if len(running) + 1 > capacity.get(PODS, 0):
        yield _out_of(PODS, 1, len(running), capacity.get(PODS, 0))
    for name in sorted(pod.requests, key=lambda name: (_FIRST.index(name) if name in _FIRST else len(_FIRST), name)):
        # If a node has no such extended resource, another program assigns it across nodes.
        if is_extended_resource(name) and name not in capacity:
            continue
        requested, used = pod.requests[name], sum(other.requests.get(name, 0) for other in running)
        if requested > 0 and used + requested > capacity.get(name, 0):
            yield _out_of(name, requested, used, capacity.get(name, 0))


def _out_of(name: str, requested: int, used: int, capacity: int) -> Refusal:
    amounts = f"requested: {requested}, used: {used}, capacity: {capacity}"
    return Refusal(f"OutOf{name}", f"Node didn't have enough resource: {name}, {amounts}")


def _wants(pod: PodInfo, node: Node) -> bool:
    spec, labels = pod.pod.spec, node.metadata.labels or {}
    if not selector_from_pairs(spec.node_selector or {}).matches(labels):
        return False
    affinity = spec.affinity.node_affinity if spec.affinity else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
    return required is None or any(term.matches(labels, node.metadata.name) for term in compile_node_selector(required))


def _conflict(one: HostPort, other: HostPort) -> bool:
    same = (one.protocol, one.port) == (other.protocol, other.port)
    return same and (one.address == other.address or ANY_ADDRESS in (one.address, other.address))
