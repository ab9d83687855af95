"""From a chosen node to the Binding: assume · reserve · permit, then the binding cycle: wait · prepare · bind, or take everything back.

Many binding cycles run at once. While one runs, its pod is in flight in the queue and assumed in the cluster.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import msgspec

from placewright.api.annotations import DECISION, DEVICES, NO_DEVICES, Decision
from placewright.api.errors import BindError
from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.events import ASSIGNED_POD_DELETE
from placewright.framework.interface import Seconds
from placewright.framework.runtime.guard import why
from placewright.framework.status import SUCCESS, Code, Status, error, unschedulable
from placewright.framework.steps import BIND, PERMIT, POST_BIND, PRE_BIND, RESERVE, WAIT_ON_PERMIT
from placewright.queue.queue import SchedulingQueue
from placewright.queue.room import RoomPlace
from placewright.scheduler.attempts import Attempt, Counts, Observers
from placewright.scheduler.cycle import NO_NOMINATION, FitError, ScheduleResult, broken
from placewright.scheduler.failures import FailureHandler
from placewright.scheduler.messages import late_rejection, permit_timeout
from placewright.scheduler.podgroups.barrier import LEFT, Barrier
from placewright.scheduler.ports import Clock, EventRecorder, EventType

_logger = logging.getLogger(__name__)

SCHEDULED: Final = "Scheduled"
BOUND_BY_ANOTHER: Final = "bound by somebody else meanwhile"
REPLACED: Final = "replaced by another pod of its name meanwhile"
PREEMPTED_IN_PREBIND: Final = "preempted while it was prepared for its node"
_PREEMPTION: Final = "DefaultPreemption"


class WaitingPod:
    """One pod and the plugins that have not allowed it yet."""

    def __init__(self, pod: PodInfo, waits: Mapping[str, float], clock: Clock) -> None:
        """`waits`: plugin name to the longest it may keep the pod, in seconds."""
        self.pod = pod
        self._waits = dict(waits)
        self._clock = clock
        self._since = clock()
        self._verdict: Status | None = None
        self._decided = asyncio.Event()

    @property
    def pending_plugins(self) -> tuple[str, ...]:
        """Plugins that have not allowed the pod."""
        return tuple(self._waits)

    def allow(self, plugin: str) -> None:
        """The plugin has no objection any more; the last one lets the pod go."""
        self._waits.pop(plugin, None)
        if not self._waits:
            self._decide(SUCCESS)

    def reject(self, plugin: str, reason: str) -> None:
        """The plugin refuses; the pod is rolled back."""
        self._decide(unschedulable(reason).by(plugin))

    def give_up(self, reason: str) -> None:
        """Nobody refuses, but the pod cannot be bound from here; it is rolled back and tried again."""
        self._decide(error(reason))

    async def decision(self) -> Status:
        """Wait until everybody allowed, somebody rejected, or somebody's time is over."""
        while self._verdict is None:
            plugin, longest = min(self._waits.items(), key=lambda wait: wait[1])
            left = self._since + longest - self._clock()
            if left <= 0:
                self.reject(plugin, permit_timeout(plugin, longest))
                continue
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._decided.wait()
        return self._verdict

    def _decide(self, verdict: Status) -> None:
        if self._verdict is None:
            self._verdict = verdict
            self._decided.set()


