"""The self-check of groups: would enough waiting members fit together now, although no event has brought the group back?

The members are tried as a decision tries them (`trial`), in a dry run and with columns of their own. Only members that are alike are
checked: the order makes no difference to them, so neither does the choice among equal nodes, which the check draws for itself.
Groups for which the order matters, or for which Reserve has a say, are left out: members that differ, claim volumes or devices, or
have rules about each other.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
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
from placewright.scheduler.podgroups.domains import Domain, domains
from placewright.scheduler.podgroups.group import Group, MemberCycle, depends_on_others
from placewright.scheduler.podgroups.seats import DryRunSeatHolder
from placewright.scheduler.podgroups.trial import GroupTrial
from placewright.scheduler.turns import at_once

#: Members that are tried, at most: each costs an evaluation of the rows that the one before changed.
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
    return len(signatures) == 1 and None not in signatures and not any(depends_on_others(member) for member in members)


def row_for_all(
    pod_group: PodGroup, waiting: Sequence[QueuedPod], evaluator: Evaluator, cluster: Cluster, queue: SchedulingQueue
) -> int | None:
    """Try members together in a dry run.

    Args:
        pod_group: their group.
        waiting: as `may_be_counted` admits; at least as many as the group needs.
        evaluator: of their profile, with columns that no decision uses.
        cluster: restored afterwards.
        queue: only read.

    Returns:
        The row of the first member; None where too few fit. A group that requires a topology domain has to fit in one.

    Raises:
        CycleError: a plugin broke.
        FitError: a plugin broke.
    """
    plugin = evaluator.runtime.pod_groups
    assert plugin is not None  # `declared_group` has tested it
    attempts = [Attempt(each, evaluator.runtime.profile, _no_clock) for each in waiting]
    group = Group(pod_group, plugin, evaluator, attempts)
    # Journalled, so that the evaluator's own columns follow. Decisions compute the rows of the dry run anew, to the same values.
    with cluster.dry_run(journalled=True) as dry_run:
        cycle = SchedulingCycle(cluster, queue.nominator, random.Random(0))
        members = MemberCycle(cluster, queue, cycle, DryRunSeatHolder(cluster, dry_run))
        for domain in _places(group, cluster):
            trial = at_once(GroupTrial(members, group, domain).run(to_the_end=False, spares=False))
            seats = list(trial.seating.seats.values())
            fits = trial.fits()
            trial.take_back()
            if fits:
                return seats[0].row
    return None


def _no_clock() -> float:
    return 0.0


def _places(group: Group, cluster: Cluster) -> Iterator[Domain | None]:
    """Yield each domain that a group may stand in; None for all nodes."""
    pod_group = group.pod_group
    if not pod_group.topology_key or not pod_group.topology_required:
        yield None
        return
    pods = [attempt.pod for attempt in group.attempts]
    yield from (domain for domain in domains(cluster, pod_group.topology_key, pods, group.needed) if domain.room >= 1)
