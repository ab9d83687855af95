"""Runs the reconciler: decides when it compares, and reads the lists for it.

The queue is compared after every list of Kopf's, cache and queue at a slow beat and on request. A comparison reads full lists in pages, and
then again the objects that differ. The requests carry no resourceVersion, so that an API server answers from its store and not from a
cache. One page is held at a time, and the event loop runs other tasks every few objects: a comparison of a large cluster takes seconds and
delays no decision for long.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Iterable
from copy import copy
from functools import partial
from typing import Any, Final, TypeVar

from placewright.api.decode import DecodeError
from placewright.api.pods import PodInfo
from placewright.engine.discovery import read_if_there, read_pod
from placewright.engine.profilekeeper import ProfileKeeper
from placewright.engine.reconcile.comparison import Comparison, HasMetadata
from placewright.engine.reconcile.reconciler import Reconciler
from placewright.kube.client import ApiClient
from placewright.kube.errors import RequestError, RetryBackoff, Sleep
from placewright.kube.listwatch import Malformed, UndecodableObject, Wire, pages
from placewright.kube.tasks import until_set
from placewright.kube.writers.writer import pod_path
from placewright.scheduler.ports import Lead
from placewright.scheduler.repairs import Repairs

_logger = logging.getLogger(__name__)

T = TypeVar("T", bound=HasMetadata)

#: Kopf's own list comes as one event for each pod. The comparison waits until there was none for so many seconds.
_QUIET_SECONDS: Final = 2.0
#: Objects in a page; a page is decoded in one go of the event loop.
PAGE: Final = 250
#: Objects compared in one go of the event loop.
SLICE: Final = 50
#: Differences looked at again in one go of the event loop.
MENDED: Final = 10
#: Seconds until a difference is looked at again, in which the watches may bring it by themselves.
PATIENCE: Final = 2.0
#: Differing objects that are read one at a time; for more, the list is read again.
FEW: Final = 200
#: Most looks at an object that keeps changing; the next comparison begins anew.
LOOKS: Final = 3


class ReconcileLoop:
    """Runs comparisons when they are due.

    Attributes:
        comparer: runs the comparisons.
    """

    def __init__(self, comparer: Comparer, beat_seconds: float, lead: Lead, profiles: ProfileKeeper, sleep: Sleep = asyncio.sleep) -> None:
        """Compare nothing yet.

        Args:
            comparer: runs the comparisons.
            beat_seconds: seconds between two whole comparisons.
            lead: a replica that stands by does not compare.
            profiles: compared as well.
            sleep: waits for so many seconds.
        """
        self.comparer = comparer
        self._beat = beat_seconds
        self._lead = lead
        self._profiles = profiles
        self._sleep = sleep
        self._relisted = asyncio.Event()

    def pods_listed(self) -> None:
        """Request a comparison of the queue: Kopf's watch, or that of pods on nodes, began with a new list."""
        self._relisted.set()

    def lead_changed(self, active: bool) -> None:
        """Note that this replica began or ceased to lead, and request a comparison of the queue for when it leads."""
        self.comparer.reconciler.lead_changes += 1
        self._relisted.set()

    async def run(self) -> None:
        """Compare whenever a comparison is due, until cancelled."""
        backoff, failures = RetryBackoff(initial=_QUIET_SECONDS), 0
        beat = time.monotonic() + self._beat
        while True:
            await self._due(beat - time.monotonic())
            if not self._lead.active:
                # Kopf shows no pods to a replica that stands by, so its queue would always differ. Kopf lists them once it leads.
                await self._lead.wait_active()
                continue
            cache = time.monotonic() >= beat
            try:
                await self.comparer.compare(cache=cache, queue=True)
                await self._profiles.refresh()
            except (RequestError, DecodeError, Malformed) as problem:
                _logger.info("reconciler: the comparison is put off: %s", problem)
                await self._sleep(backoff.delay(failures, problem if isinstance(problem, RequestError) else None))
                failures += 1
                self._relisted.set()
            else:
                failures = 0
                beat = time.monotonic() + self._beat if cache else beat

    async def _due(self, seconds: float) -> None:
        """Return when a watch began with a new list and has gone quiet, or after so many seconds."""
        await until_set(self._relisted, seconds)
        while self._relisted.is_set():
            self._relisted.clear()
            await self._sleep(_QUIET_SECONDS)


