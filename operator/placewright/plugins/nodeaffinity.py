"""NodeAffinity: node selectors, required and preferred node affinity. Implements PreFilter, Filter, PreScore, Score.

`addedAffinity` in the profile is ANDed with, respectively added to, what the pod itself says.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import numpy as np

from placewright.api import objects as kube
from placewright.api.objects import Node, NodeName, NodeSelectorTerm, PreferredSchedulingTerm
from placewright.api.pods import NO_LABELS, PodInfo
from placewright.api.selectors import (
    EVERYTHING,
    CompiledRequirement,
    NodeTerm,
    Selector,
    SelectorError,
    compile_node_selector,
    compile_node_term,
    node_selector_problems,
    selector_from_pairs,
)
from placewright.cluster.cluster import Cluster
from placewright.framework.events import Action, ClusterEventWithHint, EventResource, QueueingHint, interest
from placewright.framework.interface import (
    BoolColumn,
    CycleState,
    FilterPlugin,
    Handle,
    IntColumn,
    MaxNormalised,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    Rejection,
    Rows,
)
from placewright.framework.status import SKIP, SUCCESS, Status, error, unresolvable

NAME: Final = "NodeAffinity"
REASON_POD: Final = "node(s) didn't match Pod's node affinity/selector"
REASON_ENFORCED: Final = "node(s) didn't match scheduler-enforced node affinity"
_REQUIRED_PATH: Final = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
REASON_CONFLICT: Final = "pod affinity terms conflict"


class NodeAffinityArgs(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Arguments: affinity that holds for every pod of the profile."""

    added_affinity: kube.NodeAffinity | None = None

    def validate(self) -> list[tuple[str, str, str]]:
        """What an API server checks in a pod's affinity nobody has checked here: operators, and how many values they take."""
        problems = []
        for path, term in _terms_by_path(self.added_affinity or kube.NodeAffinity()):
            try:
                compile_node_term(term)
            except SelectorError as error:
                problems.append((f"addedAffinity.{path}", "a term that matches nothing", f"what a pod's affinity may hold: {error}"))
        return problems


@dataclass(frozen=True, slots=True)
class Demand:
    """Compiled node selection of one pod, or of the profile: pairs AND any of the terms (None: no terms demanded)."""

    pairs: Selector = EVERYTHING
    terms: tuple[NodeTerm, ...] | None = None

    @property
    def empty(self) -> bool:
        """True when every node will do."""
        return self.pairs.empty and self.terms is None

    def matches(self, node: Node) -> bool:
        """The plain rule, for one node."""
        labels = node.metadata.labels or NO_LABELS
        if not self.pairs.matches(labels):
            return False
        return self.terms is None or any(term.matches(labels, node.metadata.name) for term in self.terms)

    def column(self, cluster: Cluster, rows: Rows) -> BoolColumn:
        """The same for many rows; shape (len(rows),)."""
        matched = _all_match(self.pairs.expressions, cluster, rows)
        if self.terms is not None:
            anywhere = np.zeros(len(rows), np.bool_)
            for term in self.terms:
                anywhere |= _term_column(term, cluster, rows)
            matched &= anywhere
        return matched


