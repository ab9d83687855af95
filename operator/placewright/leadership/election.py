"""Puts peering, which elects, and the Lease, which excludes, together, with connections of their own.

Renewals and their watches have their own connections, no limit on requests a second, and a short timeout. So neither a queue of Bindings
nor an API server that answers them slowly costs the lead.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Final

from placewright.kube.auth.login import ClusterAccess
from placewright.kube.client import USER_AGENT, ApiClient
from placewright.kube.errors import AwayNotice, RequestError, RetryBackoff, until_answered
from placewright.kube.writers.events import Regarding, core_event
from placewright.leadership.lease import LeaseFence
from placewright.leadership.leaserule import Timing
from placewright.leadership.peering import Leadership, Listener, ensure_peering
from placewright.leadership.peers import Replica

#: Seconds that the last events may take.
_GOODBYE_SECONDS: Final = 1.0

_log = logging.getLogger(__name__)


class Election(Leadership):
    """`Leadership` of a replica among others.

    Call `require`, `start`, `stop`; or only `close` if it was never started.

    Attributes:
        lease: our hold on the Lease.
    """

    def __init__(
        self, access: ClusterAccess, replica: Replica, namespace: str, lifetime: int, finished: Callable[[], Awaitable[object]]
    ) -> None:
        """Write nothing yet.

        Args:
            access: address of the API server and our credentials.
            replica: this process.
            namespace: namespace of the Lease.
            lifetime: seconds that a replica that vanished keeps its lead.
            finished: returns when no request that needs the Lease is under way; awaited before the Lease is given to a replica that
                outranks us.
        """
        timing = Timing.of(lifetime)
        # The client of all other requests logs that the API server is away. The Lease logs the effect on the lead.
        quiet = AwayNotice(access.server, level=logging.NOTSET)
        # Half the renew deadline: a request that hangs leaves time for a second one.
        self._client = ApiClient(access, timeout=timing.renew / 2, user_agent=f"{USER_AGENT}/leader-election", away=quiet)
        self.lease = LeaseFence(self._client, namespace, replica.identity, timing, finished)
        super().__init__(self._client, replica, self.lease, keeps_record=True, lifetime=lifetime)
        self._events: set[asyncio.Task[None]] = set()
        self.on_change(self._announce)

    async def require(self) -> None:
        """Check the objects and rights of an election, and take a place behind the other replicas; wait while the API server is away.

        Raises:
            CannotElect: an object or a right is missing; the message names the manifests to apply.
        """
        for step in (lambda: ensure_peering(self._client), self.stand_behind_others, self.lease.store.require_rights):
            await until_answered(step, RetryBackoff())

    async def stop(self) -> None:
        """Give the lead back, write an event about it, and close the connections."""
        await super().stop()
        if self._events:
            await asyncio.wait(self._events, timeout=_GOODBYE_SECONDS)
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    # --- saying so ---

    def _announce(self, active: bool) -> None:
        """Write an event about the Lease, as client-go does; best effort."""
        task = asyncio.get_running_loop().create_task(self._record("became leader" if active else "stopped leading"))
        self._events.add(task)
        task.add_done_callback(self._events.discard)

    async def _record(self, what: str) -> None:
        try:
            await self._client.post(f"/api/v1/namespaces/{self.lease.store.namespace}/events", self._event(what))
        except RequestError as problem:
            _log.info("the event about the Lease was not written: %s", problem)

    def _event(self, what: str) -> dict[str, object]:
        store, sight = self.lease.store, self.lease.sight
        uid, version = ("", "") if sight is None else (sight.uid, sight.version)
        about = Regarding("coordination.k8s.io/v1", "Lease", store.namespace, store.name, uid, version, USER_AGENT)
        told = ("Normal", "LeaderElection", f"{self.replica.identity} {what}")
        return core_event(store.namespace, about, told, self.replica.identity, datetime.now(UTC))


class Alone:
    """Replaces `Leadership` for a scheduler that was told to run alone (`--leader-elect=false`): always active.

    Nothing keeps a second replica from running then; the person who sets the flag vouches for that.
    """

    active = True
    term = 1
    tasks: tuple[asyncio.Task[None], ...] = ()

    def on_change(self, listener: Listener) -> None:
        """Ignore the listener: the answer never changes."""

    async def wait_active(self) -> None:
        """Return at once."""

    async def require(self) -> None:
        """Return at once: no object is needed."""

    def start(self) -> None:
        """Log that there is no election, for the day when there are two replicas."""
        _log.warning("active without an election: a second replica would decide beside this one")

    async def resign(self, *, give_back: bool = True) -> None:
        """Do nothing: there is no other replica."""

    async def stop(self) -> None:
        """Do nothing: nothing runs."""

    async def close(self) -> None:
        """Do nothing: nothing is open."""

    def review(self) -> None:
        """Do nothing: the answer never changes."""
