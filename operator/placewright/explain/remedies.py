"""What would have to change for one node to hold a pod, filter by filter: the least change that can be told.

`Teller` asks each filter that rejects the pod on a row. A change whose `kind` is known can be carried out as it says; for one that is
`TOLD` there are only the filter's own words.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec
import numpy as np

from placewright.api.objects import Node, NodeName, Taint
from placewright.api.pods import NO_LABELS, PodInfo
from placewright.api.requests import PODS
from placewright.api.selectors import CompiledRequirement, NodeTerm, compile_node_selector, selector_from_pairs
from placewright.api.tolerations import HARD_EFFECTS, tolerated
from placewright.cluster.cluster import Cluster
from placewright.cluster.pairwisecounts import PodSelection
from placewright.explain.clusterlimits import amount, label_nowhere, too_large
from placewright.framework.interface import CycleState, FilterPlugin
from placewright.framework.runtime.evaluation import Evaluation
from placewright.framework.runtime.resolvedprofile import ResolvedProfile
from placewright.plugins import nodeaffinity, nodeports, nodeunschedulable, tainttoleration
from placewright.plugins.dynamicresources.plugin import DynamicResources
from placewright.plugins.interpodaffinity.matching import Ban
from placewright.plugins.interpodaffinity.plugin import InterPodAffinity
from placewright.plugins.interpodaffinity.terms import TermsError
from placewright.plugins.noderesources.fit import TOO_MANY_PODS, NodeResourcesFit
from placewright.plugins.nodeunschedulable import UNSCHEDULABLE_TAINT
from placewright.plugins.podtopologyspread.plugin import PodTopologySpread
from placewright.plugins.topology import counts_by_row
from placewright.scheduler.decisiondetail import cut

_SHORT: Final = "Insufficient "
#: Pods that are named when all of them would have to go; with more, only how many.
MOST_PODS: Final = 5


#: A pod with the row on which it stands.
_Standing = tuple[int, PodInfo]


class Kind(enum.StrEnum):
    """What is changed.

    MORE_RESOURCES: the node has `resources` more to give, or the pods on it take as much less.
    FEWER_PODS: so many `resources` of pods less on the node, which holds as many as it may.
    TOLERATION: the pod tolerates `tolerations`, too.
    UNCORDON: the node takes pods again.
    LABELS: the node has `labels`; None: it has no such label.
    REMOVE_PODS: `pods` are gone.
    MAX_SKEW: the pod's hard constraint for `topology_key` has `max_skew`.
    MORE_DEVICES: the node has `devices` more that are free, by class, each like those of it that there are.
    ADD_POD: a pod of `namespace` with `labels` stands in the node's domain.
    TOLD: what the filter says.
    """

    MORE_RESOURCES = "more-resources"
    FEWER_PODS = "fewer-pods"
    TOLERATION = "toleration"
    UNCORDON = "uncordon"
    LABELS = "labels"
    REMOVE_PODS = "remove-pods"
    MAX_SKEW = "max-skew"
    MORE_DEVICES = "more-devices"
    ADD_POD = "add-pod"
    TOLD = "told"


#: Changes of one node, which no column shows before they are made.
OF_THE_NODE: Final = frozenset({Kind.MORE_RESOURCES, Kind.FEWER_PODS, Kind.UNCORDON, Kind.LABELS, Kind.MORE_DEVICES})
#: Changes of the pod itself, which may open many nodes at once.
OF_THE_POD: Final = frozenset({Kind.TOLERATION, Kind.MAX_SKEW})


class Toleration(msgspec.Struct, frozen=True):
    """A toleration with operator Equal."""

    key: str
    value: str
    effect: str


class Change(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One thing that would have to be otherwise; see `Kind` for what belongs to which. Resources are in milli-CPU, bytes and counts."""

    plugin: str
    kind: Kind
    text: str
    resources: dict[str, int] = {}
    tolerations: tuple[Toleration, ...] = ()
    labels: dict[str, str | None] = {}
    pods: tuple[str, ...] = ()
    namespace: str = ""
    topology_key: str = ""
    max_skew: int = 0
    devices: dict[str, int] = {}


