"""The scheduler of groups tries all waiting members together. Either enough of them get nodes, or none does (decision 23).

The ordinary cycle places the members one after the other, and each is assumed and reserved. If too few fit, all are taken back
before any other pod is decided. Then Permit runs for all members, and their bindings wait behind one barrier. No Binding is sent
before all members are prepared.

Once a Binding may have been sent, nothing is taken back. A bound member stays bound, also if the API server refuses the others or this
replica ends. As soon as a member is on a node, the others are single pods (`cluster.podgrouprules.standing`). Their turn comes by the age
of their group. So a group that lost some members is filled up one by one. A group that lost all is decided anew.

A tree of groups is decided in one turn and bound behind one barrier. While its members are being bound, groups of the tree that got no
nodes wait. Afterwards each is decided by itself, or with the groups of its own branch.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from placewright.api.podgroups import CompositePodGroup, GroupRef
from placewright.api.pods import PodInfo
from placewright.cluster.podgrouprules import declaration_complaint, standing, tree_at, tree_complaint, tree_to_place
from placewright.cluster.podgrouptrees import ref_of
from placewright.framework.interface import Seconds
from placewright.framework.preemption.eligibility import NEVER
from placewright.framework.preemption.rules import soonest
from placewright.framework.runtime.evaluation import Evaluator
from placewright.framework.runtime.guard import why
from placewright.queue.queued import QueuedPod
from placewright.scheduler.attempts import Attempt, Attempts, GroupAttempt, GroupResult
from placewright.scheduler.binding import BindingCycle, Reserver
from placewright.scheduler.cycle import NO_NODE_REFUSED, NO_NOMINATION, FitError, ScheduleResult, broken
from placewright.scheduler.podgroups.barrier import MEMBERS_A_TURN, Barrier
from placewright.scheduler.podgroups.domainchoice import DomainChoice
from placewright.scheduler.podgroups.group import Group, MemberCycle
from placewright.scheduler.podgroups.grouppreemption import GroupRoom, room_for
from placewright.scheduler.podgroups.reservations import Planner, Reservations
from placewright.scheduler.podgroups.shortage import lacking, lacking_in
from placewright.scheduler.podgroups.trial import GroupTrial
from placewright.scheduler.ports import Clock, GroupStatusWriter, Start
from placewright.scheduler.turns import Steps, Turns, at_once

_logger = logging.getLogger(__name__)

TAKEN_BACK: Final = "its group is taken back"


@dataclass(eq=False)
class PodGroupScheduler:
    """Schedules all waiting members of a group together.

    Attributes:
        members: the tools that place one member.
        reserver: permits and settles members.
        attempts: begins and ends the members' attempts.
        binding: the binding cycle of each member.
        status: writer of the groups' status.
        start: runs a group's bindings beside other decisions. If extenders are asked, it runs the decision, too.
        since_1970: clock in seconds since 1970, for messages; None uses the attempts' clock.
        forming: barriers of groups that were decided and whose first Binding has not been sent yet.
        reservations: nodes that are kept for groups that wait long.
        bindings: number of members that are being bound, less one for each group, which is a task of the scheduler.
    """

    members: MemberCycle
    reserver: Reserver
    attempts: Attempts
    binding: BindingCycle
    status: GroupStatusWriter
    start: Start
    since_1970: Clock | None = None

    def __post_init__(self) -> None:
        self.forming: dict[GroupRef, Barrier] = {}
        self.bindings = 0
        self._cluster, self._queue, self._reserver = self.members.cluster, self.members.queue, self.reserver
        self._observers = self.attempts.observers
        self._choosing = DomainChoice(self.members)
        planning = Planner(self._cluster, self._choosing)
        self.reservations = Reservations(self._cluster, self._queue, self.attempts.clock, planning, self.since_1970 or self.attempts.clock)

    def decides(self, pod: PodInfo, evaluator: Evaluator) -> bool:
        """Return whether a pod is decided with its group: it names a group, its profile decides groups, and no member has a node."""
        barrier = None if pod.pod_group is None else self.forming.get(pod.pod_group)
        if pod.pod_group is None or evaluator.runtime.pod_groups is None or (barrier is not None and pod.pod_group in barrier.groups):
            return False
        lineage = self._cluster.pod_groups.lineage(pod.pod_group)
        if not lineage or lineage[-1].parent is not None:
            return not standing(self._cluster, pod.pod_group)
        return tree_to_place(self._cluster, pod.pod_group) is not None

    def decided_singly(self, pod: PodInfo, problem: str = "") -> None:
        """Report the decision of a pod to its group, if the group's policy is basic.

        As upstream, such a group is scheduled once one member has a node, and waits if none has.

        Args:
            pod: a pod that was decided by itself.
            problem: reason why no node was found; empty for a pod that has a node.
        """
        if pod.pod_group is not None and pod.pod_group not in self.forming:
            self._queue.pod_group_placed(pod.pod_group)  # from now on each member backs off by itself
        pod_group = None if pod.pod_group is None else self._cluster.pod_groups.get(pod.pod_group)
        if pod_group is None or not pod_group.basic:
            return
        placed = len(self._cluster.pod_groups.placed(pod_group.ref))
        if problem and not placed:
            self.status.group_waits(pod_group, 0, 1, problem)
        elif not problem and placed == 1:
            self.status.group_placed(pod_group, 1)

    def schedule_in_steps(self, queued: QueuedPod, evaluator: Evaluator, turns: Turns | None = None) -> Steps[None]:
        """Decide the group of a pod, in steps of a member each, and start the bindings of its members.

        Args:
            queued: pod that the queue handed out. No other group is handed out before the last step.
            evaluator: evaluator of its profile.
            turns: turns of other work between steps; None if all steps are taken at once.

        Returns:
            The steps, not begun.
        """
        group = self._to_decide_here(queued, evaluator)
        trial = None if group is None else (yield from self.scheduling_cycle(group, turns))
        if trial is not None:
            self.start(self.binding_cycle(trial))

    def scheduling_cycle(self, group: Group, turns: Turns | None = None) -> Steps[GroupTrial | None]:
        """Place, assume, reserve and permit the members. Return the trial; None for a group that is back in the queue.

        Observers are told before and after, because members may be taken back.
        """
        trial = None
        with self._trying(group, lambda: turns is None or not turns.given_way):
            best = yield from self._choosing.best(group)
            if turns is not None and turns.given_way:
                best.drop_lost()
            trial = yield from self._settled(best)
        return trial

    async def _schedule_with_extenders(self, group: Group) -> bool:
        """Decide a group with extenders. The profile's other pods wait for the decision, and not for the bindings."""
        trial = None
        try:
            with self._trying(group, lambda: False):
                trial = at_once(self._settled(await self._choosing.best_with_extenders(group)))
        finally:
            self._queue.release(group.scheduler_name)
        return trial is not None and await self.binding_cycle(trial)

    @contextmanager
    def _trying(self, group: Group, uninterrupted: Callable[[], bool]) -> Iterator[None]:
        """Tell observers before and after the block tries members. If it raises an exception, the members return to the queue."""
        self._observers.group_tried(group.attempts)
        try:
            yield
        except MemoryError:
            raise
        except Exception as problem:  # noqa: BLE001 - a plugin may raise anything
            self._broke(group, problem)
        finally:
            self._observers.group_settled(group.attempts, at_once=uninterrupted())

    def _to_decide_here(self, queued: QueuedPod, evaluator: Evaluator) -> Group | None:
        """Return the group of a pod; None if it cannot be decided, or if extenders decide it beside other pods."""
        group = self._gathered(queued, evaluator)
        if group is None or not _asks_extenders(group):
            return group
        self._queue.hold(group.scheduler_name)
        self.start(self._schedule_with_extenders(group))
        return None

    # --- who is decided --------------------------------------------------------------------------------------------------------

    def _gathered(self, popped: QueuedPod, evaluator: Evaluator) -> Group | None:
        """Return the group with its waiting members; None when it cannot be decided, after failing the attempt with the reason."""
        ref, attempts = popped.pod.pod_group, self.attempts
        plugin = evaluator.runtime.pod_groups
        assert ref is not None and plugin is not None  # `decides` has tested both
        complaint = declaration_complaint(self._cluster.pod_groups, ref)
        if ref in self.forming:
            complaint = f"{self._cluster.pod_groups.lineage(ref)[-1].ref}: its members are being bound"
        tree = None if complaint else tree_to_place(self._cluster, ref)
        if tree is None:
            waits = FitError(f"waiting for the pod's group: {complaint}", unschedulable_plugins=frozenset({plugin.name}))
            attempts.fail(attempts.begin(popped, evaluator), waits)
            return None
        group = Group(tree, plugin, evaluator)
        begun: list[Attempt] = []
        for queued in self._queue.take_pod_group(popped, group.refs):
            if queued is not popped and attempts.skip(queued.pod):
                self._queue.done(queued.uid)
            else:
                begun.append(attempts.begin(queued, evaluator))
        # Nominated members come first: victims have left for them, and their seats fit together.
        begun.sort(key=lambda attempt: self._queue.nominator.node_of(attempt.uid) is None)
        group = group.in_order(begun)
        profiles = {leaf: Counter(pod.scheduler_name for pod in self._queue.pod_groups.members(leaf)) for leaf in group.refs}
        complaint = tree_complaint(tree, profiles, tree.group.ref)
        if complaint:  # members may have left since this member passed PreEnqueue
            self._fail(group, {}, complaint)
            return None
        return group

    # --- the outcome ----------------------------------------------------------------------------------------------------------

    def _settled(self, trial: GroupTrial) -> Steps[GroupTrial | None]:
        """Return the members that may be bound, with their placements settled; None when no member gets a node."""
        group = trial.group
        group.decided = self.attempts.clock()
        complaint = self._read_anew(trial)
        if complaint:
            trial.take_back()
            self._fail(group, {}, complaint)
            return None
        if not trial.fits():
            yield from self._refuse(trial)
            return None
        try:
            waits, objections = self._permitted(trial)
        except BaseException:
            trial.take_back()
            raise
        trial.prune()
        if not trial.fits():
            trial.take_back()
            self._fail(group, objections, f"needs {group.needed} members placed, and Permit refused {len(objections)}")
            return None
        self._settle(trial, waits, objections)
        return trial

    def _read_anew(self, trial: GroupTrial) -> str:
        """Judge the trial of a tree by the groups that exist now. Some may have come, gone or changed while other work had its turn.

        Returns:
            What is wrong with the tree now; "" if nothing is.
        """
        pod_groups, ref = self._cluster.pod_groups, trial.group.pod_group.ref
        pod_group = pod_groups.get(ref)
        if trial.group.tree.is_leaf:
            return ""
        if pod_group is not None:
            trial.group.tree = tree_at(pod_groups, pod_group)
            trial.prune()
        return declaration_complaint(pod_groups, ref)

    def _permitted(self, trial: GroupTrial) -> tuple[dict[str, Mapping[str, Seconds]], dict[str, FitError]]:
        """Run Permit for all members; return the waits by uid, and the refusals. A refused member has been given back."""
        waits: dict[str, Mapping[str, Seconds]] = {}
        objections: dict[str, FitError] = {}
        for attempt, result in trial.placed:
            try:
                waits[attempt.uid] = self._reserver.permitted(result)
            except FitError as refused:
                if refused.internal:
                    raise
                trial.drop(attempt)
                objections[attempt.uid] = refused
        return waits, objections

    def _settle(self, trial: GroupTrial, waits: Mapping[str, Mapping[str, Seconds]], objections: Mapping[str, FitError]) -> None:
        """Settle the members that have nodes and are permitted, which are enough. The others are single pods from now on.

        A spare member that fits nowhere is tried as a single pod at once, because it may preempt. Then it waits for its own events.
        """
        group, placed = trial.group, trial.placed
        for attempt, result in placed:
            attempt.together = len(placed)
            self._reserver.settle(result, waits[result.pod.uid])
        self.reservations.came_true(group.pod_group.ref)
        left_over = {member.attempt.uid: member.failure for member in trial.unplaced} | dict(objections)
        standing_now = trial.staying
        for attempt in group.attempts:
            if ref_of(attempt.pod) not in standing_now:
                message = f'pod group "{ref_of(attempt.pod).name}" is unschedulable beside the others of "{group.pod_group.ref.name}"'
                self.attempts.fail(
                    attempt, _with_its_group(group, left_over.get(attempt.uid), message, attempt.uid, GroupRoom(), frozenset())
                )
            elif attempt.uid in left_over:
                self.attempts.fail(attempt, left_over[attempt.uid])
            elif attempt.uid not in trial.seats:
                self._queue.done(attempt.uid)  # deleted while other work had its turn
        spare = [member for member in trial.unplaced if ref_of(member.attempt.pod) in standing_now]
        self._queue.activate([member.attempt.pod for member in spare if not member.failure.internal])
        self._ended(group, GroupResult.SCHEDULED)

    # --- the binding cycle -------------------------------------------------------------------------------------------------------

    def binding_cycle(self, trial: GroupTrial) -> Coroutine[Any, Any, bool]:
        """Bind all members behind one barrier. Further members of the group join the barrier from now on.

        Returns:
            The binding cycle, to be awaited; True when all members are bound.
        """
        barrier = self._barrier(trial)
        self.forming.update(dict.fromkeys(trial.group.refs, barrier))
        self.bindings += len(trial.placed) - 1
        return self._bind(trial.group, trial.placed, barrier)

    def _barrier(self, trial: GroupTrial) -> Barrier:
        group, queue, binding = trial.group, self._queue, self.binding
        pods = {result.pod.uid: result.pod for _, result in trial.placed}

        def decided(opened: bool) -> None:
            for ref in trial.possible:
                (queue.pod_group_placed if opened and ref in barrier.staying else queue.pod_group_failed)(ref)

        barrier = Barrier(group.plugin.name, pods, group.tree.staying, lambda uid: binding.call_off(uid, TAKEN_BACK), decided)
        return barrier

    async def _bind(self, group: Group, placed: Sequence[tuple[Attempt, ScheduleResult]], barrier: Barrier) -> bool:
        seconds = group.pod_group.timeout_seconds or group.settings.schedule_timeout_seconds
        timer = asyncio.get_running_loop().call_later(seconds, barrier.expire, seconds) if seconds else None
        try:
            bound = await self._bind_all(placed, barrier)
        finally:
            if timer is not None:
                timer.cancel()
            for ref in group.refs:
                self.forming.pop(ref, None)
            self.bindings -= len(placed) - 1
        if barrier.expired or not (any(bound) or group.tree.is_leaf):
            # Only time has passed, or other groups of the tree waited for these Bindings. So no event in the cluster will bring them back.
            for ref in group.refs:
                self._queue.retry_group(ref)
        counts = {ref: len(self._cluster.pod_groups.placed(ref)) for ref in group.refs}
        for tree in group.tree.groups() if any(bound) else ():
            if tree.stands(counts):
                self.status.group_placed(tree.group, sum(counts[leaf.ref] for leaf in tree.leaves()))
        if any(bound):  # the others waited for these Bindings, and may be tried as groups of their own
            waiting = [self._queue.pod_groups.members(ref) for ref in group.refs if ref not in barrier.staying]
            self._queue.activate([pod for members in waiting for pod in members])
        return all(bound)

    async def _bind_all(self, placed: Sequence[tuple[Attempt, ScheduleResult]], barrier: Barrier) -> list[bool]:
        """Begin the members' bindings. Many begin in turns, and a member that has not begun can be called off, too."""
        for _, result in placed:
            self.binding.expect(result, barrier)
        begun: list[asyncio.Task[bool]] = []
        try:
            for attempt, result in placed:
                begun.append(asyncio.create_task(self.binding.run(attempt, result, barrier)))
                if len(begun) % MEMBERS_A_TURN == 0:
                    await asyncio.sleep(0)
            return await asyncio.gather(*begun)
        except asyncio.CancelledError:
            for task in begun:
                task.cancel()
            raise

    def _refuse(self, trial: GroupTrial) -> Steps[None]:
        """Fail a group when too few members fit, after looking for victims or nodes to keep."""
        group = trial.group
        failures = {member.attempt.uid: member.failure for member in trial.unplaced}
        untried = len(group.attempts) - len(trial.placed) - len(trial.unplaced)
        untried = 0 if trial.looked else untried
        why = lacking_in(group.tree, trial.possible, trial.unplaced)
        if group.tree.is_leaf:
            why = lacking(group.needed, trial.likely, group.needed - len(group.attempts), list(failures.values()), untried)
        if trial.domain is not None and trial.domain.names:
            why += f" (in {trial.domain}, which comes closest)"
        elif trial.domain is not None:
            why = f"no node has the label {trial.domain.key}, and all members have to stand on nodes with one value of it"
        if trial.domains_left:
            why += f" ({trial.domains_left} other domains are left for the next attempt)"
        trial.take_back()
        room = yield from self._room_for(group, failures)
        self._fail(group, failures, ". ".join(filter(None, (why, room.why.removesuffix(".")))), room, trial)
        if not room.nodes:
            self._keep_nodes_for(group)
        elif room.free:
            self._queue.retry(group.attempts[0].uid, full_backoff=True)  # nothing has to leave, so no event will bring the group back

    def _room_for(self, group: Group, failures: Mapping[str, FitError]) -> Steps[GroupRoom]:
        """Return the room that the group could make by preemption."""
        if len(group.attempts) < group.needed or _asks_extenders(group):
            return GroupRoom()
        declared = self._cluster.pod_groups.object_of(group.pod_group.ref)
        if isinstance(declared, CompositePodGroup) and declared.spec.preemption_policy == "Never":
            return GroupRoom(why=f"preemption: {NEVER}")
        # Members that no node could hold come first. If no eviction helps them, the search ends early.
        ordered = sorted(group.attempts, key=lambda attempt: attempt.uid not in failures)
        return (yield from room_for(group.in_order(ordered), self.members, self._choosing))

    def _keep_nodes_for(self, group: Group) -> None:
        if not group.tree.is_leaf:
            return  # nodes are kept for members of one PodGroup
        try:
            self.reservations.consider(group)
        except MemoryError:
            raise
        except Exception:
            _logger.exception("keeping nodes for %s broke; it waits without a reservation", group.pod_group.ref)

    def _fail(
        self, group: Group, failures: Mapping[str, FitError], why: str, room: GroupRoom | None = None, trial: GroupTrial | None = None
    ) -> None:
        """Return all members to the queue, each with its own failure and the group's.

        Args:
            group: a group that gets no nodes.
            failures: failures of members that no node could hold, by uid.
            why: shortage of the group, in words.
            room: room that is made for the members.
            trial: trial that did not fit; None if the group failed before or after its trial.
        """
        pod_group, room = group.pod_group, room or GroupRoom()
        elsewhere, domains_tried = (frozenset[str](), frozenset[str]()) if trial is None else (trial.elsewhere, trial.domains_tried)
        if domains_tried:  # the other domains need no event to be tried
            room.retry_after = soonest((room.retry_after, 0.0))
        kind = "pod group" if group.tree.is_leaf else "composite pod group"
        message = f'{kind} "{pod_group.ref.name}" is unschedulable: {why}'
        filtered = any(failure.diagnosis is not None for failure in failures.values())
        for ref in group.tried:
            self._queue.pod_group_failed(ref, why, filtered=filtered, tried=domains_tried)
        for attempt in group.attempts:
            self.attempts.fail(attempt, _with_its_group(group, failures.get(attempt.uid), message, attempt.uid, room, elsewhere))
        self._tell_waits(group, why)
        self._ended(group, GroupResult.WAITING_ON_PREEMPTION if room.nodes else GroupResult.UNSCHEDULABLE)

    def _broke(self, group: Group, problem: Exception) -> None:
        """Return all members to the queue after a plugin or this program failed; they are tried again together."""
        pod_group = group.pod_group
        if not isinstance(problem, FitError):
            what = why(problem)
            _logger.error("deciding %s broke: %s", pod_group.ref, what, exc_info=problem)
            problem = broken(what)
        for ref in group.tried:
            self._queue.pod_group_failed(ref, problem.message)
        for attempt in group.attempts:
            self.attempts.fail(attempt, problem)
        self._tell_waits(group, problem.message, error=True)
        self._ended(group, GroupResult.ERROR)

    def _tell_waits(self, group: Group, why: str, *, error: bool = False) -> None:
        for tree in group.tree.groups():
            placed = len(self._cluster.pod_groups.placed(tree.group.ref))
            self.status.group_waits(tree.group, placed, max(tree.needed - placed, 0), why, error=error)

    def _ended(self, group: Group, result: GroupResult) -> None:
        if group.attempts:
            started, profile = group.attempts[0].started, group.evaluator.runtime.profile
            self._observers.group_ended(GroupAttempt(profile, result, started, group.decided, self.attempts.clock()))


def _asks_extenders(group: Group) -> bool:
    return any(group.evaluator.runtime.extenders_for(attempt.pod) for attempt in group.attempts)


def _with_its_group(group: Group, own: FitError | None, message: str, uid: str, room: GroupRoom, elsewhere: AbstractSet[str]) -> FitError:
    """Combine a member's own failure with its group's, and add the node where room is made for it.

    A member that waits only for its group comes back with a member that waits for something else. A failure without a plugin names no
    plugin here, either, so that the member is tried again after its backoff. There is such a failure while there are no nodes.
    """
    by_its_group = frozenset({group.plugin.name}) | elsewhere if own is None or own.unschedulable_plugins else frozenset[str]()
    nominated, victims = room.nodes.get(uid, (NO_NOMINATION if room.withdraws else None, ()))
    return FitError(
        message if own is None else f"{message}. {own.message}",
        unschedulable_plugins=by_its_group if own is None else own.unschedulable_plugins | by_its_group,
        pending_plugins=frozenset() if own is None else own.pending_plugins,
        nominated_node=nominated,
        victims=victims,
        refused=NO_NODE_REFUSED if own is None else own.refused,
        retry_after=None if room.nodes else room.retry_after,
    )
