"""Virtual time: an event loop whose clock moves only when a test moves it.

Coroutines run until all of them wait. A wait for a minute takes no time at all. Coroutines run in an order that depends on nothing
outside. There is no I/O in such a loop.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final

#: The clock's first moment, in seconds; not 0, so that "at the start" and "never" differ.
START: Final = 100.0
#: So many turns of the event loop without a pause mean that the coroutines wake each other for ever.
_MOST_TURNS: Final = 200_000


class RestlessError(AssertionError):
    """The work does not come to rest while the clock stands still."""


class _Standstill(selectors.SelectSelector):
    """The selector of an event loop that never waits: where the loop would wait, it tells."""

    def __init__(self, idle: Callable[[float | None], None]) -> None:
        super().__init__()
        self._idle = idle
        self._turns = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Return at once. `timeout`: seconds to the next timer; 0: work is ready; None: there is neither work nor timer."""
        if timeout is None or timeout > 0:
            self._turns = 0
            self._idle(timeout)
        else:
            self._turns += 1
            if self._turns > _MOST_TURNS:
                self._turns = 0
                raise RestlessError(f"the event loop turned {_MOST_TURNS:,} times without a pause while the clock stood still")
        return []


class VirtualTime:
    """A clock and the event loop that goes by it. Calling it gives the time.

    Attributes:
        now: seconds. Setting it moves the clock and runs nothing.
        next_timer: seconds at which the next timer rings, as of the last `settle`; None: no timer is set.

    Example:
        time = VirtualTime()
        time.start(asyncio.sleep(60))
        time.advance(59)   # it still sleeps
        time.advance(1)    # it has ended
    """

    def __init__(self, now: float = START) -> None:
        self.now = now
        self.next_timer: float | None = None
        self._broken: list[BaseException] = []
        self._loop: asyncio.SelectorEventLoop | None = None
        self._tasks: set[asyncio.Task[Any]] = set()

    def __call__(self) -> float:
        """Return the time, in seconds."""
        return self.now

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The event loop; made when it is first asked for, since most worlds of a large suite never need one."""
        if self._loop is None:
            self._loop = _VirtualLoop(self)
        return self._loop

    def start(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Begin work; it runs whenever `settle` or `advance` does.

        Args:
            work: a coroutine that was not begun.

        Returns:
            The task. An exception that ends it is raised by `settle` or `advance`.
        """
        task = self.loop.create_task(work)
        # An event loop holds its tasks weakly: without this reference a waiting task could be collected.
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def settle(self, work: Callable[[], object] | None = None) -> None:
        """Run until everything waits, without moving the clock.

        Args:
            work: called first, inside the event loop.

        Raises:
            RestlessError: coroutines wake each other for ever.
            RuntimeError: a coroutine called this; inside a running event loop a test awaits instead.
        """
        if work is not None:
            self.loop.call_soon(work)
        if self._loop is not None:
            if in_loop():
                raise RuntimeError("virtual time has an event loop of its own: call this from a plain function, or await what you started")
            self._loop.run_forever()
        self._raise_what_broke()

    def advance(self, seconds: float) -> None:
        """Move the clock, and run every timer on the way at its moment.

        Args:
            seconds: length of the move.

        Raises:
            RestlessError: as `settle`.
            RuntimeError: as `settle`.
        """
        until = self.now + seconds
        self.settle()
        while (moment := self.next_timer) is not None and moment <= until:
            # A timer may be overdue, because a test can set the clock past it.
            self.now = max(self.now, moment)
            self.settle()
        self.now = until
        self.settle()

    def idle(self, timeout: float | None) -> None:
        """Stop the loop, which has nothing to do for `timeout` seconds. Called by the loop's selector."""
        self.next_timer = None if timeout is None else self.now + timeout
        if self._loop is not None:
            self._loop.stop()

    def heard(self, context: Mapping[str, Any]) -> None:
        """Note an uncaught exception, to be raised by `settle`. Called by the loop.

        A task that is still waiting when its world is dropped is no mistake of the test.
        """
        problem = context.get("exception")
        if isinstance(problem, BaseException):
            self._broken.append(problem)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (problem := task.exception()) is not None:
            self._broken.append(problem)

    def _raise_what_broke(self) -> None:
        broken, self._broken = self._broken, []
        if broken:
            # The first exception: later ones are often its consequences.
            raise broken[0]


def in_loop() -> bool:
    """Return whether an event loop runs the caller."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


class _VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop by virtual time."""

    def __init__(self, time: VirtualTime) -> None:
        self._time = time
        super().__init__(_Standstill(time.idle))
        self.set_exception_handler(lambda _, context: time.heard(context))

    def _make_self_pipe(self) -> None:
        """Make no sockets: a loop that never waits is not woken. Python may close the sockets of a dropped loop before the loop."""
        self._ssock = self._csock = None

    def _close_self_pipe(self) -> None:
        """Do nothing: there are no sockets."""

    def time(self) -> float:
        """Virtual seconds."""
        return self._time()

    def __del__(self) -> None:
        # A world is dropped, not closed: what still waits in it is of no interest, and the usual warning would blame the test.
        if not self.is_closed() and not self.is_running():
            self.close()
