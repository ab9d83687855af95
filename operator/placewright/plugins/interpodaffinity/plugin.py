"""InterPodAffinity: pods attract and repel each other. Implements PreFilter, Filter, PreScore, Score.

Both the incoming pod's terms and the terms of existing pods count. Filter reads required anti-affinity of existing pods, Score their
required and preferred affinity. The arguments are those of KubeSchedulerConfiguration v1.

Remedies of InterPodAffinity: which pods must come to a node's domain, or leave it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from placewright.api.pods import NO_LABELS, PodInfo
from placewright.cluster.affinityterms import TermsError
from placewright.cluster.cluster import Cluster
from placewright.cluster.podselections import PodSelection
from placewright.framework.constraints import within
from placewright.framework.events import Action, ClusterEventWithHint, EventResource, event_with_hint
from placewright.framework.filters import NOTHING_TO_CHECK, RowwiseRule, RuleJudge
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
from placewright.framework.memory import NodeMemory
from placewright.framework.remedies import MOST_PODS, Remedy, RemedyKind, RemedyPlugin, keys, pods_in_words, standing_pods
from placewright.framework.rowwise import RowwiseFilter
from placewright.framework.status import SKIP, SUCCESS, Status, error, unresolvable, unschedulable
from placewright.framework.topology import (
    FixedRule,
    counts_by_row,
    domains,
    fingerprint,
    first_broken,
    obey,
    tally_of,
)
from placewright.plugins.interpodaffinity import hints
from placewright.plugins.interpodaffinity.domainpods import DomainPoints, anywhere, distance, far, near, nearness, occupied_anywhere
from placewright.plugins.interpodaffinity.matchers import Ban, FacingTerms, Matcher, OwnTerms
from placewright.plugins.shared.lookups import value_by_value

_OWN: Final = "its anti-affinity excludes"
_FACING: Final = "whose anti-affinity excludes it"


class DomainRemedies:
    """Remedies for one pod in the domains of one node."""

    def __init__(self, plugin: str, pod: PodInfo, cluster: Cluster, row: int) -> None:
        self._plugin = plugin
        self._pod = pod
        self._cluster = cluster
        self._labels = cluster.node(row).metadata.labels or NO_LABELS

    def all(self, own: OwnTerms, facing: FacingTerms) -> list[Remedy]:
        """Return remedies for the pod's required affinity, then for its anti-affinity, then for other pods' anti-affinity."""
        found = [remedy for key in own.keys for remedy in self._wanted(key, own.wanted, first=own.wants_itself)]
        found += [remedy for ban in own.bans for remedy in self._banned(ban, _OWN)]
        return found + [remedy for ban in facing.bans for remedy in self._banned(ban, _FACING)]

    def _wanted(self, key: str, wanted: PodSelection | None, *, first: bool) -> Iterator[Remedy]:
        """Propose a pod to be near. `first` says that the pod selects itself, so that it may be the first one anywhere."""
        if key not in self._labels:
            yield Remedy(self._plugin, RemedyKind.TOLD, f"label {key}, over which the pod wants to be near others")
        elif wanted is None:
            yield Remedy(self._plugin, RemedyKind.TOLD, f"a pod that no selector of its affinity over {key} can mean")
        elif not next(self._standing(wanted, key), None) and not (first and not counts_by_row(self._cluster, wanted).any()):
            example = {e.key: min(e.values, default="") for e in wanted.selector.expressions if e.operator in ("In", "Exists")}
            named = ", ".join(f"{name}={value}" for name, value in example.items()) or "anything"
            namespaces = wanted.namespaces if wanted.namespaces is not None else frozenset((self._pod.namespace,))
            namespace = self._pod.namespace if self._pod.namespace in namespaces else min(namespaces, default="")
            text = f"a pod with {named} of namespace {namespace} in {key}={self._labels[key]}, where its affinity finds none"
            kind = RemedyKind.ADD_POD if namespace else RemedyKind.TOLD
            yield Remedy(self._plugin, kind, text, labels=dict(example), namespace=namespace)

    def _banned(self, ban: Ban, why: str) -> Iterator[Remedy]:
        if ban.key not in self._labels:
            return
        where = f"{ban.key}={self._labels[ban.key]}"
        found: list[PodInfo] = []
        for pod in self._standing(ban.pods, ban.key):
            found.append(pod)
            if len(found) > MOST_PODS:
                yield Remedy(self._plugin, RemedyKind.TOLD, f"{where} free of {pods_in_words(found)} and more, {why}")
                return
        if found:
            text = f"{where} free of {pods_in_words(found)}, {why}"
            yield Remedy(self._plugin, RemedyKind.REMOVE_PODS, text, pods=keys(found))

    def _standing(self, selection: PodSelection, key: str) -> Iterator[PodInfo]:
        """Iterate over the selection's pods in the node's domain of this label."""
        return standing_pods(self._cluster, selection, key, self._labels[key])


_MAX_WEIGHT: Final = 100


class InterPodAffinityArgs(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Weight of existing pods' required affinity in the score of an incoming pod, and whether their preferences count.

    `ignore_preferred_terms_of_existing_pods` has an effect only on incoming pods without preferred terms, as upstream.
    """

    hard_pod_affinity_weight: Annotated[int, within(0, _MAX_WEIGHT)] = 1
    ignore_preferred_terms_of_existing_pods: bool = False