class NodeAffinity(PreFilterPlugin, FilterPlugin, PreScorePlugin, MaxNormalised):
    """Matches nodes by label, and by name."""

    name = NAME
    Args = NodeAffinityArgs
    default_weight = 2

    def __init__(self, args: NodeAffinityArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        added = args.added_affinity
        self._enforced = Demand(terms=_required_terms(added))
        self._added_preferences = _compile_preferences(_preferred(added))

    def sign(self, pod: PodInfo) -> Hashable:
        """Selector and affinity as canonical text: they hold lists and maps."""
        spec = pod.pod.spec
        affinity = spec.affinity.node_affinity if spec.affinity else None
        if not spec.node_selector and affinity is None:
            return ()
        return msgspec.json.encode((spec.node_selector, affinity), order="deterministic")

    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: Cluster) -> PreFilterResult:
        """Skip pods that demand nothing; narrow to named nodes when every term names nodes."""
        demand = _demand(pod)
        if demand.empty and self._enforced.empty:
            return PreFilterResult(SKIP)
        state.write(NAME, demand)
        named = _named_nodes(pod)
        if named is not None and not named:
            return PreFilterResult(unresolvable(REASON_CONFLICT))
        return PreFilterResult(nodes=named)

    def filter(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> BoolColumn:
        """True where both the profile's and the pod's demands are met."""
        matched = self._enforced.column(cluster, rows)
        matched &= state.read(NAME, Demand).column(cluster, rows)
        return matched

    def explain(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> list[Rejection]:
        """The profile's demand is looked at first; with the pod's goes what nobody can read in it, which upstream keeps to itself."""
        enforced = self._enforced.column(cluster, rows)
        groups = (((REASON_ENFORCED,), rows[~enforced]), ((REASON_POD, *_unreadable_terms(pod)), rows[enforced]))
        return [Rejection(unresolvable(*reasons), group) for reasons, group in groups if len(group)]

    def pre_score(self, state: CycleState, pod: PodInfo, cluster: Cluster, feasible: Rows) -> Status:
        """Skip pods that prefer nothing; an unparsable preference fails the cycle, as upstream does."""
        affinity = pod.pod.spec.affinity.node_affinity if pod.pod.spec.affinity else None
        try:
            preferences = (*self._added_preferences, *_compile_preferences(_preferred(affinity)))
        except SelectorError as problem:
            return error(str(problem))
        if not preferences:
            return SKIP
        state.write(f"{NAME}/preferences", preferences)
        return SUCCESS

    def score(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> IntColumn:
        """Sum of the weights of matching preferences."""
        total = np.zeros(len(rows), np.int64)
        for weight, term in state.read(f"{NAME}/preferences", tuple):
            total += weight * _term_column(term, cluster, rows)
        return total

    def events(self) -> Sequence[ClusterEventWithHint]:
        """A node that matches now and did not before."""
        return (interest(EventResource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL, self._node_matches_now),)

    def _node_matches_now(self, pod: PodInfo, old: Any, new: Any) -> QueueingHint:
        demand = _demand(pod)

        def matches(node: Node) -> bool:
            return self._enforced.matches(node) and demand.matches(node)

        helps = isinstance(new, Node) and matches(new) and (old is None or not matches(old))
        return QueueingHint.QUEUE if helps else QueueingHint.SKIP


def _demand(pod: PodInfo) -> Demand:
    spec = pod.pod.spec
    affinity = spec.affinity.node_affinity if spec.affinity else None
    return Demand(selector_from_pairs(spec.node_selector or NO_LABELS), _required_terms(affinity))


def _required_terms(affinity: kube.NodeAffinity | None) -> tuple[NodeTerm, ...] | None:
    required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
    return None if required is None else compile_node_selector(required)


def _unreadable_terms(pod: PodInfo) -> list[str]:
    affinity = pod.pod.spec.affinity.node_affinity if pod.pod.spec.affinity else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
    return [f"{_REQUIRED_PATH}.{problem}" for problem in node_selector_problems(required)] if required is not None else []


def _terms_by_path(affinity: kube.NodeAffinity) -> Iterator[tuple[str, NodeSelectorTerm]]:
    required = affinity.required_during_scheduling_ignored_during_execution or kube.NodeSelector()
    for i, term in enumerate(required.node_selector_terms or ()):
        yield f"requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[{i}]", term
    for i, preference in enumerate(_preferred(affinity)):
        yield f"preferredDuringSchedulingIgnoredDuringExecution[{i}].preference", preference.preference


def _preferred(affinity: kube.NodeAffinity | None) -> Iterable[PreferredSchedulingTerm]:
    return (affinity.preferred_during_scheduling_ignored_during_execution if affinity else None) or ()


def _compile_preferences(terms: Iterable[PreferredSchedulingTerm]) -> tuple[tuple[int, NodeTerm], ...]:
    compiled = ((term.weight, compile_node_term(term.preference, f"[{i}].")) for i, term in enumerate(terms) if term.weight)
    return tuple((weight, term) for weight, term in compiled if term is not None)


def _named_nodes(pod: PodInfo) -> frozenset[NodeName] | None:
    """Nodes that the required terms name, or None when some term leaves the name open."""
    affinity = pod.pod.spec.affinity.node_affinity if pod.pod.spec.affinity else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
    if required is None or not required.node_selector_terms:
        return None
    union: set[NodeName] = set()
    for term in required.node_selector_terms:
        fields = [f for f in term.match_fields or () if f.key == "metadata.name" and f.operator == "In"]
        if not fields:
            return None
        named = frozenset.intersection(*(frozenset(field.values or ()) for field in fields))
        union.update(NodeName(name) for name in named)
    return frozenset(union)


def _term_column(term: NodeTerm, cluster: Cluster, rows: Rows) -> BoolColumn:
    matched = _all_match(term.labels, cluster, rows)
    for expression in term.names:
        row = cluster.row(NodeName(next(iter(expression.values))))
        named = np.zeros(len(rows), np.bool_) if row is None else rows == row
        matched &= named if expression.operator == "In" else ~named
    return matched


def _all_match(expressions: Iterable[CompiledRequirement], cluster: Cluster, rows: Rows) -> BoolColumn:
    matched = np.ones(len(rows), np.bool_)
    for expression in expressions:
        matched &= cluster.label(expression.key).where(rows, expression.matches)
    return matched
