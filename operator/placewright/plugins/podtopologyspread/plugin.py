"""PodTopologySpread: spreads matching pods evenly over domains. Implements PreFilter, Filter, PreScore, Score.

Hard constraints (DoNotSchedule) reject nodes of domains that have too many pods. Soft constraints (ScheduleAnyway) prefer domains with few.
Pods without constraints get default ones, for the pods of their Services and owner.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final, NamedTuple

import msgspec
import numpy as np

from placewright.api.bytecount import short_key
from placewright.api.compatibility import Rule
from placewright.api.objects import Node
from placewright.api.pods import NO_LABELS, PodInfo
from placewright.api.selectors import SelectorError
from placewright.cluster.cluster import Cluster
from placewright.framework.assignedpods import in_its_namespace
from placewright.framework.events import Action, ClusterEventWithHint, EventResource, QueueingHint, event_with_hint
from placewright.framework.filters import NOTHING_TO_CHECK, RuleJudge
from placewright.framework.interface import (
    MAX_NODE_SCORE,
    BoolColumn,
    CycleState,
    Handle,
    IntColumn,
    PreFilterPlugin,
    PreFilterResult,
    PreparingPlugin,
    PreScorePlugin,
    Reads,
    Rejection,
    Rows,
    ScorePlugin,
)
from placewright.framework.memory import Memory
from placewright.framework.remedies import Remedy, RemedyKind, RemedyPlugin
from placewright.framework.rowwise import RowwiseFilter
from placewright.framework.status import SKIP, SUCCESS, Status, error
from placewright.framework.topology import (
    MISSING,
    FixedRule,
    counts_by_row,
    fingerprint,
    first_broken,
    obey,
    tally_of,
)
from placewright.plugins.podtopologyspread import hints
from placewright.plugins.podtopologyspread.args import HARD, SOFT, PodTopologySpreadArgs
from placewright.plugins.podtopologyspread.constraints import (
    Constraint,
    compile_default,
    compile_own,
    labels_looked_at,
)
from placewright.plugins.podtopologyspread.defaultselectors import DefaultSelectors
from placewright.plugins.podtopologyspread.layout import IGNORED, Field, Layouts, Preferences, placement_wishes, preference
from placewright.plugins.podtopologyspread.rules import count_pods, fixed_rule, rowwise_rule
from placewright.plugins.shared.lookups import value_by_value

NAME: Final = "PodTopologySpread"
_UNLIMITED: Final = 2**63 - 1
#: Most compiled constraints, each of 2 KB at most places. Pods of a Deployment's revision or a StatefulSet share them.
_MAX_COMPILED: Final = 16_384


class DomainStanding(NamedTuple):
    """The state of a hard constraint in one domain.

    Attributes:
        matching: number of pods that count there; None for a node without the label.
        least: number of pods that count in the emptiest domain.
    """

    constraint: Constraint
    matching: int | None
    least: int

    @property
    def skew(self) -> int:
        """Skew with the pod added."""
        return (self.matching or 0) + self.constraint.counts_itself - self.least


@dataclass(frozen=True, slots=True)
class _Limits:
    """Hard constraints, their domains, and the rules that follow."""

    constraints: tuple[Constraint, ...]
    fields: tuple[Field, ...]
    rules: tuple[FixedRule, ...]


class PodTopologySpread(PreFilterPlugin[PodTopologySpreadArgs], RowwiseFilter, RemedyPlugin, PreScorePlugin, ScorePlugin, PreparingPlugin):
    """Spreads pods over zones, hosts or any other label."""

    name = NAME
    default_weight = 2
    #: Pods with other labels share columns: `sign` says nothing, and `fingerprint` has all that the columns depend on.
    reads = Reads.CLUSTER

    def __init__(self, args: PodTopologySpreadArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._defaults = args.defaults
        self._system_defaults = args.system
        self._empty_counts_all = handle.in_force(Rule.EMPTY_SPREAD_SELECTOR)
        self._hard_defaults = any(c.when_unsatisfiable == HARD for c in self._defaults)
        self._selectors = DefaultSelectors()
        self._layouts = Layouts()
        self._compiled = Memory(_MAX_COMPILED)
        self._looked_at = Memory(_MAX_COMPILED)

    def prepare(self, pod: PodInfo, cluster: Cluster) -> Iterator[None]:
        """Count the pods of each constraint."""
        for action in (HARD, SOFT):
            try:
                constraints = self._constraints(pod, action, cluster)
            except SelectorError:
                return
            for constraint in constraints:
                if constraint.counted is not None:
                    tally_of(cluster, constraint.counted)
                yield

    # --- hard constraints ----------------------------------------------------------------------------------------------------

    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: Cluster) -> PreFilterResult:
        """Compute which domains can take the pod; skip pods without hard constraints."""
        if not (pod.pod.spec.topology_spread_constraints or self._hard_defaults):
            return NOTHING_TO_CHECK
        try:
            constraints = self._constraints(pod, HARD, cluster)
        except SelectorError as problem:
            return PreFilterResult(error(f"get constraints from pod: obtaining pod's hard topology spread constraints: {problem}"))
        if not constraints:
            return NOTHING_TO_CHECK
        layout = self._layouts.of(constraints, True, pod, placement_wishes(pod), cluster)
        rules = tuple([fixed_rule(c, field, cluster) for c, field in zip(constraints, layout.fields, strict=True)])
        state.write(NAME, _Limits(constraints, layout.fields, rules))
        return PreFilterResult()

    def filter(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> BoolColumn:
        """Allow rows where no constraint would exceed its skew."""
        return obey(state.read(NAME, _Limits).rules, rows)

    def explain(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> list[Rejection]:
        """Reject each row by the first constraint that rejects it."""
        return first_broken(state.read(NAME, _Limits).rules, rows)

    def fingerprint(self, state: CycleState, cluster: Cluster) -> Hashable | None:
        """Return the allowed domains.

        Scores are never kept, because a placed pod nearly always counts in its own constraints.
        """
        if f"{NAME}/preferences" in state.data:
            return None
        limits = state.read(NAME, _Limits)
        return fingerprint(limits.rules, [constraint.key for constraint in limits.constraints], cluster)

    def judge(self, state: CycleState, pod: PodInfo, cluster: Cluster) -> RuleJudge:
        """Judge the constraints with one row changed at a time."""
        limits = state.read(NAME, _Limits)
        pairs = zip(limits.constraints, limits.fields, strict=True)
        return RuleJudge([rowwise_rule(c, field, cluster) for c, field in pairs])

    def remedies(self, state: CycleState, pod: PodInfo, cluster: Cluster, row: int) -> list[Remedy]:
        """Propose a larger skew for each constraint that is exceeded.

        Constraints of the profile only get a text, because the pod has no field to change.
        """
        labels = cluster.node(row).metadata.labels or NO_LABELS
        standings = self._standings(state, cluster, row)
        lacking = next((standing.constraint.key for standing in standings if standing.matching is None), None)
        if lacking is not None:
            return [Remedy(self.name, RemedyKind.TOLD, f"no label {lacking}, over which the pod is spread")]
        found = []
        kind = RemedyKind.MAX_SKEW if pod.pod.spec.topology_spread_constraints else RemedyKind.TOLD
        for standing in standings:
            constraint, matching, least = standing
            if standing.skew > constraint.max_skew:
                where = f"{constraint.key}={labels.get(constraint.key, '')}"
                counts = f"{where} has {matching} matching pods, the emptiest domain {least}"
                text = f"maxSkew {standing.skew} instead of {constraint.max_skew} for {constraint.key} ({counts})"
                found.append(Remedy(self.name, kind, text, topology_key=constraint.key, max_skew=standing.skew))
        return found

    def passes_after(self, state: CycleState, pod: PodInfo, cluster: Cluster, kinds: AbstractSet[RemedyKind], rows: Rows) -> BoolColumn:
        """Also count the node's own pods, which may start to count once the node is changed."""
        passes = self.filter(state, pod, cluster, rows)
        for place, row in enumerate(rows.tolist()):
            passes[place] &= not self._crowds(state, cluster, row, kinds)
        return passes

    def _crowds(self, state: CycleState, cluster: Cluster, row: int, kinds: AbstractSet[RemedyKind]) -> bool:
        for constraint, matching, least in self._standings(state, cluster, row):
            by_labels = constraint.honor_affinity and RemedyKind.LABELS in kinds
            by_cordon = constraint.honor_taints and RemedyKind.UNCORDON in kinds
            if constraint.counted is None or not (by_labels or by_cordon):
                continue
            counted = (matching or 0) + int(counts_by_row(cluster, constraint.counted)[row])
            if counted + constraint.counts_itself - min(least, counted) > constraint.max_skew:
                return True
        return False

    def _standings(self, state: CycleState, cluster: Cluster, row: int) -> list[DomainStanding]:
        """Return the state of each hard constraint in the domain of a row; call it after `pre_filter`."""
        limits = state.read(NAME, _Limits)
        standings = []
        for constraint, where in zip(limits.constraints, limits.fields, strict=True):
            counts, least = count_pods(constraint, where, cluster)
            code = int(where.codes[row])
            standings.append(DomainStanding(constraint, None if code == MISSING else int(counts[code]), int(least)))
        return standings

    # --- soft constraints ----------------------------------------------------------------------------------------------------

    def pre_score(self, state: CycleState, pod: PodInfo, cluster: Cluster, feasible: Rows) -> Status:
        """Weigh the domains of the feasible nodes; skip pods without soft constraints."""
        try:
            constraints = self._constraints(pod, SOFT, cluster)
        except SelectorError as problem:
            return error(f"calculating preScoreState: obtaining pod's soft topology spread constraints: {problem}")
        if not constraints:
            return SKIP
        require_all = bool(pod.pod.spec.topology_spread_constraints) or not self._system_defaults
        layout = self._layouts.of(constraints, require_all, pod, placement_wishes(pod), cluster)
        complete = layout.complete if require_all else None
        scored = feasible if complete is None else feasible[complete[feasible]]
        parts = [preference(c, field, scored, cluster) for c, field in zip(constraints, layout.fields, strict=True)]
        state.write(f"{NAME}/preferences", Preferences(parts, complete))
        return SUCCESS

    def score(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> IntColumn:
        """Sum up matching pods in the node's domains, weighed by the number of domains; fewer is better.

        Ignored nodes get `IGNORED`.
        """
        return state.read(f"{NAME}/preferences", Preferences).of(rows)

    def summarise(self, state: CycleState, raw: IntColumn) -> Hashable:
        """Return the lowest and highest score of the nodes that are not ignored."""
        scored = raw if state.read(f"{NAME}/preferences", Preferences).complete is None else raw[raw != IGNORED]
        return (int(scored.min(initial=_UNLIMITED)), int(scored.max(initial=0)))

    def normalise(self, state: CycleState, raw: IntColumn, summary: tuple[int, int]) -> IntColumn:
        """Return 100·(max+min-raw)/max in integers; 100 if no pod matched anywhere; 0 for ignored nodes."""
        low, high = summary
        if high == 0:
            return np.where(raw == IGNORED, 0, MAX_NODE_SCORE)

        def scaled(values: IntColumn) -> IntColumn:
            return np.where(values == IGNORED, 0, MAX_NODE_SCORE * (high + low - values) // high)

        lowest = 0 if state.read(f"{NAME}/preferences", Preferences).complete is None else IGNORED
        return value_by_value(raw, lowest, high, scaled)

    # --- constraints of a pod ------------------------------------------------------------------------------------------------

    def _constraints(self, pod: PodInfo, action: str, cluster: Cluster) -> tuple[Constraint, ...]:
        own = pod.pod.spec.topology_spread_constraints
        if own:
            written = short_key(msgspec.json.encode(own))
            keys = self._looked_at.recall(written, lambda: labels_looked_at(own))
            labels = frozenset([pair for pair in pod.pairwise_key.labels if pair[0] in keys])
            return self._compiled.recall(
                (action, written, pod.namespace, labels),
                lambda: compile_own(own, action, pod, empty_counts_all=self._empty_counts_all),
            )
        if not self._defaults:
            return ()
        selector = self._selectors.of(pod, cluster.objects)
        if selector.empty:
            return ()
        named = {expression.key for expression in selector.expressions}
        labels = frozenset([pair for pair in pod.pairwise_key.labels if pair[0] in named])
        # The key has the selector's id: hashing a selector costs more than the look-up, and the compiled constraints keep it alive.
        key = (action, id(selector), pod.namespace, labels)
        return self._compiled.recall(key, lambda: compile_default(self._defaults, action, pod, selector))

    # --- events --------------------------------------------------------------------------------------------------------------

    def events(self) -> Sequence[ClusterEventWithHint]:
        """Declare pods that constraints count, nodes that are or become part of a domain, and objects whose selectors defaults use.

        kube-scheduler ignores these objects. It reacts to terminating pods only when they are gone, although they stop counting before.
        """
        pods = Action.ADD | Action.DELETE | Action.UPDATE_POD_LABEL | Action.UPDATE_POD_TOLERATION | Action.UPDATE_POD_TERMINATING
        nodes = Action.ADD | Action.DELETE | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_TAINT
        found: list[ClusterEventWithHint] = [
            event_with_hint(EventResource.POD, pods, self._pod_changed, in_its_namespace, hints.POD_KEYS),
            event_with_hint(EventResource.NODE, nodes, self._node_changed),
        ]
        if self._hard_defaults:
            changes = Action.ADD | Action.UPDATE | Action.DELETE
            found += [event_with_hint(resource, changes, hints.after_selector_change) for resource in hints.SELECTING]
        return found

    def _pod_changed(self, pod: PodInfo, old: PodInfo | None, new: PodInfo | None) -> QueueingHint:
        if not hints.involved(pod, old, new):
            return QueueingHint.SKIP
        constraints = self._constraints(pod, HARD, self.handle.cluster)
        # Other labels of the pod may choose other peers, by `matchLabelKeys` or by the Services of default constraints.
        if old is not None and new is not None and new.uid == pod.uid and old.labels != new.labels:
            before, after = (self._constraints(each, HARD, self.handle.cluster) for each in (old, new))
            if before != after:
                return QueueingHint.QUEUE
        return hints.after_pod_change(constraints, pod, old, new)

    def _node_changed(self, pod: PodInfo, old: Node | None, new: Node | None) -> QueueingHint:
        return hints.after_node_change(self._constraints(pod, HARD, self.handle.cluster), old, new)
