"""The figures of groups of pods and of claims: placed groups, the shortages of the others, and allocated devices. Pure functions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Final

from placewright.api.devices import ResourceClaim
from placewright.api.podgroups import GroupRef
from placewright_lab.simulation.outcome import Fate, Outcome

#: The scheduler's message to each member, with the member's own reason at its end.
_GROUP: Final = re.compile(r'pod group ".*?" is unschedulable: (?P<why>.+?)(?:\. |$)')


@dataclass(frozen=True, slots=True)
class GroupFigures:
    """Groups of pods.

    Attributes:
        groups: number of groups that the profile had to place.
        placed: number of groups with as many placed members as they need, even if these have left since.
        pending: number of other groups with a waiting member.
        reasons: shortages of the pending groups, and the number of groups, the most frequent first.
    """

    groups: int
    placed: int
    pending: int
    reasons: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class ClaimFigures:
    """Claims to devices at the end.

    Attributes:
        claims: number of claims.
        allocated: number of claims that have devices.
        devices: number of allocated devices, by driver and class.
    """

    claims: int
    allocated: int
    devices: Mapping[tuple[str, str], int]


def group_lacks(message: str) -> str:
    """Return the shortage of the group that a member's message names, or "" for a message about no group."""
    found = _GROUP.match(message)
    return "" if found is None else found["why"]


def group_figures(outcome: Outcome, in_short: Callable[[str], str]) -> GroupFigures | None:
    """Return the figures, or None if no pod names a group. `in_short` shortens a message about no group."""
    members: dict[GroupRef, list[Fate]] = {}
    for fate in outcome.fates.values():
        if fate.pod.pod_group is not None:
            members.setdefault(fate.pod.pod_group, []).append(fate)
    if not members:
        return None
    placed = {ref for ref, fates in members.items() if _is_placed(outcome, ref, fates)}
    waiting = {ref: [fate for fate in fates if fate.pending] for ref, fates in members.items() if ref not in placed}
    lacks = Counter(_lacks(fates, in_short) for fates in waiting.values() if fates)
    return GroupFigures(len(members), len(placed), lacks.total(), dict(lacks.most_common()))


def _is_placed(outcome: Outcome, ref: GroupRef, fates: Iterable[Fate]) -> bool:
    pod_group = outcome.cluster.pod_groups.get(ref)
    if pod_group is None:
        return False
    before = sum(uid not in outcome.fates for uid in outcome.cluster.pod_groups.placed(ref))
    needed = 1 if pod_group.basic else pod_group.min_member
    return before + sum(fate.node is not None for fate in fates) >= needed


def _lacks(waiting: Sequence[Fate], in_short: Callable[[str], str]) -> str:
    found = filter(None, (group_lacks(fate.message) for fate in waiting))
    return next(found, None) or in_short(waiting[0].message)


def claim_figures(outcome: Outcome) -> ClaimFigures | None:
    """Return the figures, or None if there are no claims."""
    claims = list(outcome.cluster.objects.devices.claims.values())
    if not claims:
        return None
    devices = Counter(found for claim in claims for found in _devices(claim))
    allocated = sum(claim.status.allocation is not None for claim in claims)
    return ClaimFigures(len(claims), allocated, dict(sorted(devices.items())))


def _devices(claim: ResourceClaim) -> Iterable[tuple[str, str]]:
    """Yield driver and class of each device that a claim has."""
    classes: dict[str, str] = {}
    for request in claim.spec.devices.requests or ():
        if request.exactly is not None:
            classes[request.name] = request.exactly.device_class_name
        classes |= {f"{request.name}/{sub.name}": sub.device_class_name for sub in request.first_available or ()}
    allocation = claim.status.allocation
    results = () if allocation is None else allocation.devices.results or ()
    return [(each.driver, classes.get(each.request, "")) for each in results]


def company_data(groups: GroupFigures | None, claims: ClaimFigures | None) -> dict[str, object]:
    """Return both as plain data, without empty parts."""
    found: dict[str, object] = {}
    if groups is not None:
        found["groups"] = asdict(groups)
    if claims is not None:
        devices = [{"driver": driver, "class": name, "devices": count} for (driver, name), count in claims.devices.items()]
        found["claims"] = {"claims": claims.claims, "allocated": claims.allocated, "devices": devices}
    return found
