"""PodTopologySpread: matching pods are spread evenly over domains. Implements PreFilter, Filter, PreScore, Score.

Hard constraints (DoNotSchedule) reject nodes of domains that hold too many pods already; soft ones (ScheduleAnyway) prefer domains that
hold few. Pods that bring no constraints get default ones, for the pods of their Services and owner.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from placewright.api.pods import NO_LABELS, PodInfo
from placewright.api.selectors import SelectorError
from placewright.cluster.cluster import Cluster
from placewright.framework.assignedpods import in_its_namespace
from placewright.framework.events import Action, ClusterEventWithHint, EventResource, QueueingHint, interest
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
from placewright.framework.remedies import Remedy, RemedyKind, RemedyPlugin
from placewright.framework.rowwise import RowwiseFilter
from placewright.framework.status import SKIP, SUCCESS, Status, error, unresolvable, unschedulable
from placewright.plugins.podtopologyspread import hints
from placewright.plugins.podtopologyspread.args import HARD, HOSTNAME, SOFT, PodTopologySpreadArgs
from placewright.plugins.podtopologyspread.constraints import Constraint, DefaultSelectors, compile_default, compile_own
from placewright.plugins.podtopologyspread.layout import Field, Layouts, placement_wishes
from placewright.plugins.podtopologyspread.rowverdicts import RowwiseSkew
from placewright.plugins.shared.filters import RuleJudge
from placewright.plugins.shared.memory import Memory
from placewright.plugins.shared.topology import (
    MISSING,
    Codes,
    DomainRule,
    counts_by_row,
    fingerprint,
    first_broken,
    obey,
)

NAME: Final = "PodTopologySpread"
REASON_SKEW: Final = "node(s) didn't match pod topology spread constraints"
REASON_MISSING: Final = f"{REASON_SKEW} (missing required label)"
#: Raw score of nodes that lack a label every node is required to have; normalised to 0.
IGNORED: Final = -1

_SKEWED: Final = unschedulable(REASON_SKEW)
_MISSING_LABEL: Final = unresolvable(REASON_MISSING)
_NO_CONSTRAINTS: Final = PreFilterResult(SKIP)
_UNLIMITED: Final = 2**63 - 1
_MAX_COMPILED: Final = 4096


class DomainStanding(NamedTuple):
    """How a hard constraint stands in one domain.

    Attributes:
        matching: pods that count there; None for a node without the label.
        least: pods that count in the emptiest domain.
    """

    constraint: Constraint
    matching: int | None
    least: int

    @property
    def skew(self) -> int:
        """What it would be with the pod added."""
        return (self.matching or 0) + self.constraint.counts_itself - self.least


@dataclass(frozen=True, slots=True)
class _Limits:
    """Hard constraints, where their domains lie, and what they allow, by domain."""

    constraints: tuple[Constraint, ...]
    fields: tuple[Field, ...]
    rules: tuple[DomainRule, ...]


@dataclass(frozen=True, slots=True)
class _Preference:
    """One soft constraint's part of the score: of each domain by code, or of each row."""

    codes: Codes
    by_code: NDArray[np.float64] | None
    by_row: NDArray[np.float64] | None

    def of(self, rows: Rows) -> NDArray[np.float64]:
        """The part of these rows; shape (len(rows),)."""
        if self.by_code is not None:
            return self.by_code[self.codes[rows]]
        assert self.by_row is not None
        return np.where(self.codes[rows] != MISSING, self.by_row[rows], 0.0)


@dataclass(frozen=True, slots=True)
class _Preferences:
    """All soft constraints; `scored` marks the rows that are not ignored (None: all are scored)."""

    parts: tuple[_Preference, ...]
    scored: BoolColumn | None


