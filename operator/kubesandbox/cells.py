"""Times and spans in the few letters that kubectl users know."""

from __future__ import annotations

import calendar
import time

UNKNOWN = "<unknown>"


def seconds_of(timestamp: object) -> float | None:
    """An RFC 3339 time in UTC as seconds since the epoch, None for anything else; fractions are cut off."""
    try:
        return calendar.timegm(time.strptime(str(timestamp).partition(".")[0].rstrip("Z"), "%Y-%m-%dT%H:%M:%S"))
    except ValueError:
        return None


def age(timestamp: object, now: float) -> str:
    """How long ago, in the few letters that kubectl users know (`5m30s`, `3d4h`)."""
    then = seconds_of(timestamp)
    if then is None:
        return UNKNOWN
    return duration(max(0, int(now - then)))


def duration(seconds: int) -> str:
    """A span with one or two units, coarser as it grows."""
    for limit, large, letter, small, small_letter in _SPANS:
        if seconds < limit:
            rest = seconds % large // small if small else 0
            return f"{seconds // large}{letter}" + (f"{rest}{small_letter}" if rest else "")
    return f"{seconds // _YEAR}y"


_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86_400, 365 * 86_400
_SPANS = (
    (2 * _MINUTE, 1, "s", 0, ""),
    (10 * _MINUTE, _MINUTE, "m", 1, "s"),
    (3 * _HOUR, _MINUTE, "m", 0, ""),
    (8 * _HOUR, _HOUR, "h", _MINUTE, "m"),
    (2 * _DAY, _HOUR, "h", 0, ""),
    (8 * _DAY, _DAY, "d", _HOUR, "h"),
    (2 * _YEAR, _DAY, "d", 0, ""),
    (8 * _YEAR, _YEAR, "y", _DAY, "d"),
)
"""Below which span (in seconds) which unit is used, and which smaller one beside it."""
