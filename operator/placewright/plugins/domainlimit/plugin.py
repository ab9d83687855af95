"""DomainLimit: at most so many pods in each domain of a node label. Implements PreFilter, Filter, PreScore, Score.

Required limits reject nodes in full domains. Preferred limits favour the domains that they are exceeded least in. A limit of the profile
holds for the pods that its selector picks. A limit of the annotation holds for the pod that carries it. Both count every pod that they
pick, with or without a limit of its own. Decision 48 says why.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from placewright.api.objects import Node
from placewright.api.pods import NO_LABELS, PodInfo
from placewright.cluster.cluster import Cluster
from placewright.cluster.selectorindex import places_met, places_of
from placewright.framework.events import Action, ClusterEventWithHint, EventKeys, EventResource, QueueingHint, event_with_hint
from placewright.framework.filters import NOTHING_TO_CHECK, RuleJudge
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
from placewright.framework.memory import NodeMemory
from placewright.framework.remedies import Remedy, RemedyPlugin
from placewright.framework.rowwise import RowwiseFilter
from placewright.framework.status import SKIP, SUCCESS, Status, unresolvable
from placewright.framework.topology import FixedRule, domains, fingerprint, first_broken, obey
from placewright.plugins.domainlimit.args import DomainLimitArgs
from placewright.plugins.domainlimit.limits import IGNORED, Excess, Limit, LimitsOfPods, fewer_pods, limit_rule, rowwise_rule
from placewright.plugins.shared.lookups import value_by_value

NAME: Final = "DomainLimit"
_EXCESS: Final = f"{NAME}/excess"
_LOOK: Final = PreFilterResult()


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
    #: Pods with other labels share columns: `sign` says nothing, and `fingerprint` has all that the columns depend on.
    reads = Reads.CLUSTER

    @classmethod
    def idle_because(cls, args: DomainLimitArgs) -> str:
        """Say that without limits in the arguments only pods with limits of their own are limited."""
        return "" if args.limits else "its arguments have no limits, so it holds only pods that state limits in their annotation"

    def __init__(self, args: DomainLimitArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._limits = LimitsOfPods(args.limits)
        self._memory = NodeMemory()

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
            return NOTHING_TO_CHECK
        rules: tuple[FixedRule, ...] = ()
        keys: tuple[str, ...] = ()
        for limit in limits.required:
            rule = limit_rule(limit, domains(self._memory, cluster, limit.key), cluster)
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
            return ()
        return fingerprint(required.rules, required.keys, cluster)

    def judge(self, state: CycleState, pod: PodInfo, cluster: Cluster) -> RuleJudge:
        """Judge the limits with one row changed at a time."""
        limits = state.read(NAME, _Required).limits
        return RuleJudge([rowwise_rule(limit, domains(self._memory, cluster, limit.key), cluster) for limit in limits])

    def remedies(self, state: CycleState, pod: PodInfo, cluster: Cluster, row: int) -> list[Remedy]:
        """Propose fewer pods in the full domains of the row, and name some of them."""
        required = state.data.get(NAME)
        if not isinstance(required, _Required):
            return []
        placed = [(limit, domains(self._memory, cluster, limit.key)) for limit in required.limits]
        return list(fewer_pods(self.name, placed, cluster, row))

    # --- preferred limits ----------------------------------------------------------------------------------------------------

    def pre_score(self, state: CycleState, pod: PodInfo, cluster: Cluster, feasible: Rows) -> Status:
        """Count the pods in excess of preferred limits.

        Skip pods without preferred limits, and pods for which all nodes are equal.
        """
        preferred = self._limits.of(pod).preferred
        if not preferred:
            return SKIP
        excess = Excess([(limit, domains(self._memory, cluster, limit.key)) for limit in preferred], cluster)
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
        keys = EventKeys(self._keys_of_pod, _met)
        return (
            event_with_hint(EventResource.POD, Action.DELETE | Action.UPDATE_POD_LABEL, self._pod_changed, keys=keys),
            event_with_hint(EventResource.UNSCHEDULED_POD, Action.UPDATE, self._itself_changed, keys=_ITSELF),
            event_with_hint(EventResource.NODE, nodes, self._node_changed),
        )

    def _pod_changed(self, pod: PodInfo, old: PodInfo | None, new: PodInfo | None) -> QueueingHint:
        """Queue if a limit counted `old`, which had a node or a nomination, and does not count `new`."""
        stood = isinstance(old, PodInfo) and bool(old.node_name or old.nominated_node)
        return QueueingHint.when(stood and any(limit.counts(old) and not limit.counts(new) for limit in self._limits.of(pod).required))

    def _keys_of_pod(self, pod: PodInfo) -> Iterator[Hashable]:
        for limit in self._limits.of(pod).required:
            yield from places_of(limit.pods.namespaces, limit.pods.selector)

    def _itself_changed(self, pod: PodInfo, old: PodInfo | None, new: PodInfo | None) -> QueueingHint:
        if not isinstance(old, PodInfo) or not isinstance(new, PodInfo):
            return QueueingHint.SKIP
        return QueueingHint.when(new.uid == pod.uid and self._limits.of(old) != self._limits.of(new))

    def _node_changed(self, pod: PodInfo, old: Node | None, new: Node | None) -> QueueingHint:
        """Queue if a node came with all labels, was deleted, or changed its domain of a limit."""
        limits, before, after = self._limits.of(pod).required, _labels(old), _labels(new)
        if before is None:
            return QueueingHint.when(after is not None and bool(limits) and all(limit.key in after for limit in limits))
        if after is None:
            return QueueingHint.when(any(limit.key in before for limit in limits))
        return QueueingHint.when(any(before.get(limit.key) != after.get(limit.key) for limit in limits))


def _met(old: PodInfo | None, _new: PodInfo | None) -> list[Hashable]:
    # Only the labels before the event matter, because a pod helps by no longer counting.
    return [*places_met(old.namespace, old.labels.items())] if isinstance(old, PodInfo) else []


def _own(pod: PodInfo | None) -> list[Hashable]:
    return [pod.uid] if isinstance(pod, PodInfo) else []


def _of_itself(old: PodInfo | None, new: PodInfo | None) -> list[Hashable]:
    return _own(new) or _own(old)


#: Keys of events that concern the waiting pod itself.
_ITSELF: Final[EventKeys[PodInfo]] = EventKeys(_own, _of_itself)


def _labels(node: Node | None) -> Mapping[str, str] | None:
    """Return the labels of a node; None if there is no node."""
    return (node.metadata.labels or NO_LABELS) if isinstance(node, Node) else None
