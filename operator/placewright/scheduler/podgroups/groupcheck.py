"""The self-check of groups: would enough waiting members fit together now, although no event has brought the group back?

Members that are alike are counted: the nodes that hold one of them take as many as their filters admit, in a dry run. The order
does not matter for such members, so the count is the number that a decision would place. Groups for which the order matters, or
for which Reserve has a say, are left out: members that differ, claim volumes or devices, or have rules about each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from placewright.api.podgroups import PodGroup
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.cluster.podgrouprules import standing
from placewright.framework.interface import BoolColumn
from placewright.framework.runtime.evaluation import Evaluator
from placewright.framework.runtime.podcolumns import rows_named
from placewright.framework.runtime.profileruntime import ProfileRuntime
from placewright.queue.profilequeue import ProfileQueue
from placewright.queue.queued import QueuedPod, SubQueue
from placewright.scheduler.podgroups.domains import domains

#: Members that are counted, at most: each costs a check of one row.
MOST_MEMBERS: Final = 128


def declared_group(pod: PodInfo, cluster: Cluster, runtime: ProfileRuntime) -> PodGroup | None:
    """Find the declaration of a group that is decided as one.

    Args:
        pod: waiting.
        cluster: only read.
        runtime: the pod's profile.

    Returns:
        The declaration; None for a pod that is decided by itself, which a member is once another member has a node.
    """
    if pod.pod_group is None or runtime.pod_groups is None:
        return None
    pod_group = cluster.pod_groups.get(pod.pod_group)
    return None if pod_group is None or pod_group.basic or standing(cluster, pod_group.ref) else pod_group


def waiting_together(lane: ProfileQueue, queued: QueuedPod) -> list[QueuedPod]:
    """Find the members of a pod's group that wait for an event.

    Args:
        lane: the pod's profile.
        queued: waits in `lane`, in a group.

    Returns:
        The members in order of arrival. Empty where another member speaks for the group, or where the group is about to be tried.
    """
    members = () if queued.pod_group is None else tuple(queued.pod_group.members.values())
    places = [lane.place_of(member.uid) for member in members]
    waiting = [member for member, place in zip(members, places, strict=True) if place is SubQueue.UNSCHEDULABLE]
    about_to_be_tried = any(place not in (SubQueue.UNSCHEDULABLE, SubQueue.GATED) for place in places)
    return waiting if waiting and waiting[0] is queued and not about_to_be_tried else []


def may_be_counted(members: Sequence[PodInfo], runtime: ProfileRuntime) -> bool:
    """Tell whether the order in which members are placed makes no difference.

    Args:
        members: one or more.
        runtime: their profile.

    Returns:
        True for members that are alike and have no claims and no rules about each other.
    """
    signatures = {runtime.sign(member) for member in members}
    return len(signatures) == 1 and None not in signatures and not any(_depends_on_others(member) for member in members)


def _depends_on_others(pod: PodInfo) -> bool:
    spec = pod.pod.spec
    return bool(pod.pairwise_key.affinity or spec.topology_spread_constraints or spec.resource_claims or pod.volumes)


def row_for_all(pod_group: PodGroup, members: Sequence[PodInfo], evaluator: Evaluator, cluster: Cluster) -> int | None:
    """Count members onto the nodes that hold them, in a dry run.

    Args:
        pod_group: their group.
        members: as `may_be_counted` admits; at least as many as the group needs.
        evaluator: of their profile, with columns that no decision uses.
        cluster: restored afterwards.

    Returns:
        The row of the first member counted; None where too few fit. A group that requires a topology domain has to fit in one.

    Raises:
        CycleError: a plugin broke.
    """
    evaluation = evaluator.evaluate(members[0])
    if not evaluation.count:
        return None
    for among in _places(pod_group, members, cluster):
        rows = np.flatnonzero(evaluation.feasible if among is None else evaluation.feasible & among).tolist()
        if rows and _all_fit(rows, members[: pod_group.min_member], evaluator, cluster):
            return int(rows[0])
    return None


def _places(pod_group: PodGroup, members: Sequence[PodInfo], cluster: Cluster) -> Iterator[BoolColumn | None]:
    """Yield a mask of the rows of each domain that a group may stand in, shape (size,); None for all rows."""
    if not pod_group.topology_key or not pod_group.topology_required:
        yield None
        return
    for domain in domains(cluster, pod_group.topology_key, members, pod_group.min_member):
        if domain.room >= 1:
            yield rows_named(cluster, domain.names)


def _all_fit(rows: Sequence[int], members: Sequence[PodInfo], evaluator: Evaluator, cluster: Cluster) -> bool:
    left = iter(members)
    member = next(left)
    with cluster.dry_run() as dry_run:
        for row in rows:
            while evaluator.checker.check_row(member, row).ok:
                dry_run.add([(row, member)])
                following = next(left, None)
                if following is None:
                    return True
                member = following
    return False
