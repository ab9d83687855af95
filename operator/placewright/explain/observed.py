"""Explains a pod from objects that were listed or read from a file: the decision that a scheduler with the same profile would make now."""

from __future__ import annotations

from dataclasses import dataclass, field

from msgspec.structs import replace

from placewright.api.annotations import read_decision
from placewright.api.compatibility import BASELINE
from placewright.api.pods import PodInfo
from placewright.api.profile import SchedulingProfile
from placewright.cluster.cluster import Cluster
from placewright.explain.explanation import Explanation, claim_facts, evaluated
from placewright.explain.groupfacts import group_facts, shortages
from placewright.framework.registry import installed_plugins
from placewright.framework.runtime.evaluation import Evaluator
from placewright.offline.world import Members, offline_evaluator, tried_lacks
from placewright.plugins.catalog import in_tree
from placewright.profiles.problem import ProfileError, did_you_mean
from placewright.profiles.resolve import resolve
from placewright.scheduler.cycle import TOP, cut


@dataclass(slots=True)
class ObservedObjects:
    """The objects that an API server listed, or that a file has.

    Attributes:
        cluster: nodes, pods on them, and all other objects.
        profiles: all that there are.
        waiting: pods without a node.
        kubernetes: minor version of the API server.
        notes: remarks for the person who asks.
    """

    cluster: Cluster = field(default_factory=Cluster)
    profiles: list[SchedulingProfile] = field(default_factory=list)
    waiting: Members = field(default_factory=Members)
    kubernetes: int = BASELINE
    notes: tuple[str, ...] = ()


def with_decision(about: Explanation, pod: PodInfo) -> Explanation:
    """Add the decision that the pod's annotation has.

    Args:
        about: the explanation so far.
        pod: pod on a node.

    Returns:
        The explanation, with a note if the pod has no such annotation.
    """
    decision = read_decision(pod.pod.metadata.annotations)
    if decision is None:
        return replace(about, notes=(*about.notes, "the pod bears no decision of Placewright's: something else bound it"))
    return replace(about, profile=decision.profile, generation=decision.generation, decision=decision)


def with_company(about: Explanation, pod: PodInfo, seen: ObservedObjects) -> Explanation:
    """Add the pod's group and its claims.

    Args:
        about: the explanation so far.
        pod: pod of the explanation.
        seen: all objects.
    """
    pod_groups, claims = seen.cluster.pod_groups, claim_facts(pod, seen.cluster.objects.devices.claims)
    group = None if pod.pod_group is None else group_facts(pod_groups, pod.pod_group, seen.waiting.members(pod.pod_group))
    return replace(about, group=group, claims=claims, notes=(*about.notes, *seen.notes))


def evaluated_once(about: Explanation, pod: PodInfo, seen: ObservedObjects) -> Explanation:
    """Add the verdicts of the pod's profile, and what its group lacks when its members are tried on the cluster.

    The members that fit stay placed, so the cluster cannot be used for another question afterwards.

    Args:
        about: the explanation so far.
        pod: pod without a node.
        seen: all objects; the cluster is changed.

    Raises:
        ProfileError: the pod's profile cannot be used.
    """
    profile = oldest_of(seen.profiles, pod.scheduler_name)
    if profile is None:
        return without_profile(about, pod, seen)
    registry = in_tree().with_installed(installed_plugins())
    try:
        resolved = resolve(profile, registry, seen.kubernetes)
    except ProfileError as problem:
        raise ProfileError(problem.problems, f"SchedulingProfile {profile.metadata.name}") from None
    evaluator = offline_evaluator(resolved, registry, seen.cluster, seen.waiting)
    about = with_verdicts(replace(about, paused=bool(profile.spec.paused)), pod, evaluator, seen)
    pod_group = None if pod.pod_group is None else seen.cluster.pod_groups.get(pod.pod_group)
    if about.group is None or pod_group is None or about.now is None or about.now.gated or about.now.error:
        return about
    lacks = tried_lacks(evaluator, seen.cluster, pod_group.ref, seen.waiting.members(pod_group.ref))
    return replace(about, group=replace(about.group, lacks=cut(lacks)))


def with_verdicts(about: Explanation, pod: PodInfo, evaluator: Evaluator, seen: ObservedObjects, top: int = TOP) -> Explanation:
    """Add the verdicts of the pod's profile, and the shortages of its group. The cluster stays as it is.

    Args:
        about: the explanation so far.
        pod: pod without a node.
        evaluator: evaluator of the pod's profile.
        seen: all objects.
        top: most nodes that are told with their scores.
    """
    now, group, profile = evaluated(evaluator, seen.cluster, pod, top=top), about.group, evaluator.runtime.profile
    pod_group = None if pod.pod_group is None else seen.cluster.pod_groups.get(pod.pod_group)
    if group is not None and pod_group is not None and not (now.gated or now.error):
        group = replace(group, shortages=shortages(evaluator, seen.cluster, pod_group, seen.waiting.members(pod_group.ref)))
    return replace(about, profile=profile.name, generation=profile.generation, now=now, group=group)


def without_profile(about: Explanation, pod: PodInfo, seen: ObservedObjects) -> Explanation:
    """Add the note that no profile claims the pod.

    Args:
        about: the explanation so far.
        pod: pod without a node.
        seen: all objects, with all profiles.
    """
    meant = did_you_mean(pod.scheduler_name, (each.spec.scheduler_name for each in seen.profiles))
    unclaimed = f"no SchedulingProfile has schedulerName {pod.scheduler_name!r}{meant}: Placewright does not place the pod"
    return replace(about, notes=(*about.notes, unclaimed))


def oldest_of(profiles: list[SchedulingProfile], scheduler_name: str) -> SchedulingProfile | None:
    """Find the profile that claims a schedulerName: the oldest, as in the operator (decision 2).

    Args:
        profiles: all that there are.
        scheduler_name: schedulerName of a pod.

    Returns:
        None if no profile has that schedulerName.
    """
    claiming = [each for each in profiles if each.spec.scheduler_name == scheduler_name]
    return min(claiming, key=lambda each: (each.metadata.creation_timestamp or "", each.metadata.name), default=None)
