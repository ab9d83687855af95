"""SIGUSR2, as kube-scheduler has it: compare cache and queue with the API server, then write both to the log.

Before that the waiting pods are decided afresh (`engine.reconcile.forgotten`).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, Protocol

from placewright.api.bad_input import printable
from placewright.api.decode import DecodeError
from placewright.cluster.cluster import Cluster
from placewright.engine.debuglines import cache_lines, profile_lines, queue_lines
from placewright.engine.profilekeeper import ProfileKeeper
from placewright.engine.reconcile.forgotten import ForgottenPods
from placewright.engine.reconcile.loop import ReconcileLoop
from placewright.kube.errors import RequestError
from placewright.kube.listwatch import Malformed
from placewright.leadership.peers import Replica
from placewright.queue.queue import SchedulingQueue
from placewright.scheduler.ports import Lead

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


class Debugged(Protocol):
    """The part of the engine that the debugger reads."""

    cluster: Cluster
    queue: SchedulingQueue
    profiles: ProfileKeeper
    reconcile_loop: ReconcileLoop
    forgotten: ForgottenPods

    @property
    def replica(self) -> Replica:
        """This replica."""

    @property
    def leadership(self) -> Lead:
        """Whether this replica may decide."""

    def unsynced(self) -> list[str]:
        """The kinds whose first list is not complete."""


class Debugger:
    """Compares cache and queue with the API server and writes both to the log, on the signal or on `ask`."""

    def __init__(self, engine: Debugged) -> None:
        self._engine = engine
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
        if not self._engine.leadership.active:
            return []
        before = self._engine.forgotten.counts.looked
        found = await self._engine.forgotten.look_at_all()
        looked = self._engine.forgotten.counts.looked - before
        return [f"debug: waiting pods decided afresh: {looked}; forgotten: {len(found)}"]

    async def _compare(self) -> None:
        if unsynced := self._engine.unsynced():
            _logger.info("debug: not compared with the API server: not listed yet: %s", ", ".join(unsynced), extra=_NO_REPEAT)
            return
        try:
            # Kopf feeds no pods to the queue of a replica that stands by, so there is nothing to compare.
            found = await self._engine.reconcile_loop.compare(queue=self._engine.leadership.active)
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
        engine = self._engine
        state = "active" if engine.leadership.active else "standing by"
        lines = (
            f"debug: replica {engine.replica.identity} is {state}",
            *profile_lines(engine.profiles.standings().values()),
            *waiting,
            *cache_lines(engine.cluster, engine.queue.nominator),
            *queue_lines(engine.queue),
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
