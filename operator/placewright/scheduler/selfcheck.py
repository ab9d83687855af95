"""The self-check finds forgotten pods: pods that would fit now although no event has brought them back (decision 37).

Queueing hints decide after which events a rejected pod is tried again. If a hint is faulty, its pods wait for a timeout of minutes,
beside room that would hold them. So the check filters a waiting pod afresh, as if it were tried now. That changes no state: no pod
is assumed, nominated or evicted, and no random number of a decision is drawn. The check has columns of its own. So it also finds
pods that wait because a column that decisions keep is wrong.

A pod that fits is forgotten only if nothing else explains its wait. These pods are left out, for the reasons in `SkipReason`:

- members of groups that cannot be counted. One member is checked for its whole group.
- pods with extenders, because only extenders know their answer.
- pods that no filter rejected. Reserve, Permit or PreBind did, which filtering does not show.
- nominated pods whose victims still leave. They are tried when the last victim is gone.
- pods of a profile that is paused or decides one of its pods right now.
- pods that are being deleted or have a node already.
- pods in whose decision a process ended (`queue.suspects`).
- pods whose decision takes so long that it is prepared (`scheduler.loop`). The timeout brings them back.
- all pods while kept events have not been told to all of them (`queue.sweeps`).

A pod that would need preemption does not fit. Nor does a pod fit if nominated pods hold the room. Nominations that should have ended
do not count. A node is no longer kept once the time is over or the group has a member on a node. The same holds if no
object declares the group.

A decision tries the members of a group in a trial (`podgroups.trial`). The check runs the same trial, in a dry run and with columns of its
own. Only members that are alike are checked, because their order makes no difference. Groups are left out if their members differ, claim
volumes or devices, or have rules about each other. Then the order matters, or Reserve may refuse a member.
"""

from __future__ import annotations

import enum
import random
from collections.abc import Callable, Collection, Hashable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

import numpy as np

from placewright.api.objects import NodeName, PodKey
from placewright.api.podextent import estimated_work
from placewright.api.podgroups import GroupRef, PodGroup
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.cluster.podgrouprules import declaration_complaint, standing, tree_to_place
from placewright.cluster.podgrouptrees import GroupTree
from placewright.framework.interface import Seconds
from placewright.framework.ports import KeptFor
from placewright.framework.runtime.columnbudget import ColumnBudget
from placewright.framework.runtime.evaluation import Evaluator
from placewright.framework.runtime.podcolumns import rows_named
from placewright.framework.runtime.profileruntime import ProfileRuntime
from placewright.queue.events import RecentEvent
from placewright.queue.nominator import Nominator
from placewright.queue.profilequeue import ProfileQueue
from placewright.queue.queue import SchedulingQueue
from placewright.queue.queued import QueuedPod, SubQueue
from placewright.scheduler.attempts import Attempt
from placewright.scheduler.cycle import SchedulingCycle
from placewright.scheduler.podgroups.domainchoice import DomainChoice
from placewright.scheduler.podgroups.domains import Domain, within_domain
from placewright.scheduler.podgroups.group import DryRunSeatHolder, Group, MemberCycle, depends_on_others
from placewright.scheduler.podgroups.trial import GroupTrial
from placewright.scheduler.ports import Clock
from placewright.scheduler.turns import at_once

#: Returns the evaluator of a schedulerName, or None if no profile has it.
Evaluators = Callable[[str], Evaluator | None]
#: Most members that are tried. Each costs an evaluation of the rows that the one before changed.
MOST_MEMBERS: Final = 128
#: The plugin to blame when none of a pod's rejecting plugins is a filter of its profile any more.
_UNKNOWN_PLUGIN: Final = ""


class SkipReason(enum.Enum):
    """The reason why the self-check says nothing about a waiting pod."""

    BEHIND = "it has not been told of all that happened"
    NOT_WAITING = "it does not wait for an event"
    CLOSED = "its profile hands out no pods now"
    GONE = "it needs no node any more"
    GROUP = "another member is checked for its group, or the group cannot be counted"
    NOT_FILTERED = "something after the filters rejected it"
    EXTENDERS = "extenders are asked about it"
    VICTIMS = "it waits for its victims to leave"
    SUSPECT = "the process ended in its decision"
    LARGE = "deciding it takes long"
    BROKEN = "a plugin fails"


