"""Answers the question "may I bind now" from Kopf's peering object.

Kopf enrols us there and pauses its own watching. Our record is kept, and records of dead replicas are removed, from here (`RecordKeeper`).
Kopf does not tell whether it is paused, and judges peers by their clocks. It does not pause a leader that is cut off. So this room watches
the object itself and judges by its own monotonic clock (`peers`). Peering elects but cannot exclude: the fence does (`lease`).

`RecordKeeper` keeps our record, and removes records that no process renews. `peers` says why Kopf does not do that.

A writer that applies the object may drop our record, as the first server-side apply after a client-side one does. It is written again at
once. But the writer may drop it on purpose, such as an operator of another version whose clock is ahead. So each repetition that follows
soon waits twice as long as the one before. Two writers then never fight at the speed of the network.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from datetime import UTC, datetime
from typing import Annotated, Final

import msgspec

from placewright.api.objects import KubeObject, ObjectMeta
from placewright.api.writers import Writer
from placewright.kube.client import ApiClient
from placewright.kube.errors import CONFLICT, NOT_FOUND, ApiError, RequestError
from placewright.kube.reflector import Reflector, Source
from placewright.kube.tasks import Tasks, until_set
from placewright.leadership.lease import LeaseFence
from placewright.leadership.leaseobject import CannotElect
from placewright.leadership.leaserule import Moment, real_seconds
from placewright.leadership.peers import DEFAULT_LIFETIME, Peers, Replica, Verdict, junior_to, priorities_in, removal, renewal

#: Seconds that our turn goes on while our record is being written again: one answer of a slow API server. The Lease excludes meanwhile.
GRACE_SECONDS: Final = 2.0
_FIRST_PAUSE: Final = 1.0
_LONGEST_PAUSE: Final = 60.0
#: Renewals in a lifetime. Others wait for the whole lifetime, so three may get lost.
_BEATS: Final = 4
#: Seconds between two attempts to remove records, and at most between two attempts to renew ours.
_RETRY_SECONDS: Final = 1.0
_GOODBYE_SECONDS: Final = 1.0


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


PEERING_NAME: Final = "placewright"
PEERINGS_PATH: Final = "/apis/kopf.dev/v1/clusterkopfpeerings"
_PATH: Final = f"{PEERINGS_PATH}/{PEERING_NAME}"

_log = logging.getLogger(__name__)


class Peering(KubeObject, frozen=True):
    """ClusterKopfPeering. Each value of `status` is one peer's record, decoded separately so that a strange record spoils only itself."""

    metadata: Annotated[ObjectMeta, Writer.OWNER] = ObjectMeta()
    status: Annotated[dict[str, msgspec.Raw] | None, Writer.OWNER] = None


#: Called with True when this replica becomes active, with False when it ceases to be.
Listener = Callable[[bool], None]


@dataclass(frozen=True, slots=True)
class Position:
    """A replica's standing, for health and metrics.

    Attributes:
        identity: identity of the replica.
        active: whether it may bind now.
        why: half a sentence.
        until: when that ends without news, on the monotonic clock; None when unknown or never.
        term: number of times that it took the lead.
    """

    identity: str
    active: bool
    why: str
    until: Moment | None
    term: int


