"""Does work in steps, either at once or in turns with the other work of the event loop.

The decision of a group of thousands takes seconds. Meanwhile watches are read, Bindings are sent, the lead is renewed, and other
pods are decided. Their decisions must not count members that may be taken back. So the group is suspended first: its members leave
the columns. Afterwards they are put back on their nodes, if they still fit there. Before it is suspended again, a group works at
least as long as this took. So half of its time is its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextlib import nullcontext
from typing import Any, Final, Protocol, TypeVar

from placewright.scheduler.cycle import broken
from placewright.scheduler.extendedcycle import LEAD_LOST
from placewright.scheduler.ports import Clock

T = TypeVar("T")


class Suspendable(Protocol):
    """Work that has changed the columns for a trial. Other decisions must not see the changes."""

    @property
    def hidden(self) -> bool:
        """True if watches must not see the changes either."""

    @property
    def settled(self) -> bool:
        """False while suspended changes are still being repeated."""

    def suspend(self) -> None:
        """Undo the changes, and remember them."""

    def resume(self) -> None:
        """Begin to repeat the changes that are still possible, after other work had its turn."""


class DecisionLock:
    """The lock of the task that decides pods. With it no decision sees members of a group that are on trial.

    Tasks get the lock in the order in which they asked for it.

    Attributes:
        wanted: number of tasks that wait for it.
    """

    __slots__ = ("_lock", "wanted")

    def __init__(self) -> None:
        self.wanted = 0
        self._lock = asyncio.Lock()

    async def __aenter__(self) -> None:
        self.wanted += 1
        try:
            await self._lock.acquire()
        finally:
            self.wanted -= 1

    async def __aexit__(self, *_: object) -> None:
        self._lock.release()


#: Work that yields after each piece and returns its result. It yields a trial that must be suspended before other pods are decided, or
#: None.
Steps = Generator[Suspendable | None, None, T]

#: Seconds of steps before other work has its turn.
TURN_SECONDS: Final = 0.005


def at_once(steps: Steps[T]) -> T:
    """Take all steps without a turn of other work, and return their result."""
    while True:
        try:
            next(steps)
        except StopIteration as ended:
            result: T = ended.value
            return result


class Turns:
    """Takes steps, with turns of other work on the event loop in between.

    Example:
        trial = await Turns(clock, lambda: lead.active).take(choosing.best(group))   # other tasks run between members

    Args:
        clock: seconds, monotonic.
        leads: returns whether this replica may still decide.
        lock: lock that is held while steps are taken, and released while other pods are decided; None if the steps decide nothing.

    Attributes:
        given_way: True once other work has had a turn.
    """

    def __init__(self, clock: Clock, leads: Callable[[], bool], lock: DecisionLock | None = None) -> None:
        self.given_way = False
        self._clock = clock
        self._leads = leads
        self._lock = lock
        self._suspended: Suspendable | None = None
        #: The times at which other pods were decided last, and from which they may be decided again.
        self._lent_at = self._lend_at = clock()

    async def take(self, steps: Steps[T]) -> T:
        """Take all steps, with turns of other work in between.

        Returns:
            The result of the steps.

        Raises:
            FitError: this replica lost the lead. The steps had the same error, and have not handled it.
        """
        began = self._clock()
        try:
            while True:
                async with self._lock or nullcontext():
                    self._lent_at += self._clock() - began  # the time of other decisions is not the group's
                    while not self._others_decide_after(steps):  # noqa: ASYNC110 - the steps wait for nothing
                        await asyncio.sleep(0)
                began = self._clock()
                await asyncio.sleep(0)
        except StopIteration as ended:
            result: T = ended.value
            return result
        finally:
            try:
                self._resume()
            finally:
                # Closing raises GeneratorExit inside the work, which then takes back all that it assumed.
                steps.close()

    def _others_decide_after(self, steps: Steps[Any]) -> bool:
        """Take steps for one turn, then hide what other work must not see; return whether others decide next."""
        try:
            self._resume()
        except MemoryError:
            raise
        except Exception as problem:  # noqa: BLE001 - a plugin may raise anything while its group is put back
            steps.throw(problem)
        if self.given_way and not self._leads():
            steps.throw(broken(LEAD_LOST))
        until = self._clock() + TURN_SECONDS
        suspendable = next(steps)
        while self._clock() < until:
            suspendable = next(steps)
        self.given_way = True
        lends = self._lends(suspendable)
        if suspendable is not None and (lends or suspendable.hidden):
            try:
                suspendable.suspend()
            except MemoryError:
                raise
            except Exception as problem:  # noqa: BLE001 - likewise
                steps.throw(problem)
            self._suspended = suspendable
        return lends

    def _resume(self) -> None:
        suspended, self._suspended = self._suspended, None
        if suspended is not None:
            suspended.resume()

    def _lends(self, suspendable: Suspendable | None) -> bool:
        """Return whether other pods are decided now: they wait, and the group has worked long enough since it was put back."""
        now = self._clock()
        if suspendable is not None and not suspendable.settled:
            self._lend_at = now + (now - self._lent_at)
            return False
        if self._lock is None or not self._lock.wanted or now < self._lend_at:
            return False
        self._lent_at = self._lend_at = now
        return True
