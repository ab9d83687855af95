"""Takes a pod from its chosen node to its Binding.

`Reserver` assumes the pod, reserves its resources and asks Permit, within the decision. `BindingCycle` then waits for permission,
prepares and binds the pod, or takes everything back. Many binding cycles run at once. While one runs, its pod is in flight in the
queue and assumed in the cluster. `WaitingPods` has the pods that Permit plugins keep, as kube-scheduler's `waitingPodsMap` has.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec

from placewright.api.annotations import DECISION, DEVICES, NO_DEVICES, Decision
from placewright.api.compatibility import Rule
from placewright.api.errors import BindError
from placewright.api.givenup import placed_condition
from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.events import ASSIGNED_POD_DELETE
from placewright.framework.interface import PreBindPlugin, Seconds
from placewright.framework.runtime.guard import why
from placewright.framework.status import SUCCESS, Code, Status, error, unschedulable
from placewright.framework.steps import BIND, PERMIT, POST_BIND, PRE_BIND, RESERVE, WAIT_ON_PERMIT
from placewright.queue.inflight import RoomPlace
from placewright.queue.queue import SchedulingQueue
from placewright.scheduler.attempts import Attempt, Counts, FailureHandler, Observers
from placewright.scheduler.cycle import NO_NOMINATION, FitError, ScheduleResult, broken
from placewright.scheduler.messages import late_rejection, permit_timeout
from placewright.scheduler.podgroups.barrier import LEFT, Barrier
from placewright.scheduler.ports import Clock, EventRecorder, EventType

_logger = logging.getLogger(__name__)

SCHEDULED: Final = "Scheduled"
BOUND_BY_ANOTHER: Final = "bound by another scheduler meanwhile"
REPLACED: Final = "replaced by another pod of its name meanwhile"
PREEMPTED_IN_PREBIND: Final = "preempted while it was prepared for its node"


class WaitingPod:
    """A pod that waits for permission, with the plugins that have not allowed it yet."""

    def __init__(self, pod: PodInfo, waits: Mapping[str, float], clock: Clock) -> None:
        """Begin to wait now.

        Args:
            pod: a pod that is assumed and reserved.
            waits: seconds that each plugin may keep the pod, by name.
            clock: seconds, monotonic.
        """
        self.pod = pod
        self._waits = dict(waits)
        self._clock = clock
        self._since = clock()
        self._verdict: Status | None = None
        self._decided = asyncio.Event()

    @property
    def pending_plugins(self) -> tuple[str, ...]:
        """The plugins that have not allowed the pod."""
        return tuple(self._waits)

    def allow(self, plugin: str) -> None:
        """Allow the pod on behalf of a plugin; the last plugin to allow lets it go."""
        self._waits.pop(plugin, None)
        if not self._waits:
            self._decide(SUCCESS)

    def reject(self, plugin: str, reason: str) -> None:
        """Reject the pod on behalf of a plugin; it is rolled back.

        Args:
            plugin: name of the plugin.
            reason: text of the pod's event.
        """
        self._decide(unschedulable(reason).by(plugin))

    def give_up(self, reason: str) -> None:
        """Fail the pod without blaming a plugin; it is rolled back and tried again."""
        self._decide(error(reason))

    async def decision(self) -> Status:
        """Wait until every plugin has allowed the pod, one has rejected it, or one has used up its time.

        Returns:
            SUCCESS, a rejection, or an error.
        """
        while self._verdict is None:
            plugin, longest = min(self._waits.items(), key=lambda wait: wait[1])
            # The scheduler's clock decides, because tests move it by hand. asyncio's timeout only ends the wait.
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
    """All waiting pods, by uid.

    Args:
        clock: seconds, monotonic.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._pods: dict[str, WaitingPod] = {}

    def __iter__(self) -> Iterator[WaitingPod]:
        return iter(tuple(self._pods.values()))

    def get(self, uid: str) -> WaitingPod | None:
        """Return the waiting pod of this uid; None when it does not wait."""
        return self._pods.get(uid)

    def __len__(self) -> int:
        return len(self._pods)

    def enter(self, pod: PodInfo, waits: Mapping[str, float]) -> None:
        """Keep the pod if a plugin wants it to wait. Plugins find it here from now on, before its binding cycle has begun.

        Args:
            pod: a pod that is assumed and reserved.
            waits: seconds that each plugin may keep the pod, by name; empty when no plugin does.
        """
        if waits:
            self._pods[pod.uid] = WaitingPod(pod, waits, self._clock)

    async def decided(self, pod: PodInfo) -> Status:
        """Wait for the decision about a pod and let the pod go. Return SUCCESS at once for a pod that no plugin keeps."""
        waiting = self._pods.get(pod.uid)
        if waiting is None:
            return SUCCESS
        try:
            return await waiting.decision()
        finally:
            del self._pods[pod.uid]


