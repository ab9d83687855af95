"""`placewright run`: the engine with Kopf beside it, from the first request to the last."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import signal
from collections.abc import Coroutine
from typing import Any, Final

from placewright.engine.beside import StandBeside, nothing_beside
from placewright.engine.debugsignal import ignore_debug_signal
from placewright.engine.engine import Engine, build_engine
from placewright.engine.options import EngineOptions
from placewright.handlers.kopftasks import KopfStarted, keep_kopf_running
from placewright.kube.auth.login import ClusterAccess, load_config
from placewright.kube.errors import ConfigError
from placewright.leadership.leaseobject import CannotElect

_logger = logging.getLogger(__name__)

#: Objects that survive the first lists live for long; the collector need not look at them at every young generation.
GC_THRESHOLDS: Final = (50_000, 20, 50)


def run(
    kubeconfig: str | None = None,
    context: str | None = None,
    options: EngineOptions = EngineOptions(),  # noqa: B008
    beside: StandBeside = nothing_beside,
) -> int:
    """Run until SIGTERM or SIGINT; returns the exit code. Raises `ConfigError` when there is no cluster, or none to work in.

    `beside`: what hears the engine, and is open for as long as it is there; what it raises when it is opened ends the run.
    """
    access = load_config(kubeconfig, context)
    gc.freeze()  # what is loaded by now stays, and need not be looked at
    gc.set_threshold(*GC_THRESHOLDS)
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        try:
            runner.run(_run_until_signal(access, options, beside))
        except CannotElect as problem:
            raise ConfigError(f"{access.server}: {problem}") from None
        except EngineBroken as problem:
            _logger.critical("%s", problem)
            return 1
    return 0


def _loop_factory() -> Any:
    with contextlib.suppress(ImportError):
        import uvloop  # noqa: PLC0415 - optional

        return uvloop.new_event_loop
    return None


async def _run_until_signal(access: ClusterAccess, options: EngineOptions, beside: StandBeside) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    ignore_debug_signal()

    def take_signals() -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)

    take_signals()
    await operate(access, stop, options, take_signals, beside)


class EngineBroken(Exception):
    """A part of the scheduler ended that never should; what is left would only look alive."""


async def operate(
    access: ClusterAccess,
    stop: asyncio.Event,
    options: EngineOptions = EngineOptions(),  # noqa: B008
    on_kopf_start: KopfStarted = lambda: None,
    beside: StandBeside = nothing_beside,
) -> None:
    """Run the operator until `stop` is set. Raises `CannotElect` when replicas could not elect one, `EngineBroken`."""
    await run_engine(build_engine(access, options, beside), stop, on_kopf_start)


async def run_engine(engine: Engine, stop: asyncio.Event, on_kopf_start: KopfStarted = lambda: None) -> None:
    """`operate` with an engine that somebody wants to look into."""
    try:
        async with engine.beside.open(engine):
            try:
                if await _unless_stopped(engine.start(), stop):
                    await _work(engine, stop, on_kopf_start)
            finally:
                await engine.stop()
    finally:
        await engine.close()  # where what is beside it could not be opened


async def _unless_stopped(work: Coroutine[Any, Any, None], stop: asyncio.Event) -> bool:
    """Await the work, or give it up when `stop` is set; True when it was done."""
    working = asyncio.ensure_future(work)
    stopping = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait((working, stopping), return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            working.result()
            return True
        return False
    finally:
        await _cancelled(working, stopping)


async def _work(engine: Engine, stop: asyncio.Event, on_kopf_start: KopfStarted) -> None:
    """Until `stop` is set, or something broke for good.

    The order of the end matters: no more decisions, bindings under way done, the Lease given back, and only then does Kopf leave the
    peering, so that the next replica does not begin before this one has finished, and then begins at once.
    """
    kopf_stop = asyncio.Event()
    watching = asyncio.create_task(keep_kopf_running(engine, kopf_stop, on_kopf_start), name="Kopf")
    broken = asyncio.create_task(engine.broken(), name="engine's health")
    stopping = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait((watching, broken, stopping), return_when=asyncio.FIRST_COMPLETED)
        failure = broken.result() if broken.done() else None
        await engine.drain()
        kopf_stop.set()
        await watching
    finally:
        await _cancelled(watching, broken, stopping)
    if failure is not None:
        raise EngineBroken(f"{failure}; the operator ends, to be started again")


async def _cancelled(*tasks: asyncio.Future[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