class WaitingPods:
    """All waiting pods, by uid."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._pods: dict[str, WaitingPod] = {}

    def __iter__(self) -> Iterator[WaitingPod]:
        return iter(tuple(self._pods.values()))

    def get(self, uid: str) -> WaitingPod | None:
        """The waiting pod, or None."""
        return self._pods.get(uid)

    def __len__(self) -> int:
        return len(self._pods)

    def enter(self, pod: PodInfo, waits: Mapping[str, float]) -> None:
        """Keep the pod from now on, if any plugin wants it to wait: plugins can find it here before its binding has begun."""
        if waits:
            self._pods[pod.uid] = WaitingPod(pod, waits, self._clock)

    async def decided(self, pod: PodInfo) -> Status:
        """Wait until the pod is allowed or rejected, and let it go; SUCCESS at once for one that was not to wait."""
        waiting = self._pods.get(pod.uid)
        if waiting is None:
            return SUCCESS
        try:
            return await waiting.decision()
        finally:
            del self._pods[pod.uid]


@dataclass(frozen=True, slots=True)
class Reserver:
    """Takes what a placement needs, and gives it back: Assume · Reserve · Permit."""

    cluster: Cluster
    queue: SchedulingQueue
    waiting: WaitingPods
    counts: Counts = field(default_factory=Counts)

    def assume(self, placement: ScheduleResult) -> None:
        """Assume · Reserve · Permit. Raises `FitError`, or what a plugin raised, with everything given back."""
        self.take(placement)
        try:
            waits = self.permitted(placement)
        except BaseException:
            self.give_back(placement)
            raise
        self.settle(placement, waits)

    def take(self, placement: ScheduleResult) -> None:
        """Assume · Reserve. Raises `FitError`, or what a plugin raised, with everything given back."""
        pod, node, steps = placement.pod, placement.node, placement.state.steps
        self.cluster.assume(pod, node)
        reserved = True
        steps.begin()
        try:
            status = placement.runtime.run_reserve(placement.state, pod, node)
            reserved = status.ok  # what failed has been given back already
            steps.end(RESERVE, status.code)
            _require(status)
        except BaseException:
            if reserved:
                unreserve(placement)
            self.cluster.forget(pod, node)
            raise

    def give_back(self, placement: ScheduleResult) -> None:
        """As if `take` had not been called."""
        unreserve(placement)
        self.cluster.forget(placement.pod, placement.node)

    def permitted(self, placement: ScheduleResult) -> Mapping[str, Seconds]:
        """Permit: which plugins want the pod to wait, and how long; raises `FitError`, or what a plugin raised."""
        steps = placement.state.steps
        steps.begin()
        status, waits = placement.runtime.run_permit(placement.state, placement.pod, placement.node)
        steps.end(PERMIT, Code.WAIT if waits else status.code)
        _require(status)
        return waits

    def settle(self, placement: ScheduleResult, waits: Mapping[str, Seconds]) -> None:
        """The pod is on its way: it waits for permission where it has to, its nomination ends, and pods that it helps are tried."""
        self.counts.scheduled += 1
        self.waiting.enter(placement.pod, waits)
        self._end_nomination(placement)
        self.queue.activate(placement.state.activate.values())
        placement.state.activate.clear()

    def _end_nomination(self, placement: ScheduleResult) -> None:
        """Pods that are no more important took the room it was nominated to for taken; if it goes elsewhere, that room is free."""
        pod, nominator = placement.pod, self.queue.nominator
        nominated = nominator.node_of(pod.uid)
        nominator.delete(pod.uid)
        if nominated is not None and nominated != placement.node:
            self.queue.move(ASSIGNED_POD_DELETE, pod.on(nominated), None, except_uid=pod.uid, up_to_priority=pod.priority)


@dataclass(frozen=True, slots=True)
class BindingCycle:
    """Takes placements to the API server."""

    cluster: Cluster
    queue: SchedulingQueue
    waiting: WaitingPods
    failures: FailureHandler
    events: EventRecorder
    observers: Observers
    counts: Counts = field(default_factory=Counts)
    #: Attempts whose Binding may or may not exist, by uid: still assumed, still in flight, until a watch or the reconciler tells.
    unresolved: dict[str, tuple[Attempt, ScheduleResult]] = field(default_factory=dict)
    #: Uids on their way to a node whose name belongs to another pod by now: what their Binding is answered is not about them.
    given_up: set[str] = field(default_factory=set)
    #: Pods in PreBind, by uid, and what ends it early: they may wait for minutes, for a volume that is being made, and ask nothing of the
    #: API server meanwhile.
    preparing: dict[str, asyncio.Timeout] = field(default_factory=dict)
    #: Placements whose binding runs, by uid.
    under_way: dict[str, ScheduleResult] = field(default_factory=dict)
    #: Where pods wait, by uid, for others of their group to be prepared, too.
    barriers: dict[str, Barrier] = field(default_factory=dict)

    async def run(self, attempt: Attempt, placement: ScheduleResult, barrier: Barrier | None = None) -> bool:
        """Bind, or roll back and requeue; True when the pod is bound. Never raises for what a plugin or the API server does.

        `barrier`: no Binding is sent before it opens.
        """
        bound = await self._run(attempt, placement, barrier)
        self.counts.bound += bound
        self.counts.bind_failures += not bound
        return bound

    def expect(self, placement: ScheduleResult, barrier: Barrier) -> None:
        """The pod's `run` comes soon; from now on it can be called off."""
        self.under_way[placement.pod.uid] = placement
        self.barriers[placement.pod.uid] = barrier

    async def _run(self, attempt: Attempt, placement: ScheduleResult, barrier: Barrier | None) -> bool:
        unknown, uid = False, attempt.uid
        self.under_way[uid] = placement
        if barrier is not None:
            self.barriers[uid] = barrier
        try:
            status = await self._bind(placement)
        except BindError as problem:
            status, unknown = error(str(problem)), problem.unknown
        except Exception as problem:
            status = error(why(problem))
            _logger.exception("binding pod %s to node %s broke: %s", placement.pod.key, placement.node, status.message)
        finally:
            self.under_way.pop(uid, None)
            self.barriers.pop(uid, None)
        if uid in self.given_up:
            self.given_up.discard(uid)
            self._replaced(attempt, placement)
            return False
        # A watch may have been faster than the answer, and what it shows counts.
        shown = self._confirmed_on(uid)
        if status.ok or shown == placement.node:
            self._bound(attempt, placement)
            return True
        if shown is not None:
            self._bound_by_another(attempt, placement)
        elif unknown and self.cluster.placement(uid) is not None:
            _logger.warning("%s; the pod keeps its place until the API server tells", status.message)
            self.unresolved[uid] = (attempt, placement)
            self.queue.in_flight.place(uid).stand_aside()
        else:
            self.roll_back(attempt, placement, status)
        return False

    def resolve(self, uid: str, node: NodeName | None) -> None:
        """The API server told where the pod of an unresolved Binding stands (None: nowhere); other pods are no error."""
        unresolved = self.unresolved.pop(uid, None)
        if unresolved is None:
            return
        attempt, placement = unresolved
        if node is None:
            self.roll_back(attempt, placement, error("the API server has no Binding of this pod"))
        elif node == placement.node:
            self._bound(attempt, placement)
        else:
            self._bound_by_another(attempt, placement)

    def give_up(self, uid: str) -> None:
        """The pod's name belongs to another pod, and its room was given back; pods that are not being bound are no error."""
        unresolved = self.unresolved.pop(uid, None)
        if unresolved is not None:
            self._replaced(*unresolved)
        elif self.queue.in_flight.get(uid) is not None:
            self.given_up.add(uid)

    def abandon(self, uid: str) -> None:
        """The pod is gone: let plugins that still wait for something stop; pods that are not being bound are no error."""
        placement = self.under_way.get(uid)
        if placement is not None:
            placement.state.abandoned = True
            if (barrier := self.barriers.get(uid)) is not None:
                barrier.leave(uid, error(LEFT))

    def preempt(self, uid: str) -> bool:
        """Take back a pod that has to make room, before its Binding is sent; False where there may be one already, or none under way."""
        waiting = self.waiting.get(uid)
        if waiting is not None:
            waiting.reject(_PREEMPTION, "preempted")
            return True
        return self.end_preparation(uid)

    def end_preparation(self, uid: str) -> bool:
        """End a pod's PreBind, or its wait for its group after PreBind: it is rolled back and tried again. False where it is in neither."""
        preparation = self.preparing.get(uid)
        if preparation is None:
            barrier = self.barriers.get(uid)
            if barrier is None or barrier.decided:
                return False
            barrier.leave(uid, error(PREEMPTED_IN_PREBIND))
            return True
        end_now(preparation)
        return True

    def call_off(self, uid: str, why: str) -> None:
        """End what the pod waits for, be it permission or its preparation: it is rolled back."""
        waiting = self.waiting.get(uid)
        if waiting is not None:
            waiting.give_up(why)
        elif uid in self.preparing:
            self.end_preparation(uid)

    def _confirmed_on(self, uid: str) -> NodeName | None:
        known = self.cluster.placement(uid)
        return None if known is None or known.assumed else known.node

    def _bound(self, attempt: Attempt, placement: ScheduleResult) -> None:
        self.queue.done(attempt.uid)
        note = f"Successfully assigned {placement.pod.key} to {placement.node}"
        self.events.record(placement.pod, EventType.NORMAL, SCHEDULED, "Binding", note)
        try:
            with attempt.steps.step(POST_BIND):
                placement.runtime.run_post_bind(placement.state, placement.pod, placement.node)
        except Exception as problem:
            what = why(problem)
            _logger.exception("PostBind of pod %s broke; the pod is bound: %s", placement.pod.key, what)
        self.queue.activate(placement.state.activate.values())
        attempt.succeeded()
        self.observers.attempt_ended(attempt)

    def _bound_by_another(self, attempt: Attempt, placement: ScheduleResult) -> None:
        """Somebody else put the pod on another node: it needs nothing more from us."""
        _logger.warning("pod %s was bound by somebody else while it was on its way to %s", placement.pod.key, placement.node)
        self._lost(attempt, placement, BOUND_BY_ANOTHER)

    def _replaced(self, attempt: Attempt, placement: ScheduleResult) -> None:
        """There is no such pod any more: whatever the Binding did, it did to another one."""
        self._lost(attempt, placement, REPLACED)

    def _lost(self, attempt: Attempt, placement: ScheduleResult, why: str) -> None:
        unreserve(placement)
        self.queue.done(attempt.uid)
        attempt.failed(broken(why))
        self.observers.attempt_ended(attempt)

    async def _bind(self, placement: ScheduleResult) -> Status:
        pod, node, runtime, state = placement.pod, placement.node, placement.runtime, placement.state
        barrier, place = self.barriers.get(pod.uid), self.queue.in_flight.place(pod.uid)
        try:
            status = await self._made_ready(placement, barrier, place)
        except BaseException as problem:
            if barrier is not None:
                barrier.leave(pod.uid, error(why(problem)))
            raise
        if barrier is not None:
            gone = (flight := self.queue.in_flight.get(pod.uid)) is None or flight.gone
            status = await barrier.arrive(pod.uid, error(LEFT) if gone and status.ok else status)
        if status.ok:
            place.go_on()
            with state.steps.step(BIND) as step:
                status = await runtime.run_bind(state, pod, node, decision_annotations(placement))
                step.outcome = status.code
        return status

    async def _made_ready(self, placement: ScheduleResult, barrier: Barrier | None, place: RoomPlace) -> Status:
        """Allowed, and prepared. The pod stands aside until its Binding is sent: others may have to do something first, for minutes."""
        pod, steps = placement.pod, placement.state.steps
        if self.waiting.get(pod.uid) is not None:
            place.await_permission()
            with steps.step(WAIT_ON_PERMIT) as step:
                status = await self.waiting.decided(pod)
                step.outcome = status.code
            if not status.ok:
                return status
        if barrier is not None and barrier.refusal is not None:
            return barrier.refusal
        place.stand_aside()
        with steps.step(PRE_BIND) as step:
            status = await self._prepare(placement)
            step.outcome = status.code
        return status

    async def _prepare(self, placement: ScheduleResult) -> Status:
        pod = placement.pod
        try:
            async with asyncio.timeout(None) as preparation:
                self.preparing[pod.uid] = preparation
                return await placement.runtime.run_pre_bind(placement.state, pod, placement.node)
        except TimeoutError:
            if not preparation.expired():
                raise
            return error(PREEMPTED_IN_PREBIND)
        finally:
            self.preparing.pop(pod.uid, None)

    def roll_back(self, attempt: Attempt, placement: ScheduleResult, status: Status) -> None:
        """Take everything back and requeue the pod."""
        pod, node = placement.pod, placement.node
        unreserve(placement)
        self.cluster.forget(pod, node)
        failure = rejected_late(status) if status.rejected else broken(status.message)
        attempt.failed(failure)
        self.failures.handle(attempt.queued, failure)
        # The room that the pod would have used is free again: others may want it. A plugin that rejected the pod itself must not be
        # overruled by the pod's own leaving.
        self.queue.move(ASSIGNED_POD_DELETE, pod.on(node), None, except_uid=pod.uid)
        self.observers.attempt_ended(attempt)