@dataclass(frozen=True, slots=True)
class Reserver:
    """Assumes pods on their nodes, runs Reserve and Permit, and takes all of that back.

    Attributes:
        cluster: columns in which pods are assumed.
        queue: queue in which nominations end and helped pods are activated.
        waiting: pods that Permit plugins keep.
        counts: outcomes so far.
    """

    cluster: Cluster
    queue: SchedulingQueue
    waiting: WaitingPods
    counts: Counts = field(default_factory=Counts)

    def assume(self, result: ScheduleResult) -> None:
        """Assume the pod on its node, then run Reserve and Permit.

        Args:
            result: decision on the columns as they are now.

        Raises:
            FitError: a plugin refused. After this and any other exception everything has been given back.
        """
        self.take(result)
        try:
            waits = self.permitted(result)
        except BaseException:
            self.give_back(result)
            raise
        self.settle(result, waits)

    def take(self, result: ScheduleResult) -> None:
        """Assume the pod on its node, then run Reserve.

        Args:
            result: decision on the columns as they are now.

        Raises:
            FitError: a plugin refused. After this and any other exception everything has been given back.
        """
        pod, node, steps = result.pod, result.node, result.state.steps
        self.cluster.assume(pod, node)
        reserved = True
        steps.begin()
        try:
            status = result.runtime.run_reserve(result.state, pod, node)
            reserved = status.ok  # `run_reserve` has unreserved all plugins when one of them failed
            steps.end(RESERVE, status.code)
            _require(status)
            self.cluster.take_with_claims(pod.uid, result.state.taken_with_claims)
        except BaseException:  # a cancelled attempt must leave no reservation either
            if reserved:
                unreserve(result)
            self.cluster.forget(pod, node)
            raise

    def give_back(self, result: ScheduleResult) -> None:
        """Undo `take`."""
        unreserve(result)
        self.cluster.forget(result.pod, result.node)

    def permitted(self, result: ScheduleResult) -> Mapping[str, Seconds]:
        """Run Permit.

        Returns:
            The plugins that want the pod to wait, with the seconds that each may keep it.

        Raises:
            FitError: a plugin refused. Other exceptions of plugins pass, too.
        """
        steps = result.state.steps
        steps.begin()
        status, waits = result.runtime.run_permit(result.state, result.pod, result.node)
        steps.end(PERMIT, Code.WAIT if waits else status.code)
        _require(status)
        return waits

    def settle(self, result: ScheduleResult, waits: Mapping[str, Seconds]) -> None:
        """Let the pod go on to its binding cycle. End its nomination, and try pods that it helps.

        Args:
            result: decision that is assumed, reserved and permitted.
            waits: plugins that keep the pod waiting, with their seconds.
        """
        self.counts.scheduled += 1
        self.waiting.enter(result.pod, waits)
        nominated = self.queue.nominator.delete(result.pod.uid)
        if nominated is not None and nominated != result.node:
            # Pods of no higher priority may have the room that the pod was nominated to, because it goes elsewhere.
            pod = result.pod
            self.queue.move(ASSIGNED_POD_DELETE, pod.on(nominated), None, except_uid=pod.uid, up_to_priority=pod.priority)
        if result.state.activate:
            self.queue.activate(result.state.activate.values())
            result.state.activate.clear()


