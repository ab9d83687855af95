"""Outcomes made by hand: a few nodes, pods that stand on them or wait, and no simulation in between."""

from __future__ import annotations

from typing import Any

from placewright import testing as kit
from placewright.api.objects import Node, NodeName
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.testing.nodes import NodeMaker
from placewright.testing.objectmaker import HOSTNAME
from placewright_lab.simulation.outcome import Fate, Outcome

NO_CPU = "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable. preemption: 0/2 nodes are available: 2 No victims."


def a_node(
    name: str, *, zone: str = "", cordoned: bool = False, pods: int = 110, labels: dict[str, str] | None = None, **offers: object
) -> Node:
    """Make a node with `cpu="4", gpu=2` or other resources. gpu stands for `nvidia.com/gpu`."""
    made = NodeMaker(name).labels({HOSTNAME: name}, **(labels or {})).offers(_resources(offers), pods=str(pods))
    return (made.zone(zone) if zone else made).spec(unschedulable=cordoned).build()


def a_pod(name: str, *, on: str = "", owner: str = "", selector: dict[str, str] | None = None, **asks: object) -> PodInfo:
    """Make a pod in the namespace `a`. `owner` is the kind of its controller."""
    made = kit.pod(name, on=on).namespace("a").uid(f"uid-{name}").requests(_resources(asks)).node_selector(selector)
    return (made.owned_by(owner, "o") if owner else made).build()


def _resources(amounts: dict[str, object]) -> dict[str, str]:
    names = {"gpu": "nvidia.com/gpu", "gpu_milli": "openb/gpu-milli"}
    return {names.get(name, name): str(amount) for name, amount in amounts.items()}


class OutcomeMaker:
    """`outcome("default", node("n"), …).stood(pod("x", on="n")).placed(pod("y"), "n").waits(pod("z"), NO_CPU).made`."""

    def __init__(self, profile: str, *nodes: Node) -> None:
        self.made = Outcome(profile, 7, {}, Cluster())
        for each in nodes:
            self.made.cluster.set_node(each)

    def stood(self, *pods: PodInfo) -> OutcomeMaker:
        """Add pods that were there before."""
        for each in pods:
            self.made.cluster.set_pod(each)
        return self

    def placed(
        self, placed: PodInfo, on: str, *, created: float = 0, bound: float = 0, left: float | None = None, **fate: Any
    ) -> OutcomeMaker:
        """Add a pod that got a node."""
        self.made.fates[placed.uid] = Fate(placed, created, NodeName(on), bound, left, attempts=1, **fate)
        if left is None:
            self.made.cluster.assume(placed.on(NodeName(on)), NodeName(on))
        self.made.ended = max(self.made.ended, bound, left or 0)
        return self

    def waits(self, waiting: PodInfo, message: str = "", *, created: float = 0, left: float | None = None) -> OutcomeMaker:
        """Add a pod that got no node."""
        self.made.fates[waiting.uid] = Fate(waiting, created, left=left, attempts=1, message=message)
        return self


outcome = OutcomeMaker