class Teller:
    """Tells changes for one pod, on the cluster as it was evaluated.

    Attributes:
        named: pods that changes name, by key, with their rows.
    """

    def __init__(self, evaluation: Evaluation, profile: ResolvedProfile, cluster: Cluster) -> None:
        self.named: dict[str, tuple[int, PodInfo]] = {}
        self._state = evaluation.state
        self._pod = evaluation.pod
        self._cluster = cluster
        self._profile = profile
        self._said_of_labels: dict[tuple[str, frozenset[str]], str] = {}
        self._by_plugin: Mapping[str, Callable[[FilterPlugin, int], list[Change]]] = {
            NodeResourcesFit.name: self._resources,
            tainttoleration.NAME: self._taints,
            nodeunschedulable.NAME: self._cordon,
            nodeaffinity.NAME: self._labels,
            nodeports.NAME: self._ports,
            DynamicResources.name: self._devices,
            PodTopologySpread.name: self._spread,
            InterPodAffinity.name: self._affinity,
        }

    def changes(self, plugin: FilterPlugin, row: int) -> list[Change]:
        """What would make this filter, which rejects the row, let the pod in; never empty."""
        tell = self._by_plugin.get(plugin.name)
        return (tell(plugin, row) if tell is not None else []) or [self._told(plugin, row)]

    def _told(self, plugin: FilterPlugin, row: int) -> Change:
        rejections = plugin.explain(self._state, self._pod, self._cluster, np.array([row], np.intp))
        return Change(plugin.name, Kind.TOLD, cut("; ".join(rejection.status.message for rejection in rejections)))

    # --- the node's own ------------------------------------------------------------------------------------------------------

    def _resources(self, plugin: FilterPlugin, row: int) -> list[Change]:
        lacks = lacking(plugin, self._state, self._pod, self._cluster, row)
        fewer = lacks.pop(PODS, 0)
        changes = []
        if fewer:
            held, limit = int(self._cluster.pod_count[row]), int(self._cluster.pod_limit[row])
            text = f"{fewer} pod{'s' if fewer > 1 else ''} less: it holds {held} and may hold {limit}"
            changes.append(Change(plugin.name, Kind.FEWER_PODS, text, {PODS: fewer}))
        if lacks:
            text = " and ".join(self._more(name, missing) for name, missing in lacks.items())
            changes.append(Change(plugin.name, Kind.MORE_RESOURCES, text, lacks))
        return changes

    def _more(self, resource: str, missing: int) -> str:
        nowhere = too_large(self._cluster, resource, self._pod.requests[resource])
        return f"{amount(resource, missing)} more {resource}" + (f" ({nowhere})" if nowhere else "")

    def _taints(self, plugin: FilterPlugin, row: int) -> list[Change]:
        taints = untolerated(self._cluster.taints.get(row), self._pod, cordoned=bool(self._cluster.unschedulable[row]))
        if not taints:
            return []
        text = " and ".join(f"a toleration for taint {taint.key}={taint.value or ''}:{taint.effect}" for taint in taints)
        needed = tuple(Toleration(taint.key, taint.value or "", taint.effect) for taint in taints)
        return [Change(plugin.name, Kind.TOLERATION, text, tolerations=needed)]

    def _cordon(self, plugin: FilterPlugin, _row: int) -> list[Change]:
        return [Change(plugin.name, Kind.UNCORDON, "an end of its cordon (kubectl uncordon)")]

    def _labels(self, plugin: FilterPlugin, row: int) -> list[Change]:
        wanted = labels_wanted(self._pod, self._profile, self._cluster.node(row), self._cluster)
        if wanted is None:
            return []
        text = " and ".join(map(self._label, wanted.values()))
        if wanted.keys() & self._topology_keys():
            # Another value would move the node's pods to another domain, so this is not tried out; but it is what the pod asks for.
            return [Change(plugin.name, Kind.TOLD, f"needs {text}")]
        return [Change(plugin.name, Kind.LABELS, text, labels={key: each.value for key, each in wanted.items()})]

    def _label(self, wanted: WantedLabel) -> str:
        key, value = wanted.expression.key, wanted.value
        if value is None:
            return f"no label {key}"
        text = f"label {key}={value}" if value else f"label {key}"
        nowhere = self._nowhere(key, wanted.values) if wanted.values is not None else ""
        return f"{text} ({nowhere})" if nowhere else text

    def _nowhere(self, key: str, values: frozenset[str]) -> str:
        """The same for every node, so it is found out once."""
        said = self._said_of_labels.get((key, values))
        if said is None:
            said = self._said_of_labels[key, values] = label_nowhere(self._cluster, key, values)
        return said

    def _topology_keys(self) -> frozenset[str]:
        """Labels that mean more than a node's own: another value moves pods to another domain."""
        return frozenset(each.topology_key for each in self._pod.pod.spec.topology_spread_constraints or ()) | frozenset(
            key for key in ("kubernetes.io/hostname", "topology.kubernetes.io/zone", "topology.kubernetes.io/region")
        )

    def _ports(self, plugin: FilterPlugin, row: int) -> list[Change]:
        mine = self._pod.host_ports
        there = ((row, pod) for pod in self._pods_on(row))
        holders = [found for found in there if any(nodeports.conflicts(one, other) for one in mine for other in found[1].host_ports)]
        if not holders or len(holders) > MOST_PODS:
            return []
        taken = [port for _, pod in holders for port in pod.host_ports]
        ports = sorted({f"{one.port}/{one.protocol}" for one in mine if any(nodeports.conflicts(one, other) for other in taken)})
        text = f"host port {', '.join(ports)} free, which {_pods(holders)} holds"
        return [Change(plugin.name, Kind.REMOVE_PODS, text, pods=self._name(holders))]

    def _devices(self, plugin: FilterPlugin, row: int) -> list[Change]:
        assert isinstance(plugin, DynamicResources)
        more = plugin.shortage(self._state, self._cluster, row)
        if not more:
            return []
        text = " and ".join(f"{count} more device{'s' if count > 1 else ''} of class {name}" for name, count in more.items())
        return [Change(plugin.name, Kind.MORE_DEVICES, text, devices=dict(more))]

    # --- where other pods are ------------------------------------------------------------------------------------------------

    def _spread(self, plugin: FilterPlugin, row: int) -> list[Change]:
        assert isinstance(plugin, PodTopologySpread)
        labels = self._cluster.node(row).metadata.labels or NO_LABELS
        changes = []
        standings = plugin.standings(self._state, self._cluster, row)
        lacking = next((standing.constraint.key for standing in standings if standing.matching is None), None)
        if lacking is not None:
            return [Change(plugin.name, Kind.TOLD, f"no label {lacking}, over which the pod is spread")]
        for standing in standings:
            constraint, matching, least = standing
            if standing.skew <= constraint.max_skew:
                continue
            where = f"{constraint.key}={labels.get(constraint.key, '')}"
            counts = f"{where} has {matching} matching pods, the emptiest domain {least}"
            text = f"maxSkew {standing.skew} instead of {constraint.max_skew} for {constraint.key} ({counts})"
            own = self._pod.pod.spec.topology_spread_constraints
            kind = Kind.MAX_SKEW if own else Kind.TOLD
            changes.append(Change(plugin.name, kind, text, topology_key=constraint.key, max_skew=standing.skew))
        return changes

    def _affinity(self, plugin: FilterPlugin, row: int) -> list[Change]:
        assert isinstance(plugin, InterPodAffinity)
        try:
            own, facing = plugin.terms(self._pod, self._cluster)
        except TermsError:
            return []
        labels = self._cluster.node(row).metadata.labels or NO_LABELS
        changes = [change for key in own.keys for change in self._wanted(plugin, key, own.wanted, labels, first=own.wants_itself)]
        changes += [change for ban in own.bans for change in self._banned(plugin, ban, labels, "its anti-affinity excludes")]
        changes += [change for ban in facing.bans for change in self._banned(plugin, ban, labels, "whose anti-affinity excludes it")]
        return changes

    def _wanted(
        self, plugin: FilterPlugin, key: str, wanted: PodSelection | None, labels: Mapping[str, str], *, first: bool
    ) -> Iterator[Change]:
        if key not in labels:
            yield Change(plugin.name, Kind.TOLD, f"label {key}, over which the pod wants to be near others")
        elif wanted is None:
            yield Change(plugin.name, Kind.TOLD, f"a pod that no selector of its affinity over {key} can mean")
        elif not next(self._standing(wanted, key, labels[key]), None) and not (first and not counts_by_row(self._cluster, wanted).any()):
            example = {e.key: min(e.values, default="") for e in wanted.selector.expressions if e.operator in ("In", "Exists")}
            named = ", ".join(f"{name}={value}" for name, value in example.items()) or "anything"
            namespaces = wanted.namespaces if wanted.namespaces is not None else frozenset((self._pod.namespace,))
            namespace = self._pod.namespace if self._pod.namespace in namespaces else min(namespaces, default="")
            text = f"a pod with {named} of namespace {namespace} in {key}={labels[key]}, where its affinity finds none"
            yield Change(plugin.name, Kind.ADD_POD if namespace else Kind.TOLD, text, labels=dict(example), namespace=namespace)

    def _banned(self, plugin: FilterPlugin, ban: Ban, labels: Mapping[str, str], why: str) -> Iterator[Change]:
        if ban.key not in labels:
            return
        found: list[_Standing] = []
        for pod in self._standing(ban.pods, ban.key, labels[ban.key]):
            found.append(pod)
            if len(found) > MOST_PODS:
                text = f"{ban.key}={labels[ban.key]} free of {_pods(found)} and more, {why}"
                yield Change(plugin.name, Kind.TOLD, text)
                return
        if found:
            text = f"{ban.key}={labels[ban.key]} free of {_pods(found)}, {why}"
            yield Change(plugin.name, Kind.REMOVE_PODS, text, pods=self._name(found))

    def _name(self, found: list[_Standing]) -> tuple[str, ...]:
        keyed: dict[str, _Standing] = {pod.key: (row, pod) for row, pod in found}
        self.named |= keyed
        return tuple(keyed)

    def _standing(self, selection: PodSelection, key: str, value: str) -> Iterator[_Standing]:
        """The selection's pods in a domain; nodes that hold none are not looked into."""
        counts = counts_by_row(self._cluster, selection)
        rows = np.flatnonzero((counts > 0) & self._cluster.present)
        column = self._cluster.label(key)
        for row in rows[column.codes(rows) == column.code(value)].tolist():
            yield from ((row, pod) for pod in self._pods_on(row) if selection.selects(pod.pairwise_key, pod.labels))

    def _pods_on(self, row: int) -> Iterable[PodInfo]:
        return self._cluster.pods_on(NodeName(str(self._cluster.names[row])))


