"""Plugins that do what a test tells them, and remember that they were asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.events import Action, ClusterEventWithHint, EventResource, event_with_hint
from placewright.framework.interface import (
    CycleState,
    Diagnosis,
    IntColumn,
    PermitPlugin,
    PermitResult,
    Plugin,
    PostBindPlugin,
    PostFilterPlugin,
    PostFilterResult,
    PreBindPlugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    ReservePlugin,
    Rows,
    ScorePlugin,
)
from placewright.framework.status import SUCCESS, Status, unschedulable

Act = Callable[[PodInfo], Any]


def raising(message: str) -> Act:
    """A step that breaks."""

    def act(_pod: PodInfo) -> Any:
        raise RuntimeError(message)

    return act


@dataclass
class Script:
    """What the late steps of a plugin answer, and which were asked: `asked` holds `step pod`."""

    reserve: Act = lambda _pod: SUCCESS
    unreserve: Act = lambda _pod: None
    permit: Act = lambda _pod: PermitResult(SUCCESS)
    pre_flight: Act = lambda _pod: SUCCESS
    pre_bind: Act = lambda _pod: SUCCESS
    post_bind: Act = lambda _pod: None
    asked: list[str] = field(default_factory=list)


def late_plugin(plugin_name: str, script: Script, asked: list[str] | None = None) -> type[Plugin]:
    """A plugin of Reserve, Permit, PreBind and PostBind; `asked` may be shared with others to see the order."""
    log = script.asked if asked is None else asked

    class Late(ReservePlugin, PermitPlugin, PreBindPlugin, PostBindPlugin):
        name = plugin_name

        def events(self) -> Sequence[ClusterEventWithHint]:
            return [event_with_hint(EventResource.ASSIGNED_POD, Action.DELETE)]

        def reserve(self, state: CycleState, pod: PodInfo, node: NodeName) -> Status:
            log.append(f"reserve {self.name}")
            return script.reserve(pod)

        def unreserve(self, state: CycleState, pod: PodInfo, node: NodeName) -> None:
            log.append(f"unreserve {self.name}")
            script.unreserve(pod)

        def permit(self, state: CycleState, pod: PodInfo, node: NodeName) -> PermitResult:
            log.append(f"permit {self.name}")
            return script.permit(pod)

        def pre_bind_pre_flight(self, state: CycleState, pod: PodInfo, node: NodeName) -> Status:
            return script.pre_flight(pod)

        async def pre_bind(self, state: CycleState, pod: PodInfo, node: NodeName) -> Status:
            log.append(f"pre-bind {self.name}")
            return script.pre_bind(pod)

        def post_bind(self, state: CycleState, pod: PodInfo, node: NodeName) -> None:
            log.append(f"post-bind {self.name}")
            script.post_bind(pod)

    return Late


def scoring_plugin(scores: dict[str, int], *, broken: str = "", plugin_name: str = "Taste") -> type[Plugin]:
    """Scores nodes by name, 0 to 100; `broken` is what PreScore raises instead. `asked` of the class counts calls."""

    class Taste(PreScorePlugin, ScorePlugin):
        name = plugin_name

        def pre_score(self, state: CycleState, pod: PodInfo, cluster: Cluster, feasible: Rows) -> Status:
            if broken:
                raise RuntimeError(broken)
            return SUCCESS

        def score(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> IntColumn:
            return np.array([scores.get(cluster.names[row] or "", 0) for row in rows], np.int64)

    return Taste


def room_maker(node: str, *victims: PodInfo) -> type[Plugin]:
    """A PostFilter that makes room on a node by evicting pods."""

    class RoomMaker(PostFilterPlugin):
        name = "RoomMaker"

        def post_filter(self, state: CycleState, pod: PodInfo, cluster: Cluster, diagnosis: Diagnosis) -> PostFilterResult:
            return PostFilterResult(SUCCESS, NodeName(node), victims)

    return RoomMaker


def refusing_plugin(*reasons: str) -> type[Plugin]:
    """A PreFilter that refuses every pod on every node."""

    class Refusing(PreFilterPlugin):
        name = "Refusing"

        def pre_filter(self, state: CycleState, pod: PodInfo, cluster: Cluster) -> PreFilterResult:
            return PreFilterResult(unschedulable(*reasons))

    return Refusing


def narrowing_plugin(*nodes: str) -> type[Plugin]:
    """A PreFilter that leaves only these nodes."""

    class Narrowing(PreFilterPlugin):
        name = "Narrowing"

        def pre_filter(self, state: CycleState, pod: PodInfo, cluster: Cluster) -> PreFilterResult:
            return PreFilterResult(SUCCESS, frozenset(NodeName(name) for name in nodes))

    return Narrowing


ONLY_TASTE = {"plugins": {"multiPoint": {"enabled": [{"name": "Taste", "weight": 1}]}}}
