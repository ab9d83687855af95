"""Answers the question "may I bind now" from Kopf's peering object.

Kopf enrols us there and pauses its own watching. Our record is kept, and records of dead replicas are removed, from here (`recordkeeper`).
Kopf does not tell whether it is paused, and judges peers by their clocks. It does not pause a leader that is cut off. So this room watches
the object itself and judges by its own monotonic clock (`peers`). Peering elects but cannot exclude: the fence does (`lease`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Final

import msgspec

from placewright.api.objects import KubeObject, ObjectMeta
from placewright.api.writers import Writer
from placewright.kube.client import ApiClient
from placewright.kube.errors import CONFLICT, NOT_FOUND, ApiError
from placewright.kube.reflector import Reflector, Source
from placewright.kube.retry import until_set
from placewright.leadership.lease import LeaseFence
from placewright.leadership.leaseobject import CannotElect
from placewright.leadership.leaserule import Moment, real_seconds
from placewright.leadership.peerrecord import DEFAULT_LIFETIME
from placewright.leadership.peers import Peers, Replica, Verdict, junior_to, priorities_in
from placewright.leadership.recordkeeper import GRACE_SECONDS, RecordKeeper

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


class Leadership:
    """Whether this replica is the active one.

    `active` is computed when asked, from the observed records and the clock. A watch that hangs makes it False by itself, because our own
    record is then not seen to be renewed.

    Attributes:
        fence: the second condition.
        replica: this process; its priority changes when it takes its place.
    """

    def __init__(
        self,
        client: ApiClient,
        replica: Replica,
        fence: LeaseFence,
        *,
        clock: Callable[[], float] = real_seconds,
        keeps_record: bool = False,
        lifetime: float = DEFAULT_LIFETIME,
    ) -> None:
        """Write nothing yet.

        Args:
            client: the API server's client.
            replica: this process.
            fence: a second condition, asked each time.
            clock: monotonic seconds.
            keeps_record: renew our record, write it again when it is dropped, and remove records of dead replicas.
            lifetime: seconds that a replica counts as alive without a renewal.
        """
        self.fence = fence
        self.fence.on_change(self.review)
        self._clock = clock
        self._keeps_record = keeps_record
        self._lifetime = lifetime
        self._client = client
        self._take_place(replica)
        self._keeping: asyncio.Task[None] | None = None
        source = Source(PEERINGS_PATH, Peering, field_selector=f"metadata.name={PEERING_NAME}")
        self._reflector = Reflector(client, source, self)
        self._listeners: list[Listener] = []
        self._told = False
        self._turned = asyncio.Event()
        self._news = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    def _take_place(self, replica: Replica) -> None:
        self.replica = replica
        self._peers = Peers(replica.priority, GRACE_SECONDS if self._keeps_record else 0.0, self._lifetime)
        self._keeper = RecordKeeper(self._client, _PATH, replica.priority, self._lifetime, self._clock, lambda: self._peers)

    async def stand_behind_others(self) -> Replica:
        """Take a priority below every replica that is there, however late our clock is. Call it before `start`.

        Raises:
            RequestError: the server refused or did not answer.
        """
        found = await self._client.get_as(_PATH, Peering)
        self._take_place(junior_to(self.replica, priorities_in(found.status or {})))
        return self.replica

    @property
    def active(self) -> bool:
        """True when this replica may bind now. Cheap: ask it before every request."""
        return self.fence.held and self._peers.verdict(self._clock()).active

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
        return self._peers.verdict(self._clock())

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
        self._tasks = [
            asyncio.create_task(self._reflector.run(), name="peering watch"),
            asyncio.create_task(self._follow(), name="peering verdict"),
        ]
        if self._keeps_record:
            self._keeping = asyncio.create_task(self._keeper.keep(), name="peering record")
            self._tasks.append(asyncio.create_task(self._keeper.tidy(), name="peering records of others"))
        self.fence.start()

    @property
    def tasks(self) -> tuple[asyncio.Task[None], ...]:
        """The running tasks; none ends before `stop`."""
        kept = () if self._keeping is None else (self._keeping,)
        return (*self._tasks, *kept, *self.fence.tasks)

    async def resign(self, *, give_back: bool = True) -> None:
        """Cease to be active for good, so that another replica may be. Our record stays among the peers.

        Args:
            give_back: give the lead back at once; else let its time run out, because a request may still be carried out.
        """
        if self._keeping is not None:
            keeping, self._keeping = self._keeping, None
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)
        await self.fence.stop(give_back=give_back)
        self.review()

    async def stop(self) -> None:
        """Stop watching, and remove our record. We are not active any more."""
        await self.resign()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []
        await self._keeper.goodbye()
        self._peers.forget()
        self.review()

    # --- the reflector's sink ---

    def changed(self, old: Peering | None, new: Peering) -> None:
        """Take in the peering object."""
        if new.metadata.name != PEERING_NAME:
            return
        before = self._peers.unreadable
        self._peers.observe(new.status or {}, self._clock())
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
            await until_set(self._news, None if until is None else until - self._clock() + 0.001)


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
