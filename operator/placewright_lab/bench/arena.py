"""One real API server with nodes on it, on which schedulers take turns: every wave of pods begins with the same cluster."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Protocol

import msgspec

from placewright.api.profile import GROUP, KIND, VERSION
from placewright.cli.definitions import shipped_definitions
from placewright.kube.auth.login import load_config
from placewright.kube.client import ApiClient
from placewright.kube.errors import NOT_FOUND, ApiError, RequestError
from placewright_lab.bench.boundwatch import BoundWatch
from placewright_lab.bench.contenders import OUR_SCHEDULER_NAME, Contender, RunningScheduler
from placewright_lab.bench.madeup import mixed_nodes, mixed_pods, plain_pods
from placewright_lab.bench.processtimes import cpu_seconds, peak_bytes
from placewright_lab.bench.quickfeed import Post, QuickFeed, posts
from placewright_lab.bench.wavecomparison import Spent, WaveOutcome
from placewright_lab.demo.livestate import PROFILES_PATH
from placewright_lab.readers.kinds import Manifest

WARM_UP: Final = 20
_PODS: Final = "/api/v1/namespaces/default/pods"
_EVENTS: Final = "/api/v1/namespaces/default/events"
_SCHEDULED: Final = "Scheduled"
_DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
#: Removes every pod at once, though no kubelet confirms it.
_AT_ONCE: Final = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0}
_LOOK_SECONDS: Final = 0.05
_REQUEST_SECONDS: Final = 120.0
_SERVED_SECONDS: Final = 30.0


class WaveFailed(Exception):
    """A scheduler ended by itself, or left pods unbound."""


class Plane(Protocol):
    """A control plane of our own."""

    @property
    def kubeconfig(self) -> Path:
        """Of an administrator."""

    @property
    def api_server_pid(self) -> int:
        """Process id."""

    @property
    def etcd_pid(self) -> int:
        """Process id."""


@dataclass(frozen=True, slots=True)
class Patience:
    """When a scheduler is taken to have given up.

    Attributes:
        binding: seconds without a binding.
        event: seconds without an event; the rest is taken to be lost then.
    """

    binding: float = 60.0
    event: float = 3.0


class _ListMeta(msgspec.Struct, rename="camel", frozen=True):
    resource_version: str = ""
    remaining_item_count: int = 0


class _Metadata(msgspec.Struct, frozen=True):
    name: str = ""


class _PodSpec(msgspec.Struct, rename="camel", frozen=True):
    node_name: str = ""


class _Pod(msgspec.Struct, frozen=True):
    metadata: _Metadata
    spec: _PodSpec = _PodSpec()


class _Event(msgspec.Struct, rename="camel", frozen=True):
    involved_object: _Metadata
    reason: str = ""


class _Some(msgspec.Struct, frozen=True):
    metadata: _ListMeta
    items: list[msgspec.Raw]


class _Pods(msgspec.Struct, frozen=True):
    items: list[_Pod]


class _Events(msgspec.Struct, frozen=True):
    items: list[_Event]


class Arena:
    """A control plane's cluster for one number of nodes; make it with `open_arena`."""

    def __init__(self, plane: Plane, client: ApiClient, feed: QuickFeed, patience: Patience) -> None:
        self._plane = plane
        self._patience = patience
        self._client = client
        self._feed = feed

    async def furnish(self, nodes: int) -> None:
        """The shipped definitions, a profile with all defaults for our scheduler name, and the nodes."""
        for definition in shipped_definitions():
            await self._client.post(_DEFINITIONS, definition)
        await self._create_profile()
        await self._feed.create(posts(self._client.access, "/api/v1/nodes", mixed_nodes(nodes)))

    async def burst(self, contender: Contender, pods: int, rate: float | None) -> WaveOutcome:
        """Start the scheduler, warm it up, then create pods, as fast as accepted or at a rate."""
        await self._clear()
        wanted = self._posts(contender, mixed_pods(pods))
        async with self._started(contender) as running:
            await self._warm_up(contender, running)
            async with self._watch() as watch:
                before = self._spent(running.pid)
                sent = await self._feed.create(wanted, rate)
                return await self._finish(running, watch, sent, before, WARM_UP)

    async def backlog(self, contender: Contender, pods: int) -> WaveOutcome:
        """Create pods, then start the scheduler. What a start without a backlog takes is measured before, and left out."""
        await self._clear()
        before = self._spent()
        async with self._started(contender) as running:
            await self._warm_up(contender, running)
            start = self._spent(running.pid) - before
        await self._clear()
        sent = await self._feed.create(self._posts(contender, mixed_pods(pods)))
        async with self._watch() as watch:
            before = self._spent()
            async with self._started(contender) as running:
                outcome = await self._finish(running, watch, sent, before, 0)
        return replace(outcome, cpu=outcome.cpu - start)

    async def _create_profile(self) -> None:
        spec = {"schedulerName": OUR_SCHEDULER_NAME}
        profile = {"apiVersion": f"{GROUP}/{VERSION}", "kind": KIND, "metadata": {"name": "bench"}, "spec": spec}

        async with asyncio.timeout(_SERVED_SECONDS):
            while True:  # a definition is served a moment after it was created
                try:
                    await self._client.post(PROFILES_PATH, profile)
                except ApiError as error:
                    if error.status != NOT_FOUND:
                        raise
                    await asyncio.sleep(_LOOK_SECONDS)
                else:
                    return

    def _posts(self, contender: Contender, pods: Sequence[Manifest]) -> list[Post]:
        for pod in pods:
            pod["spec"]["schedulerName"] = contender.scheduler_name
        return posts(self._client.access, _PODS, pods)

    @asynccontextmanager
    async def _started(self, contender: Contender) -> AsyncIterator[RunningScheduler]:
        with tempfile.TemporaryDirectory(prefix="placewright-bench-") as folder:
            async with contender.start(Path(folder)) as running:
                yield running

    @asynccontextmanager
    async def _watch(self) -> AsyncIterator[BoundWatch]:
        now = await self._client.get_as(_PODS, _Some, {"limit": "1"})
        async with BoundWatch(self._client.access, _PODS, now.metadata.resource_version) as watch:
            yield watch

    async def _warm_up(self, contender: Contender, running: RunningScheduler) -> None:
        """A few small pods first: once they are placed, the scheduler has read the whole cluster."""
        async with self._watch() as watch:
            await self._feed.create(self._posts(contender, plain_pods(WARM_UP)))
            await self._all_bound(running, watch, WARM_UP)
        await self._events_written(running, WARM_UP)

    async def _finish(
        self, running: RunningScheduler, watch: BoundWatch, sent: dict[str, float], before: Spent, earlier_events: int
    ) -> WaveOutcome:
        await self._all_bound(running, watch, len(sent))
        settled, spent = await self._events_written(running, earlier_events + len(sent))
        peak = peak_bytes(running.pid)
        events = await self._check(sent)
        return WaveOutcome(sent, dict(watch.times), settled, events, spent - before, peak)

    async def _all_bound(self, running: RunningScheduler, watch: BoundWatch, wanted: int) -> None:
        count, at, patience = watch.seen(), time.monotonic(), self._patience.binding
        while count < wanted:
            await asyncio.sleep(_LOOK_SECONDS)
            if running.ended:
                raise WaveFailed(f"it ended by itself: {running.last_words()}")
            if (found := watch.seen()) > count:
                count, at = found, time.monotonic()
            elif time.monotonic() - at > patience:
                raise WaveFailed(f"{count} of {wanted} pods were bound, then none for {patience:.0f} s: {running.last_words()}")

    async def _events_written(self, running: RunningScheduler, wanted: int) -> tuple[float, Spent]:
        """Wait until so many events exist, or no more come: when that was, and what was spent by then."""
        count, at, spent = -1, time.monotonic(), self._spent(running.pid)
        while count < wanted and time.monotonic() - at < self._patience.event:
            await asyncio.sleep(_LOOK_SECONDS)
            found = await self._count(_EVENTS)
            if found > count:
                count, at, spent = found, time.monotonic(), self._spent(running.pid)
        return at, spent

    async def _check(self, sent: Iterable[str]) -> int:
        """Hold what was heard against what is there; how many of these pods have an event that says that they were bound."""
        names = set(sent)
        pods = (await self._client.get_as(_PODS, _Pods)).items
        bound = {pod.metadata.name for pod in pods if pod.spec.node_name}
        if left := names - bound:
            raise WaveFailed(f"{len(left)} pods were seen bound and are not, {min(left)} for one")
        events = (await self._client.get_as(_EVENTS, _Events)).items
        return len({event.involved_object.name for event in events if event.reason == _SCHEDULED} & names)

    async def _count(self, path: str) -> int:
        some = await self._client.get_as(path, _Some, {"limit": "1"})
        return len(some.items) + some.metadata.remaining_item_count

    async def _clear(self) -> None:
        """No pods, no events."""
        for path in (_PODS, _EVENTS):
            while await self._count(path):
                try:
                    await self._client.delete(path, _AT_ONCE)
                except RequestError as error:
                    # A long deletion times out, and is gone on with; what is refused would be refused for ever.
                    if not error.temporary:
                        raise

    def _spent(self, scheduler: int = 0) -> Spent:
        """CPU seconds until now; of the scheduler's process 0 while there is none."""
        plane = self._plane
        used = cpu_seconds(scheduler) if scheduler else 0.0
        return Spent(used, cpu_seconds(plane.api_server_pid), cpu_seconds(plane.etcd_pid), time.process_time())


@asynccontextmanager
async def open_arena(plane: Plane, patience: Patience = Patience()) -> AsyncIterator[Arena]:
    """Connections to a control plane that is empty."""
    access = load_config(str(plane.kubeconfig))
    async with ApiClient(access, timeout=_REQUEST_SECONDS) as client, QuickFeed(access) as feed:
        yield Arena(plane, client, feed, patience)
