"""Keeps our record in the peering object, and removes records that no process renews. Why Kopf does not do that: `peerrecord`.

A writer that applies the object may drop our record, as the first server-side apply after a client-side one does. It is written again at
once. But the writer may drop it on purpose, such as an operator of another version whose clock is ahead. So each repetition that follows
soon waits twice as long as the one before. Two writers then never fight at the speed of the network.
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
from placewright.kube.retry import until_set
from placewright.leadership.leaserule import Moment
from placewright.leadership.peerrecord import removal, renewal
from placewright.leadership.peers import Peers

#: Seconds that our turn goes on while our record is being written again: one answer of a slow API server. The Lease excludes meanwhile.
GRACE_SECONDS: Final = 2.0
_FIRST_PAUSE: Final = 1.0
_LONGEST_PAUSE: Final = 60.0
#: Renewals in a lifetime. Others wait for the whole lifetime, so three may get lost.
_BEATS: Final = 4
#: Seconds between two attempts to remove records, and at most between two attempts to renew ours.
_RETRY_SECONDS: Final = 1.0
_GOODBYE_SECONDS: Final = 1.0

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class RecordPace:
    """The times at which our record may be written again; the first time at once."""

    _next: Moment = float("-inf")
    _pause: float = _FIRST_PAUSE

    def due(self, now: Moment) -> Moment:
        """Compute the earliest time of the next write."""
        return max(now, self._next)

    def sent(self, now: Moment) -> None:
        """Note a write. After a record that stood for long enough the pauses begin anew."""
        stood = now - self._next
        self._pause = _FIRST_PAUSE if stood > _LONGEST_PAUSE else min(self._pause * 2, _LONGEST_PAUSE)
        self._next = now + self._pause


class RecordKeeper:
    """Renews our record and removes those of dead replicas.

    It begins when Kopf has enrolled us: before that, this process has no Kopf that watches.
    """

    def __init__(
        self, client: ApiClient, path: str, priority: int, lifetime: float, clock: Callable[[], float], peers: Callable[[], Peers]
    ) -> None:
        """Write nothing yet.

        Args:
            client: the API server's client.
            path: path of the peering object.
            priority: ours.
            lifetime: seconds, written into our record.
            clock: monotonic seconds.
            peers: gives the observed records.
        """
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
        #: Identities under which we wrote. Kopf removes our record at the end, too, but perhaps before our last write.
        self._names: set[str] = set()

    def shown(self, version: str) -> None:
        """Note that the watch showed the peering object.

        Args:
            version: its resourceVersion; empty when it is gone.
        """
        self._version = version
        self._news.set()
        self._seen.set()

    async def keep(self) -> None:
        """Renew our record, and write it again whenever it is missing, until cancelled."""
        while True:
            self._news.clear()
            now = self._clock()
            due = self._due(now)
            if due is None or due > now:
                await until_set(self._news, None if due is None else due - now)
            else:
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
        self._names.add(peers.own)  # before it is sent: a request that is cancelled may be carried out all the same
        try:
            record = renewal(peers.own, self._priority, self._lifetime, self._renewals, datetime.now(UTC))
            await self._client.patch(self._path, record)
        except RequestError as problem:
            _log.debug("our record could not be written to %s; the keeper tries again: %s", self._path, problem)
            await asyncio.sleep(min(_RETRY_SECONDS, self._lifetime / _BEATS))
            self._renewed = float("-inf")
        else:
            if missing:
                _log.info("peering %s: another writer dropped our record; it is written again", self._path.rpartition("/")[2])

    async def tidy(self) -> None:
        """Remove records that did not change for their lifetime, until cancelled.

        The patch names the version of the object that was last seen. If a record was renewed meanwhile, the version is another, and the
        answer 409.
        """
        while True:
            self._seen.clear()
            next_expiry = self._peers().next_expiry()
            await until_set(self._seen, None if next_expiry is None else next_expiry - self._clock() + 0.001)
            if (gone := self._peers().expired(self._clock())) and self._version:
                await self._take_out(gone)

    async def _take_out(self, gone: list[str]) -> None:
        try:
            await self._client.patch(self._path, removal(gone, self._version))
        except RequestError as problem:
            if not (isinstance(problem, ApiError) and problem.status == CONFLICT):
                _log.debug("records of dead replicas could not be removed; the keeper tries again: %s", problem)
        else:
            _log.info("peering %s: removed records that no process renews any more: %s", self._path.rpartition("/")[2], ", ".join(gone))
        await asyncio.sleep(_RETRY_SECONDS)  # time for the watch to show the removal, or the renewal that refused it

    async def goodbye(self) -> None:
        """Remove our own record; for the end, after `keep` was cancelled."""
        if self._names:
            with contextlib.suppress(RequestError, TimeoutError):
                async with asyncio.timeout(_GOODBYE_SECONDS):
                    await self._client.patch(self._path, removal(self._names))