class PodTopologySpread(PreFilterPlugin, RowwiseFilter, RemedyPlugin, PreScorePlugin, ScorePlugin):
    """Keeps pods spread over zones, hosts or any other label."""

    name = NAME
    Args = PodTopologySpreadArgs
    default_weight = 2
    reads = Reads.CLUSTER

    def __init__(self, args: PodTopologySpreadArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._defaults = args.defaults
        self._system_defaults = args.system
        self._hard_defaults = any(c.when_unsatisfiable == HARD for c in self._defaults)
        self._selectors = DefaultSelectors()
        self._layouts = Layouts()
        self._compiled = Memory(_MAX_COMPILED)

    def sign(self, pod: PodInfo) -> Hashable:
        """Nothing: the fingerprint holds everything a kept column depends on, so pods of all labels may share the other columns."""
        return ()

    # --- hard constraints ----------------------------------------------------------------------------------------------------

    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: Cluster) -> PreFilterResult:
        """Work out which domains can take the pod; skip pods without hard constraints."""
        if not (pod.pod.spec.topology_spread_constraints or self._hard_defaults):
            return _NO_CONSTRAINTS
        try:
            constraints = self._constraints(pod, HARD, cluster)
        except SelectorError as problem:
            return PreFilterResult(
                error(f"get constraints from pod: obtaining pod's hard topology spread constraints: {problem}")
            )
        if not constraints:
            return _NO_CONSTRAINTS
        layout = self._layouts.of(constraints, True, pod, placement_wishes(pod), cluster)
        rules = tuple([_rule(c, field, cluster) for c, field in zip(constraints, layout.fields, strict=True)])
        state.write(NAME, _Limits(constraints, layout.fields, rules))
        return PreFilterResult()

    def filter(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> BoolColumn:
        """True where no constraint would be stretched beyond its skew."""
        return obey(state.read(NAME, _Limits).rules, rows)

    def explain(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> list[Rejection]:
        """By the first constraint that says no."""
        return first_broken(state.read(NAME, _Limits).rules, rows)

    def fingerprint(self, state: CycleState, cluster: Cluster) -> Hashable | None:
        """The allowed domains. Scores are never kept: a pod that was placed nearly always counts in its own constraints."""
        if f"{NAME}/preferences" in state.data:
            return None
        limits = state.read(NAME, _Limits)
        return fingerprint(limits.rules, [constraint.key for constraint in limits.constraints], cluster)

    def judge(self, state: CycleState, pod: PodInfo, cluster: Cluster) -> RuleJudge:
        """The constraints with one row changed at a time."""
        limits = state.read(NAME, _Limits)
        pairs = zip(limits.constraints, limits.fields, strict=True)
        return RuleJudge([RowwiseSkew(c, field, cluster, _SKEWED, _MISSING_LABEL) for c, field in pairs])

    def remedies(self, state: CycleState, pod: PodInfo, cluster: Cluster, row: int) -> list[Remedy]:
        """A larger skew for each constraint that is stretched too far; only words where the constraints are the profile's."""
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

    def passes_after(
        self, state: CycleState, pod: PodInfo, cluster: Cluster, kinds: AbstractSet[RemedyKind], rows: Rows
    ) -> BoolColumn:
        """Once a node is changed, its own pods may count, too."""
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
        """How each hard constraint stands in the domain of a row; after `pre_filter`."""
        limits = state.read(NAME, _Limits)
        standings = []
        for constraint, where in zip(limits.constraints, limits.fields, strict=True):
            counts, least = _counted(constraint, where, cluster)
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
        scored = feasible[layout.complete[feasible]] if require_all else feasible
        parts = [_preference(c, field, scored, cluster) for c, field in zip(constraints, layout.fields, strict=True)]
        state.write(f"{NAME}/preferences", _Preferences(tuple(parts), layout.complete if require_all else None))
        return SUCCESS

    def score(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> IntColumn:
        """Matching pods in the node's domains, weighed by how many domains there are; fewer is better. `IGNORED` for ignored nodes."""
        preferences = state.read(f"{NAME}/preferences", _Preferences)
        total = preferences.parts[0].of(rows)
        for part in preferences.parts[1:]:
            total = total + part.of(rows)
        raw: IntColumn = np.floor(total + 0.5).astype(np.int64)  # Go rounds halves up, numpy to even
        if preferences.scored is not None:
            raw[~preferences.scored[rows]] = IGNORED
        return raw

    def summarise(self, state: CycleState, raw: IntColumn) -> Hashable:
        """Lowest and highest score of the nodes that are not ignored."""
        scored = raw[raw != IGNORED]
        return (int(scored.min(initial=_UNLIMITED)), int(scored.max(initial=0)))

    def normalise(self, state: CycleState, raw: IntColumn, summary: tuple[int, int]) -> IntColumn:
        """100·(max+min−raw)/max in integers; 100 where no pod matched anywhere; 0 for ignored nodes."""
        low, high = summary
        if high == 0:
            return np.where(raw == IGNORED, 0, MAX_NODE_SCORE)
        return np.where(raw == IGNORED, 0, MAX_NODE_SCORE * (high + low - raw) // high)

    # --- constraints of a pod ------------------------------------------------------------------------------------------------

    def _constraints(self, pod: PodInfo, action: str, cluster: Cluster) -> tuple[Constraint, ...]:
        own = pod.pod.spec.topology_spread_constraints
        if own:
            written = (action, msgspec.json.encode(own), pod.pairwise_key)
            return self._compiled.recall(written, lambda: compile_own(own, action, pod))
        if not self._defaults:
            return ()
        selector = self._selectors.of(pod, cluster.objects)
        if selector.empty:
            return ()
        # By identity: hashing a selector costs more than the look-up, and the compiled constraints keep this one alive.
        key = (action, id(selector), pod.pairwise_key)
        return self._compiled.recall(key, lambda: compile_default(self._defaults, action, pod, selector))

    # --- events --------------------------------------------------------------------------------------------------------------

    def events(self) -> Sequence[ClusterEventWithHint]:
        """Pods that count in the constraints, and nodes that are or become part of a domain."""
        pods = Action.ADD | Action.DELETE | Action.UPDATE_POD_LABEL | Action.UPDATE_POD_TOLERATION
        nodes = Action.ADD | Action.DELETE | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_TAINT
        return (
            interest(EventResource.POD, pods, self._pod_changed, in_its_namespace),
            interest(EventResource.NODE, nodes, self._node_changed),
        )

    def _pod_changed(self, pod: PodInfo, old: Any, new: Any) -> QueueingHint:
        if not hints.involved(pod, old, new):
            return QueueingHint.SKIP
        return hints.after_pod_change(self._constraints(pod, HARD, self.handle.cluster), pod, old, new)

    def _node_changed(self, pod: PodInfo, old: Any, new: Any) -> QueueingHint:
        return hints.after_node_change(self._constraints(pod, HARD, self.handle.cluster), old, new)


def _domain_counts(constraint: Constraint, field: Field, cluster: Cluster) -> NDArray[np.float64]:
    """Counted pods by code, on rows that count; shape (field.count,)."""
    if constraint.counted is None:
        return np.zeros(field.count)
    rows, counts = cluster.pairwise_counts.tally(constraint.counted, cluster.size).taken()
    counted = np.bincount(field.counting[rows], weights=counts, minlength=field.count + 1)
    return counted[: field.count].astype(np.float64, copy=False)


def _counted(constraint: Constraint, field: Field, cluster: Cluster) -> tuple[NDArray[np.float64], float]:
    """Counted pods by code, and how many there are in the emptiest domain: 0 while there are too few domains."""
    counts = _domain_counts(constraint, field, cluster)
    enough = len(field.recorded) >= max(constraint.min_domains, 1)
    return counts, float(counts[field.recorded].min()) if enough else 0.0


def _rule(constraint: Constraint, field: Field, cluster: Cluster) -> DomainRule:
    """Domains that stay within the skew with the pod added."""
    counts, least = _counted(constraint, field, cluster)
    allowed: BoolColumn = counts + constraint.counts_itself - least <= constraint.max_skew
    allowed[MISSING] = False
    return DomainRule(field.codes, allowed, _SKEWED, _MISSING_LABEL)


def _preference(constraint: Constraint, field: Field, scored: Rows, cluster: Cluster) -> _Preference:
    slack = float(constraint.max_skew - 1)
    if constraint.key == HOSTNAME:
        # A host's pods count whatever the inclusion policies say.
        weight = math.log(len(scored) + 2)
        if constraint.counted is None:
            return _Preference(field.codes, None, np.full(cluster.size, slack))
        return _Preference(
            field.codes, None, counts_by_row(cluster, constraint.counted).astype(np.float64) * weight + slack
        )
    by_code = _domain_counts(constraint, field, cluster) * math.log(_distinct(field, scored) + 2) + slack
    if field.same_as_missing is not None:
        by_code[field.same_as_missing] = by_code[MISSING]
    by_code[MISSING] = 0.0
    return _Preference(field.codes, by_code, None)


def _distinct(field: Field, scored: Rows) -> int:
    """How many domains the scored rows lie in."""
    seen = np.zeros(field.count, np.bool_)
    seen[field.codes[scored]] = True
    twice = field.same_as_missing is not None and seen[MISSING] and seen[field.same_as_missing]
    return int(np.count_nonzero(seen)) - bool(twice)
