"""NodeAffinity: node selectors, required and preferred node affinity. Implements PreFilter, Filter, PreScore, Score.

`addedAffinity` in the profile is ANDed with the pod's required terms, and added to its preferred terms.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec
import numpy as np

from placewright.api import objects as kube
from placewright.api.bytecount import short_key
from placewright.api.objects import Node, NodeName, NodeSelector, NodeSelectorTerm, PreferredSchedulingTerm
from placewright.api.pods import NO_LABELS, PodInfo
from placewright.api.selectors import (
    EVERYTHING,
    CompiledRequirement,
    NodeTerm,
    Selector,
    SelectorError,
    compile_node_selector,
    compile_node_term,
    may_match,
    node_selector_problems,
    selector_from_pairs,
)
from placewright.cluster.cluster import Cluster
from placewright.cluster.clusterlimits import label_nowhere
from placewright.cluster.labels import LabelColumn
from placewright.framework.constraints import Problem
from placewright.framework.events import Action, ClusterEventWithHint, EventResource, event_with_hint
from placewright.framework.interface import (
    BoolColumn,
    CycleState,
    Handle,
    IntColumn,
    MaxNormalised,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    Rejection,
    Rows,
)
from placewright.framework.remedies import Remedy, RemedyKind, RemedyPlugin
from placewright.framework.status import SKIP, SUCCESS, Status, error, unresolvable
from placewright.plugins.shared.hints import came_to_suit

NAME: Final = "NodeAffinity"
REASON_POD: Final = "node(s) didn't match Pod's node affinity/selector"
REASON_ENFORCED: Final = "node(s) didn't match scheduler-enforced node affinity"
_REQUIRED_PATH: Final = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
#: Labels that assign a node to a domain: another value moves its pods to another domain.
_TOPOLOGY_KEYS: Final = frozenset({"kubernetes.io/hostname", "topology.kubernetes.io/zone", "topology.kubernetes.io/region"})
_NO_AFFINITY: Final = kube.NodeAffinity()


class NodeAffinityArgs(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Affinity that holds for every pod of the profile."""

    added_affinity: kube.NodeAffinity | None = None

    def validate(self) -> list[Problem]:
        """Check operators and numbers of values, as an API server checks a pod's affinity, because none checks arguments."""
        problems = []
        for path, term in _terms_by_path(self.added_affinity or _NO_AFFINITY):
            try:
                compile_node_term(term)
            except SelectorError as error:
                problems.append((f"addedAffinity.{path}", "a term that matches nothing", f"what a pod's affinity may hold: {error}"))
        return problems


@dataclass(frozen=True, slots=True)
class RequiredNodeAffinity:
    """Compiled node selection of one pod or profile: pairs AND any of the terms (None: no terms demanded)."""

    pairs: Selector = EVERYTHING
    terms: tuple[NodeTerm, ...] | None = None

    @property
    def empty(self) -> bool:
        """Whether every node matches."""
        return self.pairs.empty and self.terms is None

    def matches(self, node: Node) -> bool:
        """Apply the rule to one node."""
        labels = node.metadata.labels or NO_LABELS
        if not self.pairs.matches(labels):
            return False
        return self.terms is None or any(term.matches(labels, node.metadata.name) for term in self.terms)

    def column(self, cluster: Cluster, rows: Rows) -> BoolColumn:
        """Return which rows match; shape (len(rows),)."""
        matched = _all_match(self.pairs.expressions, cluster, rows)
        if self.terms is not None:
            anywhere = np.zeros(len(rows), np.bool_)
            for term in self.terms:
                anywhere |= _term_column(term, cluster, rows)
            matched &= anywhere
        return matched


