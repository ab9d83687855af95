"""SIGUSR2, as kube-scheduler has it: compare cache and queue with the API server, then write both to the log.

Before that the waiting pods are decided afresh (`engine.reconcile.forgotten`).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from placewright.api.bad_input import printable
from placewright.api.decode import DecodeError
from placewright.engine.debuglines import cache_lines, profile_lines, queue_lines
from placewright.engine.decidingpart import DecidingPart
from placewright.engine.leadingpart import LeadingPart
from placewright.engine.readingpart import ReadingPart
from placewright.kube.errors import RequestError
from placewright.kube.listwatch import Malformed

_logger = logging.getLogger(__name__)

#: None on Windows, which has no such signal.
DEBUG_SIGNAL: Final[signal.Signals | None] = getattr(signal, "SIGUSR2", None)
#: Lines written in one go of the event loop.
_SLICE: Final = 50
#: Exempts a line from the log's rule for repeats: each signal asks for the whole dump.
_NO_REPEAT: Final[Mapping[str, object]] = {"about": None}
#: Characters of a line. A contradiction of the queue lists pods, without a bound of its own.
_LONGEST_LINE: Final = 2000


def ignore_debug_signal() -> None:
    """Ignore SIGUSR2 while no debugger listens: by default the signal ends the process."""
    if DEBUG_SIGNAL is not None:
        signal.signal(DEBUG_SIGNAL, signal.SIG_IGN)


class Debugger:
    """Compares cache and queue with the API server and writes both to the log, on the signal or on `ask`."""

    def __init__(self, leading: LeadingPart, deciding: DecidingPart, reading: ReadingPart) -> None:
        self._leading = leading
        self._deciding = deciding
        self._reading = reading
        self._asked = asyncio.Event()

    def ask(self) -> None:
        """Request a comparison and a dump. Requests that come before the next one begins are one."""
        self._asked.set()

    async def run(self) -> None:
        """Serve requests until cancelled."""
        with on_debug_signal(self.ask):
            while True:
                await self._asked.wait()
                self._asked.clear()
                waiting = await self._waiting_pods()
                await self._compare()
                await self._dump(waiting)

    async def _waiting_pods(self) -> list[str]:
        """Decide the waiting pods afresh, and return a line about it for the dump.

        This comes before the comparison: a repair of the comparison may bring pods back by itself.
        """
        forgotten = self._reading.forgotten
        if not self._leading.leadership.active:
            return []
        before = forgotten.counts.looked
        found = await forgotten.look_at_all()
        looked = forgotten.counts.looked - before
        return [f"debug: waiting pods decided afresh: {looked}; forgotten: {len(found)}"]

    async def _compare(self) -> None:
        if unsynced := self._reading.unsynced():
            _logger.info("debug: not compared with the API server: not listed yet: %s", ", ".join(unsynced), extra=_NO_REPEAT)
            return
        try:
            # Kopf feeds no pods to the queue of a replica that stands by, so there is nothing to compare.
            found = await self._reading.reconcile_loop.comparer.compare(cache=True, queue=self._leading.leadership.active)
        except (RequestError, DecodeError, Malformed) as problem:
            _logger.warning("debug: cache and queue could not be compared with the API server: %s", problem, extra=_NO_REPEAT)
        else:
            differences = ", ".join(f"{kind.replace('_', ' ')} {count}" for kind, count in found.counts() if count)
            _logger.info("debug: compared with the API server: %s", differences or "no difference", extra=_NO_REPEAT)

    async def _dump(self, waiting: Iterable[str] = ()) -> None:
        for count, line in enumerate(self._lines(waiting), 1):
            _logger.info("%s", line, extra=_NO_REPEAT)
            if count % _SLICE == 0:
                await asyncio.sleep(0)

    def _lines(self, waiting: Iterable[str]) -> Iterator[str]:
        deciding, leading = self._deciding, self._leading
        state = "active" if leading.leadership.active else "standing by"
        lines = (
            f"debug: replica {leading.replica.identity} is {state}",
            *profile_lines(deciding.profiles.standings().values()),
            *waiting,
            *cache_lines(deciding.cluster, deciding.queue.nominator),
            *queue_lines(deciding.queue),
        )
        return (_cut(printable(line)) for line in lines)


@contextlib.contextmanager
def on_debug_signal(call: Callable[[], None]) -> Iterator[None]:
    """Call `call` in the event loop at each SIGUSR2 inside the block; never on Windows, or outside the main thread."""
    if DEBUG_SIGNAL is None:
        yield
        return
    loop = asyncio.get_running_loop()
    before = signal.getsignal(DEBUG_SIGNAL)
    try:
        loop.add_signal_handler(DEBUG_SIGNAL, call)
    except (NotImplementedError, RuntimeError, ValueError):  # another thread than the main one, or a loop that takes no signals
        yield
        return
    try:
        yield
    finally:
        loop.remove_signal_handler(DEBUG_SIGNAL)
        signal.signal(DEBUG_SIGNAL, before)


def _cut(line: str) -> str:
    return line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]}... ({len(line)} characters)"
