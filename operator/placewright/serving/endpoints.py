"""The HTTP endpoints beside an engine, as a companion that `cli/run.py` passes to the operator.

They are opened before the engine starts and closed after it has ended. So probes are answered while the API server is away.

The checks behind the health paths: must this process be restarted (`/livez`, `/healthz`), and can it take work (`/readyz`).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from placewright.engine.companions import Companions, Listeners, MakeCompanions, ReplicaInfo
from placewright.engine.engine import Engine
from placewright.engine.leadingpart import LeadingPart
from placewright.engine.readingpart import ReadingPart
from placewright.engine.takeover import Takeover
from placewright.explain.records import Records
from placewright.http.certificates import CertificateFiles, self_made
from placewright.http.listener import Listener, bind
from placewright.http.routes import Endpoint, Gate, PublicOnly, Routes, metrics_endpoint
from placewright.kube.client import ApiClient
from placewright.kube.ratelimit import TokenBucket
from placewright.leadership.election import Alone
from placewright.observability.hangmark import HangMark
from placewright.observability.metrics import EngineMetrics, EngineSeries
from placewright.observability.watchdog import DEFAULT_PATIENCE, LoopWatchdog, Patience
from placewright.serving.access import AskingTheApiServer
from placewright.serving.configz import configz_endpoint
from placewright.serving.debug import cache_endpoint, queue_endpoint
from placewright.serving.explainpages import explain_endpoint, records_endpoint
from placewright.serving.health import Check, Health, ping
from placewright.serving.pages import GuardedPages, active_elsewhere, find_pages, no_pages
from placewright.serving.readerrights import ENTER, ConsoleRights
from placewright.serving.reviewlanes import ReviewLanes
from placewright.serving.reviews import Reviews
from placewright.serving.schedulerview import SchedulerView

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


_log = logging.getLogger(__name__)

SECURE_PORT: Final = 10259
EVERYWHERE: Final = "0.0.0.0"  # noqa: S104 - kube-scheduler's default: kubelets and Prometheus come from elsewhere
_LOOPBACK: Final = "127.0.0.1"
#: Entry point of the console's pages.
_CONSOLE: Final = "console"
#: Seconds for one review of a token or a right.
_REVIEW_SECONDS: Final = 5.0
#: Reviews a second, and at once after a rest: for strangers, and for users that the API server knows. A reader of the console is asked
#: about a namespace at a time.
_STRANGERS_A_SECOND: Final = 20.0
_STRANGERS_AT_ONCE: Final = 40
_KNOWN_A_SECOND: Final = 50.0
_KNOWN_AT_ONCE: Final = 100


@dataclass(frozen=True, slots=True)
class ServingOptions:
    """The options of the endpoints.

    Attributes:
        address: address of HTTPS.
        port: port of HTTPS; None: it is not served.
        health_port: port of plain HTTP on loopback, for the health paths alone; None: it is not served.
        certificate: files of certificate and key; None: a self-signed one is made at the start.
        patience: patience of the watchdog with an event loop that hangs.
        metrics: whether `/metrics` is served.
        console: whether `/console` is served over HTTPS.
    """

    address: str = EVERYWHERE
    port: int | None = SECURE_PORT
    health_port: int | None = None
    certificate: tuple[Path, Path] | None = None
    patience: Patience = DEFAULT_PATIENCE
    metrics: bool = True
    console: bool = False


@dataclass(frozen=True, slots=True)
class Served:
    """The open ports. If the options have port 0, the system chose."""

    port: int | None
    health_port: int | None


def endpoints(options: ServingOptions) -> MakeCompanions:
    """Make the companion that serves an engine's endpoints.

    Args:
        options: options of the endpoints.

    Returns:
        A maker of the companion. Its context raises `InputError` where a port is taken or a certificate cannot be used.
    """

    def make(info: ReplicaInfo) -> Companions:
        records = Records(time.time) if options.port is not None else None
        series = EngineSeries(info.access.server) if options.metrics else None
        listeners = Listeners() if records is None else Listeners(attempts=(records,), details=True)

        @asynccontextmanager
        async def opened(engine: Engine) -> AsyncIterator[Served]:
            async with AsyncExitStack() as stack:
                mark = HangMark(engine.leading.info, engine.deciding.marks, from_file=engine.options.profiles is not None)
                watchdog = stack.enter_context(LoopWatchdog(options.patience, leave_word=mark.mark_profile, warn_others=mark.mark_decision))
                client = await stack.enter_async_context(ApiClient(engine.access, timeout=_REVIEW_SECONDS))
                lanes = ReviewLanes(TokenBucket(_STRANGERS_A_SECOND, _STRANGERS_AT_ONCE), TokenBucket(_KNOWN_A_SECOND, _KNOWN_AT_ONCE))
                routes = _routes(engine, options, watchdog)
                if records is not None:
                    routes.add(explain_endpoint(engine.deciding, records))
                    routes.add(records_endpoint(records))
                if series is not None:
                    routes.add(metrics_endpoint(EngineMetrics(engine, series)))
                if options.console and records is not None:
                    view = SchedulerView(engine, records, None if series is None else series.attempts)
                    routes.add(await _console(engine, view, client, lanes, stack))
                secure = await _secure(options, routes, AskingTheApiServer(client, lanes=lanes), stack)
                yield Served(secure, await _health(options, routes, stack))

        return Companions(listeners if series is None else listeners + series.listeners, opened)

    return make


async def _console(engine: Engine, view: SchedulerView, client: ApiClient, lanes: ReviewLanes, stack: AsyncExitStack) -> Endpoint:
    """Return the console's pages behind the doorkeeper; without their package, an endpoint that says so. Pods are placed either way."""
    package = find_pages(_CONSOLE)
    if isinstance(package, str):
        _log.warning("--console: no page is served: %s", package)
        return no_pages(ENTER.path, package)
    try:
        pages = await stack.enter_async_context(package.open_pages(view))
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - a broken package of pages must leave the scheduler at work
        _log.exception("--console: no page is served: the package of the pages is broken")
        return no_pages(ENTER.path, "the package of the console's pages is broken; the log of this replica says how")
    rights = ConsoleRights(Reviews(client), engine.deciding.cluster.objects.namespaces.keys, lanes=lanes)
    guarded = GuardedPages(ENTER.path, pages, rights, lambda: active_elsewhere(engine))
    engine.leading.leadership.on_change(guarded.lead_changed)
    return guarded.endpoint