@dataclass(frozen=True, slots=True)
class BindingCycle:
    """Binds pods to the nodes that were chosen for them.

    Attributes:
        cluster: columns in which the pods are assumed.
        queue: queue in which they are in flight.
        waiting: pods that Permit plugins keep.
        failures: handler that returns pods to the queue and reports.
        events: recorder of the event `Scheduled`.
        observers: listeners that are told of each attempt that ends.
        counts: outcomes so far.
        unresolved: attempts whose Binding may or may not exist, by uid. The pods stay assumed and in flight until a watch or the
            reconciler shows the outcome.
        given_up: uids of pods that are being bound although their name belongs to another pod by now. The answer to their Binding
            says nothing about them.
        preparing: timeouts that end PreBind early, by uid. Pods may be in PreBind for minutes, for example until a volume is made.
        under_way: decisions whose binding cycle runs, by uid, with the barriers at which they wait for other members of their group.
    """

    cluster: Cluster
    queue: SchedulingQueue
    waiting: WaitingPods
    failures: FailureHandler
    events: EventRecorder
    observers: Observers
    counts: Counts = field(default_factory=Counts)
    unresolved: dict[str, tuple[Attempt, ScheduleResult]] = field(default_factory=dict)
    given_up: set[str] = field(default_factory=set)
    preparing: dict[str, asyncio.Timeout] = field(default_factory=dict)
    under_way: dict[str, tuple[ScheduleResult, Barrier | None]] = field(default_factory=dict)

    async def run(self, attempt: Attempt, result: ScheduleResult, barrier: Barrier | None = None) -> bool:
        """Bind the pod, or roll it back and return it to the queue. Never raises for errors of plugins or of the API server.

        Args:
            attempt: attempt that is under way.
            result: decision that is assumed, reserved and permitted.
            barrier: barrier that opens before any Binding of the pod's group is sent; None for a pod without a group.

        Returns:
            True when the pod is bound.
        """
        unknown, uid = False, attempt.uid
        self.under_way[uid] = (result, barrier)
        try:
            status = await self._bind(result, barrier)
        except BindError as problem:
            status, unknown = error(str(problem)), problem.unknown
        except MemoryError:
            raise
        except Exception as problem:
            status = error(why(problem))
            _logger.exception("binding pod %s to node %s broke: %s", result.pod.key, result.node, status.message)
        finally:
            self.under_way.pop(uid, None)
        if uid in self.given_up:
            self.given_up.discard(uid)
            self._lost(attempt, result, REPLACED)  # its Binding reached another pod, or none
            return False
        # A watch may have been faster than the answer. It shows the stored pod, so the answer does not matter.
        known = self.cluster.placement(uid)
        shown = None if known is None or known.assumed else known.node
        if status.ok or shown == result.node:
            self._bound(attempt, result)
            return True
        if shown is not None:
            self._bound_by_another(attempt, result)
        elif unknown and known is not None:
            _logger.warning("%s; the pod keeps its room until the API server shows whether it is bound", status.message)
            # The API server may still carry the Binding out. To free the room now could overfill the node (decision 6).
            self.unresolved[uid] = (attempt, result)
            self.queue.in_flight.place(uid).stand_aside()
        else:
            self.roll_back(attempt, result, status)
        return False

    def expect(self, result: ScheduleResult, barrier: Barrier) -> None:
        """Note that the pod's `run` comes soon, so that it can be called off from now on.

        Args:
            result: decision about a member of a group.
            barrier: the group's barrier.
        """
        self.under_way[result.pod.uid] = (result, barrier)

    def resolve(self, uid: str, node: NodeName | None) -> None:
        """Settle an unresolved Binding by the node that the API server shows; harmless for other pods.

        Args:
            uid: uid of the pod.
            node: node of the pod; None if it has none.
        """
        unresolved = self.unresolved.pop(uid, None)
        if unresolved is None:
            return
        attempt, result = unresolved
        if node is None:
            self.roll_back(attempt, result, error("the API server has no Binding of this pod"))
        elif node == result.node:
            self._bound(attempt, result)
        else:
            self._bound_by_another(attempt, result)

    def give_up(self, uid: str) -> None:
        """End the binding of a pod whose name belongs to another pod by now; harmless for pods that are not being bound."""
        unresolved = self.unresolved.pop(uid, None)
        if unresolved is not None:
            self._lost(*unresolved, REPLACED)
        elif self.queue.in_flight.get(uid) is not None:
            self.given_up.add(uid)

    def abandon(self, uid: str) -> None:
        """Let plugins that wait in a binding cycle know that the pod is gone; harmless for pods that are not being bound."""
        result, barrier = self.under_way.get(uid, (None, None))
        if result is not None:
            result.state.abandoned = True
        if barrier is not None:
            barrier.leave(uid, error(LEFT))

    def preempt(self, uid: str, plugin: str) -> bool:
        """Roll a pod back that is a victim of preemption, before its Binding is sent.

        Args:
            uid: uid of the victim.
            plugin: name of the plugin that preempts.

        Returns:
            False when the victim's Binding may have been sent, or when it is not being bound.
        """
        waiting = self.waiting.get(uid)
        if waiting is not None:
            waiting.reject(plugin, "preempted")
            return True
        return self.end_preparation(uid)

    def end_preparation(self, uid: str) -> bool:
        """End a pod's PreBind, or its wait for its group after PreBind. The pod is rolled back and tried again.

        Returns:
            False when the pod neither is in PreBind nor waits for its group.
        """
        _, barrier = self.under_way.get(uid, (None, None))
        if (preparation := self.preparing.get(uid)) is not None:
            end_now(preparation)
        elif barrier is None or barrier.decided:
            return False
        else:
            barrier.leave(uid, error(PREEMPTED_IN_PREBIND))
        return True

    def call_off(self, uid: str, why: str) -> None:
        """End the pod's wait for permission or its preparation. The pod is rolled back.

        Args:
            uid: uid of the pod.
            why: message of its failure.
        """
        waiting = self.waiting.get(uid)
        if waiting is not None:
            waiting.give_up(why)
        elif uid in self.preparing:
            self.end_preparation(uid)

    def _bound(self, attempt: Attempt, result: ScheduleResult) -> None:
        self.queue.done(attempt.uid)
        self.counts.bound += 1
        note = f"Successfully assigned {result.pod.key} to {result.node}"
        self.events.record(result.pod, EventType.NORMAL, SCHEDULED, "Binding", note)
        try:
            with attempt.steps.step(POST_BIND):
                result.runtime.run_post_bind(result.state, result.pod, result.node)
        except MemoryError:
            raise
        except Exception as problem:
            what = why(problem)
            # The pod is bound, so the attempt has succeeded, with or without PostBind.
            _logger.exception("PostBind of pod %s broke; the pod is bound: %s", result.pod.key, what)
        self.queue.activate(result.state.activate.values())
        if attempt.queued.given_up_at is not None:
            self.failures.status.pod_condition(result.pod.on(result.node), placed_condition(result.node))
        attempt.succeeded()
        self.observers.attempt_ended(attempt)

    def _bound_by_another(self, attempt: Attempt, result: ScheduleResult) -> None:
        """End an attempt whose pod another scheduler put on another node."""
        _logger.warning("pod %s was bound by another scheduler while it was on its way to %s", result.pod.key, result.node)
        self._lost(attempt, result, BOUND_BY_ANOTHER)

    def _lost(self, attempt: Attempt, result: ScheduleResult, why: str) -> None:
        """End an attempt whose pod is not ours to bind any more."""
        unreserve(result)
        self.queue.done(attempt.uid)
        attempt.failed(broken(why))
        self.observers.attempt_ended(attempt)

    async def _bind(self, result: ScheduleResult, barrier: Barrier | None) -> Status:
        pod, node, runtime, state = result.pod, result.node, result.runtime, result.state
        place = self.queue.in_flight.place(pod.uid)
        try:
            status = await self._made_ready(result, barrier, place)
        except BaseException as problem:
            if barrier is not None:
                barrier.leave(pod.uid, error(why(problem)))
            raise
        if barrier is not None:
            gone = status.ok and not self.queue.in_flight.has(pod.uid)
            status = await barrier.arrive(pod, error(LEFT) if gone else status)
        if status.ok:
            place.go_on()
            with state.steps.step(BIND) as step:
                status = await runtime.run_bind(state, pod, node, decision_annotations(result))
                step.outcome = status.code
        return status

    async def _made_ready(self, result: ScheduleResult, barrier: Barrier | None, place: RoomPlace) -> Status:
        """Wait for permission, then run PreBind.

        PreBind and the pod's group may take minutes. A pod that waits for them stands aside until its Binding is sent. Most pods
        wait for neither. Autoscalers read in the pod's status where a pod goes that waits.
        """
        pod, steps = result.pod, result.state.steps
        waits = self.waiting.get(pod.uid) is not None
        plugins = result.runtime.pre_bind_plugins(result.state, pod, result.node)
        if (waits or plugins) and Rule.NOMINATION_BEFORE_BINDING in result.runtime.profile.rules:
            self.failures.status.pod_nominated(pod, result.node)
        if waits:
            place.await_permission()
            with steps.step(WAIT_ON_PERMIT) as step:
                status = await self.waiting.decided(pod)
                step.outcome = status.code
            if not status.ok:
                return status
        if barrier is not None:
            if (refusal := barrier.refusal(pod)) is not None:
                return refusal
            place.stand_aside()
        with steps.step(PRE_BIND) as step:
            if not plugins:
                return SUCCESS
            place.stand_aside()
            status = await self._prepare(result, plugins)
            step.outcome = status.code
        return status

    async def _prepare(self, result: ScheduleResult, plugins: Sequence[PreBindPlugin]) -> Status:
        pod = result.pod
        try:
            # `end_preparation` moves this timeout to now. To cancel the task would end the binding cycle, which has to roll the pod
            # back.
            async with asyncio.timeout(None) as preparation:
                self.preparing[pod.uid] = preparation
                return await result.runtime.run_pre_bind(result.state, pod, result.node, plugins)
        except TimeoutError:
            if not preparation.expired():
                raise
            return error(PREEMPTED_IN_PREBIND)
        finally:
            self.preparing.pop(pod.uid, None)

    def roll_back(self, attempt: Attempt, result: ScheduleResult, status: Status) -> None:
        """Take everything back and return the pod to the queue.

        Args:
            attempt: attempt that is under way.
            result: decision that is given back.
            status: reason. After a rejection the pod waits for events, and after an error it backs off.
        """
        pod, node = result.pod, result.node
        unreserve(result)
        self.cluster.forget(pod, node)
        failure = rejected_late(status) if status.rejected else broken(status.message)
        attempt.failed(failure)
        self.failures.handle(attempt.queued, failure)
        # The room that the pod held is free for other pods. The pod itself is not told, because that would overrule the plugin
        # that rejected it.
        self.queue.move(ASSIGNED_POD_DELETE, pod.on(node), None, except_uid=pod.uid)
        self.observers.attempt_ended(attempt)


