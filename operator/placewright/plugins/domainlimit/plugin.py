"""DomainLimit: at most so many pods in each domain of a node label. Implements PreFilter, Filter, PreScore, Score.

Required limits reject nodes in full domains. Preferred limits favour the domains that they are exceeded least in. A limit of the profile
holds for the pods that its selector picks, a limit of the annotation for the pod that carries it. Both count every pod that they pick, with
or without a limit of its own. Decision 48 says why.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final, NamedTuple

import numpy as np

from placewright.api.objects import Node
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.events import Action, ClusterEventWithHint, EventResource, QueueingHint, event_with_hint
from placewright.framework.filters import RuleJudge
from placewright.framework.interface import (
    MAX_NODE_SCORE,
    BoolColumn,
    CycleState,
    Handle,
    IntColumn,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    Reads,
    Rejection,
    Rows,
    ScorePlugin,
)
from placewright.framework.remedies import Remedy, RemedyPlugin
from placewright.framework.rowwise import RowwiseFilter
from placewright.framework.status import SKIP, SUCCESS, Status, unresolvable
from placewright.framework.topology import FixedRule, fingerprint, first_broken, obey
from placewright.plugins.domainlimit import hints
from placewright.plugins.domainlimit.args import DomainLimitArgs
from placewright.plugins.domainlimit.excess import IGNORED, Excess
from placewright.plugins.domainlimit.limits import Limit, LimitsOfPods
from placewright.plugins.domainlimit.remedies import fewer_pods
from placewright.plugins.domainlimit.rules import LimitedPlaces, RowwiseLimit, limit_rule
from placewright.plugins.shared.lookups import value_by_value

NAME: Final = "DomainLimit"
_EXCESS: Final = f"{NAME}/excess"
_NO_LIMITS: Final = PreFilterResult(SKIP)
_LOOK: Final = PreFilterResult()
#: The fingerprint of a column that allows all rows.
_ALL_HAVE_ROOM: Final = ()


class _Required(NamedTuple):
    """Required limits, and rules for the limits that exclude some node.

    Attributes:
        keys: labels of these rules.
    """

    limits: Sequence[Limit]
    rules: Sequence[FixedRule]
    keys: Sequence[str]


class DomainLimit(PreFilterPlugin[DomainLimitArgs], RowwiseFilter, RemedyPlugin, PreScorePlugin, ScorePlugin):
    """Limits how many pods of a kind share a node, a rack, a zone or any other label."""

    name = NAME
    default_weight = 2
    reads = Reads.CLUSTER

    @classmethod
    def idle_because(cls, args: DomainLimitArgs) -> str:
        """Say that without limits in the arguments only pods with limits of their own are limited."""
        return "" if args.limits else "its arguments have no limits, so it holds only pods that state limits in their annotation"

    def __init__(self, args: DomainLimitArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._limits = LimitsOfPods(args.limits)
        self._places = LimitedPlaces()

    def sign(self, pod: PodInfo) -> Hashable:
        """Return an empty signature, so that pods with other labels share columns. The fingerprint has all that limits depend on."""
        return ()

    # --- required limits -----------------------------------------------------------------------------------------------------

    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: Cluster) -> PreFilterResult:
        """Work out which domains have room.

        Pods without required limits are skipped, and pods with an invalid annotation are rejected. A pod with limits is not skipped, even
        if no domain is full. Trials count nominated pods, and notes about single rows would be shared with pods without limits.
        """
        limits = self._limits.of(pod)
        if limits.problem:
            return PreFilterResult(unresolvable(limits.problem))
        if not limits.required:
            return _NO_LIMITS
        rules: tuple[FixedRule, ...] = ()
        keys: tuple[str, ...] = ()
        for limit in limits.required:
            rule = limit_rule(limit, self._places.of(limit.key, cluster), cluster)
            if rule is not None:
                rules, keys = (*rules, rule), (*keys, limit.key)
        state.data[NAME] = _Required(limits.required, rules, keys)
        return _LOOK

    def filter(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> BoolColumn:
        """Allow rows where every limit has room for one more pod."""
        return obey(state.read(NAME, _Required).rules, rows)

    def explain(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> list[Rejection]:
        """Reject each row by the first limit that has no room there."""
        return first_broken(state.read(NAME, _Required).rules, rows)

    def fingerprint(self, state: CycleState, cluster: Cluster) -> Hashable | None:
        """Return the domains that have room.

        Scores are never kept, because a placed pod counts in its own limits.
        """
        if _EXCESS in state.data:
            return None
        required: _Required = state.data[NAME]
        if not required.rules:
            return _ALL_HAVE_ROOM
        return fingerprint(required.rules, required.keys, cluster)

    def judge(self, state: CycleState, pod: PodInfo, cluster: Cluster) -> RuleJudge:
        """Judge the limits with one row changed at a time."""
        limits = state.read(NAME, _Required).limits
        return RuleJudge([RowwiseLimit(limit, self._places.of(limit.key, cluster).domains, cluster) for limit in limits])

    def remedies(self, state: CycleState, pod: PodInfo, cluster: Cluster, row: int) -> list[Remedy]:
        """Propose fewer pods in the full domains of the row, and name some of them."""
        required = state.data.get(NAME)
        if not isinstance(required, _Required):
            return []
        placed = [(limit, self._places.of(limit.key, cluster).domains) for limit in required.limits]
        return list(fewer_pods(self.name, placed, cluster, row))

    # --- preferred limits ----------------------------------------------------------------------------------------------------

    def pre_score(self, state: CycleState, pod: PodInfo, cluster: Cluster, feasible: Rows) -> Status:
        """Count the pods in excess of preferred limits.

        Skip pods without preferred limits, and pods for which all nodes are equal.
        """
        preferred = self._limits.of(pod).preferred
        if not preferred:
            return SKIP
        excess = Excess([(limit, self._places.of(limit.key, cluster)) for limit in preferred], cluster)
        if not excess.matters:
            return SKIP
        state.write(_EXCESS, excess)
        return SUCCESS

    def score(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> IntColumn:
        """Return by how many pods all limits together would be exceeded.

        Nodes without the label of a limit get `IGNORED`.
        """
        return state.read(_EXCESS, Excess).of(rows)

    def summarise(self, state: CycleState, raw: IntColumn) -> Hashable:
        """Return the largest excess on any feasible node."""
        return int(raw.max(initial=0))

    def normalise(self, state: CycleState, raw: IntColumn, summary: int) -> IntColumn:
        """Return 100 less 100·raw/max in integers.

        The score is 100 where no limit is exceeded anywhere, and 0 for nodes without the label.
        """
        if summary == 0:
            return np.where(raw == IGNORED, 0, MAX_NODE_SCORE)

        def scaled(values: IntColumn) -> IntColumn:
            return np.where(values == IGNORED, 0, MAX_NODE_SCORE - MAX_NODE_SCORE * values // summary)

        return value_by_value(raw, state.read(_EXCESS, Excess).lowest, summary, scaled)

    # --- events --------------------------------------------------------------------------------------------------------------

    def events(self) -> Sequence[ClusterEventWithHint]:
        """Declare pods that leave or are relabelled, nodes that come, go or change domain, and the pod's own limits.

        A terminating pod counts until it is gone, because it runs until then. So its deletion is the event, not the request for it.
        """
        nodes = Action.ADD | Action.DELETE | Action.UPDATE_NODE_LABEL
        keys = hints.pod_keys(self._limits.of)
        return (
            event_with_hint(EventResource.POD, Action.DELETE | Action.UPDATE_POD_LABEL, self._pod_changed, keys=keys),
            event_with_hint(EventResource.UNSCHEDULED_POD, Action.UPDATE, self._itself_changed, keys=hints.ITSELF),
            event_with_hint(EventResource.NODE, nodes, self._node_changed),
        )

    def _pod_changed(self, pod: PodInfo, old: PodInfo | None, new: PodInfo | None) -> QueueingHint:
        return hints.after_pod_change(self._limits.of(pod).required, old, new)

    def _itself_changed(self, pod: PodInfo, old: PodInfo | None, new: PodInfo | None) -> QueueingHint:
        both = isinstance(old, PodInfo) and isinstance(new, PodInfo) and new.uid == pod.uid
        return QueueingHint.when(both and self._limits.of(old) != self._limits.of(new))

    def _node_changed(self, pod: PodInfo, old: Node | None, new: Node | None) -> QueueingHint:
        return hints.after_node_change(self._limits.of(pod).required, old, new)
