"""Explains which profile a pod gets: one verdict for each profile, for `placewright profiles who`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

from placewright.api.bad_input import in_json
from placewright.api.profile import DEFAULT_SCHEDULER_NAME, SchedulingProfile
from placewright.profiles.assignment import (
    NEVER_IN,
    NewPod,
    assigned_profile,
    left_alone,
    not_selected,
    rank_given,
    rank_of,
    refusal,
)

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