def end_now(waiting: asyncio.Timeout) -> None:
    """End the wait inside a timeout at once; harmless for a timeout that has expired, which `reschedule` would refuse."""
    if not waiting.expired():
        waiting.reschedule(asyncio.get_running_loop().time())


def unreserve(result: ScheduleResult) -> None:
    """Run Unreserve. A plugin that raises is logged, and the pod is taken back all the same."""
    try:
        result.runtime.run_unreserve(result.state, result.pod, result.node)
    except MemoryError:
        raise
    except Exception as problem:
        what = why(problem)
        _logger.exception("Unreserve of pod %s broke: %s", result.pod.key, what)


def _require(status: Status) -> None:
    if status.ok:
        return
    raise rejected_late(status) if status.rejected else broken(status.message)


def rejected_late(status: Status) -> FitError:
    """Make the failure of a pod that a plugin rejected after a node was chosen. An earlier nomination is withdrawn."""
    blamed = frozenset({status.plugin})
    return FitError(
        late_rejection(status),
        unschedulable_plugins=blamed,
        pending_plugins=blamed if status.code is Code.PENDING else frozenset(),
        nominated_node=NO_NOMINATION,
    )


def decision_annotations(result: ScheduleResult) -> dict[str, str]:
    """Return the annotations of the pod that the Binding writes: the decision, and notes of plugins.

    They are written in the same request. So after a crash every pod with a node has them (decision 20).
    """
    profile = result.runtime.profile
    decision = Decision(
        profile=profile.name,
        generation=profile.generation,
        score=result.score,
        runner_up=result.runner_up,
        plugins=result.plugins,
    )
    noted = {DEVICES: NO_DEVICES} if DEVICES in (result.pod.pod.metadata.annotations or ()) else {}
    return {**noted, **result.state.annotations, DECISION: msgspec.json.encode(decision).decode()}
