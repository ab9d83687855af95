"""The diagnosis of a pod that fits on no node, and the answer of PostFilter to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from placewright.api.extenders import NodeVictims
from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.framework.interface.columns import Rejection
from placewright.framework.ports import Seconds
from placewright.framework.status import Status


@dataclass(slots=True)
class Diagnosis:
    """Why no node fits: for each row the filter that rejected it first, and its reasons.

    The message of the pod's event and condition is made from it. The queue lets the pod wait for the events of `unschedulable_plugins`.

    Attributes:
        node_count: number of nodes at that time.
        rejections: rows grouped by status; every row at most once.
        absent: the status of all nodes that no rejection names, if a PreFilter plugin rejected the pod as a whole; else None.
        prefilter_message: the reason of PreFilter if it rejected the pod on every node; else empty.
        postfilter_message: the reason of PostFilter if it made no room; else empty.
        unschedulable_plugins: names of all plugins that rejected a row or the pod, the pending ones included.
        pending_plugins: names of the plugins that answered PENDING.
        asks_extenders: whether extenders will be asked about the alternatives of PostFilter.
    """

    node_count: int
    rejections: list[Rejection] = field(default_factory=list)
    absent: Status | None = None
    prefilter_message: str = ""
    postfilter_message: str = ""
    unschedulable_plugins: set[str] = field(default_factory=set)
    pending_plugins: set[str] = field(default_factory=set)
    asks_extenders: bool = False


@dataclass(frozen=True, slots=True)
class PostFilterResult:
    """The answer of PostFilter.

    Attributes:
        status: see `PostFilterPlugin`.
        nominated_node: the node on which room is made; "" clears an earlier nomination, None leaves it.
        victims: pods to evict from the nominated node. The scheduler evicts them after the attempt has ended; the plugin evicts no pod.
        alternatives: the nodes among which this one was chosen. Extenders with a preempt verb are asked about them. A plugin that leaves
            this None decides alone. With UNSCHEDULABLE only extenders may still make room, and no further plugin is asked.
        retry_after: seconds after which the answer may be another although nothing happens in the cluster. The pod waits for events as
            usual, and is tried again then at the latest. None: only events help. It is not read with SUCCESS.

    Example:
        PostFilterResult(SUCCESS, NodeName("node-7"), victims=(cheapest,))
        PostFilterResult(unschedulable("preemption: no pod here is less important"))
        PostFilterResult(unschedulable("a node is on its way"), retry_after=30.0)
    """

    status: Status
    nominated_node: NodeName | None = None
    victims: tuple[PodInfo, ...] = ()
    alternatives: Alternatives | None = None
    retry_after: Seconds | None = None


@dataclass(frozen=True, slots=True)
class Alternatives:
    """Nodes where evicting would make room.

    Attributes:
        victims: pods that would have to leave, by node; none on a node where only extenders know which pods would have to.
        choose: function that returns the result for the nodes and victims that extenders left; a rejection if they left none.
    """

    victims: Mapping[NodeName, NodeVictims]
    choose: Callable[[Mapping[NodeName, NodeVictims]], PostFilterResult]
