"""The scheduling loop: pods go from the queue to the scheduler in slices of a few milliseconds, beside all else on the event loop.

The loop is in one of five states, and each step leads to the next state:

| state | step | next state |
|---|---|---|
| `STANDBY` | wait for the lead | `IDLE` |
| `IDLE` | wait until the queue can hand out a pod | `CATCHING_UP` |
| `CATCHING_UP` | wait, not for long, until waiting pods are told of earlier events | `DECIDING` |
| `DECIDING` | hand out pods for one slice, each by its `Kind` | `HELD_UP` if a pod has to wait, else `STANDBY` |
| `HELD_UP` | wait for the line before the pod, then hand that pod out | `HELD_UP` if it has to wait again, else `STANDBY` |

| kind | the pod |
|---|---|
| plain | is decided at once |
| long | is prepared and decided in a line, beside pods of the same or a higher priority |
| member | is decided with its group, in a line of groups |
| behind group, behind long | holds the loop up until that line is empty, because a pod in it is more important |
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import suppress
from enum import Enum, auto
from typing import Final, Literal, Protocol

from placewright.api.podextent import SMALL
from placewright.framework.runtime.evaluation import Evaluator
from placewright.queue.queue import SchedulingQueue
from placewright.queue.queued import QueuedPod
from placewright.scheduler.cycle import FitError
from placewright.scheduler.line import Line
from placewright.scheduler.ports import Clock, Lead, Precautions
from placewright.scheduler.turns import DecisionLock, Steps, Turns

_logger = logging.getLogger(__name__)

#: Seconds of decisions before the event loop does other work.
SLICE_SECONDS: Final = 0.005
#: Seconds that decisions may wait, at once, for waiting pods to be told of events. Over time they wait for half of the time at most.
PATIENCE_SECONDS: Final = 0.5


class State(Enum):
    """The loop's state: its next step."""

    STANDBY = auto()
    IDLE = auto()
    CATCHING_UP = auto()
    DECIDING = auto()
    HELD_UP = auto()


#: The loop's view of a pod that was handed out. Strings, because reading a member of an `Enum` costs more than all else for a plain pod.
Kind = Literal["plain", "long", "member", "behind group", "behind long"]


class Decider(Protocol):
    """Decides the pods that the loop hands out. `Scheduler` implements it."""

    def schedule_one(self, queued: QueuedPod) -> None:
        """Decide a pod now."""

    def schedule_in_steps(self, queued: QueuedPod, turns: Turns) -> Steps[None]:
        """Decide a pod as `schedule_one` does, with a step for each member of its group.

        Args:
            queued: handed out by the queue.
            turns: between steps.

        Returns:
            The steps, not begun.
        """

    def give_back(self, queued: QueuedPod, problem: str) -> None:
        """End the attempt of a pod that cannot be decided now; it backs off.

        Args:
            queued: handed out by the queue.
            problem: the message of its event and condition.
        """


