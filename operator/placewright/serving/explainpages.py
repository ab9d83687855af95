"""`/debug/explain?pod=NS/NAME` and `/debug/records`: the reasons why a pod is on its node, or on none, as JSON.

They show names, numbers and the reasons of plugins: no annotations or environment of pods, and labels only where a reason names them.
"""

from __future__ import annotations

import time
from typing import Final

import msgspec
from msgspec.structs import replace

from placewright.api.annotations import read_decision
from placewright.api.objects import PodKey
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import PodOnNode
from placewright.engine.decidingpart import DecidingPart
from placewright.engine.decisionmarks import why_last
from placewright.explain.explanation import AttemptSummary, CurrentVerdict, Explanation, Queued, TurnFacts, claim_facts, evaluated, tried
from placewright.explain.groupfacts import GroupFacts, group_facts, kept_nodes, shortages
from placewright.explain.records import OVERALL, AttemptRecord, Records
from placewright.framework.runtime.evaluation import Evaluator
from placewright.http.routes import JSON, Answer, Audience, Endpoint, Question, RequestRefused
from placewright.profiles.problem import closest_name
from placewright.profiles.profilestate import Reason
from placewright.queue.queued import QueuedPod
from placewright.scheduler.cycle import cut
from placewright.scheduler.policy import ProfilePolicy
from placewright.serving.debug import limit_of

_BAD_REQUEST: Final = 400
_NOT_FOUND: Final = 404
_DEFAULT_LIMIT: Final = 100
#: Characters of a namespace, a slash and a name, by the rules for names of Kubernetes.
_LONGEST_POD: Final = 63 + 1 + 253
_LONGEST_UID: Final = 128
#: Why a pod on a node has no record: by whether a profile takes its schedulerName.
_RECORD_GONE: Final = (
    "No attempt is recorded: this replica did not lead yet, newer records took the place of its own, or something else placed it."
)
_NOT_OURS: Final = "No attempt is recorded: no profile takes its schedulerName, so something else placed it."


def explain_endpoint(deciding: DecidingPart, records: Records) -> Endpoint:
    """Make `/debug/explain`: one pod, by `?pod=NS/NAME`, and by `&uid=` for one of several that had the name.

    Args:
        deciding: the part that decides about the pod.
        records: records of its attempts.

    Returns:
        An endpoint for authorized users on this machine.
    """

    async def answer(question: Question) -> Answer:
        namespace, name = _pod(question)
        found = explanation(deciding, records, namespace, name, _uid(question))
        if found is None:
            raise RequestRefused(_NOT_FOUND, f"pod: nothing is known of {namespace}/{name}")
        return Answer(msgspec.json.encode(found) + b"\n", JSON)

    return Endpoint("/debug/explain", answer, Audience.LOOPBACK)


def records_endpoint(records: Records) -> Endpoint:
    """Make `/debug/records`: the last attempts of all pods, the latest first."""

    async def answer(question: Question) -> Answer:
        shown = [tried(record) for record in records.last(limit_of(question, _DEFAULT_LIMIT, OVERALL))]
        return Answer(msgspec.json.encode({"shown": len(shown), "records": shown}) + b"\n", JSON)

    return Endpoint("/debug/records", answer, Audience.LOOPBACK)


def explanation(deciding: DecidingPart, records: Records, namespace: str, name: str, uid: str = "") -> Explanation | None:
    """Explain a pod.

    Args:
        deciding: the part that decides about the pod.
        records: records of its attempts.
        namespace: namespace of the pod.
        name: name of the pod.
        uid: uid of the pod; empty for the one that has the name now.

    Returns:
        None if this replica does not know the pod.
    """
    uid = uid or deciding.queue.uid_of(PodKey(f"{namespace}/{name}")) or ""
    kept = records.of(uid) if uid else records.named(namespace, name)
    if kept and (kept[-1].namespace, kept[-1].name) != (namespace, name):
        kept = ()
    queued = deciding.queue.get(uid) if uid else None
    if queued is not None:
        return _waiting(deciding, queued, kept)
    return _placed(deciding, kept) if kept else None


