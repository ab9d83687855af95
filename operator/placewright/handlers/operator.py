"""`placewright run`: the engine with Kopf beside it, from the first request to the last."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
from collections.abc import Coroutine
from typing import Any, Final

from placewright.engine.children import first_of
from placewright.engine.companions import MakeCompanions, no_companions
from placewright.engine.debugsignal import ignore_debug_signal
from placewright.engine.engine import Engine, build_engine
from placewright.engine.freedmemory import map_large_pieces
from placewright.engine.options import EngineOptions
from placewright.engine.outofmemory import OutOfMemory, is_out_of_memory
from placewright.handlers.kopftasks import KopfStarted, keep_kopf_running
from placewright.kube.auth.login import ClusterAccess, load_config
from placewright.kube.errors import ConfigError
from placewright.kube.eventloop import loop_factory
from placewright.kube.tasks import cancelled
from placewright.leadership.leaseobject import CannotElect

_logger = logging.getLogger(__name__)

#: Arguments of `gc.set_threshold`. The cache's objects live for long: Python's own thresholds would have the collector walk all of them at
#: each burst of pods.
GC_THRESHOLDS: Final = (50_000, 20, 50)
#: Seconds in which an operator that has run out of memory gives the lead back and ends.
_END_SECONDS: Final = 5


def run(
    kubeconfig: str | None = None,
    context: str | None = None,
    options: EngineOptions = EngineOptions(),  # noqa: B008
    make_companions: MakeCompanions = no_companions,
) -> int:
    """Run the operator until SIGTERM or SIGINT.

    Args:
        kubeconfig: path of a kubeconfig; None for `KUBECONFIG`, the default file, or the pod's ServiceAccount.
        context: context of the kubeconfig; None for its current one.
        options: options of the engine.
        make_companions: makes the observers and servers that are open for as long as the engine is, such as metrics. An error of
            its opening ends the run and is raised.

    Returns:
        The exit code: 0 after a signal, 1 when a part of the engine has ended.

    Raises:
        ConfigError: there is no cluster in the configuration, or its replicas cannot elect one.
    """
    access = load_config(kubeconfig, context)
    gc.freeze()  # modules and classes stay until the end: the collector need not walk them
    gc.set_threshold(*GC_THRESHOLDS)
    map_large_pieces()
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        try:
            runner.run(_run_until_signal(access, options, make_companions))
        except CannotElect as problem:
            raise ConfigError(f"{access.server}: {problem}") from None
        except EngineBroken as problem:
            _logger.critical("%s", problem)
            return 1
    return 0


async def _run_until_signal(access: ClusterAccess, options: EngineOptions, make_companions: MakeCompanions) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    ignore_debug_signal()

    def take_signals() -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)

    def end_soon(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if is_out_of_memory(context.get("exception")):
            signal.alarm(_END_SECONDS)  # the kernel ends the process, if it has no memory to end in order
        loop.default_exception_handler(context)

    loop.set_exception_handler(end_soon)
    take_signals()
    await run_engine(build_engine(access, options, make_companions), stop, take_signals)


class EngineBroken(Exception):
    """A part of the scheduler has ended that runs for as long as the process, or memory has run out: the rest would only look alive."""


async def run_engine(engine: Engine, stop: asyncio.Event, on_kopf_start: KopfStarted = lambda: None) -> None:
    """Run an engine until `stop` is set.

    Args:
        engine: not started yet.
        stop: ends it in order when it is set.
        on_kopf_start: called after each start of Kopf.

    Raises:
        CannotElect: replicas could not elect one of them: the peering's or the Lease's definition or rights are missing.
        EngineBroken: a part of the engine has ended.
    """
    try:
        with OutOfMemory() as memory:
            async with engine.companions.open(engine):
                try:
                    if await _unless_stopped(engine.start(), stop):
                        await _work(engine, memory, stop, on_kopf_start)
                finally:
                    await engine.stop()
    finally:
        await engine.close()  # also where the opening of companions failed, and nothing was started


async def _unless_stopped(work: Coroutine[Any, Any, None], stop: asyncio.Event) -> bool:
    """Await the work, or cancel it when `stop` is set. Returns whether the work was done."""

    async def done() -> bool:
        await work
        return True

    async def stopped() -> bool:
        await stop.wait()
        return False

    return await first_of(done(), stopped())


async def _work(engine: Engine, memory: OutOfMemory, stop: asyncio.Event, on_kopf_start: KopfStarted) -> None:
    """Keep Kopf running until `stop` is set, a part of the engine ends, or memory runs out.

    The order of the end: decisions stop, bindings under way finish, the Lease is given back, and then Kopf leaves the peering. The next
    replica so begins after the last Binding of this one, and at once.

    Raises:
        EngineBroken: a part of the engine has ended, or memory has run out.
    """
    kopf_stop = asyncio.Event()
    watching = asyncio.create_task(keep_kopf_running(engine, kopf_stop, on_kopf_start), name="Kopf")
    broken = asyncio.create_task(memory.failure(engine.broken()), name="engine's health")
    stopping = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait((watching, broken, stopping), return_when=asyncio.FIRST_COMPLETED)
        failure = broken.result() if broken.done() else None
        await engine.drain()
        kopf_stop.set()
        await watching
    finally:
        await cancelled(watching, broken, stopping)
    if failure is not None:
        raise EngineBroken(f"{failure}; the operator ends, to be started again")