@dataclass(frozen=True, slots=True)
class Forgotten:
    """A pod that fits, and that has not been tried since it began to fit.

    Attributes:
        uid: uid of the pod.
        key: namespace and name of the pod.
        plugin: name of the plugin whose hint failed. It is the first filter that rejected the pod and registered for `event`.
        event: event that probably should have brought the pod back: the latest since its attempt for which such a plugin
            registered. An event about a node that fits comes before others. None if a registration is missing, because no such plugin
            registered for any event.
        node: name of a node that would hold the pod.
        since: labels of the events since its attempt.
    """

    uid: str
    key: PodKey
    plugin: str
    event: RecentEvent | None
    node: NodeName
    since: tuple[str, ...]

    def __str__(self) -> str:
        """Describe the finding in one sentence."""
        if self.event is None:
            why = f"no event told {self.plugin or 'its plugins'} of it; since then: {', '.join(self.since) or 'none'}"
        else:
            about = f" ({self.event.about})" if self.event.about else ""
            why = f"{self.plugin} did not ask for another try after {self.event.event.label}{about}"
        return f"it would fit on {self.node}, and nothing had brought it back: {why}"


class SelfCheck:
    """Checks whether waiting pods are forgotten, by filtering them afresh.

    Args:
        cluster: columns, which are only read.
        queue: queue, which is only read.
        evaluators: evaluator of a schedulerName, or None.
        clock: seconds, monotonic; the scheduler's clock.
    """

    def __init__(self, cluster: Cluster, queue: SchedulingQueue, evaluators: Evaluators, clock: Clock) -> None:
        self.cluster = cluster
        self.queue = queue
        self._evaluators = evaluators
        self._clock = clock

    def look(self, lane: ProfileQueue, queued: QueuedPod) -> Forgotten | SkipReason | None:
        """Filter a waiting pod afresh. It costs one evaluation of all nodes, and nothing when the pod is left out.

        Args:
            lane: queue of the pod's profile.
            queued: a pod that waits in `lane`.

        Returns:
            The finding, or the reason why the pod is left out; None when it fits nowhere.
        """
        left, evaluator = self._left(lane, queued), self._evaluators(lane.name)
        if left is not None or evaluator is None:
            return left or SkipReason.CLOSED
        if evaluator.runtime.extenders_for(queued.pod):
            return SkipReason.EXTENDERS
        if evaluator.prepares(queued.pod):
            return SkipReason.LARGE
        if not self.cluster.node_count:
            return None
        pod_group = _declared_group(queued.pod, self.cluster, evaluator.runtime)
        try:
            return self._decided(queued, evaluator) if pod_group is None else self._decided_together(pod_group, lane, queued, evaluator)
        except MemoryError:
            raise
        except Exception:  # noqa: BLE001 - a plugin may raise anything; the error is reported when the pod is tried
            return SkipReason.BROKEN

    def work(self, pod: PodInfo) -> int:
        """Estimate the work of one look at a waiting pod, as a number of looks at single things."""
        return estimated_work(pod.extent, self.cluster.node_count)

    def likeness(self, queued: QueuedPod) -> Hashable | None:
        """Compute the key of a waiting pod; None if its answer holds for no other pod. Pods with equal keys have the same answer."""
        pod = queued.pod
        evaluator = self._evaluators(pod.scheduler_name)
        if evaluator is None or pod.pod_group is not None or self.queue.nominator.node_of(pod.uid) is not None:
            return None
        signature = evaluator.runtime.sign(pod)
        return None if signature is None else (pod.scheduler_name, pod.priority, signature)

    def _left(self, lane: ProfileQueue, queued: QueuedPod) -> SkipReason | None:
        """Return the first reason that holds; the cheap ones come first."""
        pod = queued.pod
        reasons: tuple[tuple[SkipReason, Callable[[], bool]], ...] = (
            (SkipReason.BEHIND, lambda: self.queue.sweeps.behind),
            (SkipReason.NOT_WAITING, lambda: queued.place is not SubQueue.UNSCHEDULABLE),
            (SkipReason.CLOSED, lambda: not lane.open),
            (SkipReason.GONE, lambda: pod.terminating or self.cluster.placement(pod.uid) is not None),
            (SkipReason.GROUP, lambda: pod.pod_group is not None and self._waits_for_more(pod.pod_group)),
            (SkipReason.NOT_FILTERED, lambda: not queued.filtered and not (queued.pod_group is not None and queued.pod_group.filtered)),
            (SkipReason.SUSPECT, lambda: bool(self.queue.suspects) and self.queue.suspects.accuses(queued)),
            (SkipReason.VICTIMS, lambda: self._waits_for_victims(pod.uid)),
        )
        return next((left for left, holds in reasons if holds()), None)

    def _waits_for_more(self, ref: GroupRef) -> bool:
        """Return whether a group is declared wrongly, or is placed only together with other groups of its tree."""
        if declaration_complaint(self.cluster.pod_groups, ref):
            return True
        tree = tree_to_place(self.cluster, ref)
        return tree is not None and not tree.is_leaf

    def _waits_for_victims(self, uid: str) -> bool:
        nominator = self.queue.nominator
        node = nominator.node_of(uid)
        if uid in nominator.making_room_for:
            return True
        return node is not None and any(self.cluster.leaves(each) for each in self.cluster.pods_on(node))

    def _decided(self, queued: QueuedPod, evaluator: Evaluator) -> Forgotten | None:
        """Filter a pod that is decided by itself. A member whose group stands in a required domain has to join it there."""
        # Columns of its own, which no decision has used. The budget of 0 keeps none, so that it pushes none out.
        own = Evaluator(evaluator.runtime, self.cluster, self._nominations(), ColumnBudget(0))
        joined = within_domain(queued.pod, self.cluster, evaluator.runtime)
        feasible = own.evaluate(queued.pod).feasible
        rows = np.flatnonzero(feasible if joined is None else feasible & rows_named(self.cluster, joined)).tolist()
        return self._forgotten(queued, rows, queued.rejecting_plugins, evaluator.runtime) if rows else None

    def _decided_together(
        self, pod_group: PodGroup, lane: ProfileQueue, queued: QueuedPod, evaluator: Evaluator
    ) -> Forgotten | SkipReason | None:
        """Count the members that fit. The first waiting member is checked for its group, because it takes the others along."""
        waiting = _waiting_together(lane, queued)
        members = [member.pod for member in waiting]
        if not waiting or not _may_be_counted(members, evaluator.runtime):
            return SkipReason.GROUP
        if any(self._waits_for_victims(member.uid) for member in members):
            return SkipReason.VICTIMS
        if pod_group.min_member > MOST_MEMBERS:
            return SkipReason.LARGE
        if len(members) < pod_group.min_member:
            return None
        # Columns are kept for this check alone. Otherwise each member would cost as much as the first.
        own = Evaluator(evaluator.runtime, self.cluster, self._nominations(), ColumnBudget())
        row = _row_for_all(pod_group, waiting, own, self.cluster, self.queue)
        rejecting = frozenset[str]().union(*(member.rejecting_plugins for member in waiting))
        return None if row is None else self._forgotten(queued, [row], rejecting, evaluator.runtime)

    def _nominations(self) -> Nominator:
        """Return the nominations that hold. It is a copy if others are left, which is a fault of the reservations."""
        nominator, now = self.queue.nominator, self._clock()
        over = {uid for uid, kept_for in nominator.kept_for.items() if self._is_over(kept_for, now)}
        return nominator.without(over) if over else nominator

    def _is_over(self, kept_for: KeptFor, now: Seconds) -> bool:
        ref = kept_for.pod_group
        return kept_for.ends <= now or self.cluster.pod_groups.get(ref) is None or standing(self.cluster, ref)

    def _forgotten(self, queued: QueuedPod, rows: Sequence[int], rejecting: AbstractSet[str], runtime: ProfileRuntime) -> Forgotten:
        names = [name for row in rows if (name := self.cluster.names[row]) is not None]
        events = self.queue.sweeps.recent.since(queued.seen)
        plugin, event = who_slept(rejecting, events, frozenset(names), runtime)
        node = NodeName(event.node) if event is not None and event.node in names else names[0]
        since = tuple(dict.fromkeys(each.event.label for each in events))
        return Forgotten(queued.uid, queued.key, plugin, event, node, since)