def _say(found: Repairs) -> None:
    """Log the repairs; pods that replaced another of their name were logged when they were found."""
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


class Comparer:
    """Runs comparisons, one at a time: a second caller waits for the first."""

    def __init__(self, client: ApiClient, reconciler: Reconciler, *, patience: float = PATIENCE, page: int = PAGE) -> None:
        """Compare nothing yet.

        Args:
            client: lists and reads objects.
            reconciler: has the beliefs and counts the repairs.
            patience: seconds between two looks at a difference.
            page: objects in a page.
        """
        self.reconciler = reconciler
        self._client = client
        self._patience = patience
        self._page = page
        self._running = asyncio.Lock()
        self._looks = 0

    async def compare(self, *, cache: bool, queue: bool) -> Repairs:
        """Compare, repair, and log the repairs.

        Args:
            cache: compare nodes and pods on nodes.
            queue: compare pods without a node. Not on a replica that stands by, to whose queue Kopf adds no pods.

        Returns:
            The repairs of this comparison.

        Raises:
            RequestError: the API server did not answer. The next comparison finds the same differences again.
            Malformed: its list cannot be read.
        """
        async with self._running:
            before = copy(self.reconciler.repairs)
            with self.reconciler.watching():
                comparisons: list[Comparison[Any]] = [self.reconciler.nodes(), self.reconciler.assigned()] if cache else []
                await self._mend([*comparisons, *([self.reconciler.unscheduled()] if queue else [])])
                if queue:
                    await self._ask_for(self.reconciler.doubtful())
                    if self.reconciler.unconfirmed():
                        await asyncio.sleep(self._patience)
                        await self._ask_for(self.reconciler.unconfirmed())
            found = self.reconciler.repairs.since(before)
        _say(found)
        return found

    async def _ask_for(self, doubted: Iterable[PodInfo]) -> None:
        for pod in doubted:
            self.reconciler.looked(pod, await read_pod(self._client, pod))

    async def _mend(self, comparisons: list[Comparison[Any]]) -> None:
        for one in comparisons:
            await self._first_look(one)
        for _ in range(LOOKS):
            suspected = [one for one in comparisons if one.suspects]
            if not suspected:
                return
            await asyncio.sleep(self._patience)
            for one in suspected:
                await self._look_again(one)

    async def _first_look(self, one: Comparison[T]) -> None:
        async for item in self._listed(one):
            if isinstance(item, UndecodableObject):
                one.unreadable(item.metadata)
            else:
                one.shown(item)
        one.listed()

    async def _look_again(self, one: Comparison[T]) -> None:
        if len(one.suspects) > FEW:
            await self._list_again(one)
            return
        for key, suspect in list(one.suspects.items()):
            meta = suspect.metadata
            found = await read_if_there(self._client, pod_path(meta) if meta.namespace else f"{one.path}/{meta.name}", one.kind)
            same = found is not None and one.key(found.metadata) == key
            one.looked(key, found if same else None)

    async def _list_again(self, one: Comparison[T]) -> None:
        unseen = set(one.suspects)
        async for item in self._listed(one):
            key = one.key(item.metadata)
            if key in unseen:
                unseen.discard(key)
                if not isinstance(item, UndecodableObject):
                    await self._looked(one, key, item)
        for key in unseen:
            await self._looked(one, key, None)

    async def _looked(self, one: Comparison[T], key: str, item: T | None) -> None:
        """Judge a suspect. A repair costs more than a comparison, so the event loop runs other tasks after every few."""
        one.looked(key, item)
        self._looks += 1
        if self._looks % MENDED == 0:
            await asyncio.sleep(0)

    async def _listed(self, one: Comparison[T]) -> AsyncIterator[T | UndecodableObject]:
        """Yield each object of the collection, with a pause for other tasks of the event loop after every few."""
        params = {"limit": str(self._page)} | ({"fieldSelector": one.selector} if one.selector else {})
        async for page in pages(partial(self._client.get, one.path), Wire(one.kind).page, params):
            for count, item in enumerate(page.items):
                if count % SLICE == 0:
                    await asyncio.sleep(0)
                yield item
