"""Peering that elects and the Lease that excludes, put together, with a budget of their own.

Renewals and the watches behind them go over connections of their own, without a limit on requests a second and with a short patience: a
queue of binds, or an API server that is slow to answer them, does not cost the lead.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Final

from placewright.kube.auth.login import ClusterAccess
from placewright.kube.client import USER_AGENT, ApiClient
from placewright.kube.errors import RequestError
from placewright.kube.retry import AwayNotice, RetryBackoff, until_answered
from placewright.kube.writers.events import cut_note, seconds_time
from placewright.leadership.lease import LeaseFence
from placewright.leadership.leaserule import Timing
from placewright.leadership.peering import Leadership, Listener, ensure_peering
from placewright.leadership.peers import Replica

#: The last events may take that long, in seconds.
_GOODBYE_SECONDS: Final = 1.0

_log = logging.getLogger(__name__)


class _Quiet(AwayNotice):
    """That the API server is away is said by the client that everything else goes over; here the Lease says what it means for the lead."""

    def failed(self, error: RequestError) -> None:
        if self.away_since is None:
            self.away_since = self.clock()

    def answered(self, asked: float | None = None) -> None:
        if self.away_since is not None and (asked is None or asked > self.away_since):
            self.away_since = None


class Election(Leadership):
    """`Leadership` of a replica among others. `require`, then `start`, then `stop`; `close` for one that was never started.

    Attributes:
        lease: what it knows of the Lease.
    """

    def __init__(
        self, access: ClusterAccess, replica: Replica, namespace: str, lifetime: int, finished: Callable[[], Awaitable[object]]
    ) -> None:
        """Make one.

        Args:
            access: how the API server is reached.
            replica: who we are.
            namespace: of the Lease.
            lifetime: how long a replica that vanished keeps its lead, in seconds.
            finished: awaited before the Lease is given to a replica that outranks us: returns when nothing is under way that needs it.
        """
        timing = Timing.of(lifetime)
        self._client = ApiClient(access, timeout=timing.renew / 2, user_agent=f"{USER_AGENT}/leader-election", away=_Quiet(access.server))
        self.lease = LeaseFence(self._client, namespace, replica.identity, timing, finished)
        super().__init__(self._client, replica, fence=self.lease, keeps_record=True, lifetime=lifetime)
        self._events: set[asyncio.Task[None]] = set()
        self.on_change(self._announce)

    async def require(self) -> None:
        """Make sure that replicas can settle who is active, for as long as the API server is away, and take a place behind who is there.

        Raises `CannotElect` with what to apply.
        """
        await until_answered(lambda: ensure_peering(self._client), RetryBackoff())
        await until_answered(self.stand_behind_others, RetryBackoff())
        await until_answered(self.lease.require_rights, RetryBackoff())

    async def stop(self) -> None:
        """Give the lead back, say so, and close what is open."""
        await super().stop()
        if self._events:
            await asyncio.wait(self._events, timeout=_GOODBYE_SECONDS)
        await self.close()

    async def close(self) -> None:
        """Close connections."""
        await self._client.close()

    # --- saying so ---

    def _announce(self, active: bool) -> None:
        """An Event about the Lease, as client-go writes it; best effort."""
        task = asyncio.get_running_loop().create_task(self._record("became leader" if active else "stopped leading"))
        self._events.add(task)
        task.add_done_callback(self._events.discard)

    async def _record(self, what: str) -> None:
        try:
            await self._client.post(f"/api/v1/namespaces/{self.lease.store.namespace}/events", self._event(what))
        except RequestError as problem:
            _log.info("event not written: %s", problem)

    def _event(self, what: str) -> dict[str, object]:
        store, sight, now = self.lease.store, self.lease.sight, seconds_time(datetime.now(UTC))
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{store.name}.{secrets.token_hex(8)}", "namespace": store.namespace},
            "involvedObject": {
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "namespace": store.namespace,
                "name": store.name,
                "uid": sight.uid if sight is not None else "",
                "resourceVersion": sight.version if sight is not None else "",
            },
            "type": "Normal",
            "reason": "LeaderElection",
            "message": cut_note(f"{self.replica.identity} {what}"),
            "reportingComponent": USER_AGENT,
            "reportingInstance": self.replica.identity[:128],
            "source": {"component": USER_AGENT},
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }


_log = logging.getLogger(__name__)


class Alone:
    """Stands where `Leadership` stands for a scheduler that was told that it runs alone (`--leader-elect=false`): active, always.

    Nothing keeps a second one away then; whoever says it vouches for it.
    """

    active = True
    term = 1
    tasks: tuple[asyncio.Task[None], ...] = ()

    def on_change(self, listener: Listener) -> None:
        """The answer never changes, so nobody is called."""

    async def wait_active(self) -> None:
        """Return at once."""

    async def require(self) -> None:
        """Nothing has to be there."""

    def start(self) -> None:
        """Nothing to watch; said once, for the day when there are two."""
        _log.warning("active without an election: a second replica would decide beside this one")

    async def resign(self, *, give_back: bool = True) -> None:
        """There is nobody else."""

    async def stop(self) -> None:
        """Nothing was watched."""

    async def close(self) -> None:
        """Nothing is open."""

    def review(self) -> None:
        """Nothing to tell."""
