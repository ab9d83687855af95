"""`placewright bench against`: our scheduler and kube-scheduler on one real API server, with the same nodes and the same pods.

The schedulers run in turns, because a second one would cost the API server time for every event. Each turn starts a scheduler, warms it up
with a few pods, and creates its wave. Then it stops the scheduler and removes pods and events. The feed and the watch for bindings run on
the same machine, so the report has their CPU time, too. With `--backlog`, the feed is no part of the measurement.

One real API server with nodes, on which schedulers take turns. Every wave of pods begins with the same cluster.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from placewright.api.bad_input import bad_field
from placewright.cli.options import whole_number
from placewright.kube.errors import RequestError
from placewright.kube.eventloop import loop_factory
from placewright.offline.kinds import Manifest
from placewright_lab.bench.benchmark import BenchFailed, ResultTable, counts
from placewright_lab.bench.boundwatch import BoundWatch, WatchBroken
from placewright_lab.bench.contenders import OUR_SCHEDULER_NAME, Contender, RunningScheduler, kube_scheduler, ours
from placewright_lab.bench.madeup import mixed_nodes, mixed_pods, plain_pods
from placewright_lab.bench.measuredcluster import (
    USUAL,
    FeedBroken,
    MeasuredCluster,
    Patience,
    Plane,
    Post,
    WaveFailed,
    measured_cluster,
    posts,
)
from placewright_lab.bench.wavecomparison import Spent, Wave, WaveComparison, WaveOutcome, order_of_waves, peak_bytes
from placewright_lab.controlplane.assets import VARIABLE, Assets, at_hand, from_folder, minor_version
from placewright_lab.controlplane.server import ControlPlane, ControlPlaneFailed, Options

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


SUMMARY: Final = "beside a kube-scheduler, in turns, on one real API server"
#: More pods may not fit on the nodes. Fewer nodes may have no GPU for the pods that want one.
PODS_A_NODE: Final = 10
FEWEST_NODES: Final = 20
_MOST_PODS: Final = 1_000_000
_MOST_WAVES: Final = 100
_MOST_RATE: Final = 100_000
_FAILURES: Final = (WaveFailed, WatchBroken, FeedBroken, ControlPlaneFailed, RequestError, TimeoutError)


@dataclass(frozen=True, slots=True)
class Plan:
    """The measurement at one number of nodes.

    Attributes:
        waves: number of waves of each scheduler.
        rate: pods created a second; None for as fast as the API server accepts them.
        backlog: True to create pods before the scheduler starts.
    """

    nodes: int
    pods: int
    waves: int
    rate: int | None = None
    backlog: bool = False

    @property
    def mode(self) -> str:
        """Way in which pods come, in words."""
        if self.backlog:
            return "backlog"
        return f"{self.rate} pods/s" if self.rate else "burst"


@dataclass(frozen=True, slots=True)
class ContenderPrograms:
    """The control plane's programs, and a kube-scheduler."""

    assets: Assets
    kube_scheduler: Path
    minor: int


def options(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    default = "default: the one among the assets"
    parser.add_argument("--kube-scheduler", type=Path, metavar="PATH", help=f"the program to compare with ({default})")
    parser.add_argument("--assets", type=Path, metavar="DIR", help=f"default: {VARIABLE}, or what `make e2e` built")
    parser.add_argument("--nodes", type=counts(FEWEST_NODES), default=(1000,), metavar="N,N,...", help="default: 1000")
    most = f"default: 3000, and never more than {PODS_A_NODE} a node"
    parser.add_argument("--pods", type=whole_number(2, _MOST_PODS), default=3000, help=most)
    parser.add_argument("--waves", type=whole_number(1, _MOST_WAVES), default=2, help="for each scheduler, in turns: A B B A (default: 2)")
    feeding = parser.add_mutually_exclusive_group()
    feeding.add_argument("--rate", type=whole_number(1, _MOST_RATE), help="pods created a second (default: as fast as they are accepted)")
    feeding.add_argument("--backlog", action="store_true", help="create the pods before the scheduler starts")


def run(args: argparse.Namespace) -> Sequence[ResultTable]:
    """Run everything that the options ask for. Raises `InputError` before anything starts, and `BenchFailed` later."""
    if not sys.platform.startswith("linux"):
        raise bad_field("bench against", sys.platform, "Linux: CPU and memory of processes are read from /proc")
    programs = find_programs(args.assets, args.kube_scheduler)
    plans = [Plan(n, min(args.pods, PODS_A_NODE * n), args.waves, args.rate, args.backlog) for n in args.nodes]
    try:
        compared = [_measured(programs, plan) for plan in plans]
    except _FAILURES as error:
        raise BenchFailed(str(error) or "no answer in time") from error
    return [ResultTable(each.title(), [each.to_json()], each.rows()) for each in compared]


def find_programs(folder: Path | None, scheduler: Path | None) -> ContenderPrograms:
    """Return the programs that the options or the environment name, or that `make e2e` has built. Raises `InputError`."""
    assets = from_folder(folder, "--assets") if folder else at_hand(os.environ)
    if assets is None:
        raise bad_field("--assets", None, f"a folder with kube-apiserver and etcd, here or in {VARIABLE}")
    program = scheduler or assets.kube_scheduler
    if program is None:
        raise bad_field("--kube-scheduler", None, f"the path of a kube-scheduler ({assets.folder} holds none)")
    if not program.is_file() or not os.access(program, os.X_OK):
        raise bad_field("--kube-scheduler", str(program), "the path of a program that may be executed")
    return ContenderPrograms(assets, program.resolve(), minor_version(program.resolve()))


def _measured(programs: ContenderPrograms, plan: Plan) -> WaveComparison:
    with ExitStack() as stack:
        plane = stack.enter_context(ControlPlane(programs.assets, Options(audit=False)))
        runner = stack.enter_context(asyncio.Runner(loop_factory=loop_factory()))
        mine = ours(plane.kubeconfig)
        theirs = kube_scheduler(programs.kube_scheduler, programs.minor, plane.kubeconfig)
        waves = runner.run(_waves(plane, plan, order_of_waves(mine, theirs, plan.waves)))
    return WaveComparison(plan.nodes, plan.pods, waves, (mine.label, theirs.label), plan.mode)


async def _waves(plane: ControlPlane, plan: Plan, order: list[Contender]) -> list[Wave]:
    waves = []
    async with open_arena(plane) as arena:
        await arena.furnish(plan.nodes)
        for contender in order:
            try:
                turn = arena.backlog(contender, plan.pods) if plan.backlog else arena.burst(contender, plan.pods, plan.rate)
                wave = (await turn).wave(contender.label, backlog=plan.backlog)
            except WaveFailed as error:
                raise WaveFailed(f"{contender.label}: {error}") from error
            waves.append(wave)
            if sys.stderr.isatty():
                sys.stderr.write(f"{plan.nodes} nodes: {wave.scheduler}: {wave.per_second:,.0f} pods/s\n")
    return waves