class NodeAffinity(PreFilterPlugin[NodeAffinityArgs], RemedyPlugin, PreScorePlugin, MaxNormalised):
    """Matches nodes by label, and by name."""

    name = NAME
    default_weight = 2
    remedies_are_cheap = True

    def __init__(self, args: NodeAffinityArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        added = args.added_affinity or _NO_AFFINITY
        self._enforced = RequiredNodeAffinity(terms=_required_terms(added))
        self._added_preferences = _compile_preferences(_preferred(added))

    def sign(self, pod: PodInfo) -> Hashable:
        """Sign the pod by its selector and affinity as canonical text or digest, because they hold lists and maps."""
        spec = pod.pod.spec
        affinity = spec.affinity.node_affinity if spec.affinity else None
        if not spec.node_selector and affinity is None:
            return ()
        return short_key(msgspec.json.encode((spec.node_selector, affinity), order="deterministic"))

    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: Cluster) -> PreFilterResult:
        """Narrow the attempt to named nodes if every term names nodes.

        Skip pods that demand nothing, unless the profile demands something.
        """
        demand = demand_of(pod)
        if demand.empty and self._enforced.empty:
            return PreFilterResult(SKIP)
        state.write(NAME, demand)
        named = _named_nodes(pod)
        if named is not None and not named:
            return PreFilterResult(unresolvable("pod affinity terms conflict"))
        return PreFilterResult(nodes=named)

    def filter(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> BoolColumn:
        """Allow rows that meet the demands of both profile and pod."""
        matched = self._enforced.column(cluster, rows)
        matched &= state.read(NAME, RequiredNodeAffinity).column(cluster, rows)
        return matched

    def explain(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> list[Rejection]:
        """Reject by the profile's demand first, then by the pod's.

        The reason names the pod's terms that do not parse. kube-scheduler does not report them.
        """
        enforced = self._enforced.column(cluster, rows)
        groups = (
            ((REASON_ENFORCED,), rows[~enforced]),
            ((REASON_POD, *_unreadable_terms(pod)), rows[enforced]),
        )
        return [Rejection(unresolvable(*reasons), group) for reasons, group in groups if len(group)]

    def remedies(self, state: CycleState, pod: PodInfo, cluster: Cluster, row: int) -> list[Remedy]:
        """Propose labels with which the node meets the demands of pod and profile.

        The text says if no node has such a label.
        """
        wanted = _labels_wanted(pod, self.args.added_affinity, cluster.node(row), cluster)
        if wanted is None:
            return []
        # The labels that no node has are the same for every row, so they are computed once a pod.
        said: dict[tuple[str, frozenset[str]], str] = state.data.setdefault(f"{NAME}/nowhere", {})
        text = " and ".join(_in_words(each, said, cluster) for each in wanted.values())
        if wanted.keys() & (_TOPOLOGY_KEYS | {each.topology_key for each in pod.pod.spec.topology_spread_constraints or ()}):
            # Another value would move the node's pods to another domain, so it is not tried; but the pod asks for it.
            return [Remedy(self.name, RemedyKind.TOLD, f"needs {text}")]
        return [Remedy(self.name, RemedyKind.LABELS, text, labels={key: each.value for key, each in wanted.items()})]

    def pre_score(self, state: CycleState, pod: PodInfo, cluster: Cluster, feasible: Rows) -> Status:
        """Compile the preferences of pod and profile.

        Pods that prefer nothing are skipped. A preference that does not parse fails the cycle, as in kube-scheduler.
        """
        try:
            preferences = (*self._added_preferences, *_compile_preferences(_preferred(affinity_of(pod))))
        except SelectorError as problem:
            return error(str(problem))
        if not preferences:
            return SKIP
        state.write(f"{NAME}/preferences", preferences)
        return SUCCESS

    def score(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> IntColumn:
        """Sum up the weights of matching preferences."""
        total = np.zeros(len(rows), np.int64)
        for weight, term in state.read(f"{NAME}/preferences", tuple):
            total += weight * _term_column(term, cluster, rows)
        return total

    def events(self) -> Sequence[ClusterEventWithHint]:
        """Declare nodes that match now and did not before."""
        return (event_with_hint(EventResource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL, came_to_suit(Node, self._suits)),)

    def _suits(self, pod: PodInfo, node: Node) -> bool:
        return self._enforced.matches(node) and _demands_met(pod, node)


@dataclass(frozen=True, slots=True)
class WantedLabel:
    """A label that a node lacks.

    Attributes:
        value: a value that would match; None: the node must not have the label.
    """

    expression: CompiledRequirement
    value: str | None

    @property
    def values(self) -> frozenset[str] | None:
        """All values that would match, empty for any; None without a list (Gt, Lt, and labels that must go)."""
        return self.expression.values if self.expression.operator in ("In", "Exists") else None


def _labels_wanted(pod: PodInfo, added: kube.NodeAffinity | None, node: Node, cluster: Cluster) -> dict[str, WantedLabel] | None:
    """Return by key the labels with which the node meets the demands of pod and profile; None if no label helps."""
    labels = dict(node.metadata.labels or NO_LABELS)
    demanded: list[tuple[CompiledRequirement, ...]] = [selector_from_pairs(pod.pod.spec.node_selector or NO_LABELS).expressions]
    for affinity in (added or _NO_AFFINITY, affinity_of(pod)):
        required = _required_terms(affinity)
        if required is not None:
            nearest = _nearest_term(required, labels, node.metadata.name)
            if nearest is None:
                return None
            demanded.append(nearest.labels)
    expressions = [expression for each in demanded for expression in each]
    wanted = {each.key: WantedLabel(each, _value(each, cluster)) for each in expressions if not each.matches(labels.get(each.key))}
    after = {**labels, **{key: each.value for key, each in wanted.items()}}
    return wanted if wanted and all(each.matches(after.get(each.key)) for each in expressions) else None


def _nearest_term(terms: Iterable[NodeTerm], labels: Mapping[str, str], name: str) -> NodeTerm | None:
    """Find the term with the fewest unmet labels, among terms that the node's name does not rule out."""
    possible = [term for term in terms if all(each.matches(name) for each in term.names)]
    return min(possible, key=lambda term: sum(not each.matches(labels.get(each.key)) for each in term.labels), default=None)


def _value(expression: CompiledRequirement, cluster: Cluster) -> str | None:
    """Choose a label value that satisfies the expression, if possible one that a node has; None: no such label."""
    match expression.operator:
        case "In":
            column = cluster.label(expression.key)
            return min(expression.values, key=lambda value: (column.code(value) is None, value))
        case "Gt":
            return str(expression.bound + 1)
        case "Lt":
            return str(expression.bound - 1)
    return "" if expression.operator == "Exists" else None


def _in_words(wanted: WantedLabel, said: dict[tuple[str, frozenset[str]], str], cluster: Cluster) -> str:
    key, value, values = wanted.expression.key, wanted.value, wanted.values
    if value is None:
        return f"no label {key}"
    text = f"label {key}={value}" if value else f"label {key}"
    if values is None:
        return text
    if (key, values) not in said:
        said[key, values] = label_nowhere(cluster, key, values)
    nowhere = said[key, values]
    return f"{text} ({nowhere})" if nowhere else text


def affinity_of(pod: PodInfo) -> kube.NodeAffinity:
    """Return the pod's node affinity; an empty one if the pod has none."""
    affinity = pod.pod.spec.affinity
    return (affinity.node_affinity if affinity is not None else None) or _NO_AFFINITY


def demand_of(pod: PodInfo) -> RequiredNodeAffinity:
    """Compile the pod's node selector and required affinity."""
    return RequiredNodeAffinity(selector_from_pairs(pod.pod.spec.node_selector or NO_LABELS), _required_terms(affinity_of(pod)))


def _demands_met(pod: PodInfo, node: Node) -> bool:
    """Return whether one node meets the pod's demands. Each event asks for each waiting pod, so hardly any term is compiled."""
    labels, spec = node.metadata.labels or NO_LABELS, pod.pod.spec
    if any(labels.get(key) != value for key, value in (spec.node_selector or NO_LABELS).items()):
        return False
    required = affinity_of(pod).required_during_scheduling_ignored_during_execution
    if required is None:
        return True
    name = node.metadata.name
    possible = (term for term in required.node_selector_terms or () if may_match(term, labels, name))
    compiled = (each for term in possible for each in compile_node_selector(NodeSelector(node_selector_terms=(term,))))
    return any(each.matches(labels, name) for each in compiled)


def _required_terms(affinity: kube.NodeAffinity) -> tuple[NodeTerm, ...] | None:
    required = affinity.required_during_scheduling_ignored_during_execution
    return None if required is None else compile_node_selector(required)


def _unreadable_terms(pod: PodInfo) -> list[str]:
    required = affinity_of(pod).required_during_scheduling_ignored_during_execution or NodeSelector()
    return [f"{_REQUIRED_PATH}.{problem}" for problem in node_selector_problems(required)]


def _terms_by_path(affinity: kube.NodeAffinity) -> Iterator[tuple[str, NodeSelectorTerm]]:
    required = affinity.required_during_scheduling_ignored_during_execution or kube.NodeSelector()
    for i, term in enumerate(required.node_selector_terms or ()):
        yield f"requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[{i}]", term
    for i, preference in enumerate(_preferred(affinity)):
        yield f"preferredDuringSchedulingIgnoredDuringExecution[{i}].preference", preference.preference


def _preferred(affinity: kube.NodeAffinity) -> Iterable[PreferredSchedulingTerm]:
    return affinity.preferred_during_scheduling_ignored_during_execution or ()


def _compile_preferences(terms: Iterable[PreferredSchedulingTerm]) -> tuple[tuple[int, NodeTerm], ...]:
    compiled = ((term.weight, compile_node_term(term.preference, f"[{i}].")) for i, term in enumerate(terms) if term.weight)
    return tuple((weight, term) for weight, term in compiled if term is not None)


def _named_nodes(pod: PodInfo) -> frozenset[NodeName] | None:
    """Return the nodes that the required terms name; None if some term leaves the name open."""
    required = affinity_of(pod).required_during_scheduling_ignored_during_execution
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
        matched &= _matching(expression, cluster.label(expression.key), rows)
    return matched


def _matching(expression: CompiledRequirement, column: LabelColumn, rows: Rows) -> BoolColumn:
    """Loop over the shorter list: the values of the expression, or the values that nodes have."""
    operator, codes = expression.operator, column.codes(rows)
    if operator in ("Exists", "DoesNotExist"):
        has_label: BoolColumn = codes != column.code(None)
        return has_label if operator == "Exists" else ~has_label
    if operator in ("Gt", "Lt"):
        return column.compared(rows, expression.bound, above=operator == "Gt")
    if len(expression.values) >= len(column.values):
        return column.where(rows, expression.matches)
    listed = [code for value in expression.values if (code := column.code(value)) is not None]
    if len(listed) <= 1:
        found: BoolColumn = codes == listed[0] if listed else np.zeros(len(rows), np.bool_)
    else:
        by_code = np.zeros(len(column.values), np.bool_)
        by_code[listed] = True
        found = by_code[codes]
    return found if operator == "In" else ~found
