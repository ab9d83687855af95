"""The facts about the group that a pod names: its placed and waiting members, and the reasons and times of the wait.

`group_shortage` finds the resources that a waiting group lacks for all its members together, and the pods that hold them.

`explain` shows them for members that would each fit alone.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from heapq import nlargest
from typing import Final, TypeVar

import msgspec
import numpy as np

from placewright.api.objects import NodeName
from placewright.api.podgroups import GroupRef, PodGroup
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.cluster.clusterlimits import amount as amount_of
from placewright.cluster.objects import PodGroups
from placewright.cluster.podgrouprules import declaration_complaint, members_complaint
from placewright.framework.interface import Rows
from placewright.framework.runtime.evaluation import Evaluator
from placewright.framework.status import Code
from placewright.scheduler.cycle import cut

_logger = logging.getLogger(__name__)

T = TypeVar("T")

#: Most holders that are named of a resource.
MOST_HOLDERS: Final = 10


class Holder(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A pod or group that holds some of the resource.

    Attributes:
        name: `NAMESPACE/NAME` of a pod, or a group as its members name it.
        amount: amount in words.
        priority: the highest of its pods, or the group's own.
        pods: number of pods of a group; 0 for a pod without a group.
    """

    name: str
    amount: str
    priority: int
    pods: int = 0


