"""The proof that preemption may choose another node than kube-scheduler did: both tie under every criterion before its map's order."""

from __future__ import annotations

from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.interface import Diagnosis
from placewright.framework.preemption.budgets import Budgets
from placewright.framework.preemption.eligibility import rows_where_it_may_help
from placewright.framework.runtime.evaluation import Evaluator
from placewright.plugins.defaultpreemption.candidates import Candidate
from placewright.plugins.defaultpreemption.dryrun import DryRun


def cheapest(evaluator: Evaluator, cluster: Cluster, pod: PodInfo, diagnosis: Diagnosis) -> dict[str, list[str]]:
    """Evicted pods by node, for all nodes that tie under every criterion: kube-scheduler takes any of these."""
    trials = DryRun(evaluator.runtime.post_filter[0].handle, pod, Budgets(cluster.objects))
    rows = rows_where_it_may_help(cluster, diagnosis).tolist()
    found = [outcome for outcome in trials.on([(row, NodeName(str(cluster.names[row]))) for row in rows]) if isinstance(outcome, Candidate)]
    least = min(candidate.cost for candidate in found)
    return {c.node: sorted(victim.key for victim in c.victims if not victim.terminating) for c in found if c.cost == least}
