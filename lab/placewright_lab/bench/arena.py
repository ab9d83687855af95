"""One real API server with nodes, on which schedulers take turns. Every wave of pods begins with the same cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Final

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
#: Parameters that remove a pod at once, without a kubelet's confirmation.
_AT_ONCE: Final = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0}


class Arena:
    """A control plane's cluster with some number of nodes. `open_arena` makes it."""

    def __init__(self, cluster: MeasuredCluster) -> None:
        self._cluster = cluster

    async def furnish(self, nodes: int) -> None:
        """Create the shipped definitions, a profile with all defaults for our scheduler name, and the nodes."""
        cluster = self._cluster
        await cluster.install(OUR_SCHEDULER_NAME)
        await cluster.feed.create(posts(cluster.client.access, "/api/v1/nodes", mixed_nodes(nodes)))

    async def burst(self, contender: Contender, pods: int, rate: float | None) -> WaveOutcome:
        """Start the scheduler, warm it up, then create pods at a rate, or as fast as the server accepts them."""
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
        """Create pods, then start the scheduler. Its start without a backlog is timed beforehand, and subtracted."""
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
        """Place a few small pods first. Then the scheduler has read the whole cluster."""
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
        """Compare the watched bindings with the pods on the server. Return the number of pods with a Scheduled event."""
        names = set(sent)
        bound = {pod.metadata.name for pod in await self._cluster.pods(_PODS, "spec.nodeName!=")}
        if left := names - bound:
            raise WaveFailed(f"{len(left)} pods were seen bound and are not, {min(left)} for one")
        return await self._cluster.told(_EVENTS, names)

    async def _clear(self) -> None:
        """Remove all pods and all events."""
        for path in (_PODS, _EVENTS):
            while await self._cluster.count(path):
                try:
                    await self._cluster.client.delete(path, _AT_ONCE)
                except RequestError as error:
                    # The server ends a long deletion with a timeout, and we go on. It would refuse a forbidden one for ever.
                    if not error.temporary:
                        raise


@asynccontextmanager
async def open_arena(plane: Plane, patience: Patience = USUAL) -> AsyncIterator[Arena]:
    """Connect to an empty control plane."""
    async with measured_cluster(plane, patience) as cluster:
        yield Arena(cluster)