def lacking(plugin: FilterPlugin, state: CycleState, pod: PodInfo, cluster: Cluster, row: int) -> dict[str, int]:
    """How much of which resources a row lacks, which NodeResourcesFit rejects; `pods` are one of them."""
    (rejection,) = plugin.explain(state, pod, cluster, np.array([row], np.intp))
    lacks = {}
    for reason in rejection.status.reasons:
        name = reason.removeprefix(_SHORT)
        if reason == TOO_MANY_PODS:
            lacks[PODS] = int(cluster.pod_count[row]) + 1 - int(cluster.pod_limit[row])
        elif name != reason:
            column = cluster.resources.column(name)
            lacks[name] = int(column.requested[row]) + pod.requests[name] - int(column.allocatable[row])
    return lacks


def untolerated(taints: Iterable[Taint], pod: PodInfo, *, cordoned: bool) -> list[Taint]:
    """Hard taints that the pod does not tolerate; that of a cordoned node goes with its cordon."""
    tolerations = pod.pod.spec.tolerations or ()
    found = [taint for taint in taints if taint.effect in HARD_EFFECTS and not tolerated(taint, tolerations)]
    return [taint for taint in found if not (cordoned and taint.key == UNSCHEDULABLE_TAINT.key)]


@dataclass(frozen=True, slots=True)
class WantedLabel:
    """A label that a node would need.

    Attributes:
        value: one that would do; None: the node must not have the label.
    """

    expression: CompiledRequirement
    value: str | None

    @property
    def values(self) -> frozenset[str] | None:
        """All values that would do, empty for any; None where they are not a list (Gt, Lt, and labels that must go)."""
        return self.expression.values if self.expression.operator in ("In", "Exists") else None


