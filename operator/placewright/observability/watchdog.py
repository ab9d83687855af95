"""Watches the event loop from a thread: logs where it hangs, and ends the process when it hangs for long.

Binding, leadership and health run in one event loop, so a plugin that computes for ever stops all of them. The probes fail then, because
the loop itself answers them. This thread logs the stack and has a mark written for the next leader. It ends the process if no kubelet does.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from types import FrameType, TracebackType
from typing import Final, Self

_log = logging.getLogger(__name__)

#: Takes the frame in which the loop hangs, and the seconds for which it has.
LeaveWord = Callable[[FrameType | None, float], object]

#: Seconds between two signs of life of the loop.
BEAT_SECONDS: Final = 0.5
#: Seconds that the last log line may take: the loop may hang in the log itself.
_LAST_WORDS_SECONDS: Final = 2.0
_EXIT_CODE: Final = 1


def _end_process() -> None:
    os._exit(_EXIT_CODE)


@dataclass(frozen=True, slots=True)
class Patience:
    """The limits of a hang.

    Attributes:
        warn: seconds without a turn of the loop after which an error is logged.
        end: seconds after which the process ends.
    """

    warn: float = 5.0
    end: float = 60.0


DEFAULT_PATIENCE: Final = Patience()


@dataclass(eq=False)
class LoopWatchdog:
    """Watches the running loop for as long as its context is open.

    Only time in which this process ran counts: one that was stopped (SIGSTOP, a suspended machine) and goes on is not stuck.

    Attributes:
        patience: the limits of a hang.
        end: called after `patience.end`, in the watching thread.
        clock: seconds, monotonic, read in that thread.
        leave_word: called before `end`, in that thread, with the hanging frame and the seconds of the hang. It must return within
            seconds.
        warn_others: called with the same after `patience.warn`, in a thread of its own: the process may be killed before it ends.
    """

    patience: Patience = DEFAULT_PATIENCE
    end: Callable[[], None] = _end_process
    clock: Callable[[], float] = time.monotonic
    leave_word: LeaveWord = lambda _frame, _seconds: None
    warn_others: LeaveWord = lambda _frame, _seconds: None

    def __post_init__(self) -> None:
        self._beats = 0
        self._stuck = 0.0
        self._closed = threading.Event()
        self._watched = 0
        self._beat_timer: asyncio.TimerHandle | None = None
        self._thread = threading.Thread(target=self._watch, name="loop watchdog", daemon=True)

    def __enter__(self) -> Self:
        self._watched = threading.get_ident()
        self._beat()
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._closed.set()
        if self._beat_timer is not None:
            self._beat_timer.cancel()
        self._thread.join(_LAST_WORDS_SECONDS)

    def failing(self) -> str:
        """Describe the failure for `/livez`: the loop hangs, or the watching thread has ended. Empty if neither is so."""
        if not self._thread.is_alive():
            return "the watchdog's thread has ended"
        if self._stuck > self.patience.warn:
            return f"the event loop has not turned for {self._stuck:.0f} s"
        return ""

    def _beat(self) -> None:
        self._beats += 1
        self._beat_timer = asyncio.get_running_loop().call_later(BEAT_SECONDS, self._beat)

    def _watch(self) -> None:
        seen, warned, before = 0, False, self.clock()
        warning: threading.Thread | None = None
        while not self._closed.wait(BEAT_SECONDS):
            now = self.clock()
            passed, before = min(now - before, 2 * BEAT_SECONDS), now
            if self._beats != seen:
                if warned:
                    _say(logging.WARNING, f"the event loop turns again, after about {self._stuck:.0f} s")
                seen, self._stuck, warned = self._beats, 0.0, False
                continue
            self._stuck += passed
            if self._stuck > self.patience.warn and not warned:
                warned = True
                self._report(logging.ERROR, "")
                asked = (self._frame(), self._stuck)
                warning = threading.Thread(target=self._warn, args=asked, name="loop watchdog's warning", daemon=True)
                warning.start()
            if self._stuck > self.patience.end:
                self._report(logging.CRITICAL, " the process ends, to be started again;").join(_LAST_WORDS_SECONDS)
                with suppress(Exception):
                    self.leave_word(self._frame(), self._stuck)
                if warning is not None:
                    warning.join(_LAST_WORDS_SECONDS)
                self.end()
                return

    def _warn(self, frame: FrameType | None, seconds: float) -> None:
        with suppress(Exception):
            self.warn_others(frame, seconds)

    def _report(self, level: int, consequence: str) -> threading.Thread:
        return _say(level, f"the event loop has not turned for {self._stuck:.0f} s;{consequence} where it is follows", self._where())

    def _frame(self) -> FrameType | None:
        return sys._current_frames().get(self._watched)  # noqa: SLF001 - documented, and there is no other way

    def _where(self) -> str:
        frame = self._frame()
        return "".join(traceback.format_stack(frame)).rstrip() if frame is not None else "nowhere: its thread has ended"


def _say(level: int, message: str, stack: str | None = None) -> threading.Thread:
    """Log from another thread, because the loop may hang in the log itself."""

    def log() -> None:
        with suppress(Exception):
            if _log.isEnabledFor(level):
                _log.handle(_log.makeRecord(_log.name, level, "", 0, message, (), None, sinfo=stack))

    saying = threading.Thread(target=log, name="loop watchdog's words", daemon=True)
    saying.start()
    return saying
