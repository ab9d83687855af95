"""The rules that keep a group of pods from ever being placed. Each is a line that names the object and the field.

GangScheduling and the scheduler of groups ask these rules before anything else. The members then wait with the line, and no
node is looked at.
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
from placewright.cluster.objects import PodGroups

_LABEL_KEY: Final = re.compile(r"(?:[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
#: The field by which a pod names its group, by form.
_NAMED_BY: Final = {
    Form.COSCHEDULING: f"label {GROUP_LABEL}",
    Form.NATIVE: "spec.schedulingGroup.podGroupName",
    Form.WORKLOAD: "spec.workloadRef",
    Form.VOLCANO: f"annotation {VOLCANO_GROUP_ANNOTATION}",
}


def declaration_complaint(pod_groups: PodGroups, ref: GroupRef) -> str:
    """Say what is wrong with the declaration of a group, or that it does not exist.

    Returns:
        One line; "" when nothing is wrong.
    """
    item, pod_group = pod_groups.object_of(ref), pod_groups.get(ref)
    if item is not None and item.metadata.excess:
        return f"{ref.object_in_words}: {item.metadata.excess}"
    if pod_group is None:
        return _missing(pod_groups, ref)
    return (
        _below(ref, count_field(ref), pod_group.min_member, 1)
        or _below(ref, "spec.scheduleTimeoutSeconds", pod_group.timeout_seconds, 0)
        or _topology_complaint(pod_groups, pod_group)
    )


def members_complaint(pod_group: PodGroup, members: Mapping[str, int]) -> str:
    """Say what is wrong with the members of a group. Too few members may become enough: the next member asks again.

    Args:
        pod_group: the group.
        members: members on nodes and waiting members, by `spec.schedulerName`. A group over several profiles is decided by none
            of them.

    Returns:
        One line; "" when nothing is wrong.
    """
    if len(members) > 1:
        spread = ", ".join(f"{count} of {shown(name)}" for name, count in sorted(members.items()))
        return f"{pod_group.ref}: spec.schedulerName must be the same in all members, found {spread}"
    existing = sum(members.values())
    if existing < pod_group.min_member:
        return f"{pod_group.ref}: {count_field(pod_group.ref)} is {pod_group.min_member}, but {_pods(existing)} of it"
    return ""


def count_field(ref: GroupRef) -> str:
    """Name the field that says how many members are placed together."""
    if ref.form is Form.NATIVE:
        return "spec.schedulingPolicy.gang.minCount"
    if ref.form is Form.WORKLOAD:
        return f"spec.podGroups[{_group_in_workload(ref)}].policy.gang.minCount"
    return "spec.minMember"


def standing(cluster: Cluster, ref: GroupRef) -> bool:
    """Return whether a member stands on a node or is assumed there. Members that are being deleted do not count.

    Returns:
        True when the remaining members are placed one by one.
    """
    placements = (cluster.placement(uid) for uid in cluster.pod_groups.placed(ref))
    return any(placement is not None and not placement.pod.terminating for placement in placements)


def _missing(pod_groups: PodGroups, ref: GroupRef) -> str:
    named, by = ref.object_in_words, _NAMED_BY[ref.form]
    if pod_groups.object_of(ref) is None:
        return f"{named} does not exist (the pod's {by} names it)"
    return f'{named}: spec.podGroups has no "{_group_in_workload(ref)}" (the pod\'s {by} names it)'


def _group_in_workload(ref: GroupRef) -> str:
    return "".join(ref.name.split("/")[1:2])


def _below(ref: GroupRef, field: str, value: int | None, least: int) -> str:
    return "" if value is None or value >= least else f"{ref}: {field} is {value}, at least {least} is allowed"


def _topology_complaint(pod_groups: PodGroups, pod_group: PodGroup) -> str:
    if pod_group.topology_key and not _LABEL_KEY.fullmatch(pod_group.topology_key):
        return f"{pod_group.ref}: the topology {shown(pod_group.topology_key)} is no key of a node label"
    item = pod_groups.object_of(pod_group.ref)
    mode = (item.metadata.annotations or {}).get(TOPOLOGY_MODE, REQUIRED) if item is not None else REQUIRED
    if mode in (REQUIRED, PREFERRED):
        return ""
    return f"{pod_group.ref}: metadata.annotations[{TOPOLOGY_MODE}] is {shown(mode)}, {REQUIRED} or {PREFERRED} is allowed"


def _pods(count: int) -> str:
    return {0: "there is no pod", 1: "there is 1 pod"}.get(count, f"there are {count} pods")
