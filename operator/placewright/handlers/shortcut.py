"""Events of pods go from Kopf's stream straight to their handler.

Between the two Kopf prepares what only other kinds of handlers need: wrappers of the object, patches, loggers, progress, a choice
among handlers. That was a quarter of all that the operator spends on a pod (`docs/decisions/0011-pods-past-kopfs-causes.md`).
Kopf's list, watch, workers (one an object, in order), pauses by peering and restarts stay as they are.

This touches a private module of Kopf. A test fails when that moves; at run time Kopf then simply goes its long way.
"""

from __future__ import annotations

import contextlib
import inspect
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from types import ModuleType
from typing import Any, Final

try:
    from kopf._core.reactor import processing as _processing
except ImportError:  # pragma: no cover - a Kopf that we have not seen
    _processing = None  # type: ignore[assignment]

Event = Mapping[str, Any]
Handler = Callable[[Event], None]
Processor = Callable[..., Awaitable[str | None]]
_PROCESSOR: Final = "process_resource_event"
#: What Kopf gives its processor and we rely upon.
_GIVEN: Final = {"resource", "raw_event", "resource_indexed", "operator_indexed"}

_logger = logging.getLogger(__name__)


def kopf_allows_it(module: ModuleType | None = _processing) -> bool:
    """Whether Kopf's processor of events is where, and called as, this module knows it."""
    processor = getattr(module, _PROCESSOR, None)
    return processor is not None and set(inspect.signature(processor).parameters) >= _GIVEN


@contextlib.contextmanager
def pods_go_directly_to(handler: Handler) -> Iterator[None]:
    """A Kopf whose tasks are spawned inside calls `handler(event)` for each event of a pod, and does all else as ever."""
    if not kopf_allows_it():
        _logger.warning("this version of Kopf has changed inside: events of pods take the long way, and cost more")
        yield
        return
    through_kopf = getattr(_processing, _PROCESSOR)
    setattr(_processing, _PROCESSOR, _directly(handler, through_kopf))
    try:
        yield
    finally:
        setattr(_processing, _PROCESSOR, through_kopf)


def _directly(handler: Handler, through_kopf: Processor) -> Processor:
    async def process(
        *, resource: Any, raw_event: Any, resource_indexed: Any = None, operator_indexed: Any = None, **rest: Any
    ) -> str | None:
        if (resource.group, resource.plural) != ("", "pods"):
            return await through_kopf(
                resource=resource,
                raw_event=raw_event,
                resource_indexed=resource_indexed,
                operator_indexed=operator_indexed,
                **rest,
            )
        # Kopf lets nobody begin before every first list has been seen, and counts us among those it waits for.
        if operator_indexed is not None and resource_indexed is not None:
            await operator_indexed.drop_toggle(resource_indexed)
        if operator_indexed is not None:
            await operator_indexed.wait_for(True)
        try:
            handler(raw_event)
        except Exception:
            # As Kopf has it for this kind of handler: one bad event is not the end.
            _logger.exception("the handler of a pod's event failed")
        return None

    return process