def _waiting(deciding: DecidingPart, queued: QueuedPod, kept: tuple[AttemptRecord, ...]) -> Explanation:
    pod = deciding.queue.latest(queued.uid) or queued.pod
    active, placement = deciding.live.by_scheduler_name(pod.scheduler_name), deciding.cluster.placement(pod.uid)
    evaluator = None if active is None else active.evaluator
    judging = evaluator if placement is None else None
    found = replace(
        _of_pod(deciding, pod, placement, judging),
        assumed=placement is not None,
        queue=_queued(deciding, queued, pod, evaluator),
        now=None if judging is None else _now(deciding, queued, pod, judging),
        tried=_latest_first(kept),
    )
    return found if active is None else replace(found, profile=active.profile.name, generation=active.profile.generation)


def _of_pod(deciding: DecidingPart, pod: PodInfo, placement: PodOnNode | None, evaluator: Evaluator | None = None) -> Explanation:
    """Explain what does not depend on attempts: the pod's node, its group and its claims."""
    node, assumed = ("", False) if placement is None else (placement.node, placement.assumed)
    group, claims = _group(deciding, pod, evaluator), claim_facts(pod, deciding.cluster.objects.devices.claims)
    named = (pod.namespace, pod.name, pod.uid, pod.scheduler_name)
    return Explanation(*named, node=node, assumed=assumed, group=group, claims=claims, source=deciding.replica)


def _now(deciding: DecidingPart, queued: QueuedPod, pod: PodInfo, evaluator: Evaluator) -> CurrentVerdict:
    """Return the verdicts of the profile's plugins now. A suspect is not evaluated, because its evaluation may have ended the process."""
    suspect = suspect_reason(deciding, queued)
    return CurrentVerdict(gated=suspect) if suspect else evaluated(evaluator, deciding.cluster, pod)


def suspect_reason(deciding: DecidingPart, queued: QueuedPod) -> str:
    """Say why a pod is tried after all others, and is not evaluated for readers.

    Args:
        deciding: the part that decides about the pod.
        queued: the pod.

    Returns:
        One line; empty for nearly all pods.
    """
    suspicion = queued.suspicion or (deciding.queue.suspects.marks.of(queued.pod) if deciding.queue.suspects else None)
    return "" if suspicion is None else why_last(suspicion, time.monotonic())


def _placed(deciding: DecidingPart, kept: tuple[AttemptRecord, ...]) -> Explanation:
    """Explain a pod that has left the queue, to its node or by deletion."""
    last, placement = kept[-1], deciding.cluster.placement(kept[-1].uid)
    if placement is None:
        found = Explanation(last.namespace, last.name, last.uid, source=deciding.replica)
    else:
        found = _of_pod(deciding, placement.pod, placement)
    return replace(found, profile=last.profile, generation=last.generation, tried=_latest_first(kept))


def unrecorded(deciding: DecidingPart, namespace: str, name: str) -> Explanation | None:
    """Explain a pod on a node whose attempts are not recorded, with the decision of its annotation. O(pods on nodes).

    Args:
        deciding: the part that knows the pod.
        namespace: namespace of the pod.
        name: name of the pod.

    Returns:
        None if no such pod is on a node.
    """
    placements = deciding.cluster.placements()
    found = next((each for each in placements if each.pod.name == name and each.pod.namespace == namespace), None)
    if found is None:
        return None
    decision = read_decision(found.pod.pod.metadata.annotations)
    taken = deciding.live.by_scheduler_name(found.pod.scheduler_name) is not None
    shown = replace(_of_pod(deciding, found.pod, found), decision=decision, notes=(_RECORD_GONE if taken else _NOT_OURS,))
    return shown if decision is None else replace(shown, profile=decision.profile, generation=decision.generation)