def who_slept(
    rejecting: Collection[str], events: Collection[RecentEvent], fitting: Collection[str], runtime: ProfileRuntime
) -> tuple[str, RecentEvent | None]:
    """Find the plugin whose hint should have brought a pod back, and the event after which.

    Args:
        rejecting: names of plugins that rejected the pod.
        events: events since its attempt, the latest first.
        fitting: names of nodes that would hold it.
        runtime: runtime of its profile.

    Returns:
        (plugin, event). The event is None when no plugin registered for any of them.
    """
    order = [plugin.name for plugin in runtime.filter]
    ordered = sorted(rejecting, key=lambda name: (order.index(name) if name in order else len(order), name))
    asked = ((plugin, each) for each in events if (plugin := next((name for name in ordered if asked_for(name, each, runtime)), None)))
    found = list(asked)
    on_fitting = (pair for pair in found if pair[1].node in fitting)
    return next(on_fitting, found[0] if found else (ordered[0] if ordered else _UNKNOWN_PLUGIN, None))


def asked_for(plugin: str, noted: RecentEvent, runtime: ProfileRuntime) -> bool:
    """Return whether a plugin registered for such events."""
    return any(noted.event.concerns(each.event) for each in runtime.interests.get(plugin) or ())


# --- groups ------------------------------------------------------------------------------------------------------------------------


