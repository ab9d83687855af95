"""The time that one call of a plugin may take without a watchdog: in the kit, and in commands that need no cluster.

`placewright run` has a watchdog of its own: there a thread writes which plugin hangs while the loop stands still. Here the call is ended
instead. A timer of the process interrupts the main thread. The guard's frames on its stack say which plugin is called.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

from placewright.framework.errors import PluginError
from placewright.framework.runtime.guard import calls_on_stack

#: Seconds that a call may take unless a caller says otherwise. The watchdog of `placewright run` marks a plugin after as many.
CALL_SECONDS: Final = 5.0
#: Looks at a call within its limit: ten, so that it is ended at most a tenth late.
_LOOKS: Final = 10
#: The shortest time that an interrupted timer gets when it is set again; 0 would disarm it.
_AT_ONCE: Final = 1e-3


class OverdueCallError(BaseException):
    """Ends a call of a plugin that takes too long. No `Exception`, so that a plugin which catches all of these is ended, too.

    Attributes:
        plugin: its name.
        point: the extension point, as kube-scheduler names it.
        problem: one sentence that names the limit.
    """

    def __init__(self, plugin: str, point: str, seconds: float) -> None:
        self.plugin = plugin
        self.point = point
        self.problem = f"it did not return within {seconds:g} s"
        super().__init__(f'{point} plugin "{plugin}": {self.problem}')


@contextmanager
def limited_calls(seconds: float | None = CALL_SECONDS) -> Iterator[None]:
    """End each guarded call of a plugin that takes too long, with an error that names the plugin.

    A call in C that never looks for signals is not ended. Outside the main thread, and on systems without `setitimer`, there is no limit,
    because Python handles signals nowhere else.

    Args:
        seconds: that one call may take; None for no limit, as under a debugger.

    Raises:
        PluginError: a call took longer, even if the plugin or an event loop caught the exception that ended it.
    """
    try:
        with overdue_calls(seconds):
            yield
    except OverdueCallError as late:
        raise PluginError(late.plugin, late.point, late.problem) from late


@contextmanager
def overdue_calls(seconds: float | None) -> Iterator[None]:
    """Do as `limited_calls` does, with an error of its own that no code takes for a plugin's exception.

    Args:
        seconds: the limit, as for `limited_calls`.

    Raises:
        OverdueCallError: a call took longer.
    """
    if seconds is None or not hasattr(signal, "setitimer"):
        yield
        return
    watch = _Watch(seconds)
    try:
        before = signal.signal(signal.SIGALRM, watch.look)
    except ValueError:  # not the main thread
        yield
        return
    rest, interval = signal.setitimer(signal.ITIMER_REAL, watch.step, watch.step)
    try:
        yield
    finally:
        until_look, _ = signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if rest:  # a timer of the caller, such as a test runner's, goes on
            signal.setitimer(signal.ITIMER_REAL, max(_AT_ONCE, rest - watch.looks * watch.step - (watch.step - until_look)), interval)
    if watch.late is not None:
        raise watch.late


class _Watch:
    """Counts how often each guarded call on the stack has been seen there. The timer is the clock, and a framework has no other."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._seen: dict[FrameType, int] = {}
        self.step = seconds / _LOOKS
        self.looks = 0
        self.late: OverdueCallError | None = None

    def look(self, _signal: int, frame: FrameType | None) -> None:
        """Handle the timer's signal: raise in the innermost call that has been there for too long."""
        self.looks += 1
        found = list(calls_on_stack(frame))
        self._seen = {each.frame: self._seen.get(each.frame, 0) + 1 for each in found}
        for each in found:
            if self._seen[each.frame] > _LOOKS:  # the first look came at some moment after the call began
                self._seen.clear()  # a plugin that catches this has as long again
                self.late = OverdueCallError(each.call.plugin, each.point, self._seconds)
                raise self.late
