"""What there is to say of the group that a pod names: who of it stands and who waits, since when and for what."""

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

#: Nodes that are named.
_MOST_NODES: Final = 20


class GroupFacts(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A group, for people.

    Attributes:
        object: what declares it, or would have to.
        needed: so many members are placed at once, or none is; 0 where nobody declares the group.
        singly: its members do not wait for each other, says the object.
        placed: members that stand on nodes, or are on their way there.
        waiting: members without a node.
        missing: how many have yet to come before it can be tried.
        topology: the node label of which one value takes all members; `preferred` where others may be taken, too.
        waiting_seconds: since its first member that has no node came.
        failures: how often in a row it was tried in vain.
        lacks: what it lacked the last time.
        shortages: what there is too little of now for all of them together, and who has it.
        kept: nodes that are kept for it, with the number of members for which each is.
        complaint: what is wrong with it, whatever else happens.
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
    """What the cluster shows; `waiting`: members without a node, as far as they are known."""
    pod_group, placed = pod_groups.get(ref), len(pod_groups.placed(ref))
    # Members that are assumed on a node are still in the queue until they are bound.
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
    """The nodes of a reservation, as `GroupFacts.kept` has them; the most used first."""
    return {str(node): members for node, members in Counter(nodes).most_common(_MOST_NODES)}
