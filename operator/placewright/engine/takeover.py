"""From being the active replica to deciding: nothing of an earlier term is left, and everything that the last leader did is known.

`leadership` says whether we may act; decisions begin a moment later, when this room says so, too. In order: every list is complete; what an
earlier term left behind (assumed, waiting for permission, being prepared, on its way) has ended without a request, or is settled by asking
the API server; the watches have caught up with what was written before we took over. Then the term begins.

Nobody decides meanwhile. So what comes after the lists has a limit: beyond it the lead is given back by ending the process in order. The
replica that takes its place is the youngest and has nothing left of an earlier term; another one leads, if there is any.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, Protocol

from placewright.api.decode import DecodeError
from placewright.api.objects import NodeName, Pod
from placewright.api.pods import PodInfo
from placewright.engine.reflectors import readable_pod
from placewright.kube.client import ApiClient
from placewright.kube.errors import NOT_FOUND, ApiError, RequestError
from placewright.kube.listwatch import Malformed, Wire
from placewright.kube.reflector import Reflector
from placewright.kube.retry import RetryBackoff
from placewright.leadership.peering import Listener
from placewright.scheduler.binding import BindingCycle
from placewright.scheduler.eventhandlers import ClusterEventHandlers

_logger = logging.getLogger(__name__)

#: A watch that brought nothing for so long is not waited for, nor one that brings news all the time for longer than the second.
QUIET_SECONDS: Final = 0.1
_LONGEST_SECONDS: Final = 1.0
_LOOK_SECONDS: Final = 0.01
#: How long the preparation of a term may take once every list is complete, in seconds, repetitions included.
LONGEST_TAKEOVER_SECONDS: Final = 120.0
#: Pods asked for at once.
_AT_ONCE: Final = 64


class Leader(Protocol):
    """What `leadership` offers."""

    @property
    def active(self) -> bool:
        """May we act."""

    @property
    def term(self) -> int:
        """Grows when somebody else may have acted in between."""

    def on_change(self, listener: Listener) -> None:
        """Call on becoming active or ceasing to be."""

    async def wait_active(self) -> None:
        """Return once we are active."""

    def review(self) -> None:
        """Tell listeners what time alone has changed."""


class TakeoverTooLong(Exception):
    """The lead was ours and decisions could not begin in time: somebody else has to try."""


async def _complete() -> None:
    """There is nothing to list."""


class Takeover:
    """The `Lead` that scheduler and binder ask: active, and prepared for this term."""

    def __init__(
        self,
        leader: Leader,
        prepare: Callable[[], Awaitable[None]],
        end: Callable[[], None],
        listed: Callable[[], Awaitable[None]] = _complete,
        limit: float = LONGEST_TAKEOVER_SECONDS,
    ) -> None:
        """Make one.

        Args:
            leader: says whether this replica may act.
            prepare: run before each term; repeated when it fails with `RequestError`.
            end: called at the end of each term.
            listed: awaited before `prepare`: returns when every list is complete.
            limit: seconds that `prepare` may take in one term, repetitions included.
        """
        self._leader = leader
        self._prepare = prepare
        self._end = end
        self._listed = listed
        self._limit = limit
        #: The term that is being prepared, and until when by the monotonic clock.
        self._deadline = (-1, 0.0)
        self._leads_since: float | None = None
        self._prepared_for: int | None = None
        self._began = asyncio.Event()
        self._ended = asyncio.Event()
        self._news = asyncio.Event()
        leader.on_change(self._turned)

    @property
    def active(self) -> bool:
        """May we decide and bind. Cheap: asked before every request."""
        return self._prepared_for == self._leader.term and self._leader.active

    @property
    def seconds_without_decisions(self) -> float:
        """For how long the lead has been ours without decisions having begun; 0 where they have, and for a standby."""
        since = self._leads_since
        return 0.0 if since is None or self.active or not self._leader.active else time.monotonic() - since

    async def wait_active(self) -> None:
        """Return once we may decide; look at `active` again before acting."""
        while not self.active:
            self._began.clear()
            self._leader.review()
            if not self.active:
                await self._began.wait()

    async def sleep(self, seconds: float) -> None:
        """Wait before a request is repeated; not beyond the end of the term, because then it must not be."""
        if self._ended.is_set():
            await asyncio.sleep(seconds)
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._ended.wait()

    def _turned(self, active: bool) -> None:
        if not active:
            self._leads_since = None
        if not active and self._prepared_for is not None:
            self._prepared_for = None
            self._ended.set()
            self._end()
        self._news.set()

    async def run(self) -> None:
        """Prepare each term, until cancelled. Raises `TakeoverTooLong`."""
        backoff, failures = RetryBackoff(maximum=2.0), 0
        while True:
            await self._leader.wait_active()
            self._leads_since = time.monotonic() if self._leads_since is None else self._leads_since
            self._news.clear()
            try:
                await self._begin()
            except (RequestError, DecodeError, Malformed) as problem:
                _logger.warning("takeover: %s; trying on", problem)
                await asyncio.sleep(backoff.delay(failures, problem if isinstance(problem, RequestError) else None))
                failures += 1
            else:
                failures = 0
                if self._prepared_for is not None:
                    await self._news.wait()

    async def _begin(self) -> None:
        term, since = self._leader.term, time.monotonic()
        await self._listed()
        await self._prepare_in_time(term)
        if self._leader.active and self._leader.term == term:
            self._prepared_for = term
            self._ended.clear()
            self._began.set()
            _logger.info("term %d begins, prepared in %.2f s", term, time.monotonic() - since)


    async def _prepare_in_time(self, term: int) -> None:
        now = time.monotonic()
        if self._deadline[0] != term:
            self._deadline = term, now + self._limit
        left = self._deadline[1] - now
        in_time = asyncio.timeout(left)
        if left > 0:
            try:
                async with in_time:
                    await self._prepare()
            except TimeoutError:
                if not in_time.expired():
                    raise
            else:
                return
        if self._leader.active and self._leader.term == term:
            raise TakeoverTooLong(f"decisions did not begin within {self._limit:g} s of taking the lead, which is given back")


async def ask_for_unresolved(client: ApiClient, binding: BindingCycle, intake: ClusterEventHandlers) -> None:
    """Settle bindings of an earlier term whose answers got lost: what they assumed is true, or is dropped. Raises `RequestError`."""
    pods = [placement.pod for _, placement in binding.unresolved.values()]
    for start in range(0, len(pods), _AT_ONCE):
        await asyncio.gather(*(_ask_for(client, pod, binding, intake) for pod in pods[start : start + _AT_ONCE]))


async def _ask_for(client: ApiClient, pod: PodInfo, binding: BindingCycle, intake: ClusterEventHandlers) -> None:
    try:
        found = await client.get_as(f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}", Pod)
    except ApiError as problem:
        if problem.status != NOT_FOUND:
            raise
        intake.pod_gone(pod.uid)
        return
    if found.metadata.uid != pod.uid:
        intake.pod_gone(pod.uid)
    elif found.spec.node_name:
        intake.assigned_pod(readable_pod(found) or pod.on(NodeName(found.spec.node_name)))
    else:
        binding.resolve(pod.uid, None)


async def caught_up(client: ApiClient, reflectors: Sequence[Reflector[Any]]) -> None:
    """Return when each of these has told what was written until now; raises `RequestError` or `Malformed`.

    A watch does not say how far it is while nothing happens, and one that lags behind is as silent as one that has nothing to tell. So a
    reflector is believed only when it has come to the version that the API server names now for its collection; when it falls silent before
    that, or takes too long, the collection is listed anew.
    """
    listed = await asyncio.gather(*(_catch_up(client, each) for each in reflectors))
    if anew := ", ".join(each for each in listed if each):
        _logger.info("takeover: listed anew, as no watch had come to the version that the API server named: %s", anew)


async def _catch_up(client: ApiClient, reflector: Reflector[Any]) -> str:
    """What had to be listed anew."""
    source = reflector.source
    page = Wire(source.kind).page(await client.get(source.path, source.selectors | {"limit": "1"}))
    if await _comes_to(reflector, page.resource_version):
        return ""
    await reflector.list_anew()
    return source.path.rpartition("/")[2]


async def _comes_to(reflector: Reflector[Any], version: str) -> bool:
    """Whether the reflector comes to that version, as long as it brings anything."""
    began = quiet_since = time.monotonic()
    events = reflector.counts.events
    while not reached(reflector.version, version):
        await asyncio.sleep(_LOOK_SECONDS)
        now = time.monotonic()
        if reflector.counts.events != events:
            events, quiet_since = reflector.counts.events, now
        if now - quiet_since >= QUIET_SECONDS or now - began >= _LONGEST_SECONDS:
            return False
    return True


def reached(version: str, wanted: str) -> bool:
    """Whether a version is known to be as new as another: they are numbers that grow, or the same."""
    return version == wanted != "" or (version.isdecimal() and wanted.isdecimal() and int(version) >= int(wanted))
