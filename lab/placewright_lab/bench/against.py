"""`placewright bench against`: our scheduler and kube-scheduler on one real API server, with the same nodes and the same pods.

The schedulers run in turns, because a second one would cost the API server time for every event. Each turn starts a scheduler, warms it up
with a few pods, and creates its wave. Then it stops the scheduler and removes pods and events. The feed and the watch for bindings run on
the same machine, so the report has their CPU time, too. With `--backlog`, the feed is no part of the measurement.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from placewright.api.bad_input import bad_field
from placewright.cli.options import whole_number
from placewright.kube.errors import RequestError
from placewright.kube.eventloop import loop_factory
from placewright_lab.bench.arena import open_arena
from placewright_lab.bench.benchmark import BenchFailed, ResultTable, counts
from placewright_lab.bench.boundwatch import WatchBroken
from placewright_lab.bench.contenders import Contender, kube_scheduler, ours
from placewright_lab.bench.measuredcluster import WaveFailed
from placewright_lab.bench.quickfeed import FeedBroken
from placewright_lab.bench.wavecomparison import Wave, WaveComparison, order_of_waves
from placewright_lab.controlplane.assets import VARIABLE, Assets, from_folder, minor_version
from placewright_lab.controlplane.children import ControlPlaneFailed
from placewright_lab.controlplane.programs import at_hand
from placewright_lab.controlplane.server import ControlPlane, Options

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
