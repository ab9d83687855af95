"""What a process does that is tried as a process; a new one imports this module, and should have it soon."""

from __future__ import annotations

import os

from placewright.framework.errors import PluginError


def end_or_answer(given: int) -> int:
    """What a process does; 0 is the end of it."""
    if not given:
        os._exit(3)
    return given * given


def plugin_that_fails(given: int) -> int:
    """Return an outcome in which a third-party plugin broke a rule."""
    raise PluginError("Odd", "Filter", "no such luck")
