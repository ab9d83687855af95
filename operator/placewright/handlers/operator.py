"""`placewright run`: Kopf embedded beside the engine, and started again when a broken stream ends it."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import signal
from collections.abc import Callable
from typing import Any, Final, cast

import kopf

import placewright.handlers  # noqa: F401 - registers the handlers
from placewright.handlers.engine import Engine, EngineOptions
from placewright.kube.login import ClusterAccess, load_config
from placewright.kube.retry import Backoff

_logger = logging.getLogger(__name__)

#: Kopf running this long counts as recovered, in seconds.
_RECOVERED_SECONDS: Final = 60.0
#: Objects that survive the first lists live for long; the collector need not look at them at every young generation.
_GC_THRESHOLDS: Final = (50_000, 20, 50)


def run(kubeconfig: str | None = None, context: str | None = None, options: EngineOptions = EngineOptions()) -> int:  # noqa: B008
    """Run until SIGTERM or SIGINT; returns the exit code. Raises `ConfigError` when no cluster is configured."""
    access = load_config(kubeconfig, context)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    gc.set_threshold(*_GC_THRESHOLDS)
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(_run_until_signal(access, options))
    return 0


def _loop_factory() -> Any:
    with contextlib.suppress(ImportError):
        import uvloop  # noqa: PLC0415 - optional

        return uvloop.new_event_loop
    return None


async def _run_until_signal(access: ClusterAccess, options: EngineOptions) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def take_signals() -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)

    take_signals()
    await operate(access, stop, options, take_signals)


async def operate(
    access: ClusterAccess,
    stop: asyncio.Event,
    options: EngineOptions = EngineOptions(),  # noqa: B008
    kopf_is_ready: Callable[[], None] = lambda: None,
) -> None:
    """Run the operator until `stop` is set. Raises `PeeringMissing` when replicas could not elect one.

    `kopf_is_ready` is called each time that Kopf has started. Kopf takes signals for itself; told by one, it waits five seconds for its own
    waiter on `stop`, so somebody may want them back.
    """
    engine = Engine(access, options)
    if not await _unless_stopped(engine.start(), stop):
        await engine.client.close()
        return
    try:
        await _supervise(engine, stop, kopf_is_ready)
    finally:
        await engine.stop()


async def _unless_stopped(work: Any, stop: asyncio.Event) -> bool:
    """Await the work, or give it up when `stop` is set; True when it was done."""
    working = asyncio.ensure_future(work)
    stopping = asyncio.ensure_future(stop.wait())
    await asyncio.wait((working, stopping), return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if working.done():
        working.result()
        return True
    working.cancel()
    await asyncio.gather(working, return_exceptions=True)
    return False


async def _supervise(engine: Engine, stop: asyncio.Event, kopf_is_ready: Callable[[], None]) -> None:
    """Run Kopf again and again until `stop` is set; the engine, and its queue, stay."""
    backoff, attempt = Backoff(), 0
    loop = asyncio.get_running_loop()
    while not stop.is_set():
        started = loop.time()
        ready = asyncio.Event()
        telling = asyncio.create_task(_tell_when(ready, kopf_is_ready))
        try:
            await kopf.operator(
                clusterwide=True,
                identity=cast(Any, engine.replica.identity),  # a NewType of str that Kopf keeps private
                memo=kopf.Memo(engine=engine),
                stop_flag=stop,
                ready_flag=ready,
            )
        except Exception as problem:  # noqa: BLE001 - whatever ended Kopf, the scheduler goes on
            if stop.is_set():
                return
            attempt = 0 if loop.time() - started > _RECOVERED_SECONDS else attempt + 1
            _logger.warning(
                "Kopf's watching ended (%s: %s); it is started again, %d pods are kept in the queue",
                type(problem).__name__, problem, len(engine.queue),
            )  # fmt: skip
            await _unless_stopped(asyncio.sleep(backoff.delay(attempt)), stop)
        else:
            # Kopf took the signals for itself; it comes back without an error only when one came, or when `stop` was set.
            stop.set()
        finally:
            telling.cancel()


async def _tell_when(event: asyncio.Event, listener: Callable[[], None]) -> None:
    await event.wait()
    listener()


