"""The self-check of groups finds groups whose waiting members would fit together now, although no event has brought them back.

The members are tried as a decision tries them (`trial`), in a dry run and with columns of their own. Only members that are alike are
checked, because their order makes no difference, nor does the choice among equal nodes. Groups are left out if their members differ,
claim volumes or devices, or have rules about each other. Then the order matters, or Reserve may refuse a member.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final

from placewright.api.podgroups import PodGroup
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.cluster.podgrouprules import standing
from placewright.framework.runtime.evaluation import Evaluator
from placewright.framework.runtime.profileruntime import ProfileRuntime
from placewright.queue.profilequeue import ProfileQueue
from placewright.queue.queue import SchedulingQueue
from placewright.queue.queued import QueuedPod, SubQueue
from placewright.scheduler.attempts import Attempt
from placewright.scheduler.cycle import SchedulingCycle
from placewright.scheduler.podgroups.domainchoice import DomainChoice
from placewright.scheduler.podgroups.domains import Domain
from placewright.scheduler.podgroups.group import DryRunSeatHolder, Group, MemberCycle, depends_on_others
from placewright.scheduler.podgroups.trial import GroupTrial
from placewright.scheduler.turns import at_once

#: Most members that are tried. Each costs an evaluation of the rows that the one before changed.
MOST_MEMBERS: Final = 128


def declared_group(pod: PodInfo, cluster: Cluster, runtime: ProfileRuntime) -> PodGroup | None:
    """Find the declaration of a waiting pod's group; None if the pod is decided by itself, as once another member has a node."""
    if pod.pod_group is None or runtime.pod_groups is None:
        return None
    pod_group = cluster.pod_groups.get(pod.pod_group)
    return None if pod_group is None or pod_group.basic or standing(cluster, pod_group.ref) else pod_group


def waiting_together(lane: ProfileQueue, queued: QueuedPod) -> list[QueuedPod]:
    """Find the members of a pod's group that wait for an event, in order of arrival.

    Args:
        lane: queue of the pod's profile.
        queued: a member that waits in `lane`.

    Returns:
        The members; none if another member is checked for the group, or if the group is about to be tried.
    """
    members = () if queued.pod_group is None else tuple(queued.pod_group.members.values())
    places = [lane.place_of(member.uid) for member in members]
    waiting = [member for member, place in zip(members, places, strict=True) if place is SubQueue.UNSCHEDULABLE]
    about_to_be_tried = any(place not in (SubQueue.UNSCHEDULABLE, SubQueue.GATED) for place in places)
    return waiting if waiting and waiting[0] is queued and not about_to_be_tried else []


def may_be_counted(members: Sequence[PodInfo], runtime: ProfileRuntime) -> bool:
    """Return whether the order in which members are placed makes no difference.

    The members have to be alike, without claims and without rules about each other.
    """
    signatures = {runtime.sign(member) for member in members}
    return len(signatures) == 1 and None not in signatures and not any(depends_on_others(member) for member in members)


def row_for_all(
    pod_group: PodGroup, waiting: Sequence[QueuedPod], evaluator: Evaluator, cluster: Cluster, queue: SchedulingQueue
) -> int | None:
    """Try members together in a dry run.

    Args:
        pod_group: their group.
        waiting: members that `may_be_counted` admits, at least as many as the group needs.
        evaluator: evaluator of their profile, with columns that no decision uses.
        cluster: columns, which are restored afterwards.
        queue: queue, which is only read.

    Returns:
        The row of the first member; None if too few fit. A group that requires a topology domain has to fit in one.

    Raises:
        CycleError: a plugin broke.
        FitError: a plugin broke.
    """
    plugin = evaluator.runtime.pod_groups
    assert plugin is not None  # `declared_group` has tested it
    attempts = [Attempt(each, evaluator.runtime.profile, lambda: 0.0) for each in waiting]
    group = Group(pod_group, plugin, evaluator, attempts)
    # Journalled, so that the evaluator's own columns follow. Decisions compute the rows of the dry run anew, to the same values.
    with cluster.dry_run(journalled=True) as dry_run:
        cycle = SchedulingCycle(cluster, queue.nominator, random.Random(0))
        members = MemberCycle(cluster, queue, cycle, DryRunSeatHolder(cluster, dry_run))
        places: list[Domain | None] = [None]
        if pod_group.topology_key and pod_group.topology_required:
            places = [domain for domain in DomainChoice(members).domains(group) if domain.room >= 1]
        for domain in places:
            trial = at_once(GroupTrial(members, group, domain).run(to_the_end=False, spares=False))
            seats = list(trial.seats.values())
            fits = trial.fits()
            trial.take_back()
            if fits:
                return seats[0].row
    return None
