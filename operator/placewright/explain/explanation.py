"""The explanation of a pod as one document: its attempts, its place in the queue, and the verdicts of its profile now.

A running operator serves it as JSON. `placewright explain` shows that, or makes an explanation itself from the API server's objects.

The document has the facts about the pod's claims: their requests and devices, and the nodes with free devices for the pod.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec
import numpy as np
from msgspec.structs import replace

from placewright.api.annotations import Decision
from placewright.api.devices import ALL_DEVICES, DeviceRequest, DeviceSubRequest, ExactDeviceRequest, ResourceClaim
from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.cluster.devices import ClaimTable
from placewright.explain.groupfacts import GroupFacts, or_logged
from placewright.explain.nearestmiss import Miss, nearest_misses
from placewright.explain.records import AttemptFacts, AttemptRecord
from placewright.framework.errors import CycleError, InvalidScoreError
from placewright.framework.interface import Diagnosis
from placewright.framework.runtime.evaluation import Evaluation, Evaluator, PluginScore
from placewright.framework.runtime.guard import why
from placewright.framework.steps import Step
from placewright.plugins.dynamicresources.claims import called, each_claim
from placewright.plugins.dynamicresources.plugin import DynamicResources
from placewright.scheduler.cycle import MOST_EXAMPLES, TOP, Choice, NodeRefusal, best_rows, cut, refusals
from placewright.scheduler.messages import NO_NODES, fit_error

#: Groups of nodes in an explanation.
_MOST_GROUPS: Final = 10
#: Count if a number of free devices does not answer the claims: with constraints, alternatives, or requests of several kinds, for example.
#: A CEL selector alone can be counted.
UNCOUNTED: Final = -1


class DeviceFact(msgspec.Struct, frozen=True, omit_defaults=True):
    """A device that is allocated to a claim, with the request that it serves."""

    request: str
    driver: str
    pool: str
    device: str


class ClaimFact(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One claim of the pod.

    Attributes:
        entry: the pod's name for it; empty for the claim that serves its extended resources.
        claim: `namespace/name`; empty if there is no object yet.
        asks: its requests, in words.
        devices: allocated to it.
        writing: its devices are chosen, and the API server does not show them yet.
        users: the number of pods that use it.
        problem: the reason why the pod cannot use it.
    """

    entry: str
    claim: str = ""
    asks: tuple[str, ...] = ()
    devices: tuple[DeviceFact, ...] = ()
    writing: bool = False
    users: int = 0
    problem: str = ""


class FreeGroup(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Nodes with equally many free devices, and with the same reason of another plugin to reject the pod.

    Attributes:
        nodes: their number.
        free: free devices of the class on each of them; `UNCOUNTED` if no number answers the claims.
        enough: whether the devices could serve the pod's claims.
        reason: message of another plugin that rejects the nodes first.
        examples: names of some of them.
    """

    nodes: int
    free: int
    enough: bool
    reason: str = ""
    examples: tuple[NodeName, ...] = ()


class FreeDevices(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The nodes with devices for the pod's claims. `device_class` and `wanted` are set if the claims want one class only."""

    groups: tuple[FreeGroup, ...]
    device_class: str = ""
    wanted: int = 0


def claim_facts(pod: PodInfo, table: ClaimTable) -> tuple[ClaimFact, ...]:
    """Collect the facts about a pod's claims.

    Returns:
        The claims in the pod's order; the claim for its extended resources comes last.
    """
    named = [claim_fact(entry, claim, problem, table) for entry, claim, problem in each_claim(pod, table)]
    return (*named, *(claim_fact("", claim, "", table) for claim in table.where(pod.uid) if claim.metadata.namespace == pod.namespace))


def claim_fact(entry: str, claim: ResourceClaim | None, problem: str, table: ClaimTable) -> ClaimFact:
    """Collect the facts about one claim.

    Args:
        entry: a pod's name for it; empty for none.
        claim: None if there is no object.
        problem: the reason why the pod cannot use it; empty for none.
        table: table of all claims.
    """
    if claim is None:
        return ClaimFact(entry, problem=cut(problem))
    allocation = claim.status.allocation
    results = () if allocation is None else allocation.devices.results or ()
    pending = table.pending(claim)
    return ClaimFact(
        entry,
        called(claim),
        tuple(_asked(request) for request in claim.spec.devices.requests or ()),
        tuple(DeviceFact(each.request, each.driver, each.pool, each.device) for each in results),
        writing=pending is not None and not pending.written,
        users=len(claim.status.reserved_for or ()),
    )


def _asked(request: DeviceRequest) -> str:
    wishes: Iterable[ExactDeviceRequest | DeviceSubRequest] = [request.exactly] if request.exactly else request.first_available or ()
    return f"{request.name}: {' or '.join(map(_wish, wishes))}"


def _wish(wish: ExactDeviceRequest | DeviceSubRequest) -> str:
    count = "all" if wish.allocation_mode == ALL_DEVICES else str(wish.count)
    return f"{count} of class {wish.device_class_name}"


def free_devices(evaluator: Evaluator, cluster: Cluster, evaluation: Evaluation, diagnosis: Diagnosis) -> FreeDevices | None:
    """Find the nodes with devices for a pod.

    Args:
        evaluator: evaluator of the pod's profile.
        cluster: cluster with the nodes.
        evaluation: evaluation of the pod.
        diagnosis: diagnosis of the evaluation, with the reasons of all plugins.

    Returns:
        None for a pod whose claims want no devices, or cannot be served at all.
    """
    plugin = next((each for each in evaluator.runtime.filter if isinstance(each, DynamicResources)), None)
    if plugin is None or evaluation.refusal is not None or not plugin.wants_devices(evaluation.state):
        return None
    rows, simple = cluster.rows(), plugin.free(evaluation.state, cluster)
    enough = plugin.filter(evaluation.state, evaluation.pod, cluster, rows)
    free = np.full(len(rows), UNCOUNTED) if simple is None else simple[2][rows]
    reasons = dict(_reasons(diagnosis, plugin.name))
    found: dict[tuple[bool, int, str], list[int]] = {}
    for row, fits, count in zip(rows.tolist(), enough.tolist(), free.tolist(), strict=True):
        found.setdefault((fits, count, reasons.get(row, "")), []).append(row)
    ordered = sorted(found.items(), key=lambda group: (not group[0][0], -group[0][1], -len(group[1]), group[0][2]))
    groups = [FreeGroup(len(alike), count, fits, reason, _names(cluster, alike)) for (fits, count, reason), alike in ordered]
    return FreeDevices(tuple(groups[:_MOST_GROUPS]), *(() if simple is None else simple[:2]))


def _reasons(diagnosis: Diagnosis, devices: str) -> Iterator[tuple[int, str]]:
    """Yield the reason of another plugin for each row that it rejected first."""
    for status, rows in diagnosis.rejections:
        if status.plugin != devices:
            yield from ((row, cut(status.message)) for row in rows.tolist())


def _names(cluster: Cluster, rows: list[int]) -> tuple[NodeName, ...]:
    return tuple([name for row in rows[:MOST_EXAMPLES] if (name := cluster.names[row]) is not None])


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