def _declared_group(pod: PodInfo, cluster: Cluster, runtime: ProfileRuntime) -> PodGroup | None:
    """Find the declaration of a waiting pod's group; None if the pod is decided by itself, as once another member has a node."""
    if pod.pod_group is None or runtime.pod_groups is None:
        return None
    pod_group = cluster.pod_groups.get(pod.pod_group)
    return None if pod_group is None or pod_group.basic or standing(cluster, pod_group.ref) else pod_group


def _waiting_together(lane: ProfileQueue, queued: QueuedPod) -> list[QueuedPod]:
    """Find the members of a pod's group that wait for an event, in order of arrival.

    Args:
        lane: queue of the pod's profile.
        queued: a member that waits in `lane`.

    Returns:
        The members; none if another member is checked for the group, or if the group is about to be tried.
    """
    members = () if queued.pod_group is None else tuple(queued.pod_group.members.values())
    places = [member.place if member.pod.scheduler_name == lane.name else None for member in members]
    waiting = [member for member, place in zip(members, places, strict=True) if place is SubQueue.UNSCHEDULABLE]
    about_to_be_tried = any(place not in (SubQueue.UNSCHEDULABLE, SubQueue.GATED) for place in places)
    return waiting if waiting and waiting[0] is queued and not about_to_be_tried else []


def _may_be_counted(members: Sequence[PodInfo], runtime: ProfileRuntime) -> bool:
    """Return whether the order in which members are placed makes no difference.

    The members have to be alike, without claims and without rules about each other.
    """
    signatures = {runtime.sign(member) for member in members}
    return len(signatures) == 1 and None not in signatures and not any(depends_on_others(member) for member in members)


def _row_for_all(
    pod_group: PodGroup, waiting: Sequence[QueuedPod], evaluator: Evaluator, cluster: Cluster, queue: SchedulingQueue
) -> int | None:
    """Try members together in a dry run.

    Args:
        pod_group: their group.
        waiting: members that `_may_be_counted` admits, at least as many as the group needs.
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
    assert plugin is not None  # `_declared_group` has tested it
    attempts = [Attempt(each, evaluator.runtime.profile, lambda: 0.0) for each in waiting]
    group = Group(GroupTree(pod_group), plugin, evaluator, attempts)
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
