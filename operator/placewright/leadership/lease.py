"""Takes the Lease while peering elects us, renews it, and gives it back. It makes two active replicas impossible.

Peering elects but cannot exclude (`peering`); a Lease written with the resourceVersion that was read can. The rule is in `leaserule`; this
module has its network and its timers. One task writes, one request after another. A watch brings news at once, such as a release, but
nothing depends on it: after a refused write the Lease is read.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import KW_ONLY, dataclass
from datetime import UTC, datetime
from typing import Final

from placewright.api.decode import DecodeError
from placewright.kube.client import ApiClient
from placewright.kube.errors import CONFLICT, FORBIDDEN, NOT_FOUND, ApiError, RequestError
from placewright.kube.reflector import Reflector, Source
from placewright.kube.tasks import Tasks, until_set
from placewright.kube.writers.events import micro_time
from placewright.leadership.leaseobject import Lease, LeaseStore, older, sight_of
from placewright.leadership.leaserule import LeaseRecord, Moment, Sight, Tenure, Timing, real_seconds

#: Seconds that giving the Lease back may take, at the end.
_RELEASE_SECONDS: Final = 2.0
_RELEASE_ATTEMPTS: Final = 5
_READS: Final = 3
#: Refused writes in a row after which the next one waits: a writer that changes the Lease all the time must not keep us busy.
_COLLISIONS: Final = 5

_log = logging.getLogger(__name__)


async def _nothing() -> None:
    """Return at once: there is nothing to wait for."""


@dataclass(eq=False)
class LeaseFence:
    """One replica's hold on the Lease.

    Attributes:
        client: our own client, whose requests end within half of `timing.renew`.
        namespace: namespace of the Lease.
        identity: our name as its holder.
        timing: its durations.
        finished: returns when no request that needs the Lease is under way; awaited before the Lease is given to a replica that
            outranks us.
        clock: monotonic seconds.
        now: the time of day, written into the Lease.
        store: reads and writes the Lease.
        work: watches and keeps the Lease.
    """

    client: ApiClient
    namespace: str
    identity: str
    timing: Timing
    finished: Callable[[], Awaitable[object]] = _nothing
    _: KW_ONLY
    clock: Callable[[], float] = real_seconds
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    def __post_init__(self) -> None:
        self._listener: Callable[[], None] = lambda: None
        self.store = LeaseStore(self.client, self.namespace)
        self._tenure = Tenure(self.identity, self.timing)
        self._elected = False
        #: Writes in a row that were refused because the Lease had changed.
        self._collisions = 0
        #: Earliest time of the next request.
        self._due: Moment = 0.0
        self._news = asyncio.Event()
        self._complaint = ""
        source = Source(self.store.collection, Lease, field_selector=self.store.selector)
        self.work = Tasks({"Lease watch": Reflector(self.client, source, self).run, "Lease": self._keep})

    # --- the answer ---

    @property
    def held(self) -> bool:
        """True when we may act. Cheap, because it is asked before every request."""
        return self._tenure.held(self.clock())

    @property
    def until(self) -> Moment | None:
        """When we must stop acting without another renewal, on the monotonic clock; None when we may not act."""
        return self._tenure.until if self.held else None

    @property
    def term(self) -> int:
        """Number of times that we took the Lease."""
        return self._tenure.term

    @property
    def sight(self) -> Sight | None:
        """The Lease as last seen; None when there is none, or it was not read yet."""
        return self._tenure.sight

    @property
    def why(self) -> str:
        """Half a sentence for log and health."""
        sight = self._tenure.sight
        if self.held:
            return "the Lease is ours"
        if self._tenure.ours and self._tenure.renounced:
            return "the Lease is given back"
        if self._tenure.ours:
            return "the Lease names us, but no renewal was confirmed in time"
        if sight is None:
            return "no replica holds the Lease" if self._tenure.known else "the Lease was not read yet"
        if sight.record.garbled:
            return "the Lease cannot be read"
        return f"{sight.record.holder} holds the Lease" if sight.record.holder else "no replica holds the Lease"

    # --- life ---

    def on_change(self, listener: Callable[[], None]) -> None:
        """Have the listener called when the Lease was taken, lost or given back.

        Args:
            listener: must not block.
        """
        self._listener = listener

    def elected(self, elected: bool) -> None:
        """Take in peering's answer. The Lease is taken only while peering elects us, and given back when it no longer does."""
        if elected != self._elected:
            self._elected = elected
            self._due = 0.0
            self._news.set()

    async def stop(self, *, give_back: bool = True) -> None:
        """Stop acting, for good.

        Args:
            give_back: give the Lease back, so that another replica takes it at once; else its time runs out.
        """
        if not self.work.tasks:
            return
        await self.work.stop()
        # Stop acting first: giving the Lease back may fail, and then its duration has to run out.
        unclear = self._tenure.doubtful
        self._tenure.renounce(self._stamp())
        if not give_back:
            return
        try:
            async with asyncio.timeout(_RELEASE_SECONDS):
                await self._give_back(unclear)
        except (RequestError, DecodeError, TimeoutError) as problem:
            _log.warning("the Lease could not be given back (%s); others wait for %d s", problem, self.timing.lease)

    async def _give_back(self, unclear: bool) -> None:
        if unclear:
            await self._look()
        for _ in range(_RELEASE_ATTEMPTS):
            if not self._tenure.ours:
                return
            await self._release()

    # --- keeping ---

    async def _keep(self) -> None:
        while True:
            self._news.clear()
            try:
                due = await self._step()
            except (RequestError, DecodeError) as problem:
                due = self._after(problem)
            await until_set(self._news, None if due is None else due - self.clock() + 0.001)

    async def _step(self) -> Moment | None:
        """Do what is due now. Returns the time of the next step, None when only news can make one due."""
        tenure = self._tenure
        if self.clock() < self._due:
            return self._due
        if not tenure.known:
            await self._look()
        if not self._elected:
            if not tenure.ours:
                return None
            if not await self._finish():
                return self._due
            if not self._elected:
                await self._release()
            return self._due
        if not tenure.may_claim(self.clock()):
            return tenure.free_at
        await self._claim()
        return self._due

    async def _finish(self) -> bool:
        """Wait for the requests that were sent while the Lease was ours; the Lease is not renewed meanwhile.

        False when a request is left. It is aborted, but may be carried out late, so the Lease runs out instead of being given back.
        """
        until = self._tenure.until
        if until is None or until + self.timing.gap <= self.clock():
            return True
        try:
            async with asyncio.timeout(max(until - self.clock(), 0.0)):
                await self.finished()
        except TimeoutError:
            self._due = until + self.timing.gap
            return False
        return True

    async def _claim(self) -> None:
        """Take the Lease, or renew it."""
        sent = self.clock()
        record = self._tenure.claim(self._stamp(), sent)
        self._due = sent + self.timing.retry
        before = self.store.last
        written = await self._write(record)
        if written is None:
            return
        self._complaint = ""
        if self.store.last is not before and self._overtaken(written):
            self._tenure.refused(record)
        else:
            self._note(written)
            self._tenure.confirmed(sight_of(written), record, self.clock())
        self._listener()

    async def _release(self) -> None:
        self._due = self.clock() + self.timing.retry
        record = self._tenure.renounce(self._stamp())
        self._listener()
        written = await self._write(record)
        if written is not None:
            self._observe(written)

    async def _write(self, record: LeaseRecord) -> Lease | None:
        """Write once. None when the Lease had changed: then it is read, and may be written again at once."""
        try:
            written = await self.store.write(record)
        except ApiError as refusal:
            # After a temporary error the write may have been stored all the same: the claim stays of unknown outcome.
            if not refusal.temporary:
                self._tenure.refused(record)
            if refusal.status not in (CONFLICT, NOT_FOUND):
                raise
        else:
            self._collisions = 0
            return written
        await self._look()
        self._collisions += 1
        if self._collisions < _COLLISIONS:
            self._due = 0.0
        return None

    def _overtaken(self, written: Lease) -> bool:
        """Return whether the watch has already shown a version after the one that we just wrote."""
        sight = self._tenure.sight
        return not self._tenure.ours and (sight is None or not older(sight.version, written.metadata.resource_version))

    async def _look(self) -> None:
        """Read the Lease, and again when the watch brought a version meanwhile: that one may be newer."""
        for _ in range(_READS):
            before = self.store.last
            found = await self.store.read()
            if self.store.last is before or found is None:
                break
        self._observe(found)

    def _after(self, problem: Exception) -> Moment:
        """Log an error once, and set the time of the next attempt, which never exceeds what renewing can bear."""
        asked = min(problem.retry_after, self.timing.renew / 3) if isinstance(problem, ApiError) else 0.0
        self._due = self.clock() + max(self.timing.retry, asked)
        said = type(problem).__name__ if isinstance(problem, RequestError) and problem.temporary else str(problem)
        if said != self._complaint:
            self._complaint = said
            forbidden = isinstance(problem, ApiError) and problem.status == FORBIDDEN
            hint = "; apply manifests/base/role.yaml" if forbidden else ""
            _log.warning("Lease %s/%s: %s; the next attempt follows%s", self.store.namespace, self.store.name, problem, hint)
        self._listener()
        return self._due

    def _stamp(self) -> str:
        return micro_time(self.now())

    # --- observations ---

    def _observe(self, lease: Lease | None) -> None:
        self._note(lease)
        self._tenure.observe(None if lease is None else sight_of(lease), self.clock())
        self._listener()

    def _note(self, lease: Lease | None) -> None:
        before, after = self.store.last, lease
        self.store.last = lease
        was = "" if before is None else sight_of(before).record.holder
        now = "" if after is None else sight_of(after).record.holder
        if now and now != was:
            _log.info("Lease %s/%s: %s leads", self.store.namespace, self.store.name, now)

    # --- the reflector's sink ---

    def changed(self, old: Lease | None, new: Lease) -> None:
        """Take in the Lease as the watch shows it. The watch may lag behind our own writes."""
        last = self.store.last
        if new.metadata.name != self.store.name or not self._tenure.known:
            return
        if last is not None and (older(new.metadata.resource_version, last.metadata.resource_version) or new == last):
            return
        self._seen(new)

    def deleted(self, old: Lease) -> None:
        """Take in that the Lease was deleted."""
        last = self.store.last
        if last is not None and last.metadata.uid == old.metadata.uid:
            _log.warning("Lease %s/%s was deleted", self.store.namespace, self.store.name)
            self._seen(None)

    def _seen(self, lease: Lease | None) -> None:
        ours = self._tenure.ours
        self._observe(lease)
        if not (ours and self._tenure.ours):
            self._due = 0.0
        self._news.set()

    def synced(self) -> None:
        """Do nothing: a missing Lease is found by reading."""