def _group(deciding: DecidingPart, pod: PodInfo, evaluator: Evaluator | None = None) -> GroupFacts | None:
    """Return the pod's group, with its time in the queue and the nodes that are kept for it; with an `evaluator` also its shortages now."""
    if pod.pod_group is None:
        return None
    pod_group, members = deciding.cluster.pod_groups.get(pod.pod_group), deciding.queue.pod_groups.members(pod.pod_group)
    found = group_facts(deciding.cluster.pod_groups, pod.pod_group, members)
    if pod_group is not None and evaluator is not None and not found.complaint:
        found = replace(found, shortages=shortages(evaluator, deciding.cluster, pod_group, members))
    queued, plan = deciding.queue.pod_groups.get(pod.pod_group), deciding.scheduler.pod_groups.reservations.plan_of(pod.pod_group)
    if queued is not None:
        waited = round(time.monotonic() - queued.since, 3)
        found = replace(found, waiting_seconds=waited, failures=queued.failures, lacks=cut(queued.lacks))
    return found if plan is None else replace(found, kept=kept_nodes(plan.nodes.values()))


def _queued(deciding: DecidingPart, queued: QueuedPod, pod: PodInfo, evaluator: Evaluator | None) -> Queued:
    now = time.monotonic()
    ends = None if evaluator is None else queued.backing_off_until(ProfilePolicy(evaluator.runtime).backoff, now)
    place = deciding.queue.locate(queued.uid)
    return Queued(
        place=place.value if place is not None else "",
        waiting_seconds=round(now - queued.timestamp, 3),
        attempts=queued.attempts,
        backoff_seconds=0.0 if ends is None or queued.gated else round(max(ends + 1 - now, 0.0), 3),
        retry_seconds=round(deciding.queue.wake_ups.of(queued.uid) or 0.0, 3),
        rejected_by=tuple(sorted(queued.unschedulable_plugins)),
        waits_for=tuple(sorted(queued.pending_plugins)),
        gated_by=queued.gating_plugin if queued.gated else "",
        nominated_node=deciding.queue.nominator.node_of(pod.uid) or "",
        profile=_profile_state(evaluator),
        meant="" if evaluator is not None else closest_name(pod.scheduler_name, deciding.live.active),
        held="" if evaluator is not None else _held(deciding, pod.scheduler_name),
        suspect=suspect_reason(deciding, queued),
        given_up_seconds=None if queued.given_up_at is None else round(now - queued.given_up_at, 3),
        turn=_turn(deciding, queued),
    )


def _turn(deciding: DecidingPart, queued: QueuedPod) -> TurnFacts | None:
    turn = deciding.queue.turn_of(queued.uid)
    return None if turn is None else TurnFacts(*turn)


def _held(deciding: DecidingPart, scheduler_name: str) -> str:
    """Why the profile that has this name takes no pods, where one of its plugins did not return."""
    standings = deciding.profiles.standings().values()
    held = (each for each in standings if each.reason is Reason.PLUGIN_HANGING and each.scheduler_name == scheduler_name)
    return next((f"profile {each.name} is held: {each.message}" for each in held), "")


def _profile_state(evaluator: Evaluator | None) -> str:
    if evaluator is None:
        return "missing"
    return "paused" if evaluator.runtime.profile.settings.paused else "active"


def _latest_first(kept: tuple[AttemptRecord, ...]) -> tuple[AttemptSummary, ...]:
    return tuple(tried(record) for record in reversed(kept))


def _pod(question: Question) -> tuple[str, str]:
    text = question.query.get("pod", ("",))[-1]
    namespace, slash, name = text.partition("/")
    if not (namespace and slash and name) or "/" in name or len(text) > _LONGEST_POD:
        raise RequestRefused(_BAD_REQUEST, f"pod: found {text[:80]!r}; allowed NAMESPACE/NAME")
    return namespace, name


def _uid(question: Question) -> str:
    text = question.query.get("uid", ("",))[-1]
    if len(text) > _LONGEST_UID:
        raise RequestRefused(_BAD_REQUEST, f"uid: found {text[:40]!r}…; allowed at most {_LONGEST_UID} characters")
    return text
