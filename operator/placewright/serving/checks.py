"""The checks behind the health paths: must this process be restarted (`/livez`, `/healthz`), and can it take work (`/readyz`)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Final

from placewright.engine.engine import Engine
from placewright.engine.leadingpart import LeadingPart
from placewright.engine.readingpart import ReadingPart
from placewright.engine.takeover import Takeover
from placewright.leadership.election import Alone
from placewright.observability.watchdog import LoopWatchdog
from placewright.serving.health import Check, Health, ping

#: Kinds that a failing check names.
_MOST_NAMED: Final = 3
#: Seconds after the end of a lead that could not be renewed in which the check passes, as in kube-scheduler.
TOLERATED_SECONDS: Final = 20.0
#: Seconds that a new leader may take to begin before the check fails.
TAKEOVER_TOLERATED_SECONDS: Final = 10.0


def health_of(engine: Engine, watchdog: LoopWatchdog) -> Iterator[Health]:
    """Make the three health paths.

    Args:
        engine: that is checked.
        watchdog: knows whether the event loop turns.

    Returns:
        `/livez`, `/healthz` and `/readyz`.
    """
    alive = [ping(), Check("loop", watchdog.failing), Check("engine", lambda: "; ".join(engine.ended_parts()))]
    yield Health("/livez", alive)
    yield Health("/healthz", [*alive, Check("leaderElection", LeadRenewal(engine.leading).failing)])
    shutdown = Check("shutdown", lambda: "it is ending" if engine.ending else "")
    took_over = Check("takeover", lambda: _takeover(engine.leading.takeover))
    ready = [Check("caches", lambda: _caches(engine.reading)), Check("profiles", lambda: _profiles(engine)), took_over]
    yield Health("/readyz", [*alive, *ready, shutdown])


class LeadRenewal:
    """Checks whether the Lease names this replica long after it could last renew it, as upstream's leader-election watchdog does.

    This replica does not act then, and no other may take over. Where its connection to the API server is stuck, a restart may help.
    """

    def __init__(self, leading: LeadingPart, clock: Callable[[], float] = time.monotonic) -> None:
        self._leading = leading
        self._clock = clock
        self._lost_at: float | None = None
        leading.leadership.on_change(self._turned)

    def failing(self) -> str:
        """Return the failure in words, or empty; always empty for a replica that runs without election."""
        leadership = self._leading.leadership
        if self._lost_at is None or isinstance(leadership, Alone):
            return ""
        sight = leadership.lease.sight
        ours = sight is not None and sight.record.holder == self._leading.replica.identity
        seconds = self._clock() - self._lost_at
        return f"the Lease names us and was not renewed: the lead ended {seconds:.0f} s ago" if ours and seconds > TOLERATED_SECONDS else ""

    def _turned(self, active: bool) -> None:
        self._lost_at = None if active else self._clock()


def _caches(reading: ReadingPart) -> str:
    missing = reading.unsynced()
    named = ", ".join(missing[:_MOST_NAMED]) + (", …" if len(missing) > _MOST_NAMED else "")
    return f"not listed yet: {named}" if missing else ""


def _takeover(takeover: Takeover) -> str:
    """Return the failure in words where this replica has the lead for long and does not decide: no replica places pods then."""
    seconds = takeover.seconds_without_decisions
    return f"the lead has been ours for {seconds:.0f} s, and decisions have not begun" if seconds > TAKEOVER_TOLERATED_SECONDS else ""


def _profiles(engine: Engine) -> str:
    """Return the failure in words, or empty. A replica that stands by passes: Kopf shows it no profiles, and it can take over without."""
    return "" if engine.deciding.profiles.loaded or not engine.leading.leadership.active else "profiles have not been read yet"
