"""One real API server with nodes on it, on which schedulers take turns: every wave of pods begins with the same cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Final

import msgspec

from placewright.kube.errors import RequestError
from placewright.offline.kinds import Manifest
from placewright_lab.bench.boundwatch import BoundWatch
from placewright_lab.bench.contenders import OUR_SCHEDULER_NAME, Contender, RunningScheduler
from placewright_lab.bench.madeup import mixed_nodes, mixed_pods, plain_pods
from placewright_lab.bench.measuredcluster import USUAL, MeasuredCluster, Patience, Plane, WaveFailed, measured_cluster
from placewright_lab.bench.processtimes import peak_bytes
from placewright_lab.bench.quickfeed import Post, posts
from placewright_lab.bench.wavecomparison import Spent, WaveOutcome

WARM_UP: Final = 20
_PODS: Final = "/api/v1/namespaces/default/pods"
_EVENTS: Final = "/api/v1/namespaces/default/events"
#: Removes every pod at once, though no kubelet confirms it.
_AT_ONCE: Final = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0}


class _Metadata(msgspec.Struct, frozen=True):
    name: str = ""


class _PodSpec(msgspec.Struct, rename="camel", frozen=True):
    node_name: str = ""


class _Pod(msgspec.Struct, frozen=True):
    metadata: _Metadata
    spec: _PodSpec = _PodSpec()


class _Pods(msgspec.Struct, frozen=True):
    items: list[_Pod]


class Arena:
    """A control plane's cluster for one number of nodes; make it with `open_arena`."""

    def __init__(self, cluster: MeasuredCluster) -> None:
        self._cluster = cluster

    async def furnish(self, nodes: int) -> None:
        """Create the shipped definitions, a profile with all defaults for our scheduler name, and the nodes."""
        cluster = self._cluster
        await cluster.install(OUR_SCHEDULER_NAME)
        await cluster.feed.create(posts(cluster.client.access, "/api/v1/nodes", mixed_nodes(nodes)))

    async def burst(self, contender: Contender, pods: int, rate: float | None) -> WaveOutcome:
        """Start the scheduler, warm it up, then create pods, as fast as accepted or at a rate."""
        cluster = self._cluster
        await self._clear()
        wanted = self._posts(contender, mixed_pods(pods))
        async with cluster.started(contender) as running:
            await self._warm_up(contender, running)
            async with cluster.watch(_PODS) as watch:
                before = cluster.spent(running.pid)
                sent = await cluster.feed.create(wanted, rate)
                return await self._finish(running, watch, sent, before, WARM_UP)

    async def backlog(self, contender: Contender, pods: int) -> WaveOutcome:
        """Create pods, then start the scheduler. The time of a start without a backlog is measured before, and subtracted."""
        cluster = self._cluster
        await self._clear()
        before = cluster.spent()
        async with cluster.started(contender) as running:
            await self._warm_up(contender, running)
            start = cluster.spent(running.pid) - before
        await self._clear()
        sent = await cluster.feed.create(self._posts(contender, mixed_pods(pods)))
        async with cluster.watch(_PODS) as watch:
            before = cluster.spent()
            async with cluster.started(contender) as running:
                outcome = await self._finish(running, watch, sent, before, 0)
        return replace(outcome, cpu=outcome.cpu - start)

    def _posts(self, contender: Contender, pods: Sequence[Manifest]) -> list[Post]:
        for pod in pods:
            pod["spec"]["schedulerName"] = contender.scheduler_name
        return posts(self._cluster.client.access, _PODS, pods)

    async def _warm_up(self, contender: Contender, running: RunningScheduler) -> None:
        """Place a few small pods first, after which the scheduler has read the whole cluster."""
        cluster = self._cluster
        async with cluster.watch(_PODS) as watch:
            await cluster.feed.create(self._posts(contender, plain_pods(WARM_UP)))
            await cluster.all_bound(running, watch, WARM_UP)
        await cluster.events_written(running, _EVENTS, WARM_UP)

    async def _finish(
        self, running: RunningScheduler, watch: BoundWatch, sent: dict[str, float], before: Spent, earlier_events: int
    ) -> WaveOutcome:
        cluster = self._cluster
        await cluster.all_bound(running, watch, len(sent))
        settled, spent = await cluster.events_written(running, _EVENTS, earlier_events + len(sent))
        peak = peak_bytes(running.pid)
        events = await self._check(sent)
        return WaveOutcome(sent, dict(watch.times), settled, events, spent - before, peak)

    async def _check(self, sent: Iterable[str]) -> int:
        """Compare the watched bindings with the pods on the server. Returns how many of these pods have a Scheduled event."""
        names = set(sent)
        pods = (await self._cluster.client.get_as(_PODS, _Pods)).items
        bound = {pod.metadata.name for pod in pods if pod.spec.node_name}
        if left := names - bound:
            raise WaveFailed(f"{len(left)} pods were seen bound and are not, {min(left)} for one")
        return await self._cluster.told(_EVENTS, names)

    async def _clear(self) -> None:
        """No pods, no events."""
        for path in (_PODS, _EVENTS):
            while await self._cluster.count(path):
                try:
                    await self._cluster.client.delete(path, _AT_ONCE)
                except RequestError as error:
                    # A long deletion times out, and is gone on with; what is refused would be refused for ever.
                    if not error.temporary:
                        raise


@asynccontextmanager
async def open_arena(plane: Plane, patience: Patience = USUAL) -> AsyncIterator[Arena]:
    """Connect to an empty control plane."""
    async with measured_cluster(plane, patience) as cluster:
        yield Arena(cluster)
