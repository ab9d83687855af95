"""The rules that keep a group of pods from ever being placed. Each is a line that names the object and the field.

GangScheduling and the scheduler of groups ask these rules before anything else. The members then wait with the line, and no
node is looked at.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, cast

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
from placewright.cluster.podgrouptrees import GroupTree

_LABEL_KEY: Final = re.compile(r"(?:[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
#: Most levels of a tree of groups, PodGroups included (KEP-6012).
MOST_LEVELS: Final = 4
#: Most PodGroups of a tree. A Workload has at most 8 templates on a level, so as many at its leaves. Each member looks at all of them.
MOST_LEAVES: Final = 512
#: The field by which a group names the composite group above it.
PARENT_FIELD: Final = "spec.parentCompositePodGroupName"
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
    lineage = pod_groups.lineage(ref)
    if not lineage:
        item = pod_groups.object_of(ref)
        return _missing(pod_groups, ref) if item is None or not item.metadata.excess else f"{ref.object_in_words}: {item.metadata.excess}"
    if len(lineage) == 1 and lineage[0].parent is None:
        return _own_complaint(pod_groups, lineage[0])
    return next(filter(None, (_own_complaint(pod_groups, group) for group in lineage)), "") or _lineage_complaint(pod_groups, lineage)


def _own_complaint(pod_groups: PodGroups, pod_group: PodGroup) -> str:
    """Say what is wrong with a group itself, and not with the groups above it."""
    ref, item = pod_group.ref, pod_groups.object_of(pod_group.ref)
    if item is not None and item.metadata.excess:
        return f"{ref.object_in_words}: {item.metadata.excess}"
    return (
        _below(ref, count_field(ref), pod_group.min_member, 1)
        or _below(ref, "spec.scheduleTimeoutSeconds", pod_group.timeout_seconds, 0)
        or _topology_complaint(pod_groups, pod_group)
    )


def _lineage_complaint(pod_groups: PodGroups, lineage: Sequence[PodGroup]) -> str:
    """Say why groups from a leaf towards the root are no branch of a tree. KEP-6012 allows four levels of one priority."""
    leaf, top = lineage[0], lineage[-1]
    if top.parent is not None:
        is_cycle = any(group.ref == top.parent for group in lineage)
        problem = "is below itself" if is_cycle else "does not exist"
        return f"{top.ref}: {PARENT_FIELD} names {top.parent.name_in_words}, which {problem}"
    if len(lineage) > MOST_LEVELS:
        return f"{leaf.ref}: it is on level {len(lineage)} of the tree of {top.ref}, at most {MOST_LEVELS} levels are allowed"
    if (leaves := len(pod_groups.leaves(top.ref))) > MOST_LEAVES:
        return f"{top.ref}: its tree has {leaves} PodGroups, at most {MOST_LEAVES} are allowed"
    for group in lineage:
        if None not in (group.priority, top.priority) and group.priority != top.priority:
            return f"{group.ref}: spec.priority is {group.priority}, but {top.priority} in {top.ref}, the root of its tree"
    return ""


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


def tree_at(pod_groups: PodGroups, pod_group: PodGroup) -> GroupTree:
    """Return the tree below a group, without branches that cannot be placed for a reason in themselves."""
    if pod_group.ref.form is not Form.COMPOSITE:
        return GroupTree(pod_group)
    notes, key = pod_groups.notes_on_trees(), (GroupTree, pod_group.ref)
    if key not in notes:
        sound = [child for child in pod_groups.children(pod_group.ref) if not declaration_complaint(pod_groups, child.ref)]
        notes[key] = GroupTree(pod_group, tuple(tree_at(pod_groups, child) for child in sound))
    return cast(GroupTree, notes[key])


def tree_to_place(cluster: Cluster, ref: GroupRef) -> GroupTree | None:
    """Return the groups that are placed all or none with the members of a group.

    These are the groups below the highest one that does not stand. Children of a group with the policy `basic` do not wait for each other.
    So such a group is passed over, unless its children share a topology domain.

    Args:
        cluster: cluster with the groups.
        ref: a group without a `declaration_complaint`.

    Returns:
        The tree; None when members of the group are placed one by one.
    """
    for group in reversed(cluster.pod_groups.lineage(ref)):
        shares_domain = group.topology_key and group.ref.form is Form.COMPOSITE
        if (not group.basic or shares_domain) and not standing(cluster, group.ref):
            return tree_at(cluster.pod_groups, group)
    return None


def tree_complaint(tree: GroupTree, ready: Mapping[GroupRef, Mapping[str, int]], ref: GroupRef) -> str:
    """Say why a group cannot be placed with its tree, judged by the members that exist.

    Args:
        tree: the tree that the group is placed with.
        ready: members that may be tried, by group and by `spec.schedulerName`.
        ref: the group.

    Returns:
        One line; "" when enough members exist.
    """
    if tree.is_leaf:
        return members_complaint(tree.group, ready[ref])
    if len(set[str]().union(*ready.values())) > 1:
        return members_complaint(tree.group, sum((Counter(members) for members in ready.values()), Counter[str]()))
    counts = {each: sum(members.values()) for each, members in ready.items()}
    short = next((each for each in tree.path_to(ref) if not each.stands(counts)), None)
    if short is None:
        return ""
    if short.is_leaf:
        return members_complaint(short.group, ready.get(short.group.ref, {}))
    enough = sum(child.stands(counts) for child in short.children)
    have = "has enough pods" if enough == 1 else "have enough pods"
    return f"{short.group.ref}: {count_field(short.group.ref)} is {short.group.min_member}, but {enough} of its child groups {have}"


def count_field(ref: GroupRef) -> str:
    """Name the field that says how many members are placed together."""
    if ref.form is Form.COMPOSITE:
        return "spec.schedulingPolicy.gang.minGroupCount"
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
    if ref.form is Form.COMPOSITE:
        return any(standing(cluster, leaf) for leaf in cluster.pod_groups.leaves(ref))
    placements = (cluster.placement(uid) for uid in cluster.pod_groups.placed(ref))
    return any(placement is not None and not placement.pod.terminating for placement in placements)


def _missing(pod_groups: PodGroups, ref: GroupRef) -> str:
    named = ref.object_in_words
    if ref.form is Form.COMPOSITE:
        return f"{named} does not exist"
    by = _NAMED_BY[ref.form]
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