def end_now(waiting: asyncio.Timeout) -> None:
    """Let what is waited for inside end; harmless where it has been told so and has not heard of it yet, which `reschedule` refuses."""
    if not waiting.expired():
        waiting.reschedule(asyncio.get_running_loop().time())


def unreserve(placement: ScheduleResult) -> None:
    """Let plugins give back what they reserved; one that breaks doing so does not keep the pod."""
    try:
        placement.runtime.run_unreserve(placement.state, placement.pod, placement.node)
    except Exception as problem:
        what = why(problem)
        _logger.exception("Unreserve of pod %s broke: %s", placement.pod.key, what)


def _require(status: Status) -> None:
    if status.ok:
        return
    raise rejected_late(status) if status.rejected else broken(status.message)


def rejected_late(status: Status) -> FitError:
    """A plugin rejected the pod after a node was chosen; an earlier nomination has had its chance."""
    blamed = frozenset({status.plugin})
    return FitError(
        late_rejection(status),
        unschedulable_plugins=blamed,
        pending_plugins=blamed if status.code is Code.PENDING else frozenset(),
        nominated_node=NO_NOMINATION,
    )


def decision_annotations(placement: ScheduleResult) -> dict[str, str]:
    """What rides on the Binding to the pod: the decision, and what plugins want to find there again."""
    profile = placement.runtime.profile
    decision = Decision(
        profile=profile.name,
        generation=profile.generation,
        score=placement.score,
        runner_up=placement.runner_up,
        plugins=placement.plugins,
    )
    noted = {DEVICES: NO_DEVICES} if DEVICES in (placement.pod.pod.metadata.annotations or ()) else {}
    return {**noted, **placement.state.annotations, DECISION: msgspec.json.encode(decision).decode()}
