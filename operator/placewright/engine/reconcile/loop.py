"""When the reconciler compares, and what it reads for that.

It compares the queue after every list of Kopf's, and cache and queue at a slow beat and when asked: full lists in pages, and then again
those objects about which the two sides differ. The lists carry no resourceVersion, so an API server answers from its store and not from a
cache that may be behind. One page is held at a time, and the event loop gets its turn every few objects: a comparison of a large cluster
takes seconds and stops nothing.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Iterable
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Generic, TypeVar

from placewright.api.decode import DecodeError
from placewright.api.objects import Node, Pod
from placewright.api.pods import PodInfo
from placewright.engine.profilekeeper import ProfileKeeper
from placewright.engine.reconcile.comparison import Comparison, Described
from placewright.engine.reconcile.reconciler import Reconciler
from placewright.engine.reflectors import ASSIGNED_PODS, NODES_PATH, PODS_PATH, UNSCHEDULED_PODS, readable_pod
from placewright.kube.client import ApiClient
from placewright.kube.errors import NOT_FOUND, ApiError, RequestError
from placewright.kube.listwatch import Bad, Malformed, Wire, pages
from placewright.kube.retry import RetryBackoff, Sleep
from placewright.scheduler.ports import Lead
from placewright.scheduler.repairs import Repairs

_logger = logging.getLogger(__name__)

T = TypeVar("T", bound=Described)

#: Kopf's own list comes as one event a pod; the comparison waits until they have gone quiet for this long, in seconds.
_QUIET_SECONDS: Final = 2.0
#: Objects in a page; a page is decoded in one go of the event loop.
PAGE: Final = 250
#: Objects compared in one go of the event loop.
SLICE: Final = 50
#: Differences looked at again in one go of the event loop.
MENDED: Final = 10
#: Seconds until a difference is looked at again: watches are given that long to tell of it by themselves.
PATIENCE: Final = 2.0
#: Up to so many differences are read one by one; for more of them the list is read again.
FEW: Final = 200
#: How often a difference is looked at again while the object changes under our eyes; the next comparison begins anew.
LOOKS: Final = 3


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
        backoff, failures = RetryBackoff(initial=_QUIET_SECONDS), 0
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


@dataclass(frozen=True, slots=True)
class Compared(Generic[T]):
    """One collection: how it is listed, and what it is compared with."""

    path: str
    selector: str
    kind: type[T]
    comparison: Comparison[T]

    def path_of(self, namespace: str, name: str) -> str:
        """Of one object."""
        return f"/api/v1/namespaces/{namespace}/pods/{name}" if namespace else f"{self.path}/{name}"


class Comparer:
    """Runs comparisons, one at a time."""

    def __init__(
        self, client: ApiClient, reconciler: Reconciler, *, patience: float = PATIENCE, page: int = PAGE, sleep: Sleep = asyncio.sleep
    ) -> None:
        """`patience`: seconds between two looks. `page`: objects."""
        self.reconciler = reconciler
        self._client = client
        self._patience = patience
        self._page = page
        self._sleep = sleep
        self._running = asyncio.Lock()
        self._looks = 0
        self._wires: dict[type[Any], Wire[Any]] = {kind: Wire(kind) for kind in (Node, Pod)}

    async def compare(self, *, cache: bool, queue: bool) -> Repairs:
        """Compare nodes and pods on them (`cache`), and pods without a node (`queue`); answers what was mended.

        Raises `RequestError` or `Malformed` when the API server does not answer; what was found until then is found again.
        """
        async with self._running:
            before = copy(self.reconciler.repairs)
            with self.reconciler.watching():
                await self._mend(self._begun(cache=cache, queue=queue))
                if queue:
                    await self._ask_for(self.reconciler.doubtful())
                    if self.reconciler.unconfirmed():
                        await self._sleep(self._patience)
                        await self._ask_for(self.reconciler.unconfirmed())
            return self.reconciler.repairs.since(before)

    async def _ask_for(self, doubted: Iterable[PodInfo]) -> None:
        for pod in doubted:
            self.reconciler.looked(pod, await self._read_pod(pod))

    def _begun(self, *, cache: bool, queue: bool) -> list[Compared[Any]]:
        collections: list[Compared[Any]] = []
        if cache:
            collections.append(Compared(NODES_PATH, "", Node, self.reconciler.nodes()))
            collections.append(Compared(PODS_PATH, ASSIGNED_PODS, Pod, self.reconciler.assigned()))
        if queue:
            collections.append(Compared(PODS_PATH, UNSCHEDULED_PODS, Pod, self.reconciler.unscheduled()))
        return collections

    async def _mend(self, collections: list[Compared[Any]]) -> None:
        for one in collections:
            await self._first_look(one)
        for _ in range(LOOKS):
            suspected = [one for one in collections if one.comparison.suspects]
            if not suspected:
                return
            await self._sleep(self._patience)
            for one in suspected:
                await self._look_again(one)

    async def _first_look(self, one: Compared[T]) -> None:
        async for item in self._listed(one):
            if isinstance(item, Bad):
                one.comparison.unreadable(item.metadata)
            else:
                one.comparison.shown(item)
        one.comparison.listed()

    async def _look_again(self, one: Compared[T]) -> None:
        suspects = list(one.comparison.suspects.values())
        if len(suspects) > FEW:
            await self._list_again(one)
            return
        for suspect in suspects:
            path = one.path_of(suspect.namespace, suspect.name)
            found = await self._read(path, one.kind)
            same = found is not None and one.comparison.key(found.metadata) == suspect.key
            one.comparison.looked(suspect.key, found if same else None)

    async def _list_again(self, one: Compared[T]) -> None:
        unseen = set(one.comparison.suspects)
        async for item in self._listed(one):
            key = one.comparison.key(item.metadata)
            if key in unseen:
                unseen.discard(key)
                if not isinstance(item, Bad):
                    await self._looked(one, key, item)
        for key in unseen:
            await self._looked(one, key, None)

    async def _looked(self, one: Compared[T], key: str, item: T | None) -> None:
        """Mending costs more than comparing: others get their turn after every few."""
        one.comparison.looked(key, item)
        self._looks += 1
        if self._looks % MENDED == 0:
            await asyncio.sleep(0)

    async def _listed(self, one: Compared[T]) -> AsyncIterator[T | Bad]:
        """Each object of the collection; others get their turn after every few."""
        params = {"limit": str(self._page)} | ({"fieldSelector": one.selector} if one.selector else {})
        async for page in pages(partial(self._client.get, one.path), self._wires[one.kind].page, params):
            for count, item in enumerate(page.items):
                if count % SLICE == 0:
                    await asyncio.sleep(0)
                yield item

    async def _read(self, path: str, kind: type[T]) -> T | None:
        try:
            return await self._client.get_as(path, kind)
        except ApiError as problem:
            if problem.status == NOT_FOUND:
                return None
            raise

    async def _read_pod(self, pod: PodInfo) -> PodInfo | None:
        found = await self._read(f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}", Pod)
        return None if found is None else readable_pod(found) or pod