def labels_wanted(pod: PodInfo, profile: ResolvedProfile, node: Node, cluster: Cluster) -> dict[str, WantedLabel] | None:
    """By key, labels with which the node meets what pod and profile demand of it; None where no label helps."""
    spec = pod.pod.spec
    own = spec.affinity.node_affinity if spec.affinity else None
    added = getattr(profile.args.get(nodeaffinity.NAME), "added_affinity", None)
    labels = dict(node.metadata.labels or NO_LABELS)
    pairs = selector_from_pairs(spec.node_selector or NO_LABELS).expressions
    demanded: list[tuple[CompiledRequirement, ...]] = [pairs]
    for affinity in (added, own):
        required = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None
        if required is not None:
            nearest = _nearest_term(compile_node_selector(required), labels, node.metadata.name)
            if nearest is None:
                return None
            demanded.append(nearest.labels)
    expressions = [expression for each in demanded for expression in each]
    wanted = {each.key: WantedLabel(each, _value(each, cluster)) for each in expressions if not each.matches(labels.get(each.key))}
    after = {**labels, **{key: each.value for key, each in wanted.items()}}
    return wanted if wanted and all(each.matches(after.get(each.key)) for each in expressions) else None


def _nearest_term(terms: Iterable[NodeTerm], labels: Mapping[str, str], name: str) -> NodeTerm | None:
    """The term that the fewest labels stand against, among those that the node's name does not."""
    possible = [term for term in terms if all(each.matches(name) for each in term.names)]
    return min(possible, key=lambda term: sum(not each.matches(labels.get(each.key)) for each in term.labels), default=None)


def _value(expression: CompiledRequirement, cluster: Cluster) -> str | None:
    """A label value that the expression is content with, of several one that a node has; None: no such label."""
    match expression.operator:
        case "In":
            column = cluster.label(expression.key)
            return min(expression.values, key=lambda value: (column.code(value) is None, value))
        case "Gt":
            return str(expression.bound + 1)
        case "Lt":
            return str(expression.bound - 1)
    return "" if expression.operator == "Exists" else None


def _pods(found: list[_Standing]) -> str:
    keys = ", ".join(pod.key for _, pod in found)
    return f"pod {keys}" if len(found) == 1 else f"pods {keys}"
