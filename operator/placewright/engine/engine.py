"""The engine: everything one scheduler consists of, put together around one API server.

It outlives Kopf: when a broken stream ends Kopf's part, that is started again and finds the same engine, with its queue.
"""

from __future__ import annotations

import asyncio
from typing import Final

from placewright.engine.companions import MakeCompanions, no_companions
from placewright.engine.debugsignal import Debugger
from placewright.engine.decidingpart import DecidingPart
from placewright.engine.freedmemory import give_back_memory
from placewright.engine.leadingpart import LeadingPart
from placewright.engine.options import EngineOptions
from placewright.engine.profilekeeper import FileProfiles
from placewright.engine.readingpart import ReadingPart
from placewright.engine.writingpart import WritingPart
from placewright.kube.auth.login import ClusterAccess
from placewright.kube.errors import RetryBackoff, until_answered
from placewright.kube.tasks import Tasks

#: Seconds after which `broken` looks for reflectors that were added meanwhile.
_LOOK_SECONDS: Final = 1.0


class Engine:
    """One scheduler on one API server, whole: `start`, `drain` and `stop` only run what is built here.

    Attributes:
        access: address of the API server, and credentials for it.
        options: options of the engine.
        companions: the listeners, and the servers that are open for as long as the engine exists.
        leading: whether this replica may act.
        writing: the client and the writers.
        deciding: cluster, queue, scheduler and profiles.
        reading: the reflectors, and what they are compared with.
        ending: True once the engine has been told to end.
    """

    def __init__(self, access: ClusterAccess, options: EngineOptions, make_companions: MakeCompanions) -> None:
        """Build all parts and start none. `build_engine` describes the arguments."""
        self.access, self.options, self.ending = access, options, False
        self.leading = LeadingPart(access, options, lambda: (self.writing, self.deciding, self.reading))
        info, takeover = self.leading.info, self.leading.takeover
        self.companions = make_companions(info)
        heard = self.companions.listeners
        self.writing = WritingPart(info, options, heard, takeover, lambda: self.deciding, lambda: self.reading.discovery)
        self.deciding = DecidingPart(info, options, heard, takeover, self.writing, lambda: self.reading)
        self.reading = ReadingPart(options, heard, self.leading.leadership, takeover, self.writing, self.deciding)
        debugger = Debugger(self.leading, self.deciding, self.reading)
        self._children = Tasks({"freed memory": give_back_memory, "debugger": debugger.run})

    async def start(self) -> None:
        """Reach the API server, fill the columns, begin to schedule. This waits for as long as the API server is away.

        Raises:
            CannotElect: replicas could not elect one of them.
            ConfigError: a profile of a file cannot take effect.
        """
        found = await until_answered(self.reading.discovery.survey, RetryBackoff())
        await self.leading.leadership.require()
        self.reading.discovery.adopt(found)
        if isinstance(self.deciding.profiles, FileProfiles):
            self.deciding.profiles.load(self.options.profiles or ())
        for part in (self.leading, self.writing, self.reading, self.deciding, self._children):
            part.start()

    async def broken(self) -> str:
        """Wait until a part has ended that should run until `drain` or `stop`. Returns its name and its error."""
        ended: set[asyncio.Task[None]] = set()
        while not ended:
            ended, _ = await asyncio.wait(self._tasks(), timeout=_LOOK_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        return "; ".join(_how_it_ended(task) for task in ended)

    async def drain(self) -> None:
        """Stop deciding, finish the bindings under way, and then give the lead back. So the next replica begins after them."""
        self.ending = True
        if self.deciding.runs:
            whole = await self.deciding.drain()
            await self.writing.drain()
            await self.deciding.marks.end_term()
            await self.leading.leadership.resign(give_back=whole)

    async def stop(self) -> None:
        """Drain, write the queued events and statuses, close connections. It may be called on an engine whose start was given up."""
        self.ending = True
        if self.started:
            await self.drain()
            await asyncio.gather(self._children.stop(), self.deciding.stop())
            await asyncio.gather(self.reading.stop(), self.writing.stop())
            await self.leading.stop()
        await self.deciding.close()
        await self.close()

    async def close(self) -> None:
        """Close connections; enough for an engine that was never started."""
        await self.leading.close()
        await self.writing.close()

    # --- health --------------------------------------------------------------------------------------------------------------

    @property
    def started(self) -> bool:
        """True once the API server has answered and everything runs."""
        return bool(self._children.tasks)

    def ended_parts(self) -> list[str]:
        """Names of the parts that have ended although the engine has not been told to end."""
        return [] if self.ending or not self.started else [task.get_name() for task in self._tasks() if task.done()]

    def _tasks(self) -> list[asyncio.Task[None]]:
        parts = (self._children, self.leading, self.writing, self.reading, self.deciding)
        return [task for part in parts for task in part.tasks]


def build_engine(
    access: ClusterAccess,
    options: EngineOptions = EngineOptions(),  # noqa: B008
    make_companions: MakeCompanions = no_companions,
) -> Engine:
    """Build a scheduler for one API server, without a request to it.

    The kinds that the API server serves are no part of the build: the engine must exist and answer probes while the API server is away, and
    the kinds may change later. `Discovery` adds their reflectors, at the start and later.

    Args:
        access: address of the API server, and credentials for it.
        options: options of the engine.
        make_companions: makes the listeners, and the servers that are open for as long as the engine exists.

    Returns:
        An engine that has not been started.
    """
    return Engine(access, options, make_companions)


def _how_it_ended(task: asyncio.Task[None]) -> str:
    if task.cancelled():
        return f"{task.get_name()} was cancelled"
    problem = task.exception()
    while isinstance(problem, BaseExceptionGroup) and len(problem.exceptions) == 1:  # a task group wraps the error of its only failing task
        (problem,) = problem.exceptions
    if problem is not None:
        asyncio.get_running_loop().call_exception_handler({"message": f"{task.get_name()} broke", "exception": problem})
    return f"{task.get_name()} ended ({type(problem).__name__}: {problem})"