@dataclass(eq=False)
class Leadership:
    """Whether this replica is the active one.

    `active` is computed when asked, from the observed records and the clock. A watch that hangs makes it False by itself, because our own
    record is then not seen to be renewed.

    Attributes:
        client: the API server's client.
        replica: this process.
        fence: a second condition, asked each time.
        clock: monotonic seconds.
        keeps_record: renew our record, write it again when it is dropped, and remove records of dead replicas.
        lifetime: seconds that a replica counts as alive without a renewal.
        fence: the second condition.
        replica: this process; its priority changes when it takes its place.
    """

    client: ApiClient
    replica: Replica
    fence: LeaseFence
    _: KW_ONLY
    clock: Callable[[], float] = real_seconds
    keeps_record: bool = False
    lifetime: float = DEFAULT_LIFETIME

    def __post_init__(self) -> None:
        self.fence.on_change(self.review)
        self._take_place(self.replica)
        source = Source(PEERINGS_PATH, Peering, field_selector=f"metadata.name={PEERING_NAME}")
        self._watching = Tasks({"peering watch": Reflector(self.client, source, self).run, "peering verdict": self._follow})
        self._listeners: list[Listener] = []
        self._told = False
        self._turned = asyncio.Event()
        self._news = asyncio.Event()

    def _take_place(self, replica: Replica) -> None:
        self.replica = replica
        self._peers = Peers(replica.priority, GRACE_SECONDS if self.keeps_record else 0.0, self.lifetime)
        self._keeper = RecordKeeper(self.client, _PATH, replica.priority, self.lifetime, self.clock, lambda: self._peers)
        self._keeping = Tasks({"peering record": self._keeper.keep})

    async def stand_behind_others(self) -> Replica:
        """Take a priority below every replica that is there, however late our clock is. Call it before `start`.

        Raises:
            RequestError: the server refused or did not answer.
        """
        found = await self.client.get_as(_PATH, Peering)
        self._take_place(junior_to(self.replica, priorities_in(found.status or {})))
        return self.replica

    @property
    def active(self) -> bool:
        """True when this replica may bind now. Cheap: ask it before every request."""
        return self.fence.held and self._peers.verdict(self.clock()).active

    @property
    def term(self) -> int:
        """Number of times that we took the lead; it grows when another replica may have had it in between."""
        return self.fence.term

    def position(self) -> Position:
        """Describe our standing now, for health and metrics."""
        verdict = self.verdict
        why = verdict.why if not verdict.active else f"{verdict.why}, and {self.fence.why}"
        active = verdict.active and self.fence.held
        return Position(self.replica.identity, active, why, self._until() if active else None, self.term)

    def _until(self) -> Moment | None:
        """Return when time alone may change the answer."""
        return min((end for end in (self.verdict.until, self.fence.until) if end is not None), default=None)

    @property
    def verdict(self) -> Verdict:
        """The answer of peering alone, with its reason and its end."""
        return self._peers.verdict(self.clock())

    def on_change(self, listener: Listener) -> None:
        """Call a listener whenever this replica becomes active or ceases to be.

        Args:
            listener: must not block.
        """
        self._listeners.append(listener)

    async def wait_active(self) -> None:
        """Return once this replica is active. Ask `active` again before acting."""
        while not self.active:
            self._turned.clear()
            await self._turned.wait()

    def start(self) -> None:
        """Watch the peering object; needs a running event loop."""
        self._watching.start()
        if self.keeps_record:
            self._keeping.start()
            self._watching.add("peering records of others", self._keeper.tidy)
        self.fence.work.start()

    @property
    def tasks(self) -> tuple[asyncio.Task[None], ...]:
        """The running tasks; none ends before `stop`."""
        return (*self._watching.tasks, *self._keeping.tasks, *self.fence.work.tasks)

    async def resign(self, *, give_back: bool = True) -> None:
        """Cease to be active for good, so that another replica may be. Our record stays among the peers.

        Args:
            give_back: give the lead back at once; else let its time run out, because a request may still be carried out.
        """
        await self._keeping.stop()
        await self.fence.stop(give_back=give_back)
        self.review()

    async def stop(self) -> None:
        """Stop watching, and remove our record. We are not active any more."""
        await self.resign()
        await self._watching.stop()
        await self._keeper.goodbye()
        self._peers.forget()
        self.review()

    # --- the reflector's sink ---

    def changed(self, old: Peering | None, new: Peering) -> None:
        """Take in the peering object."""
        if new.metadata.name != PEERING_NAME:
            return
        before = self._peers.unreadable
        self._peers.observe(new.status or {}, self.clock())
        strange = self._peers.unreadable - before
        if strange:
            _log.warning("peering %s: records ignored, not of Kopf's shape: %s", PEERING_NAME, ", ".join(sorted(strange)))
        self._keeper.shown(new.metadata.resource_version)
        self._news.set()
        self.review()

    def deleted(self, old: Peering) -> None:
        """Take in that the peering object is gone: no replica is elected."""
        _log.error("peering object %s was deleted: no replica is active until it exists again", PEERING_NAME)
        self._peers.forget()
        self._keeper.shown("")
        self._news.set()
        self.review()

    def synced(self) -> None:
        """Look again: the object, if there is one, was read."""
        self._news.set()

    # --- telling ---

    def review(self) -> None:
        """Tell the listeners if the answer has changed. The fence calls this, too."""
        self.fence.elected(self.verdict.active)
        active = self.active
        if active == self._told:
            return
        self._told = active
        self._news.set()  # the time at which the answer changes by itself may be another now
        _log.info("%s: %s", "active" if active else "standing by", self.position().why)
        self._turned.set()
        for listener in self._listeners:
            try:
                listener(active)
            except MemoryError:
                raise
            except Exception:  # noqa: BLE001
                # One failing listener must not keep the others from stopping their work.
                _log.exception("a listener of the lead raised an error; the others are told")

    async def _follow(self) -> None:
        """Review whenever time alone may have changed the answer."""
        while True:
            self._news.clear()
            self.review()
            until = self._until()
            await until_set(self._news, None if until is None else until - self.clock() + 0.001)


async def ensure_peering(client: ApiClient) -> None:
    """Create the peering object if it is missing.

    Raises:
        CannotElect: the CRD is missing, or we may not create the object; the message names the manifests to apply.
        RequestError: the server refused or did not answer.
    """
    try:
        await client.get(_PATH)
    except ApiError as error:
        if error.status != NOT_FOUND:
            raise
    else:
        return
    try:
        await client.post(PEERINGS_PATH, {"apiVersion": "kopf.dev/v1", "kind": "ClusterKopfPeering", "metadata": {"name": PEERING_NAME}})
    except ApiError as error:
        if error.status == CONFLICT:
            return
        if error.status == NOT_FOUND:
            raise CannotElect(
                "the API server does not know ClusterKopfPeering (kopf.dev/v1), which replicas need to elect one; apply crds/ first,"
                " or run the only replica with --leader-elect=false"
            ) from None
        raise CannotElect(
            f"ClusterKopfPeering {PEERING_NAME!r} does not exist and could not be created ({error}); apply one of that name, see manifests/"
        ) from None
