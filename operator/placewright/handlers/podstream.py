"""Events of pods go from Kopf's watch straight to their handler.

Between the two Kopf has a task and a queue for each object, and prepares what only other kinds of handlers need: wrappers of the object,
patches, loggers, progress, a choice among handlers. That was two fifths of all that the operator spent on a pod
(`docs/decisions/0011-pods-past-kopfs-workers.md`). Kopf's list, watch, resuming, pauses by peering and restarts stay as they are, and so
does the order of events: the handler takes them as they come.

Lines of a watch are decoded by msgspec, in half the time of the standard library, which stays for what msgspec does not take.

This touches private modules of Kopf. Tests fail when they move; at run time Kopf then simply goes its long way.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextvars import ContextVar
from types import ModuleType, SimpleNamespace
from typing import Any, Final

import msgspec

try:
    from kopf._cogs.clients import api as _api
    from kopf._cogs.clients import watching as _watching
except ImportError:  # pragma: no cover - a Kopf that we have not seen
    _api = _watching = None  # type: ignore[assignment]

Event = Mapping[str, Any]
Handler = Callable[[Event], None]
Stream = Callable[..., AsyncIterator[Any]]

_STREAM: Final = "infinite_watch"
#: Events handled in one go of the event loop: a list comes in pages of hundreds.
_SLICE: Final = 50

#: Who gets the pods of a Kopf that was spawned in this context; its tasks inherit it.
_pods_go_to: ContextVar[Handler | None] = ContextVar("pods_go_to", default=None)

_logger = logging.getLogger(__name__)


@contextlib.contextmanager
def pods_go_directly_to(handler: Handler, module: ModuleType | None = _watching) -> Iterator[None]:
    """A Kopf whose tasks are spawned inside calls `handler(event)` for each event of a pod, and does all else as ever.

    `module` is where Kopf has its watch.
    """
    if not kopf_allows_it(module):
        _logger.warning("this version of Kopf has changed inside: events of pods take the long way, and cost more")
        yield
        return
    kopfs = getattr(module, _STREAM)
    if not isinstance(kopfs, _Diverted):
        # Left in place for good: without a handler in the context it is Kopf's own, and another Kopf in this process may be using it.
        setattr(module, _STREAM, _Diverted(kopfs))
    decode_quickly()
    token = _pods_go_to.set(handler)
    try:
        yield
    finally:
        _pods_go_to.reset(token)


def decode_quickly(module: ModuleType | None = _api) -> None:
    """Have Kopf decode the lines of its watches by msgspec; nothing where it does not use the standard library's `json` as we know it.

    `module` is where Kopf reads them.
    """
    if getattr(module, "json", None) is json:
        module.json = SimpleNamespace(loads=loads, JSONDecodeError=json.JSONDecodeError)  # type: ignore[union-attr]


def loads(text: str) -> Any:
    """As `json.loads`, which judges what msgspec does not take: NaN, halves of surrogate pairs, and what is no JSON."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return json.loads(text)


def kopf_allows_it(module: ModuleType | None = _watching) -> bool:
    """Whether Kopf's stream of events is where, and called as, this module knows it."""
    stream = getattr(module, _STREAM, None)
    if isinstance(stream, _Diverted):
        return True
    return inspect.isasyncgenfunction(stream) and "resource" in inspect.signature(stream).parameters


class _Diverted:
    """Kopf's stream of one resource's events, without those that a handler took."""

    def __init__(self, kopfs: Stream) -> None:
        self._kopfs = kopfs

    def __call__(self, *, resource: Any, **rest: Any) -> AsyncIterator[Any]:
        stream = self._kopfs(resource=resource, **rest)
        handler = _pods_go_to.get()
        if handler is None or (resource.group, resource.plural) != ("", "pods"):
            return stream
        return _handled(stream, handler)


async def _handled(stream: AsyncIterator[Any], handler: Handler) -> AsyncIterator[Any]:
    """Hand over the events; what is left are Kopf's own marks, such as the end of a list."""
    count = 0
    async for event in stream:
        if not isinstance(event, dict):
            yield event
        elif event["type"] != "BOOKMARK":
            _handle(event, handler)
            count += 1
            if count % _SLICE == 0:
                await asyncio.sleep(0)


def _handle(event: Event, handler: Handler) -> None:
    try:
        handler(event)
    except Exception:
        # As Kopf has it for this kind of handler: one bad event is not the end.
        _logger.exception("the handler of a pod's event failed")
