"""Runs Kopf beside the engine, in one event loop, and starts it again when a broken stream ends it.

`kopf.operator()` is not used: when it ends, it cancels every task of the loop that is younger than itself. Here those would be bindings
under way. So `kopf.spawn_tasks` starts Kopf's root tasks, and a `TaskFamily` notes every task that they start. Only the tasks of the family
are ended (decision 9).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import weakref
from collections.abc import Callable, Collection, Iterator
from contextvars import ContextVar
from typing import Any, Final, cast

import kopf

from placewright.engine.engine import Engine
from placewright.engine.outofmemory import report
from placewright.handlers import lifecycle
from placewright.handlers.admission import registry_with_admission
from placewright.handlers.directdelivery import direct_delivery
from placewright.handlers.events import pod_event
from placewright.handlers.watchlines import quick_decoding
from placewright.kube.errors import RetryBackoff
from placewright.kube.tasks import until_set

_logger = logging.getLogger(__name__)

#: Seconds after which a Kopf that still runs counts as recovered: its next end is waited for as a first one.
_RECOVERED_SECONDS: Final = 60.0
#: Seconds that Kopf's root tasks have to end: Kopf removes its record of peering, over the network.
_END_SECONDS: Final = 5.0
#: Times that tasks are cancelled which Kopf's roots left behind, and the seconds between: some catch the first cancellation to clean up.
_LAST_ROUNDS: Final = 10
_ROUND_SECONDS: Final = 0.2

#: Called whenever Kopf has started. Kopf installs signal handlers of its own then; `placewright run` puts its own back.
KopfStarted = Callable[[], None]
Task = asyncio.Task[Any]

#: The family of the tasks started in this context. A task inherits its parent's context, and so the family.
_family: ContextVar[TaskFamily | None] = ContextVar("family", default=None)


class TaskFamily:
    """The tasks started inside `founding`, and their descendants."""

    def __init__(self) -> None:
        self.members: weakref.WeakSet[Task] = weakref.WeakSet()

    @contextlib.contextmanager
    def founding(self) -> Iterator[None]:
        """Make members of the tasks that are started inside the block, and of their descendants."""
        loop = asyncio.get_running_loop()
        if not isinstance(loop.get_task_factory(), _Noting):
            loop.set_task_factory(_Noting(loop.get_task_factory()))
        token = _family.set(self)
        try:
            yield
        finally:
            _family.reset(token)

    def alive(self) -> list[Task]:
        """Return the members that have not ended."""
        return [task for task in self.members if not task.done()]


class _Noting:
    """A task factory that adds each new task to the family of its context.

    It stays in its event loop, around the factory that was there before: another may have wrapped it meanwhile.
    """

    def __init__(self, make: Any) -> None:
        self._make = make or (lambda loop, work, **options: asyncio.Task(work, loop=loop, **options))

    def __call__(self, loop: asyncio.AbstractEventLoop, work: Any, **options: Any) -> Any:
        task = self._make(loop, work, **options)
        family = _family.get()
        if family is not None:
            family.members.add(task)
        return task


async def keep_kopf_running(engine: Engine, stop: asyncio.Event, on_start: KopfStarted) -> None:
    """Run Kopf until `stop` is set, and start it again when it ends by itself.

    The engine and its queue stay meanwhile. Pauses between restarts grow as `RetryBackoff` says. After a `MemoryError` Kopf is not started
    again, because the operator ends.

    Args:
        engine: given to the handlers in Kopf's memo.
        stop: ends Kopf in order when it is set. Set here when Kopf ends without an error, as a signal makes it.
        on_start: called after each start of Kopf.
    """
    backoff, attempt = RetryBackoff(), 0
    loop = asyncio.get_running_loop()
    while not stop.is_set():
        started = loop.time()
        try:
            await _run(engine, stop, on_start)
        except MemoryError as problem:
            report(problem)
            await stop.wait()
        except Exception as problem:  # noqa: BLE001 - the scheduler goes on, whichever error ended Kopf
            if stop.is_set():
                return
            attempt = 0 if loop.time() - started > _RECOVERED_SECONDS else attempt + 1
            _logger.warning(
                "Kopf's watching ended (%s: %s); it is started again, %d pods are kept in the queue",
                type(problem).__name__, problem, len(engine.deciding.queue),
            )  # fmt: skip
            await until_set(stop, backoff.delay(attempt))
        else:
            # Kopf ends without an error for two reasons: a signal, or `stop`.
            stop.set()


async def _run(engine: Engine, stop: asyncio.Event, on_start: KopfStarted) -> None:
    """Run Kopf once, until one of its root tasks ends.

    Raises:
        Exception: what ended the root task, such as Kopf's `WatchingError`.
    """
    registry, memo = _registry(engine), kopf.Memo(engine=engine)
    family = TaskFamily()
    roots: Collection[Task] = ()
    with direct_delivery(registry, memo), quick_decoding():
        try:
            with family.founding():
                roots = await kopf.spawn_tasks(
                    registry=registry,
                    clusterwide=True,
                    identity=cast(Any, engine.leading.replica.identity),  # a NewType of str that Kopf keeps private
                    memo=memo,
                    stop_flag=stop,
                )
            on_start()
            await asyncio.wait(roots, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await _end(roots, family)
    for task in roots:
        if task.done() and not task.cancelled() and (problem := task.exception()) is not None:
            raise problem


def _registry(engine: Engine) -> kopf.OperatorRegistry:
    """Return the handlers that this engine needs: of profiles unless files give them, of reviews if a webhook is configured."""
    if engine.options.profiles is not None:
        return _handlers_of_pods()
    return kopf.get_default_registry() if engine.options.admission is None else registry_with_admission()


def _handlers_of_pods() -> kopf.OperatorRegistry:
    """Kopf's handlers without the one of profiles."""
    registry = kopf.OperatorRegistry()
    kopf.on.startup(registry=registry, errors=kopf.ErrorsMode.PERMANENT)(lifecycle.start)
    kopf.on.login(registry=registry)(lifecycle.login)
    kopf.on.cleanup(registry=registry)(lifecycle.stop)
    kopf.on.event("", "v1", "pods", registry=registry)(pod_event)
    return registry


async def _end(roots: Collection[Task], family: TaskFamily) -> None:
    """End Kopf's root tasks, then the members of the family that they left behind.

    The root tasks end in Kopf's own order and remove its record of peering. Tasks left behind are cancelled several times: without
    credentials even the removal of a record would wait for ever.
    """
    await _cancel_and_wait(roots, _END_SECONDS)
    for _ in range(_LAST_ROUNDS):
        if not (left_behind := family.alive()):
            return
        await _cancel_and_wait(left_behind, _ROUND_SECONDS)
    _logger.warning("Kopf does not end in time; tasks that still run: %s", ", ".join(sorted(task.get_name() for task in family.alive())))


async def _cancel_and_wait(tasks: Collection[Task], seconds: float) -> None:
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=seconds)