def _routes(engine: Engine, options: ServingOptions, watchdog: LoopWatchdog) -> Routes:
    routes = Routes(health.endpoint for health in health_of(engine, watchdog))
    routes.add(configz_endpoint(engine, lambda: _shown(options)))
    routes.add(queue_endpoint(engine.deciding.queue))
    routes.add(cache_endpoint(engine.deciding.cluster))
    return routes


def _shown(options: ServingOptions) -> dict[str, Any]:
    """Return the options as `/configz` shows them."""
    certificate = [None, None] if options.certificate is None else [str(file) for file in options.certificate]
    return {
        "bindAddress": options.address,
        "securePort": options.port or 0,
        "healthPort": options.health_port or 0,
        "tlsCertFile": certificate[0],
        "tlsPrivateKeyFile": certificate[1],
        "console": options.console,
    }


async def _secure(options: ServingOptions, routes: Routes, gate: Gate, stack: AsyncExitStack) -> int | None:
    """Serve HTTPS. Returns the port."""
    if options.port is None:
        return None
    if options.certificate is None:
        tls, made = self_made(), "a certificate of its own making"
    else:
        files = CertificateFiles(*options.certificate)
        looking = asyncio.create_task(files.keep_looking(), name="certificate files")
        stack.callback(looking.cancel)
        tls, made = files.tls, str(options.certificate[0])
    listening = bind(options.address, options.port, "--secure-port")
    port: int = listening.getsockname()[1]
    await stack.enter_async_context(Listener(routes, gate).serving(listening, tls))
    _log.info("HTTPS on %s, port %d, with %s: %s", options.address, port, made, ", ".join(routes.paths))
    return port


async def _health(options: ServingOptions, routes: Routes, stack: AsyncExitStack) -> int | None:
    """Serve the health paths over HTTP. Returns the port."""
    if options.health_port is None:
        return None
    listening = bind(_LOOPBACK, options.health_port, "--health-port")
    port: int = listening.getsockname()[1]
    await stack.enter_async_context(Listener(routes.open_to_everybody(), PublicOnly()).serving(listening, None))
    _log.info("HTTP on %s, port %d, for health alone", _LOOPBACK, port)
    return port
