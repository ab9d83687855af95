"""Keeps our record in the peering object, and takes out those that nobody keeps. Why Kopf does not: `peerrecord`.

Whoever applies the object may drop our record, which is seen with the first server-side apply after a client-side one. It is put back at
once. Somebody may mean to drop it, such as an operator of another version whose clock says that it ran out: so each time that follows soon
waits twice as long as the one before, and nobody writes against anybody at the speed of the network.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from placewright.kube.client import ApiClient
from placewright.kube.errors import CONFLICT, ApiError, RequestError
from placewright.leadership.peerrecord import removal, renewal
from placewright.leadership.peers import Moment, Peers

#: How long our turn goes on without the record that we are putting back, in seconds: an answer of a slow API server. The Lease excludes.
GRACE_SECONDS: Final = 2.0
_FIRST_PAUSE: Final = 1.0
_LONGEST_PAUSE: Final = 60.0
#: Renewals in a lifetime: others wait for the whole of it, so that three may get lost.
_BEATS: Final = 4
#: Between two attempts to take records out; between two to renew, at most.
_RETRY_SECONDS: Final = 1.0
_GOODBYE_SECONDS: Final = 1.0

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class RecordPace:
    """When the record may be put back again; at first at once."""

    _next: Moment = float("-inf")
    _pause: float = _FIRST_PAUSE

    def due(self, now: Moment) -> Moment:
        """The earliest moment for the next time."""
        return max(now, self._next)

    def sent(self, now: Moment) -> None:
        """It is put back now. Where it stood for long enough, the next time is a first one again."""
        stood = now - self._next
        self._pause = _FIRST_PAUSE if stood > _LONGEST_PAUSE else min(self._pause * 2, _LONGEST_PAUSE)
        self._next = now + self._pause


class RecordKeeper:
    """Writes to one peering object, for as long as we want to be among the peers.

    Begins when Kopf has enrolled us: who is not enrolled by Kopf has no Kopf that watches.
    """

    def __init__(
        self, client: ApiClient, path: str, priority: int, lifetime: float, clock: Callable[[], float], peers: Callable[[], Peers]
    ) -> None:
        """`path`: of the peering object. `lifetime`: what our record says, in seconds. `peers`: what is seen of it."""
        self._client = client
        self._path = path
        self._priority = priority
        self._lifetime = max(1, int(lifetime))
        self._clock = clock
        self._peers = peers
        self._pace = RecordPace()
        self._renewed: Moment = float("-inf")
        self._renewals = 0
        self._version = ""
        self._news = asyncio.Event()
        self._seen = asyncio.Event()
        #: Names under which we wrote. Kopf says goodbye, too, but may have said it before we wrote the last time.
        self._names: set[str] = set()

    def shown(self, version: str) -> None:
        """The peering object was seen in this version; empty where it is gone."""
        self._version = version
        self._news.set()
        self._seen.set()

    async def keep(self) -> None:
        """Renew our record, and put it back whenever it is missing, until cancelled."""
        while True:
            self._news.clear()
            now = self._clock()
            due = self._due(now)
            if due is None or due > now:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(None if due is None else due - now):
                        await self._news.wait()
                continue
            await self._write()

    def _due(self, now: Moment) -> Moment | None:
        peers = self._peers()
        if not peers.own or not self._version:
            return None
        if peers.missing:
            return self._pace.due(now)
        if peers.enrolled_only:
            return max(now, self._renewed + _RETRY_SECONDS)
        return self._renewed + self._lifetime / _BEATS

    async def _write(self) -> None:
        peers, now = self._peers(), self._clock()
        missing = peers.missing
        if missing:
            self._pace.sent(now)
        self._renewed = now
        self._renewals += 1
        self._names.add(peers.own)  # before it is sent: a request whose answer is not awaited may be carried out, too
        try:
            record = renewal(peers.own, self._priority, self._lifetime, self._renewals, datetime.now(UTC))
            await self._client.patch(self._path, record)
        except RequestError as problem:
            _log.debug("our record could not be written to %s, will be tried again: %s", self._path, problem)
            await asyncio.sleep(min(_RETRY_SECONDS, self._lifetime / _BEATS))
            self._renewed = float("-inf")
        else:
            if missing:
                _log.info("peering %s: somebody dropped our record; it is put back", self._path.rpartition("/")[2])

    async def tidy(self) -> None:
        """Take out records that were not seen to change for their lifetime, until cancelled.

        Only from the object as it was seen last: what was renewed meanwhile makes it another version, and the answer is 409.
        """
        while True:
            self._seen.clear()
            next_expiry = self._peers().next_expiry()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(None if next_expiry is None else max(next_expiry - self._clock(), 0.0) + 0.001):
                    await self._seen.wait()
            if (gone := self._peers().expired(self._clock())) and self._version:
                await self._take_out(gone)

    async def _take_out(self, gone: list[str]) -> None:
        try:
            await self._client.patch(self._path, removal(gone, self._version))
        except RequestError as problem:
            if not (isinstance(problem, ApiError) and problem.status == CONFLICT):
                _log.debug("records of the peering could not be taken out, will be tried again: %s", problem)
        else:
            _log.info("peering %s: nobody keeps these records any more: %s", self._path.rpartition("/")[2], ", ".join(gone))
        await asyncio.sleep(_RETRY_SECONDS)  # what was taken out is seen to be gone, or what was renewed to be there

    async def goodbye(self) -> None:
        """Take out what we put in; for the end, after `keep` was cancelled."""
        if self._names:
            with contextlib.suppress(RequestError, TimeoutError):
                async with asyncio.timeout(_GOODBYE_SECONDS):
                    await self._client.patch(self._path, removal(self._names))
