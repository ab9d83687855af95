"""What is checked: whether this process should be started again (`/livez`, `/healthz`), and whether it can take work (`/readyz`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from placewright.handlers.engine import Engine
from placewright.serving.health import Check, Health, ping
from placewright.serving.watchdog import LoopWatchdog

_MOST_NAMED: Final = 3


def health_of(engine: Engine, watchdog: LoopWatchdog) -> Iterator[Health]:
    """The three paths."""
    alive = [ping(), Check("loop", watchdog.failing), Check("engine", lambda: "; ".join(engine.ended_parts()))]
    yield Health("/livez", alive)
    yield Health("/healthz", alive)
    shutdown = Check("shutdown", lambda: "it is ending" if engine.ending else "")
    ready = [Check("caches", lambda: _caches(engine)), Check("profiles", lambda: _profiles(engine))]
    yield Health("/readyz", [*alive, *ready, shutdown])


def _caches(engine: Engine) -> str:
    missing = engine.unsynced()
    named = ", ".join(missing[:_MOST_NAMED]) + (", …" if len(missing) > _MOST_NAMED else "")
    return f"not listed yet: {named}" if missing else ""


def _profiles(engine: Engine) -> str:
    """A replica that stands by is shown no profiles by Kopf, and could take over all the same."""
    return "" if engine.profiles_loaded or not engine.leadership.active else "profiles have not been read yet"
