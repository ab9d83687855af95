"""Prepares a term: between becoming the active replica and the first decision.

`leadership` says whether this replica may act; decisions begin when this module says so, too. First every list is complete. Then pods are
rolled back, or read from the API server, that an earlier term left assumed, waiting or binding. Then the watches catch up with everything
that was written before this replica took over. Then the term begins.

No replica decides meanwhile. So the steps after the lists have a time limit: beyond it this replica gives the lead back by ending its
process in order. The process that replaces it is the youngest and has nothing left of an earlier term; another replica leads, if there
is one.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from placewright.api.decode import DecodeError
from placewright.api.pods import PodInfo
from placewright.engine.discovery import read_pod
from placewright.kube.client import ApiClient
from placewright.kube.errors import RequestError, RetryBackoff
from placewright.kube.listwatch import Malformed, Wire
from placewright.kube.reflector import Reflector
from placewright.kube.tasks import until_set
from placewright.leadership.peering import Listener
from placewright.scheduler.binding import BindingCycle
from placewright.scheduler.eventhandlers import ClusterEventHandlers

_logger = logging.getLogger(__name__)

#: Seconds without an event after which a watch is not waited for. One that brings events is waited for as long as `_LONGEST_SECONDS`.
QUIET_SECONDS: Final = 0.1
_LONGEST_SECONDS: Final = 1.0
_LOOK_SECONDS: Final = 0.01
#: Seconds that the preparation of a term may take once every list is complete, repetitions included. A break of the lead, as of a renewal
#: that came late, begins the time anew: others could have taken the lead.
LONGEST_TAKEOVER_SECONDS: Final = 120.0
#: Pods that are read at once.
_AT_ONCE: Final = 64


class Leader(Protocol):
    """The part of `leadership` that a takeover needs."""

    @property
    def active(self) -> bool:
        """Whether this replica may act now."""

    @property
    def term(self) -> int:
        """The number of the term. It grows when another replica may have acted in between."""

    def on_change(self, listener: Listener) -> None:
        """Call the listener when this replica becomes active, and when it ceases to be."""

    async def wait_active(self) -> None:
        """Return once this replica is active."""

    def review(self) -> None:
        """Call the listeners if the state has changed because time has passed, such as at the end of a Lease."""


class TakeoverTooLong(Exception):
    """This replica has the lead and could not begin to decide in time: another replica has to try."""


async def _complete() -> None:
    """Return at once: there is nothing to list."""


@dataclass(eq=False)
class Takeover:
    """The `Lead` of scheduler and writers: active only in a term that has been prepared.

    Attributes:
        leader: says whether this replica may act.
        prepare: run before each term; repeated when it fails with `RequestError`.
        end: called at the end of each term.
        listed: awaited before `prepare`: returns when every list is complete.
        limit: seconds that `prepare` may take in one term, repetitions included.
    """

    leader: Leader
    prepare: Callable[[], Awaitable[None]]
    end: Callable[[], None]
    listed: Callable[[], Awaitable[None]] = _complete
    limit: float = LONGEST_TAKEOVER_SECONDS

    def __post_init__(self) -> None:
        #: Until when the term has to be prepared, by the monotonic clock; None while none is.
        self._deadline: float | None = None
        self._leads_since: float | None = None
        self._prepared_for: int | None = None
        self._began = asyncio.Event()
        self._ended = asyncio.Event()
        self._news = asyncio.Event()
        self.leader.on_change(self._turned)

    @property
    def active(self) -> bool:
        """Whether this replica may decide and bind now. Cheap: every request asks it first."""
        return self._prepared_for == self.leader.term and self.leader.active

    def may_write(self) -> bool:
        """Whether this replica may write what it decided: `active`, for writers that ask before each request."""
        return self.active

    @property
    def seconds_without_decisions(self) -> float:
        """Seconds for which this replica has had the lead without deciding; 0 once it decides, and for a standby."""
        since = self._leads_since
        return 0.0 if since is None or self.active or not self.leader.active else time.monotonic() - since

    async def wait_active(self) -> None:
        """Return once this replica may decide. The caller checks `active` again before it acts."""
        while not self.active:
            self._began.clear()
            self.leader.review()
            if not self.active:
                await self._began.wait()

    async def sleep(self, seconds: float) -> None:
        """Wait before a request is repeated, at most until the term ends: after it the request must not be sent.

        Args:
            seconds: to wait where the term goes on.
        """
        if self._ended.is_set():
            await asyncio.sleep(seconds)
            return
        await until_set(self._ended, seconds)

    def _turned(self, active: bool) -> None:
        if not active:
            self._leads_since = self._deadline = None
        if not active and self._prepared_for is not None:
            self._prepared_for = None
            self._ended.set()
            self.end()
        self._news.set()

    async def run(self) -> None:
        """Prepare each term, until cancelled.

        Raises:
            TakeoverTooLong: a term could not begin within the limit.
        """
        backoff, failures = RetryBackoff(maximum=2.0), 0
        while True:
            await self.leader.wait_active()
            self._leads_since = time.monotonic() if self._leads_since is None else self._leads_since
            self._news.clear()
            try:
                await self._begin()
            except (RequestError, DecodeError, Malformed) as problem:
                _logger.warning("takeover: %s; it is tried again", problem)
                await asyncio.sleep(backoff.delay(failures, problem if isinstance(problem, RequestError) else None))
                failures += 1
            else:
                failures = 0
                if self._prepared_for is not None:
                    await self._news.wait()

    async def _begin(self) -> None:
        term, since = self.leader.term, time.monotonic()
        await self.listed()
        prepared = await self._prepare_in_time(term)
        if prepared and self.leader.active and self.leader.term == term:
            self._prepared_for, self._deadline = term, None
            self._ended.clear()
            self._began.set()
            _logger.info("term %d begins, prepared in %.2f s", term, time.monotonic() - since)

    async def _prepare_in_time(self, term: int) -> bool:
        """Prepare the term. Returns False if that took too long, and the lead was lost or interrupted meanwhile."""
        now = time.monotonic()
        if self._deadline is None:
            self._deadline = now + self.limit
        left = self._deadline - now
        in_time = asyncio.timeout(left)
        if left > 0:
            try:
                async with in_time:
                    await self.prepare()
            except TimeoutError:
                if not in_time.expired():
                    raise
            else:
                return True
        if self.leader.active and self.leader.term == term and self._deadline is not None:
            raise TakeoverTooLong(f"decisions did not begin within {self.limit:g} s of taking the lead, which is given back")
        return False


async def ask_for_unresolved(client: ApiClient, binding: BindingCycle, event_handlers: ClusterEventHandlers) -> None:
    """Settle the bindings of an earlier term whose answers got lost, by reading each pod.

    Args:
        client: reads the pods.
        binding: has the bindings without an answer.
        event_handlers: takes each pod as it is: bound, unbound or deleted.

    Raises:
        RequestError: the API server did not answer.
    """
    pods = [result.pod for _, result in binding.unresolved.values()]
    for start in range(0, len(pods), _AT_ONCE):
        await asyncio.gather(*(_ask_for(client, pod, binding, event_handlers) for pod in pods[start : start + _AT_ONCE]))


async def _ask_for(client: ApiClient, pod: PodInfo, binding: BindingCycle, event_handlers: ClusterEventHandlers) -> None:
    found = await read_pod(client, pod)
    if found is None:
        event_handlers.pod_gone(pod.uid)
    elif found.node_name:
        event_handlers.assigned_pod(found)
    else:
        binding.resolve(pod.uid, None)


async def caught_up(client: ApiClient, reflectors: Sequence[Reflector[Any]]) -> None:
    """Return when each reflector has brought everything that was written until now.

    A watch that lags is as silent as a watch without news. So a reflector is believed only when it has reached the version that the API
    server names for its collection. When it falls silent before that, or takes too long, the collection is listed anew.

    Args:
        client: asks for the versions.
        reflectors: reflectors of the kinds that a leader's decisions change.

    Raises:
        RequestError: the API server did not answer.
        Malformed: its answer cannot be read.
    """
    listed = await asyncio.gather(*(_catch_up(client, each) for each in reflectors))
    if anew := ", ".join(each for each in listed if each):
        _logger.info("takeover: listed anew, as no watch had come to the version that the API server named: %s", anew)


async def _catch_up(client: ApiClient, reflector: Reflector[Any]) -> str:
    """Catch up one reflector. Returns the name of its collection where that had to be listed anew, else the empty text."""
    source = reflector.source
    page = Wire(source.kind).page(await client.get(source.path, source.selectors | {"limit": "1"}))
    if await _comes_to(reflector, page.resource_version):
        return ""
    await reflector.list_anew()
    return source.path.rpartition("/")[2]


async def _comes_to(reflector: Reflector[Any], version: str) -> bool:
    """Wait until the reflector has reached a version. Returns False if it falls silent or takes too long first."""
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
    """Whether a resourceVersion is known to be at least as new as another.

    Args:
        version: reached so far.
        wanted: to be reached.

    Returns:
        False if that is unknown: versions are compared as numbers, which they are in every API server on etcd, else for equality.
    """
    return version == wanted != "" or (version.isdecimal() and wanted.isdecimal() and int(version) >= int(wanted))
