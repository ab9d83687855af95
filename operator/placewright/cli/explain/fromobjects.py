"""Explains a pod from the API server's objects alone.

It computes the decision that a scheduler with the same profile would make now; past attempts are unknown.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from msgspec.structs import replace

from placewright.api.annotations import read_decision
from placewright.api.bad_input import InputError
from placewright.api.objects import Node, Pod
from placewright.api.pods import PodInfo
from placewright.api.profile import SchedulingProfile
from placewright.cli.explain.fromoperator import Subject
from placewright.cli.livecluster import UNFINISHED, readable
from placewright.cluster.cluster import Cluster
from placewright.explain.claimfacts import claim_facts
from placewright.explain.explanation import Explanation, evaluated
from placewright.explain.groupfacts import GroupFacts, group_facts
from placewright.explain.groupshortage import shortages
from placewright.framework.registry import installed_plugins
from placewright.framework.runtime.evaluation import Evaluator
from placewright.kube.client import ApiClient
from placewright.kube.errors import NOT_FOUND, ApiError
from placewright.kube.listonce import list_once
from placewright.offline.grouptrial import Members, tried_lacks
from placewright.offline.world import offline_evaluator
from placewright.plugins.catalog import in_tree
from placewright.profiles.problem import ProfileError, did_you_mean
from placewright.profiles.resolve import resolve
from placewright.scheduler.decisiondetail import cut


async def explained_here(client: ApiClient, subject: Subject, why: str) -> Explanation:
    """Explain a pod without an operator.

    Args:
        client: of the API server.
        subject: the pod.
        why: why no operator was asked; goes into the notes.

    Returns:
        The explanation.

    Raises:
        InputError: the pod does not exist, or its profile cannot be used.
        RequestError: the server refused or did not answer.
    """
    pod = await _pod(client, subject)
    about = Explanation(
        pod.namespace, pod.name, pod.uid, pod.scheduler_name, node=pod.node_name or "", source=client.access.server, notes=(why,),
        pending=not pod.node_name and not pod.finished,
    )  # fmt: skip
    # Only a pod without a node needs the whole cluster; a bound pod's annotation has its decision.
    if not pod.node_name:
        seen = await _seen(client)
        return _evaluated(_with_company(about, pod, seen), pod, seen)
    if pod.pod_group is not None or pod.pod.spec.resource_claims:
        try:
            about = _with_company(about, pod, await _seen(client))
        except InputError as problem:  # the rest of the explanation needs the pod only
            about = replace(about, notes=(*about.notes, str(problem)))
    return _with_decision(about, pod)


async def _pod(client: ApiClient, subject: Subject) -> PodInfo:
    path = f"/api/v1/namespaces/{subject.namespace}/pods/{subject.name}"
    try:
        pod = PodInfo(await client.get_as(path, Pod))
    except ApiError as problem:
        if problem.status != NOT_FOUND:
            raise
        raise InputError(f"there is no pod {subject.key}") from None
    if subject.uid and subject.uid != pod.uid:
        raise InputError(f"there is no pod {subject.key} with uid {subject.uid}; the one that there is has {pod.uid}")
    return pod


def _with_decision(about: Explanation, pod: PodInfo) -> Explanation:
    decision = read_decision(pod.pod.metadata.annotations)
    if decision is None:
        return replace(about, notes=(*about.notes, "the pod bears no decision of Placewright's: something else bound it"))
    return replace(about, profile=decision.profile, generation=decision.generation, decision=decision)


@dataclass(slots=True)
class _Seen:
    """The objects that the API server lists."""

    cluster: Cluster = field(default_factory=Cluster)
    profiles: list[SchedulingProfile] = field(default_factory=list)
    waiting: Members = field(default_factory=Members)
    notes: tuple[str, ...] = ()


async def _seen(client: ApiClient) -> _Seen:
    seen = _Seen()
    found = await readable(client, UNFINISHED)
    at = ""
    for source in found.sources:
        # All collections at the version of the first one, so that they show one moment.
        listed = await list_once(client, source, at)
        at = at or listed.version
        for item in listed.items:
            if isinstance(item, SchedulingProfile):
                seen.profiles.append(item)
            elif isinstance(item, Node):
                seen.cluster.set_node(item)
            elif not isinstance(item, Pod):
                seen.cluster.objects.put(item)
            elif item.spec.node_name:
                seen.cluster.set_pod(PodInfo(item))
            else:
                seen.waiting.add(PodInfo(item))
    seen.notes = tuple(found.notes)
    return seen


def _with_company(about: Explanation, pod: PodInfo, seen: _Seen) -> Explanation:
    """Add the pod's group and its claims."""
    pod_groups, claims = seen.cluster.pod_groups, claim_facts(pod, seen.cluster.objects.devices.claims)
    group = None if pod.pod_group is None else group_facts(pod_groups, pod.pod_group, seen.waiting.members(pod.pod_group))
    return replace(about, group=group, claims=claims, notes=(*about.notes, *seen.notes))


def _evaluated(about: Explanation, pod: PodInfo, seen: _Seen) -> Explanation:
    profile = _oldest([each for each in seen.profiles if each.spec.scheduler_name == pod.scheduler_name])
    if profile is None:
        meant = did_you_mean(pod.scheduler_name, (each.spec.scheduler_name for each in seen.profiles))
        nobody = f"no SchedulingProfile has schedulerName {pod.scheduler_name!r}{meant}: Placewright does not place the pod"
        return replace(about, notes=(*about.notes, nobody))
    registry = in_tree().extended(installed_plugins())
    try:
        resolved = resolve(profile, registry)
    except ProfileError as problem:
        raise ProfileError(problem.problems, f"SchedulingProfile {profile.metadata.name}") from None
    evaluator = offline_evaluator(resolved, registry, seen.cluster, seen.waiting)
    now = evaluated(evaluator, seen.cluster, pod)
    group = about.group
    if group is not None and not (now.gated or now.error):
        group = _lacking(group, pod, evaluator, seen)
    return replace(about, profile=resolved.name, generation=resolved.generation, now=now, group=group)


def _lacking(group: GroupFacts, pod: PodInfo, evaluator: Evaluator, seen: _Seen) -> GroupFacts:
    """Add the shortages of the group. Afterwards the cluster cannot be asked anything else."""
    pod_group = None if pod.pod_group is None else seen.cluster.pod_groups.get(pod.pod_group)
    if pod_group is None:
        return group
    members = seen.waiting.members(pod_group.ref)
    short = shortages(evaluator, seen.cluster, pod_group, members)
    return replace(group, shortages=short, lacks=cut(tried_lacks(evaluator, seen.cluster, pod_group.ref, members)))


def _oldest(profiles: list[SchedulingProfile]) -> SchedulingProfile | None:
    """The oldest of several profiles with one schedulerName."""
    # As the operator decides: by age, then by name (decision 0002).
    return min(profiles, key=lambda each: (each.metadata.creation_timestamp or "", each.metadata.name), default=None)
