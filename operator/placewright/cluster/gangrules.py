"""What keeps a group of pods from ever being placed, as one line that names the object and the field; "" where nothing does.

GangScheduling and whoever decides groups ask these before anything else: the members wait with the line, and nothing else is touched.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from placewright.api.bad_input import shown
from placewright.api.podgroups import (
    GROUP_LABEL,
    PREFERRED,
    REQUIRED,
    TOPOLOGY_MODE,
    VOLCANO_GROUP_ANNOTATION,
    Form,
    GroupRef,
    PodGroup,
)
from placewright.cluster.cluster import Cluster
from placewright.cluster.podgroups import PodGroups

_LABEL_KEY: Final = re.compile(r"(?:[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
#: What makes a pod a member, by form.
_NAMED_BY: Final = {
    Form.COSCHEDULING: f"label {GROUP_LABEL}",
    Form.NATIVE: "spec.schedulingGroup.podGroupName",
    Form.WORKLOAD: "spec.workloadRef",
    Form.VOLCANO: f"annotation {VOLCANO_GROUP_ANNOTATION}",
}


def declaration_complaint(gangs: PodGroups, ref: GroupRef) -> str:
    """What is wrong with how the group is declared, or that it is not, or not any more."""
    gang = gangs.get(ref)
    if gang is None:
        return _missing(gangs, ref)
    return _count_complaint(gang) or _timeout_complaint(gang) or _topology_complaint(gangs, gang)


def members_complaint(gang: PodGroup, members: Mapping[str, int]) -> str:
    """What is wrong with the members that there are: `members` counts those on nodes and those that wait, by `spec.schedulerName`.

    A group over several profiles is nobody's to decide. Too few members may become enough later: their coming asks again.
    """
    if len(members) > 1:
        spread = ", ".join(f"{count} of {shown(name)}" for name, count in sorted(members.items()))
        return f"{gang.ref}: spec.schedulerName must be the same in all members, found {spread}"
    existing = sum(members.values())
    if existing < gang.min_member:
        return f"{gang.ref}: {count_field(gang.ref)} is {gang.min_member}, but {_pods(existing)} of it"
    return ""


def count_field(ref: GroupRef) -> str:
    """Where the object says how many members are placed together."""
    if ref.form is Form.NATIVE:
        return "spec.schedulingPolicy.gang.minCount"
    if ref.form is Form.WORKLOAD:
        return f"spec.podGroups[{_group_in_workload(ref)}].policy.gang.minCount"
    return "spec.minMember"


def standing(cluster: Cluster, ref: GroupRef) -> bool:
    """Whether a member stands on a node, or is assumed there; those that are being deleted do not count."""
    placements = (cluster.placement(uid) for uid in cluster.gangs.placed(ref))
    return any(placement is not None and not placement.pod.terminating for placement in placements)


def _missing(gangs: PodGroups, ref: GroupRef) -> str:
    named, by = ref.object_in_words, _NAMED_BY[ref.form]
    if gangs.object_of(ref) is None:
        return f"{named} does not exist (the pod's {by} names it)"
    return f'{named}: spec.podGroups has no "{_group_in_workload(ref)}" (the pod\'s {by} names it)'


def _group_in_workload(ref: GroupRef) -> str:
    return "".join(ref.name.split("/")[1:2])


def _count_complaint(gang: PodGroup) -> str:
    if gang.min_member >= 1:
        return ""
    return f"{gang.ref}: {count_field(gang.ref)} is {gang.min_member}, at least 1 is allowed"


def _timeout_complaint(gang: PodGroup) -> str:
    if gang.timeout_seconds is None or gang.timeout_seconds >= 0:
        return ""
    return f"{gang.ref}: spec.scheduleTimeoutSeconds is {gang.timeout_seconds}, at least 0 is allowed"


def _topology_complaint(gangs: PodGroups, gang: PodGroup) -> str:
    if gang.topology_key and not _LABEL_KEY.fullmatch(gang.topology_key):
        return f"{gang.ref}: the topology {shown(gang.topology_key)} is no key of a node label"
    item = gangs.object_of(gang.ref)
    mode = (item.metadata.annotations or {}).get(TOPOLOGY_MODE, REQUIRED) if item is not None else REQUIRED
    if mode in (REQUIRED, PREFERRED):
        return ""
    return f"{gang.ref}: metadata.annotations[{TOPOLOGY_MODE}] is {shown(mode)}, {REQUIRED} or {PREFERRED} is allowed"


def _pods(count: int) -> str:
    return {0: "there is no pod", 1: "there is 1 pod"}.get(count, f"there are {count} pods")
