"""The plugin DefaultPreemption, and its arguments as in KubeSchedulerConfiguration v1. Implements PreEnqueue and PostFilter."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, Final

import msgspec

from placewright.api.compatibility import Rule
from placewright.api.extenders import NodeVictims
from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.constraints import Problem, within
from placewright.framework.events import Action, ClusterEventWithHint, EventResource, QueueingHint, event_with_hint
from placewright.framework.interface import (
    Alternatives,
    CycleState,
    Diagnosis,
    Handle,
    PostFilterPlugin,
    PostFilterResult,
    PreEnqueuePlugin,
)
from placewright.framework.preemption.budgets import Budgets
from placewright.framework.preemption.eligibility import NEVER, rows_where_it_may_help, victims_leave, why_not_eligible
from placewright.framework.preemption.evictions import VictimUnits, importance, may_preempt
from placewright.framework.preemption.rules import PreemptionRefusal, VictimLimits, soonest
from placewright.framework.status import SUCCESS, Status, error, unresolvable, unschedulable
from placewright.plugins.defaultpreemption.candidates import NO_VICTIMS, Candidate, NodeTrial, OnItsNode, pick
from placewright.plugins.defaultpreemption.dryrun import CandidateSearch, DryRun


class DefaultPreemptionArgs(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Candidate nodes to collect before choosing: a percentage of the nodes where preemption may help, and a minimum."""

    min_candidate_nodes_percentage: Annotated[int, within(0, 100)] = 10
    min_candidate_nodes_absolute: Annotated[int, within(0)] = 100

    def candidates_wanted(self, nodes: int) -> int:
        """Return how many candidates to collect if preemption may help on this many nodes."""
        return min(nodes, max(nodes * self.min_candidate_nodes_percentage // 100, self.min_candidate_nodes_absolute))

    def validate(self) -> list[Problem]:
        """Refuse 0 for both, which would try no node at all."""
        if self.min_candidate_nodes_percentage == self.min_candidate_nodes_absolute == 0:
            return [("minCandidateNodesPercentage", "0, with minCandidateNodesAbsolute 0", "one of the two above 0")]
        return []


NAME: Final = "DefaultPreemption"
#: Names of notes that are kept by row: outcomes of trials, and refusals of rules.
_OUTCOMES: Final = "outcomes"
_REFUSALS: Final = "refusals"
#: The answer if extenders leave no node, or may only choose among nodes without victims.
_NO_CANDIDATE: Final = PostFilterResult(unschedulable("preemption: no candidate node for preemption"))
#: Clears an earlier nomination.
NOWHERE: Final = NodeName("")


class DefaultPreemption(PreEnqueuePlugin[DefaultPreemptionArgs], PostFilterPlugin):
    """Finds the node where the fewest and least important pods would have to leave.

    Attributes:
        rng: random source of the row at which the search begins; seeded, so that a run can be repeated.
    """

    name = NAME
    preempts = True

    def __init__(self, args: DefaultPreemptionArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self.rng = random.Random(0)
        self._empty_covers_all = handle.in_force(Rule.EMPTY_BUDGET_SELECTOR)

    def pre_enqueue(self, pod: PodInfo) -> Status:
        """Hold the pod back while evictions of its victims are under way, because a new attempt could choose other victims."""
        if self.handle.making_room_for(pod):
            return unresolvable("waiting for the preemption for this pod to be finished")
        return SUCCESS

    def post_filter(self, state: CycleState, pod: PodInfo, cluster: Cluster, diagnosis: Diagnosis) -> PostFilterResult:
        """Nominate a node and its victims, most important first; UNSCHEDULABLE with the reason if no eviction helps.

        Terminating victims count when nodes are compared. The result omits them, because they need no eviction. This changes no state: the
        caller evicts the victims and keeps the nomination.
        """
        if reason := why_not_eligible(pod, cluster, diagnosis):
            return PostFilterResult(unschedulable(f"preemption: {reason}"))
        rules = self.handle.preemption_rules
        if rules is not None and (refusal := rules.why_not_yet((pod,))) is not None:
            return PostFilterResult(unschedulable(f"preemption: {refusal.reason}"), retry_after=refusal.retry_after)
        rows = rows_where_it_may_help(cluster, diagnosis)
        search = CandidateSearch(self.args.candidates_wanted(len(rows)), diagnosis.asks_extenders)
        trials = self.dry_run(state, pod)
        search.run(trials, cluster, rows, self.rng)
        if not search.candidates and search.problem:
            return PostFilterResult(error(f"preemption: {search.problem}"))
        if not search.candidates:
            message = f"preemption: {search.summary(diagnosis.node_count)}"
            return PostFilterResult(unschedulable(message), NOWHERE, retry_after=trials.retry_after)
        victims = {one.node: NodeVictims(one.victims, one.violations) for one in search.candidates}
        alternatives = Alternatives(victims, partial(_among, cluster, pod, trials.limits))
        candidates = [one for one in search.candidates if one.victims]
        return replace(_evicting(cluster, candidates) if candidates else _NO_CANDIDATE, alternatives=alternatives)

    def make_room_in_place(self, pod: PodInfo) -> PostFilterResult:
        """Name pods of lower priority on the pod's node. Without them, the node holds what the pod asks for."""
        cluster, node = self.handle.cluster, pod.node_name
        row, on_node = cluster.row(node), OnItsNode(cluster)
        if row is None or on_node.check_row(pod, row).ok or victims_leave(cluster, pod, node):
            return PostFilterResult(unresolvable("the resize has room, or gets it"))
        rules = self.handle.preemption_rules
        refusal = None if rules is None else rules.why_not_yet((pod,))
        if refusal is not None or not may_preempt(cluster.pod_groups, pod):
            return PostFilterResult(unschedulable(f"preemption: {NEVER if refusal is None else refusal.reason}"))
        limits = None if rules is None else rules.limits()
        budgets = Budgets(cluster.objects, empty_covers_all=self._empty_covers_all) if limits is None else limits.budgets
        trial = NodeTrial(row, node, VictimUnits(cluster, pod, None if limits is None else limits.keeps).on(node))
        outcome = trial.run(on_node, pod, budgets) if trial.evictable else NO_VICTIMS
        if isinstance(outcome, Status):
            return PostFilterResult(unschedulable(f"preemption: {outcome.message}"))
        refusal = None if limits is None else limits.why_not_these(outcome.victims)
        return _evicting(cluster, [outcome]) if refusal is None else PostFilterResult(unschedulable(f"preemption: {refusal.reason}"))

    def dry_run(self, state: CycleState, pod: PodInfo) -> DryRun:
        """Prepare the trials of this attempt, with the outcomes that still hold from pods like this one."""
        rules = self.handle.preemption_rules
        if rules is None:
            budgets = Budgets(self.handle.cluster.objects, empty_covers_all=self._empty_covers_all)
            return DryRun(self.handle, pod, budgets, self._known(_OUTCOMES, state, pod))
        limits = rules.limits()
        if not rules.steady:
            return DryRun(self.handle, pod, limits.budgets, None, limits)
        known = self._known(_OUTCOMES, state, pod), self._known(_REFUSALS, state, pod)
        return DryRun(self.handle, pod, limits.budgets, known[0], limits, known[1])

    def _known(self, notes: str, state: CycleState, pod: PodInfo) -> MutableMapping[int, Any] | None:
        """Recall the notes on trials of pods like this one; None if they may be out of date."""
        cluster = self.handle.cluster
        budgets = [budget.metadata for budget in cluster.objects.disruption_budgets.values()]
        if cluster.pod_groups.placed_groups or not all(budget.resource_version for budget in budgets):
            return None
        versions = frozenset((budget.uid, budget.resource_version) for budget in budgets)
        return self.handle.kept_of_rows((NAME, notes, versions), state, pod)

    def events(self) -> Sequence[ClusterEventWithHint]:
        """Declare deleted pods, with a hint that always skips. The scheduler itself activates the pod once its victims are gone."""
        return (event_with_hint(EventResource.POD, Action.DELETE, _never),)


def _among(cluster: Cluster, pod: PodInfo, limits: VictimLimits | None, victims: Mapping[NodeName, NodeVictims]) -> PostFilterResult:
    """Return the result for the nodes that extenders kept. Pods that cannot stay without the victims leave, too."""
    victims = {node: who for node, who in victims.items() if who.pods}  # no extender chose victims on the other nodes
    if not victims:
        return _NO_CANDIDATE
    together = VictimUnits(cluster, pod)
    candidates: list[Candidate] = []
    refusals: list[PreemptionRefusal] = []
    for node, who in victims.items():
        pods = together.completed(who.pods)
        ranked = sorted(((together.rank_of(one), one) for one in pods), key=lambda each: (-each[0], *importance(each[1])))
        candidate = Candidate(node, tuple(one for _, one in ranked), who.violations, tuple(rank for rank, _ in ranked))
        if limits is None or (refusal := limits.objection(candidate.victims)) is None:
            candidates.append(candidate)
        else:
            refusals.append(refusal)
    if not candidates:  # the extenders chose victims that the rules refuse
        reasons = ", ".join(sorted({refusal.reason for refusal in refusals}))
        return PostFilterResult(unschedulable(f"preemption: {reasons}"), retry_after=soonest(each.retry_after for each in refusals))
    return _evicting(cluster, candidates)


def _evicting(cluster: Cluster, candidates: Iterable[Candidate]) -> PostFilterResult:
    best = pick(candidates)
    return PostFilterResult(SUCCESS, best.node, tuple(victim for victim in best.victims if not cluster.leaves(victim)))


def _never(_pod: PodInfo, _old: PodInfo | None, _new: PodInfo | None) -> QueueingHint:
    return QueueingHint.SKIP
