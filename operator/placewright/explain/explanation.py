"""The explanation of a pod as one document: its attempts, its place in the queue, and the verdicts of its profile now.

A running operator serves it as JSON. `placewright explain` shows that, or makes an explanation itself from the API server's objects.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import numpy as np
from msgspec.structs import replace

from placewright.api.annotations import Decision
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.explain.claimfacts import ClaimFact, FreeDevices, free_devices
from placewright.explain.groupfacts import GroupFacts
from placewright.explain.groupshortage import or_logged
from placewright.explain.nearestmiss import Miss, nearest_misses
from placewright.explain.records import AttemptFacts, AttemptRecord
from placewright.framework.errors import CycleError, InvalidScoreError
from placewright.framework.runtime.evaluation import Evaluation, Evaluator, PluginScore
from placewright.framework.runtime.guard import why
from placewright.framework.steps import Step
from placewright.scheduler.decisiondetail import TOP, Choice, NodeRefusal, best_rows, cut, refusals
from placewright.scheduler.messages import NO_NODES, fit_error


class ScorePart(msgspec.Struct, frozen=True):
    """A plugin's part in a node's total score."""

    raw: int
    normalised: int
    weight: int
    product: int


class RankedNode(msgspec.Struct, frozen=True):
    """A node that could hold the pod, with its total score and the parts of each plugin."""

    node: str
    total: int
    parts: dict[str, ScorePart] = {}


class AttemptSummary(AttemptFacts, frozen=True, kw_only=True):
    """An attempt for a person.

    Attributes:
        steps: seconds of each step.
        best: the chosen node and the next best ones, with all their scores; empty if the record has only the chosen one's products.
    """

    steps: dict[str, float]
    node: str = ""
    nominated_node: str = ""
    best: tuple[RankedNode, ...] = ()


class TurnFacts(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """When the turn of an active pod comes, in a profile whose tenants take turns.

    Attributes:
        tenant: the pod's namespace, or the value of the profile's label; empty for a pod without the label.
        turn: place of the tenant among the `tenants` that wait at the pod's priority; 1 is next.
        position: place of the pod among the `pods` of its tenant that wait at that priority; 1 is next.
        ahead: pods of higher priorities, which go first.
        no_room: its pods wait for a place in the profile's room, too.
    """

    tenant: str
    turn: int
    tenants: int
    position: int
    pods: int
    ahead: int = 0
    no_room: bool = False


class Queued(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The pod's place in the queue.

    Attributes:
        place: active, backoff, unschedulable, gated or in-flight.
        waiting_seconds: seconds since it entered the queue or came back after its last attempt.
        backoff_seconds: seconds until it may be tried again.
        retry_seconds: seconds until it is tried again at the latest, if a rejection ends by time alone; 0 if it waits for events.
        profile: state of the profile with its schedulerName: `active`, `paused` or `missing`.
        meant: the schedulerName that was likely meant, if the profile is missing.
        held: the reason why the profile takes no pods, if one of its plugins did not return.
        suspect: the reason why the pod is tried after all others, if a decision about a similar pod ended a process.
        given_up_seconds: seconds since the pod was given up, if it was. Only an event that may help brings it back.
        turn: turn of an active pod, if the profile has fairness.
    """

    place: str
    waiting_seconds: float
    attempts: int = 0
    backoff_seconds: float = 0.0
    retry_seconds: float = 0.0
    rejected_by: tuple[str, ...] = ()
    waits_for: tuple[str, ...] = ()
    gated_by: str = ""
    nominated_node: str = ""
    profile: str = "active"
    meant: str = ""
    held: str = ""
    suspect: str = ""
    given_up_seconds: float | None = None
    turn: TurnFacts | None = None


