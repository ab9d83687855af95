"""Which plugin raised an exception that nobody has named yet: found in its traceback, so that calls of our own plugins cost nothing."""

from __future__ import annotations

from types import FrameType
from typing import Final

from placewright.framework.errors import CycleError, PluginError, raised
from placewright.framework.interface import Plugin
from placewright.framework.runtime.failures import PluginFailures
from placewright.framework.runtime.guard import POINTS

_MOST_FRAMES: Final = 500
#: Where an exception keeps what was said of it.
_NAMED: Final = "__placewright_named__"


def why(problem: BaseException) -> str:
    """What broke, in one line; with the plugin and the extension point where a plugin did."""
    for each in (problem, problem.__cause__):
        if isinstance(each, CycleError):
            return str(each)
    known = getattr(problem, _NAMED, None)
    if isinstance(known, str):
        return known
    found = _innermost(problem)
    if found is None:
        return raised(problem)
    plugin, point = found
    named = PluginError(plugin.name, point, raised(problem))
    failures = getattr(getattr(plugin.handle, "guarding", None), "failures", None)
    if isinstance(failures, PluginFailures):
        failures.note(named.plugin, named.point, named.problem)
    setattr(problem, _NAMED, str(named))  # it may pass several who ask, and is one failure
    return str(named)


def _innermost(problem: BaseException) -> tuple[Plugin, str] | None:
    found, trace = None, problem.__traceback__
    for _ in range(_MOST_FRAMES):
        if trace is None:
            break
        found = _plugin_in(trace.tb_frame) or found
        trace = trace.tb_next
    return found


def _plugin_in(frame: FrameType) -> tuple[Plugin, str] | None:
    """The plugin whose method this frame runs, if that is one that the framework calls."""
    point = POINTS.get(frame.f_code.co_name)
    plugin = None if point is None else frame.f_locals.get("self")
    return (plugin, point) if point is not None and isinstance(plugin, Plugin) else None
