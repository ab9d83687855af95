"""Delivers events straight from Kopf's watch to the handlers that ask for it: Kopf's list, watch and registry, without its workers.

Kopf gives each object a task, a queue and a memory. For each event it builds wrappers, a patch and loggers, whichever handlers there are.
An unscheduled pod is two events and then gone: that was two fifths of the operator's time on a pod (decision 11).

A handler asks by `delivered_directly`, below its `kopf.on.event`. At the start of each watch the adapter looks into Kopf's registry. If
every handler of the resource asks, all of them are called here. Otherwise Kopf calls all of them as usual. So a registered handler is never
passed over, and no function runs for an event that is not registered.

Kopf still lists, watches, resumes, restarts, and pauses by peering. Events come one at a time in the order of the watch.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import weakref
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

import kopf

from placewright.handlers.kopfparts import STREAM, KopfPart

EventHandler = Callable[..., Coroutine[Any, Any, None]]
H = TypeVar("H", bound=EventHandler)
Stream = Callable[..., AsyncIterator[Any]]

#: The arguments of a direct call. Each has the value that Kopf's own call has, but for `memo`: the operator's, not a copy an object.
GIVEN: Final = frozenset({"type", "event", "resource", "memo", "param"})
#: Events handled in one go of the event loop: a list comes in pages of hundreds.
_SLICE: Final = 50
#: Filters of a declaration. Kopf's workers judge them, and the adapter does not.
_FILTERS: Final = ("labels", "annotations", "when", "field", "value")
#: Kopf's registries of all handlers that are not of `kopf.on.event`.
_OTHER_KINDS: Final = ("_indexing", "_spawning", "_changing")

_marked: Final[weakref.WeakSet[EventHandler]] = weakref.WeakSet()
_logger = logging.getLogger(__name__)


def delivered_directly(handler: H) -> H:
    """Mark a handler of `kopf.on.event` for direct delivery.

    Args:
        handler: a coroutine function that takes `**kwargs` as every handler of Kopf, and names no argument beyond `GIVEN`.

    Returns:
        The same function, to be registered with Kopf as usual.

    Raises:
        TypeError: the handler asks for something that only Kopf's workers make.

    Example:
        >>> @kopf.on.event("", "v1", "pods")
        ... @delivered_directly
        ... async def pod_event(event, memo, **_): ...
    """
    parameters = inspect.signature(handler).parameters.values()
    named = {one.name for one in parameters if one.kind is not inspect.Parameter.VAR_KEYWORD}
    if not inspect.iscoroutinefunction(handler) or len(named) == len(parameters):
        raise TypeError(f"{handler.__name__} is to be a coroutine function that takes **kwargs: Kopf's other handlers need its workers")
    if not named <= GIVEN:
        raise TypeError(f"{handler.__name__} asks for {', '.join(sorted(named - GIVEN))}: direct delivery gives {', '.join(sorted(GIVEN))}")
    _marked.add(handler)
    return handler


@dataclass(frozen=True, slots=True)
class _Operator:
    """The Kopf operator whose tasks run in a context: its handlers and their memo."""

    registry: kopf.OperatorRegistry
    memo: kopf.Memo


#: The operator of this context. Kopf's tasks inherit it from the one that spawns them, and find no other replica's.
_operator: ContextVar[_Operator | None] = ContextVar("operator", default=None)


@contextlib.contextmanager
def direct_delivery(registry: kopf.OperatorRegistry, memo: kopf.Memo, part: KopfPart = STREAM) -> Iterator[None]:
    """Deliver directly for the Kopf that is spawned, runs and ends inside the block.

    A Kopf that has changed inside delivers by its workers, and one warning says so.

    Args:
        registry: the handlers, as given to `kopf.spawn_tasks`.
        memo: the memo, as given to `kopf.spawn_tasks`; the handlers' `memo`.
        part: Kopf's stream of events; tests pass one of their own.
    """
    with part.replaced(DirectDelivery) as replaced:
        if not replaced:
            _logger.warning("this version of Kopf has changed inside: Kopf's workers deliver the events of pods, and each costs more")
        token = _operator.set(_Operator(registry, memo))
        try:
            yield
        finally:
            _operator.reset(token)


class DirectDelivery:
    """Stands in for Kopf's `infinite_watch`: the stream of a resource's events, without the delivered ones.

    Without an operator in the context it is Kopf's own: another Kopf may run in this process.
    """

    def __init__(self, kopfs: Stream) -> None:
        self._kopfs = kopfs

    def __call__(self, *, resource: Any, **rest: Any) -> AsyncIterator[Any]:
        """Watch a resource, called as Kopf calls `infinite_watch`."""
        stream = self._kopfs(resource=resource, **rest)
        operator = _operator.get()
        handlers = direct_handlers(operator.registry, resource) if operator is not None else []
        if operator is None or not handlers:
            return stream
        return _delivered(stream, handlers, {"resource": resource, "memo": operator.memo})


def direct_handlers(registry: kopf.OperatorRegistry, resource: Any) -> Sequence[Any]:
    """Find the handlers to which the events of a resource are delivered directly.

    Args:
        registry: Kopf's. Its private parts are read, because Kopf lists its handlers nowhere else.
        resource: a `kopf.Resource`.

    Returns:
        Kopf's records of all handlers of the resource, in the order of their registration; none unless every handler is marked and
        unfiltered. A mix is logged: the marked handlers then cost what Kopf's workers cost.
    """
    try:
        found = [one for one in registry._watching.get_all_handlers() if one.selector is not None and one.selector.check(resource)]  # noqa: SLF001
        others = any(getattr(registry, kind).has_handlers(resource) for kind in _OTHER_KINDS)
        asking = [one for one in found if one.fn in _marked and all(getattr(one, name) is None for name in _FILTERS)]
    except AttributeError as moved:
        _logger.warning("this version of Kopf has changed inside (%s): Kopf's workers deliver the events of %s", moved, resource)
        return []
    if asking and (others or len(asking) < len(found)):
        _logger.warning("Kopf's workers deliver the events of %s, which costs more: it has handlers that need them", resource)
        return []
    return asking


async def _delivered(stream: AsyncIterator[Any], handlers: Sequence[Any], given: Mapping[str, Any]) -> AsyncIterator[Any]:
    """Deliver the events of objects; yield the rest to Kopf: its marks, such as the end of a list, and bookmarks."""
    calls = [partial(one.fn, param=one.param, **given) for one in handlers]
    count = 0
    async for event in stream:
        if not isinstance(event, dict) or event["type"] == "BOOKMARK":
            yield event
            continue
        for call in calls:
            try:
                await call(type=event["type"], event=event)
            except MemoryError:
                raise
            except Exception:
                # As Kopf has it for handlers of this kind: an error is logged, and the event is not tried again.
                whom = event["object"].get("metadata", {}).get("name")
                _logger.exception("an event of %s %s could not be handled; the next event is delivered", given["resource"], whom)
        count += 1
        if count % _SLICE == 0:
            await asyncio.sleep(0)
