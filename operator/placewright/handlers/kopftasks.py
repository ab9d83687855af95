"""Runs Kopf beside the engine, in one event loop, and starts it again when a broken stream ends it.

`kopf.operator()` is not used: when it ends, it takes every task of the loop that is younger than itself for its own, waits five seconds
for them and then cancels them; here those would be bindings under way. So Kopf's root tasks are started by `kopf.spawn_tasks`, and what
they start in turn is marked, ended with them, and nothing else is.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import weakref
from collections.abc import Callable, Collection, Coroutine, Iterator
from contextvars import ContextVar
from functools import partial
from typing import Any, Final, cast

import kopf

from placewright.engine.engine import Engine
from placewright.handlers import lifecycle
from placewright.handlers.admission import registry_with_admission
from placewright.handlers.events import pod_event, take_pod_event
from placewright.handlers.podstream import pods_go_directly_to
from placewright.kube.retry import RetryBackoff

_logger = logging.getLogger(__name__)

#: Kopf running this long counts as recovered, in seconds.
_RECOVERED_SECONDS: Final = 60.0
#: How long Kopf may take to end: it says goodbye to its peers, over the network, in seconds.
_END_SECONDS: Final = 5.0
_LAST_ROUNDS: Final = 10
_ROUND_SECONDS: Final = 0.2

#: Called whenever Kopf has started: it takes signals for itself, and somebody may want them back.
KopfStarted = Callable[[], None]
Task = asyncio.Task[Any]

#: The family that tasks started in this context belong to; tasks inherit their parent's context.
_family: ContextVar[TaskFamily | None] = ContextVar("family", default=None)


class TaskFamily:
    """Tasks that descend from those started inside `founding`."""

    def __init__(self) -> None:
        self.members: weakref.WeakSet[Task] = weakref.WeakSet()

    @contextlib.contextmanager
    def founding(self) -> Iterator[None]:
        """Tasks started inside, and all that they start, are members."""
        loop = asyncio.get_running_loop()
        if not isinstance(loop.get_task_factory(), _Noting):
            loop.set_task_factory(_Noting(loop.get_task_factory()))
        token = _family.set(self)
        try:
            yield
        finally:
            _family.reset(token)

    def alive(self) -> list[Task]:
        """Members that have not ended."""
        return [task for task in self.members if not task.done()]


class _Noting:
    """A loop's task factory that notes who belongs to which family; it stays for as long as the loop."""

    def __init__(self, make: Any) -> None:
        self._make = make or _make_task

    def __call__(self, loop: asyncio.AbstractEventLoop, work: Any, **options: Any) -> Any:
        task = self._make(loop, work, **options)
        family = _family.get()
        if family is not None:
            family.members.add(task)
        return task


def _make_task(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Any], **options: Any) -> Task:
    return asyncio.Task(work, loop=loop, **options)


async def keep_kopf_running(engine: Engine, stop: asyncio.Event, on_start: KopfStarted) -> None:
    """Run Kopf again and again until `stop` is set; the engine, and its queue, stay."""
    backoff, attempt = RetryBackoff(), 0
    loop = asyncio.get_running_loop()
    while not stop.is_set():
        started = loop.time()
        try:
            await _run(engine, stop, on_start)
        except Exception as problem:  # noqa: BLE001 - whatever ended Kopf, the scheduler goes on
            if stop.is_set():
                return
            attempt = 0 if loop.time() - started > _RECOVERED_SECONDS else attempt + 1
            _logger.warning(
                "Kopf's watching ended (%s: %s); it is started again, %d pods are kept in the queue",
                type(problem).__name__, problem, len(engine.queue),
            )  # fmt: skip
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(backoff.delay(attempt)):
                    await stop.wait()
        else:
            # Without an error Kopf comes back only when a signal told it to, or `stop` was set.
            stop.set()


async def _run(engine: Engine, stop: asyncio.Event, on_start: KopfStarted) -> None:
    """Run Kopf once, until one of its root tasks ends; raises what ended it."""
    family = TaskFamily()
    roots: Collection[Task] = ()
    try:
        with family.founding(), pods_go_directly_to(partial(take_pod_event, engine)):
            roots = await kopf.spawn_tasks(
                registry=_registry(engine),
                clusterwide=True,
                identity=cast(Any, engine.replica.identity),  # a NewType of str that Kopf keeps private
                memo=kopf.Memo(engine=engine),
                stop_flag=stop,
            )
        on_start()
        await asyncio.wait(roots, return_when=asyncio.FIRST_COMPLETED)
    finally:
        await _end(roots, family)
    for task in roots:
        if task.done() and not task.cancelled() and (problem := task.exception()) is not None:
            raise problem


def _registry(engine: Engine) -> kopf.OperatorRegistry | None:
    """The handlers that this engine needs; None: those that are declared."""
    if engine.options.profiles is not None:
        return _handlers_of_pods()
    return None if engine.options.admission is None else registry_with_admission()


def _handlers_of_pods() -> kopf.OperatorRegistry:
    """Kopf's handlers without those of profiles."""
    registry = kopf.OperatorRegistry()
    kopf.on.startup(registry=registry, errors=kopf.ErrorsMode.PERMANENT)(lifecycle.start)
    kopf.on.login(registry=registry)(lifecycle.login)
    kopf.on.cleanup(registry=registry)(lifecycle.stop)
    kopf.on.event("", "v1", "pods", registry=registry)(pod_event)
    return registry


async def _end(roots: Collection[Task], family: TaskFamily) -> None:
    """End what Kopf started: its root tasks in its own order, with the goodbye to its peers, then what a broken root left behind.

    What is left behind is cancelled more than once: without Kopf's credentials even a goodbye would wait for ever.
    """
    await _cancel_and_wait(roots, _END_SECONDS)
    for _ in range(_LAST_ROUNDS):
        if not (left_behind := family.alive()):
            return
        await _cancel_and_wait(left_behind, _ROUND_SECONDS)
    _logger.warning("Kopf does not end in time: %s", ", ".join(sorted(task.get_name() for task in family.alive())))


async def _cancel_and_wait(tasks: Collection[Task], seconds: float) -> None:
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=seconds)