class SchedulingLoop:
    """Hands pods out while this replica has the lead.

    Args:
        decider: decides the pods.
        queue: where pods come from.
        profiles: the evaluator of a schedulerName, or None.
        clock: seconds, monotonic.
        lead: whether this replica may decide.
        precautions: taken before decisions that may end the process.
    """

    def __init__(
        self,
        decider: Decider,
        queue: SchedulingQueue,
        profiles: Callable[[str], Evaluator | None],
        clock: Clock,
        lead: Lead,
        precautions: Precautions,
    ) -> None:
        self._decider = decider
        self._queue = queue
        self._profiles = profiles
        self._clock = clock
        self._lead = lead
        self._precautions = precautions
        self._lock = DecisionLock()
        self._long = Line(queue, self._decide_in_line)
        #: The group that is being decided; `queue.hand_out_groups` keeps all others in the queue.
        self._groups = Line(queue, self._decide_group)
        #: The pod that has to wait, with the line that it waits for; None except in the state HELD_UP.
        self._held: tuple[QueuedPod, Line] | None = None
        self._patience, self._caught_up_at = PATIENCE_SECONDS, clock()

    # --- states ----------------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Hand pods out until cancelled."""
        async with asyncio.TaskGroup() as lines:
            lines.create_task(self._long.run())
            lines.create_task(self._groups.run())
            state = State.STANDBY
            while True:
                state = await self._step(state)

    async def _step(self, state: State) -> State:
        match state:
            case State.STANDBY:
                await self._lead.wait_active()
                return State.IDLE
            case State.IDLE:
                await self._queue.wait_for_pod()
                return State.CATCHING_UP
            case State.CATCHING_UP:
                await self._catch_up()
                return State.DECIDING
            case State.DECIDING:
                async with self._lock:
                    self.decide_slice()
                await asyncio.sleep(0)
            case State.HELD_UP:
                await self._end_wait()
        return State.STANDBY if self._held is None else State.HELD_UP

    async def _catch_up(self) -> None:
        """Wait until pods are told of earlier events: one that such an event brings back may come first.

        Events that come faster than pods are told of them would stop all decisions, so decisions regain patience only as time passes.
        """
        began = self._clock()
        self._patience = min(self._patience + began - self._caught_up_at, PATIENCE_SECONDS)
        await self._queue.sweeps.caught_up(max(self._patience, SLICE_SECONDS))
        self._caught_up_at = self._clock()
        self._patience -= self._caught_up_at - began

    def decide_slice(self) -> None:
        """Hand pods out for `SLICE_SECONDS`, until one has to wait or none is left."""
        # Time bounds a slice, and not a number of pods: a decision takes from a fraction of a millisecond to 100 ms.
        until = self._clock() + SLICE_SECONDS
        while self._held is None and self._clock() < until and self._lead.active:
            queued = self._queue.pop()
            if queued is None:
                return
            self._hand_out(queued)

    async def _end_wait(self) -> None:
        """Wait for the line before the pod that is held, and hand the pod out."""
        assert self._held is not None
        queued, line = self._held
        await line.emptied()
        async with self._lock:
            self._held = None
            if self._may_decide(queued):
                self._hand_out(queued)

    # --- pods ------------------------------------------------------------------------------------------------------------------

    def _hand_out(self, queued: QueuedPod) -> None:
        match self._kind_of(queued):
            case "plain":
                self._decider.schedule_one(queued)
            case "long":
                self._long.join(queued)
            case "member":
                self._queue.hand_out_groups(go=False)
                self._groups.join(queued)
            case "behind group":
                self._held = (queued, self._groups)
            case "behind long":
                self._held = (queued, self._long)

    def _kind_of(self, queued: QueuedPod) -> Kind:
        """Classify a pod. Runs for every pod, so the tests that nearly all pods pass are cheap."""
        if self._groups and self._groups.holds_up(queued):
            return "behind group"
        behind_long = self._long and self._long.holds_up(queued)
        if queued.pod_group is not None:
            return "behind long" if behind_long else "member"
        # A single pod waits in the line, so that pods of other priorities go on.
        if behind_long or self._precautions.due(queued) or (queued.pod.extent is not SMALL and self._is_long(queued)):
            return "long"
        return "plain"

    def _is_long(self, queued: QueuedPod) -> bool:
        evaluator = self._profiles(queued.pod.scheduler_name)
        return evaluator is not None and evaluator.prepares(queued.pod)

    # --- pods in lines ---------------------------------------------------------------------------------------------------------

    async def _decide_group(self, queued: QueuedPod) -> None:
        await self._decide_in_line(queued)
        self._queue.hand_out_groups(go=True)

    async def _decide_in_line(self, queued: QueuedPod) -> None:
        """Take precautions, prepare, and decide a pod while no other pod is being decided."""
        problem = await self._precautions.take(queued) if self._precautions.due(queued) else ""
        if not problem:
            await self._prepare(queued)
        turns = Turns(self._clock, lambda: self._lead.active, self._lock)
        await turns.take(self._decision(queued, problem, turns))

    async def _prepare(self, queued: QueuedPod) -> None:
        """Do the slow work of a decision piece by piece, with turns of the event loop in between.

        Most of it is kept and follows the cluster by itself: pods counted for a selection, domains of a label. The decision finds
        it done, and sees the cluster of that moment. Work that was not kept it does itself.
        """
        evaluator = self._profiles(queued.pod.scheduler_name)
        if evaluator is None:
            return
        turns = Turns(self._clock, lambda: self._lead.active and self._is_there(queued))
        try:
            with suppress(FitError):  # the lead is lost, or the pod gone
                await turns.take(_steps(evaluator.preparation(queued.pod)))
        except MemoryError:
            raise
        except Exception:
            _logger.exception("pod %s is decided without having been prepared", queued.key)

    def _decision(self, queued: QueuedPod, problem: str, turns: Turns) -> Steps[None]:
        if self._may_decide(queued):
            if problem:
                self._decider.give_back(queued, problem)
            else:
                yield from self._decider.schedule_in_steps(queued, turns)

    def _may_decide(self, queued: QueuedPod) -> bool:
        """Tell whether a pod that waited may be decided; if not, its attempt has been ended."""
        if not self._is_there(queued):
            self._queue.done(queued.uid)
        elif not self._lead.active:
            self._queue.return_unschedulable(queued)
        else:
            return True
        return False

    def _is_there(self, queued: QueuedPod) -> bool:
        """Return False for a pod that was deleted after it was handed out."""
        flight = self._queue.in_flight.get(queued.uid)
        return flight is not None and not flight.gone


def _steps(pieces: Iterator[None]) -> Steps[None]:
    yield from pieces
