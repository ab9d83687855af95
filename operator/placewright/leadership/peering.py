"""The question "may I bind now", answered from Kopf's peering object.

Kopf itself writes our record and pauses its own watching. It has no way to be asked whether it is paused, it judges peers by their
clocks, and a leader that is cut off never pauses itself; so this room watches the object on its own and judges by its own monotonic
clock (`peers`). Peering elects, but cannot exclude: that is what `fence` is for, which the Lease will fill.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from typing import Final

import msgspec

from placewright.api.objects import KubeObject, ObjectMeta
from placewright.kube.client import ApiClient
from placewright.kube.errors import CONFLICT, NOT_FOUND, ApiError
from placewright.kube.reflector import Reflector, Source
from placewright.leadership.peers import Peers, Verdict
from placewright.leadership.replica import Replica

PEERING_NAME: Final = "placewright"
PEERINGS_PATH: Final = "/apis/kopf.dev/v1/clusterkopfpeerings"

_log = logging.getLogger(__name__)


class PeeringMissing(Exception):
    """There is nothing to elect by; the message says what to apply."""


class Peering(KubeObject, frozen=True):
    """ClusterKopfPeering; each value of `status` is one peer's record, decoded apart so that a strange one spoils only itself."""

    metadata: ObjectMeta = ObjectMeta()
    status: dict[str, msgspec.Raw] | None = None


#: Called with True on becoming active, False on ceasing to be.
Listener = Callable[[bool], None]


def _no_fence() -> bool:
    return True


class Leadership:
    """Whether this replica is the active one.

    `active` is computed when asked, from what was seen and the clock: a watch that stands still makes it False by itself, because our own
    record is then not seen to be renewed.
    """

    def __init__(
        self,
        client: ApiClient,
        replica: Replica,
        *,
        name: str = PEERING_NAME,
        fence: Callable[[], bool] = _no_fence,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`fence`: a second condition, asked each time (the Lease). `clock`: monotonic seconds."""
        self.replica = replica
        self._fence = fence
        self._clock = clock
        self._peers = Peers(replica.priority)
        self._name = name
        source = Source(PEERINGS_PATH, Peering, field_selector=f"metadata.name={name}")
        self._reflector = Reflector(client, source, self)
        self._listeners: list[Listener] = []
        self._told = False
        self._turned = asyncio.Event()
        self._news = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def active(self) -> bool:
        """May I bind now. Cheap: to be asked before every request."""
        return self._peers.verdict(self._clock()).active and self._fence()

    @property
    def verdict(self) -> Verdict:
        """The same, by peering alone, with a reason and until when."""
        return self._peers.verdict(self._clock())

    def on_change(self, listener: Listener) -> None:
        """Call `listener` whenever we become active or cease to be; it must not block."""
        self._listeners.append(listener)

    async def wait_active(self) -> None:
        """Return once we are active; look at `active` again before acting."""
        while not self.active:
            self._turned.clear()
            await self._turned.wait()

    def start(self) -> None:
        """Begin to watch the peering object; needs a running event loop."""
        self._tasks = [
            asyncio.create_task(self._reflector.run(), name="peering watch"),
            asyncio.create_task(self._follow(), name="peering verdict"),
        ]

    @property
    def tasks(self) -> tuple[asyncio.Task[None], ...]:
        """What runs; none of them ends unless it is stopped."""
        return tuple(self._tasks)

    async def stop(self) -> None:
        """Stop watching; we are not active any more."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []
        self._peers.forget()
        self.review()

    # --- the reflector's sink ---

    def changed(self, old: Peering | None, new: Peering) -> None:
        """The peering object appeared or changed."""
        if new.metadata.name != self._name:
            return
        before = self._peers.unreadable
        self._peers.observe(new.status or {}, self._clock())
        strange = self._peers.unreadable - before
        if strange:
            _log.warning("peering %s: records ignored, not of Kopf's shape: %s", self._name, ", ".join(sorted(strange)))
        self._news.set()
        self.review()

    def deleted(self, old: Peering) -> None:
        """The peering object is gone: nobody is elected."""
        _log.error("peering object %s was deleted: no replica is active until it exists again", self._name)
        self._peers.forget()
        self._news.set()
        self.review()

    def synced(self) -> None:
        """The object, if there is one, was read."""
        self._news.set()

    # --- telling ---

    def review(self) -> None:
        """Tell listeners if the answer is another than the one last told; for whoever moves the fence, too."""
        verdict = self._peers.verdict(self._clock())
        active = verdict.active and self._fence()
        if active == self._told:
            return
        self._told = active
        _log.info("%s: %s", "active" if active else "standing by", verdict.why if not verdict.active or active else "fenced off")
        self._turned.set()
        for listener in self._listeners:
            try:
                listener(active)
            except Exception:  # noqa: BLE001
                # The others must hear it too.
                _log.exception("a listener to leadership failed")

    async def _follow(self) -> None:
        """Review whenever time alone may have changed the answer."""
        while True:
            self._news.clear()
            self.review()
            until = self.verdict.until
            # Not `wait_for`: until Python 3.12 it can swallow a cancellation that comes together with news.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(None if until is None else max(until - self._clock(), 0.0) + 0.001):
                    await self._news.wait()


async def ensure_peering(client: ApiClient, name: str = PEERING_NAME) -> bool:
    """Make sure that the peering object exists; True when it was created now.

    Raises `PeeringMissing` with what to apply when the CRD is missing or we may not create the object, `RequestError` otherwise.
    """
    try:
        await client.get(f"{PEERINGS_PATH}/{name}")
    except ApiError as error:
        if error.status != NOT_FOUND:
            raise
    else:
        return False
    try:
        await client.post(
            PEERINGS_PATH, {"apiVersion": "kopf.dev/v1", "kind": "ClusterKopfPeering", "metadata": {"name": name}}
        )
    except ApiError as error:
        if error.status == CONFLICT:
            return False
        if error.status == NOT_FOUND:
            raise PeeringMissing(
                "the API server does not know ClusterKopfPeering (kopf.dev/v1), which replicas need to elect one; apply crds/ first"
            ) from None
        raise PeeringMissing(
            f"ClusterKopfPeering {name!r} does not exist and could not be created ({error}); apply one of that name, see manifests/"
        ) from None
    return True
