"""Decides which profile a new pod is given: one function for the webhook, for `placewright profiles who`, and for the tests of the policy.

`who_gets` explains the decision: one verdict for each profile.

An API server with MutatingAdmissionPolicy evaluates the same rules in CEL (`manifests/components/profile-assignment`). It evaluates one
profile at a time, each on the pod that the profile before left. So the order must not matter. A pod that was given a profile carries the
profile's rank in an annotation (`ASSIGNED`). A profile of a higher rank that comes later replaces the first.

A pod that named a scheduler itself is left alone. The API server writes `default-scheduler` into every pod that names none,
before any admission. So a pod that chose that scheduler looks the same, and opts out with the label `ASSIGN_LABEL`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from placewright.api.bad_input import in_json
from placewright.api.objects import Pod
from placewright.api.profile import DEFAULT_SCHEDULER_NAME, SchedulingProfile
from placewright.api.profileaccess import NamespaceFacts, NamespaceRule
from placewright.api.profilepods import (
    ASSIGN_LABEL,
    ASSIGNED,
    OPTED_OUT,
    LabelSelectorRequirement,
    ProfileLabelSelector,
)

#: The namespaces whose pods are never given a profile, beside the operator's own: a pod there must not depend on the operator.
NEVER_IN: Final = frozenset({"kube-system"})
#: `ASSIGNED` as `value_of` writes it; a priority has at most ten digits.
_ASSIGNED: Final = re.compile(r"(-?[0-9]{1,10}) ([^ ]*) ([^ ]*) (.*)", re.DOTALL | re.ASCII)
_LONGEST_SHOWN: Final = 5


class Rank(NamedTuple):
    """The order of profiles that select one pod; the lowest gets it. Of equal priorities the older goes first, as for one schedulerName."""

    below: int
    created: str
    name: str


@dataclass(frozen=True, slots=True)
class NewPod:
    """The facts about a pod, at its creation, that decide which profile it is given.

    Attributes:
        namespace: the facts about its namespace.
        labels, annotations: metadata of the pod.
        scheduler_name: schedulerName that admission sees; never empty.
        node_name: node of a pod that is created on its node, which needs no scheduler.
    """

    namespace: NamespaceFacts
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    scheduler_name: str = DEFAULT_SCHEDULER_NAME
    node_name: str = ""


def new_pod(pod: Pod, namespace: NamespaceFacts) -> NewPod:
    """Take the facts from a decoded pod.

    Args:
        pod: the decoded pod.
        namespace: namespace in which it is created; its own metadata may lack it.
    """
    meta, spec = pod.metadata, pod.spec
    return NewPod(
        namespace, meta.labels or {}, meta.annotations or {}, spec.scheduler_name or DEFAULT_SCHEDULER_NAME,
        spec.node_name or "",
    )  # fmt: skip


def rank_of(profile: SchedulingProfile) -> Rank:
    """Rank a profile among the profiles that select a pod."""
    pods, meta = profile.spec.pods, profile.metadata
    priority = 0 if pods is None or pods.priority is None else pods.priority
    return Rank(-priority, meta.creation_timestamp or "", meta.name)


def left_alone(pod: NewPod, never_in: Collection[str] = NEVER_IN) -> str:
    """Explain why no profile is ever given to a pod.

    Returns:
        The reason, as a clause; empty for a pod that may be given one.
    """
    if pod.namespace.name in never_in:
        return f"pods of namespace {in_json(pod.namespace.name)} are never given a profile"
    if pod.labels.get(ASSIGN_LABEL) == OPTED_OUT:
        return f"its label {ASSIGN_LABEL} is {in_json(OPTED_OUT)}"
    if pod.node_name:
        return f"it is created on node {in_json(pod.node_name)}"
    if pod.scheduler_name != DEFAULT_SCHEDULER_NAME and rank_given(pod) is None:
        return f"it names schedulerName {in_json(pod.scheduler_name)} itself"
    return ""


def not_selected(pod: NewPod, profile: SchedulingProfile) -> str:
    """Explain why a profile does not select a pod.

    Args:
        pod: the pod at its creation.
        profile: the profile that the API server shows, with its status.

    Returns:
        The reason, as a clause; empty when the profile selects the pod.
    """
    return next(filter(None, _objections(pod, profile)), "")


def _objections(pod: NewPod, profile: SchedulingProfile) -> Iterator[str]:
    """Yield the reasons why a profile does not select a pod, in order; empty texts among them say nothing."""
    pods = profile.spec.pods
    if profile.spec.is_shadow:
        yield "it is a shadow, and given to no pod"
    if pods is None or not pods.assigns:
        yield "its spec.pods has no selector"
        return
    if profile.status.active_generation <= 0:
        yield "no generation of it is in effect"
    yield refusal(pod.namespace, profile)
    for name, selector, labels in (
        ("namespaceSelector", pods.namespace_selector, pod.namespace.labels),
        ("podSelector", pods.pod_selector, pod.labels),
    ):
        unmet = _unmet(selector, labels)
        yield f"spec.pods.{name} wants {unmet}" if unmet else ""


def refusal(namespace: NamespaceFacts, profile: SchedulingProfile) -> str:
    """Say that pods of a namespace may not use a profile.

    Returns:
        The sentence that such pods have in their condition; empty if they may use it.
    """
    return NamespaceRule(profile.metadata.name, profile.spec.pods).refusal(namespace)


def assigned_profile(pod: NewPod, profiles: Iterable[SchedulingProfile], never_in: Collection[str] = NEVER_IN) -> SchedulingProfile | None:
    """Choose the profile that a pod is given.

        assigned_profile(NewPod(NamespaceFacts("team-a"), labels={"app": "web"}), profiles)

    Args:
        pod: the pod at its creation. One that was given a profile before is given another one only if that ranks higher.
        profiles: all, as the API server shows them.
        never_in: namespaces whose pods are given none.

    Returns:
        The profile; None if the pod keeps the schedulerName that it has.
    """
    if left_alone(pod, never_in):
        return None
    found = min((profile for profile in profiles if not not_selected(pod, profile)), key=rank_of, default=None)
    given = rank_given(pod)
    return None if found is None or (given is not None and rank_of(found) >= given) else found


def value_of(profile: SchedulingProfile) -> str:
    """Write the value of `ASSIGNED`: priority, creationTimestamp, name and schedulerName, with single blanks."""
    below, created, name = rank_of(profile)
    return f"{-below} {created} {name} {profile.spec.scheduler_name}"


def patch_of(pod: NewPod, profile: SchedulingProfile) -> list[dict[str, Any]]:
    """Write the JSON patch that gives a pod a profile."""
    value = value_of(profile)
    noted = (
        {"op": "add", "path": f"/metadata/annotations/{ASSIGNED.replace('/', '~1')}", "value": value}
        if pod.annotations
        else {"op": "add", "path": "/metadata/annotations", "value": {ASSIGNED: value}}
    )
    return [{"op": "add", "path": "/spec/schedulerName", "value": profile.spec.scheduler_name}, noted]


def rank_given(pod: NewPod) -> Rank | None:
    """Read the rank of the profile that a pod was given.

    Returns:
        The rank; None if the pod names a scheduler itself, or the default one.
    """
    if pod.scheduler_name == DEFAULT_SCHEDULER_NAME:
        return None
    found = _ASSIGNED.fullmatch(pod.annotations.get(ASSIGNED, ""))
    # A pod copied from another one, with another schedulerName, has chosen it.
    if found is None or found[4] != pod.scheduler_name:
        return None
    return Rank(-int(found[1]), found[2], found[3])


def _unmet(selector: ProfileLabelSelector | None, labels: Mapping[str, str]) -> str:
    """Name the first label or expression that labels do not satisfy; empty when they satisfy all."""
    if selector is None:
        return ""
    for key, value in (selector.match_labels or {}).items():
        if labels.get(key) != value:
            return f"label {key} to be {in_json(value)}{_found(key, labels)}"
    for each in selector.match_expressions or ():
        if not each.compiled.matches(labels.get(each.key)):
            return f"label {_in_words(each)}{_found(each.key, labels)}"
    return ""


def _in_words(expression: LabelSelectorRequirement) -> str:
    """Write an expression for people: `app In [web, db]`."""
    values = expression.values or []
    shown = ", ".join(values[:_LONGEST_SHOWN]) + (", …" if len(values) > _LONGEST_SHOWN else "")
    return f"{expression.key} {expression.operator}" + (f" [{shown}]" if values else "")


def _found(key: str, labels: Mapping[str, str]) -> str:
    return f", and it is {in_json(labels[key])}" if key in labels else ", and it is absent"


# --- the explanation -----------------------------------------------------------------------------------------------------------------

#: Why no pod is given a profile in a cluster, as a clause.
NO_ADMISSION: Final = "no admission in this cluster gives profiles to pods: manifests/components/profile-assignment is not installed"


class ProfileVerdict(NamedTuple):
    """One profile, and why the pod gets it or not; `why` is a clause."""

    profile: SchedulingProfile
    gets_it: bool
    why: str


class WhoGets(NamedTuple):
    """The answer for one pod.

    Attributes:
        said: the answer in one sentence.
        verdicts: one for each profile, the pod's own first, then by rank.
    """

    said: str
    verdicts: tuple[ProfileVerdict, ...]


def who_gets(
    pod: NewPod, profiles: Sequence[SchedulingProfile], never_in: Collection[str] = NEVER_IN, *, assigning: bool = True
) -> WhoGets:
    """Judge every profile.

    Args:
        pod: the pod at its creation, or in the cluster.
        profiles: all, as the API server shows them.
        never_in: namespaces whose pods are never given a profile.
        assigning: an admission gives profiles to pods in this cluster. Without it no selector has an effect.
    """
    alone = left_alone(pod, never_in) or ("" if assigning else NO_ADMISSION)
    found = assigned_profile(pod, profiles, never_in) if assigning else None
    scheduler = pod.scheduler_name if found is None else found.spec.scheduler_name
    mine = found or placing_profile(scheduler, profiles)
    verdicts = [ProfileVerdict(each, each is mine, _why(each, mine, pod, found, alone)) for each in profiles]
    ordered = sorted(verdicts, key=lambda verdict: (not verdict.gets_it, rank_of(verdict.profile)))
    if mine is None:
        return WhoGets(f"no profile: it keeps schedulerName {in_json(scheduler)}" + (f", as {alone}" if alone else ""), tuple(ordered))
    why = refusal(pod.namespace, mine)
    waits = f", and waits: {why}" if why else ""
    return WhoGets(f"profile {in_json(mine.metadata.name)} (schedulerName {in_json(scheduler)}){waits}", tuple(ordered))


def placing_profile(scheduler: str, profiles: Sequence[SchedulingProfile]) -> SchedulingProfile | None:
    """Find the profile that places pods of a schedulerName: the oldest that has a generation in effect.

    Returns:
        The profile; None if no profile places such pods.
    """
    serving = (
        each for each in profiles
        if not each.spec.is_shadow and each.spec.scheduler_name == scheduler and each.status.active_generation > 0
    )  # fmt: skip
    return min(serving, key=lambda each: (each.metadata.creation_timestamp or "", each.metadata.name), default=None)


def _why(profile: SchedulingProfile, mine: SchedulingProfile | None, pod: NewPod, found: SchedulingProfile | None, alone: str) -> str:
    if profile is mine and found is None:
        return _names(pod)
    if alone:
        return f"not given: {alone}"
    if unselected := not_selected(pod, profile):
        return unselected
    if profile is found:
        before = pod.scheduler_name
        return "it selects the pod" + ("" if before == DEFAULT_SCHEDULER_NAME else f", and ranks above {in_json(before)}")
    return f"it selects the pod, too, but {_above(profile, found, pod)}"


def _names(pod: NewPod) -> str:
    if pod.scheduler_name == DEFAULT_SCHEDULER_NAME:
        return f"it places the pods of {DEFAULT_SCHEDULER_NAME}, and no profile is given to this one"
    if rank_given(pod) is not None:
        return "it was given to the pod at its creation"
    return "the pod names its schedulerName" + ("" if not pod.node_name else f", and is on node {in_json(pod.node_name)}")


def _above(profile: SchedulingProfile, found: SchedulingProfile | None, pod: NewPod) -> str:
    """Explain why another profile goes before this one."""
    above = rank_given(pod) if found is None else rank_of(found)
    if above is None:
        return "the pod keeps its schedulerName"
    own = rank_of(profile)
    if above.below != own.below:
        return f"{in_json(above.name)} has the higher priority ({-above.below} to {-own.below})"
    how = "older" if above.created < own.created else "first by name"
    return f"{in_json(above.name)} has the same priority ({-own.below}) and is {how}"