class Shortage(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A resource that is too scarce for a group on the nodes that its members may use.

    Attributes:
        resource: its name.
        wanted: amount that the members ask for, in words.
        free: amount that is free, in words.
        total: amount on all these nodes, in words.
        fit: members that this resource alone leaves room for.
        members: members that must be placed.
        short: the missing amount; empty if enough is free, but in pieces that are too small.
        holders: the pods and groups with the most of it.
        others: the number of further holders.
    """

    resource: str
    wanted: str
    free: str
    total: str
    fit: int
    members: int
    short: str = ""
    holders: tuple[Holder, ...] = ()
    others: int = 0


def shortages(evaluator: Evaluator, cluster: Cluster, pod_group: PodGroup, waiting: Collection[PodInfo]) -> tuple[Shortage, ...]:
    """Find the resources that alone keep a group from being placed.

    Nodes that a member may not use even if all pods left them (taints, selectors) are left out.

    Args:
        evaluator: evaluator of the members' profile.
        cluster: cluster with the nodes.
        pod_group: the group that its object declares.
        waiting: its members without a node.

    Returns:
        The resources, the scarcest first; none if another reason keeps the group from being placed.
    """
    members = sorted((pod for pod in waiting if cluster.placement(pod.uid) is None), key=lambda pod: -pod.priority)
    needed = pod_group.min_member - len(cluster.pod_groups.placed(pod_group.ref))
    if pod_group.basic or needed <= 0 or len(members) < needed:
        return ()
    rows = or_logged(lambda: usable_rows(evaluator, cluster, members[0]), None, "the shortages of %s cannot be told", pod_group.ref)
    if rows is None:
        return ()
    found = [_shortage(cluster, rows, name, members, needed) for name in sorted({name for pod in members for name in pod.requests})]
    return tuple(sorted((each for each in found if each is not None), key=lambda each: each.fit))


def or_logged(ask: Callable[[], T], otherwise: T, problem: str, about: object) -> T:
    """Ask plugins for a part of an answer. A plugin that fails is logged: a decision needs less of it, so the other parts stand.

    Args:
        ask: makes the part.
        otherwise: the part after an error.
        problem: line for the log, with %s for the object.
        about: the object of the question.
    """
    try:
        return ask()
    except MemoryError:
        raise
    except Exception:
        _logger.exception(problem, about)
        return otherwise


def usable_rows(evaluator: Evaluator, cluster: Cluster, member: PodInfo) -> Rows:
    """Find the rows that could hold a member, now or if other pods left."""
    evaluation = evaluator.evaluate(member)
    diagnosis = evaluator.diagnose(evaluation)
    closed = [rows for status, rows in diagnosis.rejections if status.code is not Code.UNSCHEDULABLE]
    return np.setdiff1d(cluster.rows(), np.concatenate([np.zeros(0, np.intp), *closed]))


def _shortage(cluster: Cluster, rows: Rows, resource: str, members: Collection[PodInfo], needed: int) -> Shortage | None:
    asked = sorted(pod.requests.get(resource, 0) for pod in members)[:needed]
    least = asked[0]
    if least <= 0:
        return None
    column = cluster.resources.column(resource)
    free = np.maximum(column.allocatable[rows] - column.requested[rows], 0)
    fit = int((free // least).sum())
    if fit >= needed:
        return None
    held, holders = _holders(cluster, rows, resource)
    left, wanted = int(free.sum()), sum(asked)
    return Shortage(
        resource,
        wanted=amount_of(resource, wanted),
        free=amount_of(resource, left),
        total=amount_of(resource, int(column.allocatable[rows].sum())),
        fit=fit,
        members=needed,
        short=amount_of(resource, wanted - left) if wanted > left else "",
        holders=held,
        others=holders - len(held),
    )


def _holders(cluster: Cluster, rows: Rows, resource: str) -> tuple[tuple[Holder, ...], int]:
    """Return the groups and pods with the most of a resource, the largest first, and the number of all holders."""
    by: dict[GroupRef | str, list[PodInfo]] = {}
    amounts: dict[GroupRef | str, int] = {}
    for row in rows.tolist():
        name = cluster.names[row]
        for pod in () if name is None else cluster.pods_on(name):
            held = pod.requests.get(resource, 0)
            if held > 0:
                who = pod.pod_group if pod.pod_group is not None else pod.key
                by.setdefault(who, []).append(pod)
                amounts[who] = amounts.get(who, 0) + held
    # Of many holders a few are named: the others are not sorted.
    least = min(nlargest(MOST_HOLDERS, amounts.values()), default=0)
    largest = sorted((who for who, amount in amounts.items() if amount >= least), key=lambda who: (-amounts[who], str(who)))
    return tuple(_holder(cluster, who, by[who], amount_of(resource, amounts[who])) for who in largest[:MOST_HOLDERS]), len(by)


def _holder(cluster: Cluster, who: GroupRef | str, pods: Collection[PodInfo], amount: str) -> Holder:
    highest = max(pod.priority for pod in pods)
    if isinstance(who, str):
        return Holder(who, amount, highest)
    pod_group = cluster.pod_groups.get(who)
    own = None if pod_group is None else pod_group.priority
    return Holder(str(who), amount, highest if own is None else own, len(pods))


#: Most nodes that are named.
_MOST_NODES: Final = 20


class GroupAbove(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A group of groups, for a person.

    Attributes:
        object: the object that declares it.
        needed: child groups that must be placed at once; 0 if they do not wait for each other.
        children: child groups that exist.
        placed: child groups with a member on a node.
    """

    object: str
    needed: int = 0
    children: int = 0
    placed: int = 0


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
        above: the groups of groups above it, from its parent to the root, each with what it needs and has.
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
    above: tuple[GroupAbove, ...] = ()


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
        above=tuple(_above(pod_groups, group) for group in pod_groups.lineage(ref)[1:]),
    )


def _above(pod_groups: PodGroups, group: PodGroup) -> GroupAbove:
    children = pod_groups.children(group.ref)
    placed = sum(bool(pod_groups.placed(child.ref)) for child in children)
    return GroupAbove(str(group.ref), 0 if group.basic else group.min_member, len(children), placed)


def kept_nodes(nodes: Iterable[NodeName]) -> dict[str, int]:
    """Count the nodes of a reservation for `GroupFacts.kept`, the most used first."""
    return {str(node): members for node, members in Counter(nodes).most_common(_MOST_NODES)}
