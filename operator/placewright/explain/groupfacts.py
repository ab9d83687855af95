"""The facts about the group that a pod names: its placed and waiting members, and the reasons and times of the wait."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from typing import Final

import msgspec

from placewright.api.objects import NodeName
from placewright.api.podgroups import GroupRef
from placewright.api.pods import PodInfo
from placewright.cluster.podgrouprules import declaration_complaint, members_complaint
from placewright.cluster.podgroups import PodGroups
from placewright.explain.groupshortage import Shortage
from placewright.scheduler.decisiondetail import cut

#: Most nodes that are named.
_MOST_NODES: Final = 20


class GroupFacts(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A group, for a person.

    Attributes:
        object: the object that declares it, or would have to.
        needed: members that must be placed at once; 0 if no object declares the group.
        singly: whether its object says that its members do not wait for each other.
        placed: members on nodes, bound or assumed.
        waiting: members without a node.
        missing: members that must come before the group can be tried.
        topology: the node label with one value for all members.
        preferred: members may be placed across values of `topology`, too.
        waiting_seconds: since its first member without a node came.
        failures: failed attempts in a row.
        lacks: the shortage at the last attempt.
        shortages: the resources that are too scarce now for all members together, with the pods that hold them.
        kept: nodes that are kept for it, each with the number of members that it is kept for.
        complaint: the error in its declaration, which keeps it from being tried.
    """

    object: str
    needed: int = 0
    singly: bool = False
    placed: int = 0
    waiting: int = 0
    missing: int = 0
    topology: str = ""
    preferred: bool = False
    waiting_seconds: float = 0.0
    failures: int = 0
    lacks: str = ""
    shortages: tuple[Shortage, ...] = ()
    kept: dict[str, int] = {}
    complaint: str = ""


def group_facts(pod_groups: PodGroups, ref: GroupRef, waiting: Collection[PodInfo]) -> GroupFacts:
    """Collect the facts about a group that the cluster shows.

    Args:
        pod_groups: groups of the cluster.
        ref: the group.
        waiting: its known members without a node.

    Returns:
        The facts, without those of the queue.
    """
    pod_group, placed = pod_groups.get(ref), len(pod_groups.placed(ref))
    # An assumed member stays in the queue until it is bound, and counts as placed.
    without = [pod for pod in waiting if pod.uid not in pod_groups.placed(ref)]
    complaint = declaration_complaint(pod_groups, ref)
    if pod_group is None:
        return GroupFacts(str(ref), placed=placed, waiting=len(without), complaint=cut(complaint))
    if not complaint and not placed and not pod_group.basic:
        complaint = members_complaint(pod_group, Counter(pod.scheduler_name for pod in without))
    return GroupFacts(
        str(ref),
        needed=0 if pod_group.basic else pod_group.min_member,
        singly=pod_group.basic,
        placed=placed,
        waiting=len(without),
        missing=0 if pod_group.basic else max(pod_group.min_member - placed - len(without), 0),
        topology=pod_group.topology_key,
        preferred=bool(pod_group.topology_key) and not pod_group.topology_required,
        complaint=cut(complaint),
    )


def kept_nodes(nodes: Iterable[NodeName]) -> dict[str, int]:
    """Count the nodes of a reservation for `GroupFacts.kept`, the most used first."""
    return {str(node): members for node, members in Counter(nodes).most_common(_MOST_NODES)}
