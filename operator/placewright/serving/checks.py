"""What is checked: whether this process should be started again (`/livez`, `/healthz`), and whether it can take work (`/readyz`)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Final

from placewright.engine.engine import Engine
from placewright.leadership.election import Alone
from placewright.observability.watchdog import LoopWatchdog
from placewright.serving.health import Check, Health, ping

_MOST_NAMED: Final = 3
#: How long after the end of a lead that was not renewed nothing is said; kube-scheduler's own.
TOLERATED_SECONDS: Final = 20.0
#: How long a new leader may take before anything is said.
TAKEOVER_TOLERATED_SECONDS: Final = 10.0


def health_of(engine: Engine, watchdog: LoopWatchdog) -> Iterator[Health]:
    """The three paths."""
    alive = [ping(), Check("loop", watchdog.failing), Check("engine", lambda: "; ".join(engine.ended_parts()))]
    yield Health("/livez", alive)
    yield Health("/healthz", [*alive, Check("leaderElection", LeadRenewal(engine).failing)])
    shutdown = Check("shutdown", lambda: "it is ending" if engine.ending else "")
    took_over = Check("takeover", lambda: _takeover(engine))
    ready = [Check("caches", lambda: _caches(engine)), Check("profiles", lambda: _profiles(engine)), took_over]
    yield Health("/readyz", [*alive, *ready, shutdown])


class LeadRenewal:
    """Whether the Lease still names this replica although it could not renew it for long, as upstream's leader-election watchdog asks.

    It does not act then, and nobody else may have taken over; where even the way to the API server is stuck, a restart may help.
    """

    def __init__(self, engine: Engine, clock: Callable[[], float] = time.monotonic) -> None:
        self._engine = engine
        self._clock = clock
        self._lost_at: float | None = None
        engine.leadership.on_change(self._turned)

    def failing(self) -> str:
        """What is wrong; empty for nothing, and always so for a replica that runs alone."""
        leadership = self._engine.leadership
        if self._lost_at is None or isinstance(leadership, Alone):
            return ""
        sight = leadership.lease.sight
        ours = sight is not None and sight.record.holder == self._engine.replica.identity
        seconds = self._clock() - self._lost_at
        return f"the Lease names us and was not renewed: the lead ended {seconds:.0f} s ago" if ours and seconds > TOLERATED_SECONDS else ""

    def _turned(self, active: bool) -> None:
        self._lost_at = None if active else self._clock()


def _caches(engine: Engine) -> str:
    missing = engine.unsynced()
    named = ", ".join(missing[:_MOST_NAMED]) + (", …" if len(missing) > _MOST_NAMED else "")
    return f"not listed yet: {named}" if missing else ""


def _takeover(engine: Engine) -> str:
    """Between the lead and the first decision lies a moment; where it lasts, nobody places pods."""
    seconds = engine.takeover.seconds_without_decisions
    return f"the lead has been ours for {seconds:.0f} s, and decisions have not begun" if seconds > TAKEOVER_TOLERATED_SECONDS else ""


def _profiles(engine: Engine) -> str:
    """A replica that stands by is shown no profiles by Kopf, and could take over all the same."""
    return "" if engine.profiles_loaded or not engine.leadership.active else "profiles have not been read yet"
