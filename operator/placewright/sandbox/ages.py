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
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if seconds < 120:
        return f"{seconds}s"
    if minutes < 10:
        return _two(minutes, "m", seconds % 60, "s")
    if hours < 3:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return _two(days, "d", hours % 24, "h")
    if days < 2 * 365:
        return f"{days}d"
    return _two(days // 365, "y", days % 365, "d") if days < 8 * 365 else f"{days // 365}y"


def _two(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"
