"""A profile's decision about one pod, and its reasons, for `placewright evaluate`."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.errors import CycleError, InvalidScoreError, PluginError
from placewright.framework.interface import Diagnosis
from placewright.framework.preemption.evictions import VictimUnit, units_of
from placewright.framework.runtime.evaluation import Evaluation, Evaluator, PluginScore
from placewright.framework.status import Code
from placewright.scheduler.messages import NO_NODES, fit_error


@dataclass(frozen=True, slots=True)
class NodeVerdict:
    """One node's answer.

    Attributes:
        code: Success, Unschedulable or UnschedulableAndUnresolvable.
        plugin, reasons: first plugin that rejected the node, and its reasons.
        scores: scores by plugin, for a node that can hold the pod.
    """

    node: str
    code: Code
    plugin: str = ""
    reasons: tuple[str, ...] = ()
    scores: dict[str, PluginScore] = field(default_factory=dict)

    @property
    def fits(self) -> bool:
        """True if the node can hold the pod."""
        return self.code is Code.SUCCESS

    @property
    def total(self) -> int:
        """Sum of the weighted scores."""
        return sum(score.product for score in self.scores.values())


@dataclass(frozen=True, slots=True)
class Verdict:
    """The whole answer for one pod.

    Attributes:
        gated: reason why the scheduler would not try the pod, or "".
        nodes: one verdict a node, by name; empty if gated.
        message: message that the pod fits nowhere, or "".
        prefilter_message: message of PreFilter if it rejected the pod everywhere.
        nominated_node, victims: results of preemption.
        leaving: victims in words, with one entry for a whole group.
        error: error that ended the evaluation.
    """

    gated: str = ""
    nodes: tuple[NodeVerdict, ...] = ()
    message: str = ""
    prefilter_message: str = ""
    unschedulable_plugins: tuple[str, ...] = ()
    nominated_node: str = ""
    victims: tuple[str, ...] = ()
    leaving: tuple[str, ...] = ()
    error: str = ""

    @property
    def best(self) -> tuple[str, ...]:
        """Nodes with the highest total. The scheduler would choose one of them at random."""
        fitting = [verdict for verdict in self.nodes if verdict.fits]
        highest = max((verdict.total for verdict in fitting), default=0)
        return tuple(verdict.node for verdict in fitting if verdict.total == highest)


def evaluate_pod(evaluator: Evaluator, cluster: Cluster, pod: PodInfo) -> Verdict:
    """Evaluate one pending pod on every node, without a change. Raises `PluginError` for an error of a third-party plugin."""
    gate = evaluator.runtime.run_pre_enqueue(pod)
    if not gate.ok:
        return Verdict(gated=gate.message)
    if cluster.node_count == 0:
        return Verdict(error=NO_NODES)
    try:
        evaluation = evaluator.evaluate(pod)
        diagnosis = evaluator.diagnose(evaluation)
        nodes = [*_rejected(cluster, diagnosis), *_fitting(evaluator, cluster, evaluation)]
        ordered = tuple(sorted(nodes, key=lambda verdict: verdict.node))
        return _verdict(evaluator, cluster, evaluation, diagnosis, ordered)
    except PluginError:
        raise
    except (CycleError, InvalidScoreError) as problem:
        return Verdict(error=str(problem))


def _verdict(
    evaluator: Evaluator, cluster: Cluster, evaluation: Evaluation, diagnosis: Diagnosis, nodes: tuple[NodeVerdict, ...]
) -> Verdict:
    blamed = tuple(sorted(diagnosis.unschedulable_plugins))
    if evaluation.count:
        return Verdict(nodes=nodes, unschedulable_plugins=blamed)
    result = evaluator.runtime.run_post_filter(evaluation.state, evaluation.pod, diagnosis)
    if not result.status.ok:
        diagnosis.postfilter_message = result.status.message
    return Verdict(
        nodes=nodes,
        message=fit_error(diagnosis),
        prefilter_message=diagnosis.prefilter_message,
        unschedulable_plugins=blamed,
        nominated_node=result.nominated_node or "",
        victims=tuple(sorted(victim.key for victim in result.victims)),
        leaving=tuple(_in_words(unit) for unit in units_of(cluster, result.victims)),
    )


def _in_words(unit: VictimUnit) -> str:
    names = ", ".join(sorted(pod.key for pod in unit.pods))
    return names if unit.ref is None else f"all of {unit.ref} ({names})"


def _rejected(cluster: Cluster, diagnosis: Diagnosis) -> list[NodeVerdict]:
    verdicts = []
    for status, rows in diagnosis.rejections:
        verdicts += [NodeVerdict(str(cluster.names[row]), status.code, status.plugin, status.reasons) for row in rows]
    if diagnosis.absent is not None:
        status = diagnosis.absent
        verdicts += [NodeVerdict(str(cluster.names[row]), status.code, status.plugin, status.reasons) for row in cluster.rows()]
    return verdicts


def _fitting(evaluator: Evaluator, cluster: Cluster, evaluation: Evaluation) -> list[NodeVerdict]:
    rows = np.flatnonzero(evaluation.feasible)
    if not len(rows):
        return []
    evaluator.score(evaluation)
    parts = evaluator.breakdown(evaluation, rows)
    return [
        NodeVerdict(str(cluster.names[row]), Code.SUCCESS, scores={plugin: scores[i] for plugin, scores in parts.items()})
        for i, row in enumerate(rows)
    ]
