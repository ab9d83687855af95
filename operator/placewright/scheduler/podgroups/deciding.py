"""Deciding a group in one go: all members that wait are tried together, and enough of them get nodes or none does.

The members are placed one after the other by the ordinary cycle, each assumed and reserved for real. If too few fit, all is taken back
before anybody else looks. Then Permit for all, then their bindings, behind one barrier: no Binding is sent before all are prepared.

Once a Binding may have been sent, nothing is taken back: what is bound stays bound, whatever the API server says to the others, and
whatever becomes of this replica. As soon as a member stands on a node, the others are pods like any other (see
`cluster.gangrules.standing`), with their group's age as their turn. So a group of which some died is filled up one by one, and one of
which nobody is left is decided anew.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, Final

from placewright.api.objects import NodeName
from placewright.api.podgroups import GroupRef
from placewright.api.pods import PodInfo
from placewright.cluster.gangrules import declaration_complaint, members_complaint, standing
from placewright.framework.blame import why
from placewright.framework.evaluation import Evaluator
from placewright.framework.interface import PodGroupPlugin, Seconds
from placewright.queue.queued import QueuedPod
from placewright.scheduler.attempts import Attempt, GroupAttempt, GroupResult
from placewright.scheduler.cycle import NO_NOMINATION, NoPlacement, Placement, broken
from placewright.scheduler.insight import NO_NODE_REFUSED
from placewright.scheduler.podgroups.barrier import Barrier
from placewright.scheduler.podgroups.choosing import Choosing
from placewright.scheduler.podgroups.domains import joined_domain
from placewright.scheduler.podgroups.evicting import Evicting, Room
from placewright.scheduler.podgroups.group import Group, Surroundings
from placewright.scheduler.podgroups.lacking import lacking
from placewright.scheduler.podgroups.planning import Planning
from placewright.scheduler.podgroups.reservations import Reservations
from placewright.scheduler.podgroups.trial import Trial

_logger = logging.getLogger(__name__)

TAKEN_BACK: Final = "its group is taken back"


class GangScheduler:
    """Decides groups for one scheduler.

    Attributes:
        forming: groups that were decided and whose first Binding has not been sent yet.
        reservations: nodes kept for groups that wait for long.
        bindings: members being bound beyond one for each group, which is one piece of work for the scheduler.
    """

    def __init__(self, around: Surroundings) -> None:
        self.forming: dict[GroupRef, Barrier] = {}
        self.bindings = 0
        self._around = around
        self._choosing = Choosing(around)
        self._evicting = Evicting(around, self._choosing)
        self.reservations = Reservations(around, Planning(around, self._choosing))

    def decides(self, pod: PodInfo, evaluator: Evaluator) -> bool:
        """Whether this pod is to be decided with its group: it names one, its profile cares, and no member stands yet."""
        if pod.gang is None or evaluator.runtime.pod_groups is None or pod.gang in self.forming:
            return False
        gang = self._around.cluster.gangs.get(pod.gang)
        return gang is None or not (gang.basic or standing(self._around.cluster, pod.gang))

    def barrier_of(self, pod: PodInfo) -> Barrier | None:
        """Where a pod that joins a group has to wait for it; None for most pods."""
        return None if pod.gang is None else self.forming.get(pod.gang)

    def within(self, pod: PodInfo, evaluator: Evaluator) -> frozenset[NodeName] | None:
        """The nodes that a pod which joins its group may stand on: those of the domain where the group stands, if it requires one."""
        gang = None if pod.gang is None or evaluator.runtime.pod_groups is None else self._around.cluster.gangs.get(pod.gang)
        if gang is None or not gang.topology_key or not gang.topology_required:
            return None
        return joined_domain(self._around.cluster, gang)

    def decide(self, popped: QueuedPod, evaluator: Evaluator) -> Coroutine[Any, Any, bool] | None:
        """Decide the group of a pod that was popped; what binds all members, not yet started, or None when there is nothing to bind."""
        group = self._gathered(popped, evaluator)
        if group is None:
            return None
        if _asks_extenders(group):
            self._around.queue.hold(group.scheduler_name)
            return self._decide_with_extenders(group)
        self._around.observers.group_tried(group.attempts)
        try:
            return self._decide_at_once(group)
        finally:
            self._around.observers.group_settled(group.attempts, at_once=True)

    def _decide_at_once(self, group: Group) -> Coroutine[Any, Any, bool] | None:
        try:
            trial = self._choosing.best(group)
        except Exception as problem:  # noqa: BLE001 - a plugin is anybody's code
            self._broke(group, problem)
            return None
        return self._settle(trial)

    async def _decide_with_extenders(self, group: Group) -> bool:
        """Members are asked about one after the other; the profile's other pods wait for the decision, not for the bindings."""
        self._around.observers.group_tried(group.attempts)
        try:
            trial = await self._choosing.best_with_extenders(group)
            binding = self._settle(trial)
        except Exception as problem:  # noqa: BLE001 - a plugin is anybody's code
            self._broke(group, problem)
            return False
        finally:
            self._around.observers.group_settled(group.attempts, at_once=False)
            self._around.queue.release(group.scheduler_name)
        return False if binding is None else await binding

    # --- who is decided --------------------------------------------------------------------------------------------------------

    def _gathered(self, popped: QueuedPod, evaluator: Evaluator) -> Group | None:
        """The group with its members that wait; None when it cannot be decided, and the pod has been told why."""
        around, ref = self._around, popped.pod.gang
        plugin = evaluator.runtime.pod_groups
        assert ref is not None and plugin is not None  # else nobody asks
        gang = around.cluster.gangs.get(ref)
        complaint = declaration_complaint(around.cluster.gangs, ref)
        if gang is None or complaint:
            around.fail(around.begin(popped, evaluator), _waits_for_its_group(complaint, plugin))
            return None
        group = Group(gang, plugin, evaluator)
        for queued in around.queue.take_gang(popped):
            if queued is not popped and around.skip(queued.pod):
                around.queue.done(queued.uid)
            else:
                group.attempts.append(around.begin(queued, evaluator))
        profiles = Counter(pod.scheduler_name for pod in around.queue.gangs.members(ref))
        complaint = members_complaint(gang, profiles)
        if complaint:  # others may have left since this one was let in
            self._fail(group, {}, complaint)
            return None
        return group

    # --- what comes of it ------------------------------------------------------------------------------------------------------

    def _settle(self, trial: Trial) -> Coroutine[Any, Any, bool] | None:
        """Permit and what follows, or nothing at all."""
        group = trial.group
        group.decided = self._around.clock()
        if not trial.fits():
            self._refuse(trial)
            return None
        try:
            waits, objections = self._permitted(trial)
        except Exception as problem:  # noqa: BLE001 - a plugin is anybody's code
            trial.take_back()
            self._broke(group, problem)
            return None
        if not trial.fits():
            trial.take_back()
            self._fail(group, objections, f"needs {group.needed} members placed, and Permit refused {len(objections)}")
            return None
        return self._go(trial, waits, objections)

    def _permitted(self, trial: Trial) -> tuple[dict[str, Mapping[str, Seconds]], dict[str, NoPlacement]]:
        """By uid, what plugins want members to wait for, and the refusals; a refused member has given back what it had."""
        waits: dict[str, Mapping[str, Seconds]] = {}
        objections: dict[str, NoPlacement] = {}
        for attempt, placement in tuple(trial.placed):
            try:
                waits[attempt.uid] = self._around.reserving.permitted(placement)
            except NoPlacement as refused:
                if refused.internal:
                    raise
                trial.drop(attempt)
                objections[attempt.uid] = refused
        return waits, objections

    def _go(
        self, trial: Trial, waits: Mapping[str, Mapping[str, Seconds]], objections: Mapping[str, NoPlacement]
    ) -> Coroutine[Any, Any, bool]:
        """Enough members have nodes and are allowed: the others wait as pods like any other, and these are bound."""
        around, group = self._around, trial.group
        for attempt, placement in trial.placed:
            attempt.together = len(trial.placed)
            around.reserving.settle(placement, waits[placement.pod.uid])
        self.reservations.end(group.gang.ref)
        left_over = {misfit.attempt.uid: misfit.failure for misfit in trial.misfits} | dict(objections)
        for attempt in group.attempts:
            if attempt.uid in left_over:
                around.fail(attempt, left_over[attempt.uid])
            elif attempt.uid not in waits:
                around.queue.done(attempt.uid)  # gone while extenders were asked
        barrier = self._barrier(trial)
        self.forming[group.gang.ref] = barrier
        self.bindings += len(trial.placed) - 1
        self._ended(group, GroupResult.SCHEDULED)
        return self._bind(group, trial.placed, barrier)

    def _barrier(self, trial: Trial) -> Barrier:
        around, ref = self._around, trial.group.gang.ref
        pods = {placement.pod.uid: placement.pod for _, placement in trial.placed}

        def decided(opened: bool) -> None:
            (around.queue.gang_placed if opened else around.queue.gang_failed)(ref)

        return Barrier(trial.group.plugin.name, pods, trial.group.needed, lambda uid: around.binding.call_off(uid, TAKEN_BACK), decided)

    async def _bind(self, group: Group, placed: Sequence[tuple[Attempt, Placement]], barrier: Barrier) -> bool:
        """Bind all members; True when all are bound."""
        seconds = group.gang.timeout_seconds or group.settings.schedule_timeout_seconds
        timer = asyncio.get_running_loop().call_later(seconds, barrier.expire, seconds) if seconds else None
        try:
            bound = await asyncio.gather(*(self._around.bind(attempt, placement, barrier) for attempt, placement in placed))
        finally:
            if timer is not None:
                timer.cancel()
            self.forming.pop(group.gang.ref, None)
            self.bindings -= len(placed) - 1
        if barrier.expired:
            self._around.queue.stir(group.gang.ref)
        standing_now = len(self._around.cluster.gangs.placed(group.gang.ref))
        if any(bound) and standing_now >= group.needed:
            self._around.status.group_placed(group.gang, standing_now)
        return all(bound)

    def _refuse(self, trial: Trial) -> None:
        """Too few members fit: nobody gets anything, but others may be made to leave, or room be kept."""
        group = trial.group
        failures = {misfit.attempt.uid: misfit.failure for misfit in trial.misfits}
        untried = len(group.attempts) - len(trial.placed) - len(trial.misfits)
        why = lacking(group.needed, len(trial.placed), group.needed - len(group.attempts), list(failures.values()), untried)
        if trial.domain is not None and trial.domain.names:
            why += f" (in {trial.domain}, which comes closest)"
        elif trial.domain is not None:
            why = f"no node has the label {trial.domain.key}, of which one value is to take all members"
        trial.take_back()
        try:
            room = self._room_for(group)
        except Exception as problem:  # noqa: BLE001 - a plugin is anybody's code
            self._broke(group, problem)
            return
        self._fail(group, failures, ". ".join(filter(None, (why, room.why.removesuffix(".")))), room)
        if not room.nodes:
            self._keep_nodes_for(group)

    def _room_for(self, group: Group) -> Room:
        """Whom the group could make leave."""
        if len(group.attempts) < group.needed or _asks_extenders(group):
            return Room()
        return self._evicting.search(group)

    def _keep_nodes_for(self, group: Group) -> None:
        try:
            self.reservations.consider(group)
        except Exception:
            _logger.exception("keeping nodes for %s broke; it waits without", group.gang.ref)

    def _fail(self, group: Group, failures: Mapping[str, NoPlacement], why: str, room: Room | None = None) -> None:
        """All members go back to the queue, each with what keeps it, and with what keeps the group; `room` is made for it."""
        around, gang, room = self._around, group.gang, room or Room()
        message = f'pod group "{gang.ref.name}" is unschedulable: {why}'
        around.queue.gang_failed(gang.ref, why)
        for attempt in group.attempts:
            around.fail(attempt, _with_its_group(group, failures.get(attempt.uid), message, attempt.uid, room))
        standing_now = len(around.cluster.gangs.placed(gang.ref))
        around.status.group_waits(gang, standing_now, max(group.needed - standing_now, 0), why)
        self._ended(group, GroupResult.WAITING_ON_PREEMPTION if room.nodes else GroupResult.UNSCHEDULABLE)

    def _broke(self, group: Group, problem: Exception) -> None:
        """Something is wrong with us, or with a plugin; all members are tried again, together."""
        around, gang = self._around, group.gang
        if not isinstance(problem, NoPlacement):
            what = why(problem)
            _logger.error("deciding %s broke: %s", gang.ref, what, exc_info=problem)
            problem = broken(what)
        around.queue.gang_failed(gang.ref, problem.message)
        for attempt in group.attempts:
            around.fail(attempt, problem)
        around.status.group_waits(gang, 0, group.needed, problem.message, error=True)
        self._ended(group, GroupResult.ERROR)

    def _ended(self, group: Group, result: GroupResult) -> None:
        if group.attempts:
            started, profile = group.attempts[0].started, group.evaluator.runtime.profile
            self._around.ended(GroupAttempt(profile, result, started, group.decided, self._around.clock()))


def _waits_for_its_group(complaint: str, plugin: PodGroupPlugin) -> NoPlacement:
    return NoPlacement(f"waiting for the pod's group: {complaint}", unschedulable_plugins=frozenset({plugin.name}))


def _asks_extenders(group: Group) -> bool:
    return any(group.evaluator.runtime.extenders_for(attempt.pod) for attempt in group.attempts)


def _with_its_group(group: Group, own: NoPlacement | None, message: str, uid: str, room: Room) -> NoPlacement:
    """What keeps a member: its own failure, if it has one, and its group's; and the node where room is made for it.

    A member that only its group keeps waiting is brought back with a member that something else keeps waiting.
    """
    by_its_group = frozenset({group.plugin.name})
    nominated, victims = room.nodes.get(uid, (NO_NOMINATION if room.withdraws else None, ()))
    return NoPlacement(
        message if own is None else f"{message}. {own.message}",
        unschedulable_plugins=by_its_group if own is None else own.unschedulable_plugins | by_its_group,
        pending_plugins=frozenset() if own is None else own.pending_plugins,
        nominated_node=nominated,
        victims=victims,
        refused=NO_NODE_REFUSED if own is None else own.refused,
    )