class CurrentVerdict(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The verdicts of the pod's profile on the cluster as it is now, without any change to it. Extenders are not asked.

    Attributes:
        feasible: number of nodes that could hold the pod.
        nodes: number of all nodes.
        best: the best few feasible nodes.
        ties: number of feasible nodes with the highest total.
        refusals: the number of nodes that each plugin rejects; with `feasible` they add up to all nodes.
        misses: the changes that would help, the smallest first; only if no node can hold the pod.
        gated: the reason why the pod would not be tried.
        devices: the nodes with devices for its claims; only if no node can hold it.
        message: the text that its event would have.
        error: message of a plugin that failed.
        unasked: names of extenders that a decision would ask.
    """

    feasible: int = 0
    nodes: int = 0
    best: tuple[RankedNode, ...] = ()
    ties: int = 0
    refusals: tuple[NodeRefusal, ...] = ()
    misses: tuple[Miss, ...] = ()
    devices: FreeDevices | None = None
    gated: str = ""
    message: str = ""
    error: str = ""
    unasked: tuple[str, ...] = ()


class Explanation(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The whole explanation.

    Attributes:
        node: node of the pod; empty if it has none.
        assumed: the API server does not show the pod on that node yet.
        group: the group that the pod names.
        claims: its claims to devices.
        tried: its last attempts, the latest first.
        decision: decision in the pod's annotation, if no attempts are recorded.
        source: the replica that explains, or the command.
        pending: the API server shows the pod without a node, and no operator explains it.
        leader: the replica that leads and could not be asked; empty if none leads, or if it was asked.
        paused: the profile that claims the pod is paused. Only the evaluation without an operator sets it.
        notes: remarks for the reader.
    """

    namespace: str
    name: str
    uid: str = ""
    scheduler_name: str = ""
    profile: str = ""
    generation: int = 0
    node: str = ""
    assumed: bool = False
    queue: Queued | None = None
    now: CurrentVerdict | None = None
    group: GroupFacts | None = None
    claims: tuple[ClaimFact, ...] = ()
    tried: tuple[AttemptSummary, ...] = ()
    decision: Decision | None = None
    source: str = ""
    pending: bool = False
    leader: str = ""
    paused: bool = False
    notes: tuple[str, ...] = ()


def tried(record: AttemptRecord) -> AttemptSummary:
    """Convert a record, with each score beside its node."""
    facts = {name: getattr(record, name) for name in AttemptFacts.__struct_fields__}
    best = _ranked(record.best, record.parts) if record.parts else ()
    node, nominated = record.node or "", record.nominated_node or ""
    return AttemptSummary(**facts, steps=_added_up(record.steps), node=node, nominated_node=nominated, best=best)


def evaluated(evaluator: Evaluator, cluster: Cluster, pod: PodInfo, *, top: int = TOP, briefly: bool = False) -> CurrentVerdict:
    """Evaluate a pending pod on every node, without a change to the cluster. Preemption is not tried.

    Args:
        evaluator: evaluator of the pod's profile.
        cluster: cluster with the nodes.
        pod: pod without a node.
        top: most feasible nodes in `best`.
        briefly: leave out `best`, `misses` and `devices`, which take most of the time.

    Returns:
        The verdicts, or the error of a plugin that failed.
    """
    try:
        gate = evaluator.runtime.run_pre_enqueue(pod)
        if not gate.ok:
            return CurrentVerdict(gated=cut(gate.message), nodes=cluster.node_count)
        if cluster.node_count == 0:
            return CurrentVerdict(message=NO_NODES)
        evaluation = evaluator.evaluate(pod)
        if briefly and evaluation.count:
            return CurrentVerdict(feasible=evaluation.count, nodes=cluster.node_count)
        return _evaluated(evaluator, cluster, evaluation, top, briefly=briefly)
    except (CycleError, InvalidScoreError) as problem:
        return CurrentVerdict(error=cut(str(problem)), nodes=cluster.node_count)
    except MemoryError:
        raise
    except Exception as problem:  # noqa: BLE001 - a plugin may be out-of-tree code
        return CurrentVerdict(error=cut(why(problem)), nodes=cluster.node_count)


def _evaluated(evaluator: Evaluator, cluster: Cluster, evaluation: Evaluation, top: int, *, briefly: bool) -> CurrentVerdict:
    pod = evaluation.pod
    diagnosis = evaluator.diagnose(evaluation)
    diagnosis.node_count -= evaluation.count
    rejected = refusals(cluster, diagnosis)
    diagnosis.node_count += evaluation.count
    best, ties = _best(evaluator, cluster, evaluation, top) if evaluation.count else ((), 0)
    message = "" if evaluation.count else cut(fit_error(diagnosis), 1024)
    found = CurrentVerdict(evaluation.count, diagnosis.node_count, best, ties, rejected, message=message)
    if briefly:
        return found
    unknown = "the nearest misses of pod %s cannot be told"
    misses = or_logged(lambda: nearest_misses(evaluator, cluster, evaluation), tuple[Miss, ...](), unknown, pod.key)
    devices = None
    if not evaluation.count:
        unknown = "the devices that pod %s could have cannot be told"
        devices = or_logged(lambda: free_devices(evaluator, cluster, evaluation, diagnosis), None, unknown, pod.key)
    unasked = tuple(extender.settings.name for extender in evaluator.runtime.extenders_for(pod))
    return replace(found, misses=misses, devices=devices, unasked=unasked)


def _best(evaluator: Evaluator, cluster: Cluster, evaluation: Evaluation, most: int) -> tuple[tuple[RankedNode, ...], int]:
    """Return the best nodes, and the number of nodes with the highest total."""
    totals = evaluator.score(evaluation)
    order = np.argsort(-totals, kind="stable")[:2]
    runner_up = int(order[1]) if evaluation.count > 1 else None
    rows = best_rows(totals, Choice(int(order[0]), int(totals[order[0]]), 1, runner_up), most)
    ties = int(np.count_nonzero(totals == totals[order[0]]))
    return _ranked([str(cluster.names[row]) for row in rows.tolist()], evaluator.breakdown(evaluation, rows)), ties


def _added_up(steps: Iterable[Step]) -> dict[str, float]:
    """Return the seconds of each step, in order. The times of a repeated step are added up."""
    seconds: dict[str, float] = {}
    for step in steps:
        seconds[step.name] = seconds.get(step.name, 0.0) + step.seconds
    return seconds


def _ranked(nodes: Iterable[str], parts: dict[str, list[PluginScore]]) -> tuple[RankedNode, ...]:
    ranked = []
    for at, node in enumerate(nodes):
        scores = {plugin: ScorePart(*scores[at], scores[at].product) for plugin, scores in parts.items()}
        ranked.append(RankedNode(node, sum(part.product for part in scores.values()), scores))
    return tuple(ranked)