NAME: Final = "InterPodAffinity"

_UNMATCHED: Final = unresolvable("node(s) didn't match pod affinity rules")
_UNWANTED: Final = unschedulable("node(s) didn't match pod anti-affinity rules")
_BANNED: Final = unschedulable("node(s) didn't satisfy existing pods anti-affinity rules")


@dataclass(frozen=True, slots=True)
class _Rules:
    """The verdict of required terms, by domain."""

    rules: tuple[FixedRule, ...]
    keys: tuple[str, ...]


class InterPodAffinity(PreFilterPlugin[InterPodAffinityArgs], RowwiseFilter, RemedyPlugin, PreScorePlugin, ScorePlugin, PreparingPlugin):
    """Attracts and repels pods by the labels of other pods."""

    name = NAME
    default_weight = 2
    #: Pods with other labels share columns: `sign` says nothing, and `fingerprint` has all that the columns depend on.
    reads = Reads.CLUSTER

    def __init__(self, args: InterPodAffinityArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._ignore_preferences = args.ignore_preferred_terms_of_existing_pods
        self._matcher = Matcher(args.hard_pod_affinity_weight)
        self._memory = NodeMemory()

    def prepare(self, pod: PodInfo, cluster: Cluster) -> Iterator[None]:
        """Count the pods that each term selects, then the pods whose terms select the pod."""
        try:
            own = self._matcher.own(pod, cluster)
        except TermsError:
            return
        yield
        facing = self._matcher.facing(pod, cluster)
        yield
        banning = [ban.pods for ban in (*own.bans, *facing.bans)]
        pulling = [pull.pods for pull in (*own.pulls, *facing.pulls)]
        for pods in (own.wanted, *banning, *pulling):
            if pods is not None:
                tally_of(cluster, pods)
                yield

    # --- required terms ------------------------------------------------------------------------------------------------------

    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: Cluster) -> PreFilterResult:
        """Compute which domains are wanted and which are barred; skip pods that no required term concerns."""
        if not pod.pairwise_key.affinity and not cluster.pairwise_counts.carriers:
            return NOTHING_TO_CHECK
        try:
            own = self._matcher.own(pod, cluster)
        except TermsError as problem:
            return PreFilterResult(unresolvable(f"parsing pod: {problem}"))
        bans = self._matcher.facing(pod, cluster).bans
        if not own.requires and not bans:
            return NOTHING_TO_CHECK
        existing = [(key, rule) for key, rule in self._barred(bans, _BANNED, cluster) if not rule.allows_all]
        if not own.requires and not existing:
            return NOTHING_TO_CHECK
        rules = [*self._wanted(own, cluster), *self._barred(own.bans, _UNWANTED, cluster), *existing]
        state.write(NAME, _Rules(tuple([rule for _, rule in rules]), tuple([key for key, _ in rules])))
        return PreFilterResult()

    def filter(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> BoolColumn:
        """Allow rows near all that the pod needs, and near no pod of either side's anti-affinity."""
        return obey(state.read(NAME, _Rules).rules, rows)

    def explain(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> list[Rejection]:
        """Reject rows by the pod's affinity first, then by its anti-affinity, then by that of existing pods."""
        return first_broken(state.read(NAME, _Rules).rules, rows)

    def remedies(self, state: CycleState, pod: PodInfo, cluster: Cluster, row: int) -> list[Remedy]:
        """Propose pods to add where the pod's affinity finds none, and pods to remove because of either side's anti-affinity."""
        try:
            own = self._matcher.own(pod, cluster)
        except TermsError:
            return []
        return DomainRemedies(self.name, pod, cluster, row).all(own, self._matcher.facing(pod, cluster))

    def judge(self, state: CycleState, pod: PodInfo, cluster: Cluster) -> RuleJudge:
        """Judge one changed row at a time. A ban without a pod may apply once pods are nominated to a row."""
        own = self._matcher.own(pod, cluster)

        def distances(bans: Iterable[Ban], verdict: Status) -> list[RowwiseRule]:
            return [distance(cluster, pods, domains(self._memory, cluster, key), verdict) for key, pods in bans]

        places = [domains(self._memory, cluster, key) for key in own.keys]
        near = nearness(cluster, own.wanted, places, own.wants_itself, _UNMATCHED)
        facing = self._matcher.facing(pod, cluster).bans
        return RuleJudge([*near, *distances(own.bans, _UNWANTED), *distances(facing, _BANNED)])

    def _wanted(self, own: OwnTerms, cluster: Cluster) -> list[tuple[str, FixedRule]]:
        """Make a rule for each required affinity term.

        If the cluster has no wanted pod, a pod that its own terms select may be the first. It may go to any node with all the labels.
        """
        tally = None if own.wanted is None else tally_of(cluster, own.wanted)
        places = [domains(self._memory, cluster, key) for key in own.keys]
        if own.wants_itself and not any(tally is not None and occupied_anywhere(place, tally) for place in places):
            rules: list[FixedRule] = [anywhere(place, _UNMATCHED) for place in places]
        else:
            rules = [near(place, tally, _UNMATCHED) for place in places]
        return list(zip(own.keys, rules, strict=True))

    def _barred(self, bans: Iterable[Ban], verdict: Status, cluster: Cluster) -> list[tuple[str, FixedRule]]:
        """Make a rule for each label that some node has. No pod is near over any other label."""
        found = [ban for ban in bans if ban.key in cluster.label_keys]
        return [(key, far(domains(self._memory, cluster, key), tally_of(cluster, pods), verdict)) for key, pods in found]

    def fingerprint(self, state: CycleState, cluster: Cluster) -> Hashable | None:
        """Return the allowed domains. Scores are never kept, because nearly each placed pod changes them for similar pods."""
        if f"{NAME}/pulls" in state.data:
            return None
        rules = state.data.get(NAME)
        required = fingerprint(rules.rules, rules.keys, cluster) if rules else None
        return (cluster.node_journal.position, required)

    # --- scoring -------------------------------------------------------------------------------------------------------------

    def pre_score(self, state: CycleState, pod: PodInfo, cluster: Cluster, feasible: Rows) -> Status:
        """Add up the points of each domain from preferred terms and existing pods' required affinity; skip if there are none."""
        if not pod.pairwise_key.affinity and not cluster.pairwise_counts.carriers:
            return SKIP
        try:
            own = self._matcher.own(pod, cluster)
        except TermsError as problem:
            return error(f"failed to parse pod: {problem}")
        if self._ignore_preferences and not own.prefers:
            return SKIP
        fields: dict[str, DomainPoints] = {}
        known = cluster.label_keys
        for key, weight, pods in (*own.pulls, *self._matcher.facing(pod, cluster).pulls):
            if key not in known:
                continue  # no pod is near over a label that no node has
            field = fields.get(key) or DomainPoints(domains(self._memory, cluster, key))
            if field.add(weight, tally_of(cluster, pods)):
                fields[key] = field
        if not fields:
            return SKIP
        state.write(f"{NAME}/pulls", tuple(fields.values()))
        return SUCCESS

    def score(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> IntColumn:
        """Return the sum of the points of the node's domains, which may be negative."""
        first, *more = state.read(f"{NAME}/pulls", tuple)
        total: IntColumn = first.of(rows)
        for field in more:
            total = total + field.of(rows)
        return total

    def summarise(self, state: CycleState, raw: IntColumn) -> Hashable:
        """Return the lowest and the highest score."""
        return (int(raw.min()), int(raw.max())) if len(raw) else (0, 0)

    def normalise(self, state: CycleState, raw: IntColumn, summary: tuple[int, int]) -> IntColumn:
        """Return 100·((raw−min)/(max−min)) in floats, truncated as upstream; 0 if all scores are equal."""
        low, high = summary
        if high == low:
            return np.zeros_like(raw)

        def scaled(values: IntColumn) -> IntColumn:
            share: NDArray[np.float64] = (values - low) / (high - low)
            return (MAX_NODE_SCORE * share).astype(np.int64)

        return value_by_value(raw, low, high, scaled)

    # --- events --------------------------------------------------------------------------------------------------------------

    def events(self) -> Sequence[ClusterEventWithHint]:
        """Declare pods that terms of either side concern, nodes that gain, lose or change their labels, and labels of namespaces.

        kube-scheduler ignores deleted nodes, whose pods no longer bar, and namespaces. There pods wait for the timeout.
        """
        changes = hints.AffinityHints(self._matcher, self.handle.cluster)
        pods = Action.ADD | Action.DELETE | Action.UPDATE_POD_LABEL
        nodes = Action.ADD | Action.UPDATE_NODE_LABEL | Action.DELETE
        return (
            event_with_hint(EventResource.POD, pods, changes.after_pod_change, hints.may_concern, hints.POD_KEYS),
            event_with_hint(EventResource.NODE, nodes, changes.after_node_change),
            event_with_hint(EventResource.NAMESPACE, Action.ADD | Action.UPDATE | Action.DELETE, hints.after_namespace_change),
        )
