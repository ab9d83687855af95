"""A real API server with one scheduler at work, and the questions of benchmarks to both.

Two benchmarks use it: the arena, in which waves of pods meet the same nodes again and again, and upstream's own workloads.
"""

from __future__ import annotations

import asyncio
import math
import tempfile
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

import msgspec

from placewright.api.profile import GROUP, KIND, VERSION
from placewright.cli.definitions import shipped_definitions
from placewright.kube.auth.login import load_config
from placewright.kube.client import ApiClient
from placewright.kube.errors import NOT_FOUND, ApiError
from placewright_lab.bench.boundwatch import BoundWatch
from placewright_lab.bench.contenders import Contender, RunningScheduler
from placewright_lab.bench.processtimes import cpu_seconds
from placewright_lab.bench.quickfeed import QuickFeed
from placewright_lab.bench.wavecomparison import Spent
from placewright_lab.demo.livestate import PROFILES_PATH

LOOK_SECONDS: Final = 0.05
_SCHEDULED: Final = "Scheduled"
_DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_REQUEST_SECONDS: Final = 120.0
_SERVED_SECONDS: Final = 30.0


class WaveFailed(Exception):
    """A scheduler ended by itself, or left pods unbound."""


class Plane(Protocol):
    """A control plane of our own."""

    @property
    def kubeconfig(self) -> Path:
        """Path of an administrator's kubeconfig."""

    @property
    def api_server_pid(self) -> int:
        """Process id of the API server."""

    @property
    def etcd_pid(self) -> int:
        """Process id of etcd."""


@dataclass(frozen=True, slots=True)
class Patience:
    """Limits after which a scheduler counts as idle.

    Attributes:
        binding: seconds without a binding.
        event: seconds without an event; the remaining events count as lost then.
    """

    binding: float = 60.0
    event: float = 3.0


#: Limits for a real API server.
USUAL: Final = Patience()


class _ListMeta(msgspec.Struct, rename="camel", frozen=True):
    resource_version: str = ""
    remaining_item_count: int = 0


class _Metadata(msgspec.Struct, frozen=True):
    name: str = ""
    namespace: str = ""
    labels: dict[str, str] = {}


class _Condition(msgspec.Struct, frozen=True):
    type: str = ""


class _PodStatus(msgspec.Struct, frozen=True):
    conditions: list[_Condition] = []


class SeenPod(msgspec.Struct, frozen=True):
    """The fields of a pod that benchmarks read."""

    metadata: _Metadata
    status: _PodStatus = _PodStatus()


class _Pods(msgspec.Struct, frozen=True):
    items: list[SeenPod]


class _Event(msgspec.Struct, rename="camel", frozen=True):
    involved_object: _Metadata
    reason: str = ""


class _Some(msgspec.Struct, frozen=True):
    metadata: _ListMeta
    items: list[msgspec.Raw]


class _Events(msgspec.Struct, frozen=True):
    items: list[_Event]


class MeasuredCluster:
    """A control plane with connections to it. `measured_cluster` makes it.

    Attributes:
        client: client for few requests.
        feed: client for thousands of requests.
        patience: limits after which a scheduler counts as idle.
    """

    def __init__(self, plane: Plane, client: ApiClient, feed: QuickFeed, patience: Patience) -> None:
        self.client = client
        self.feed = feed
        self.patience = patience
        self._plane = plane

    async def install(self, scheduler_name: str) -> None:
        """Create the shipped definitions, and a profile with all defaults for this scheduler name."""
        for definition in shipped_definitions():
            await self.client.post(_DEFINITIONS, definition)
        spec = {"schedulerName": scheduler_name}
        profile = {"apiVersion": f"{GROUP}/{VERSION}", "kind": KIND, "metadata": {"name": "bench"}, "spec": spec}
        async with asyncio.timeout(_SERVED_SECONDS):
            while True:  # the server serves a definition a moment after its creation
                try:
                    await self.client.post(PROFILES_PATH, profile)
                except ApiError as error:
                    if error.status != NOT_FOUND:
                        raise
                    await asyncio.sleep(LOOK_SECONDS)
                else:
                    return

    @asynccontextmanager
    async def started(self, contender: Contender) -> AsyncIterator[RunningScheduler]:
        """Run the scheduler while the context is open."""
        with tempfile.TemporaryDirectory(prefix="placewright-bench-") as folder:
            async with contender.start(Path(folder)) as running:
                yield running

    @asynccontextmanager
    async def watch(self, path: str) -> AsyncIterator[BoundWatch]:
        """Return a watch of the pods in the collection at `path` that are bound from now on."""
        now = await self.client.get_as(path, _Some, {"limit": "1"})
        async with BoundWatch(self.client.access, path, now.metadata.resource_version) as watch:
            yield watch

    async def all_bound(self, running: RunningScheduler, watch: BoundWatch, wanted: int) -> None:
        """Return when the watch has seen so many bindings. Raises `WaveFailed` if the scheduler makes no more."""
        count, at, patience = watch.seen(), time.monotonic(), self.patience.binding
        while count < wanted:
            await asyncio.sleep(LOOK_SECONDS)
            if running.ended:
                raise WaveFailed(f"it ended by itself: {running.last_words()}")
            if (found := watch.seen()) > count:
                count, at = found, time.monotonic()
            elif time.monotonic() - at > patience:
                raise WaveFailed(f"{count} of {wanted} pods were bound, then none for {patience:.0f} s: {running.last_words()}")

    async def events_written(self, running: RunningScheduler, path: str, wanted: float, seconds: float = math.inf) -> tuple[float, Spent]:
        """Wait until so many events exist, no more are written, or time is over.

        Return the time of the last event, and the CPU seconds until then.
        """
        count, at, spent = -1, time.monotonic(), self.spent(running.pid)
        end = at + seconds
        while count < wanted and time.monotonic() < min(end, at + self.patience.event):
            await asyncio.sleep(LOOK_SECONDS)
            found = await self.count(path)
            if found > count:
                count, at, spent = found, time.monotonic(), self.spent(running.pid)
        return at, spent

    async def told(self, path: str, names: Iterable[str]) -> int:
        """Return the number of these pods with an event about their binding."""
        events = (await self.client.get_as(path, _Events)).items
        return len({event.involved_object.name for event in events if event.reason == _SCHEDULED} & set(names))

    async def pods(self, path: str, selector: str = "") -> list[SeenPod]:
        """Return the pods in a collection, all or those of a field selector."""
        return (await self.client.get_as(path, _Pods, {"fieldSelector": selector} if selector else {})).items

    async def count(self, path: str) -> int:
        """Return the number of objects in a collection."""
        some = await self.client.get_as(path, _Some, {"limit": "1"})
        return len(some.items) + some.metadata.remaining_item_count

    def spent(self, scheduler: int = 0) -> Spent:
        """Return the CPU seconds until now, with 0 for a scheduler that does not run."""
        plane = self._plane
        used = cpu_seconds(scheduler) if scheduler else 0.0
        return Spent(used, cpu_seconds(plane.api_server_pid), cpu_seconds(plane.etcd_pid), time.process_time())


@asynccontextmanager
async def measured_cluster(plane: Plane, patience: Patience = USUAL) -> AsyncIterator[MeasuredCluster]:
    """Connect to a control plane."""
    access = load_config(str(plane.kubeconfig))
    async with ApiClient(access, timeout=_REQUEST_SECONDS) as client, QuickFeed(access) as feed:
        yield MeasuredCluster(plane, client, feed, patience)
