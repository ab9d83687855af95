"""When the reconciler compares: after every list of Kopf's the queue, and at a slow beat and when asked for cache and queue."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Final

from placewright.api.decode import DecodeError
from placewright.handlers.comparing import PATIENCE, Comparer
from placewright.handlers.profilekeeper import ProfileKeeper
from placewright.kube.client import ApiClient
from placewright.kube.errors import RequestError
from placewright.kube.retry import Backoff, Sleep
from placewright.kube.wire import Malformed
from placewright.scheduler.ports import Lead
from placewright.scheduler.reconcile import Reconciler
from placewright.scheduler.repairs import Repairs

_logger = logging.getLogger(__name__)

#: Kopf's own list comes as one event a pod; the comparison waits until they have gone quiet for this long, in seconds.
_QUIET_SECONDS: Final = 2.0


class ReconcileLoop:
    """Runs the reconciler.

    Attributes:
        reconciler: what it compares with, and its count of repairs.
    """

    def __init__(
        self,
        client: ApiClient,
        reconciler: Reconciler,
        beat_seconds: float,
        lead: Lead,
        profiles: ProfileKeeper,
        patience: float = PATIENCE,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        """`beat_seconds`: of the whole comparison. `patience`: seconds between two looks at a difference."""
        self.reconciler = reconciler
        self._comparer = Comparer(client, reconciler, patience=patience)
        self._beat = beat_seconds
        self._lead = lead
        self._profiles = profiles
        self._sleep = sleep
        self._relisted = asyncio.Event()

    def pods_listed(self) -> None:
        """A watch was begun anew, Kopf's or our own: compare when it has gone quiet."""
        self._relisted.set()

    async def run(self) -> None:
        """Compare whenever it is due, until cancelled."""
        backoff, failures = Backoff(initial=_QUIET_SECONDS), 0
        beat = time.monotonic() + self._beat
        while True:
            await self._due(beat - time.monotonic())
            # A replica that stands by hears nothing of Kopf, and needs no repair before it hears again.
            await self._lead.wait_active()
            cache = time.monotonic() >= beat
            try:
                await self.compare(cache=cache)
                await self._profiles.compare()
            except (RequestError, DecodeError, Malformed) as problem:
                _logger.info("reconciler: the comparison is put off: %s", problem)
                await self._sleep(backoff.delay(failures, problem if isinstance(problem, RequestError) else None))
                failures += 1
                self._relisted.set()
            else:
                failures = 0
                beat = time.monotonic() + self._beat if cache else beat

    async def compare(self, *, cache: bool = True, queue: bool = True) -> Repairs:
        """One comparison, with its repairs logged; raises `RequestError`, `DecodeError` or `Malformed`.

        `cache`: nodes and pods on them. `queue`: pods without a node; not on a replica that stands by, whose queue is nobody's.
        """
        found = await self._comparer.compare(cache=cache, queue=queue)
        _say(found)
        return found

    async def _due(self, seconds: float) -> None:
        """Return when a watch was begun anew and has gone quiet, or after so many seconds."""
        try:
            async with asyncio.timeout(seconds):
                await self._relisted.wait()
        except TimeoutError:
            return
        while self._relisted.is_set():
            self._relisted.clear()
            await asyncio.sleep(_QUIET_SECONDS)


def _say(found: Repairs) -> None:
    """What was mended; younger namesakes were said when they were found."""
    if found.missed or found.vanished or found.outdated or found.unbound or found.forgotten:
        _logger.warning(
            "reconciler: %d pods were missed, %d had vanished, %d had changed, "
            "%d bindings did not exist, %d pods on nodes were gone; repaired",
            found.missed, found.vanished, found.outdated, found.unbound, found.forgotten,
        )  # fmt: skip
    nodes = (found.nodes_missed, found.nodes_vanished, found.nodes_stale)
    pods = (found.pods_missed, found.pods_vanished, found.pods_stale)
    if any(nodes + pods):
        _logger.warning(
            "reconciler: %d nodes were missed, %d had vanished, %d had changed; "
            "%d pods on nodes were missed, %d had vanished, %d had changed; repaired",
            *nodes, *pods,
        )  # fmt: skip
