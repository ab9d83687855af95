"""Two schedulers and the workloads of upstream's benchmark. Every turn has an API server, a store and a cluster of its own.

Both schedulers take the pods of `default-scheduler`, so they get exactly the same objects. Only one of them runs at a time.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Final

from placewright.api.profile import DEFAULT_SCHEDULER_NAME
from placewright.kube.errors import RequestError
from placewright.kube.eventloop import loop_factory
from placewright_lab.bench.against import ContenderPrograms
from placewright_lab.bench.boundwatch import WatchBroken
from placewright_lab.bench.contenders import OUR_LABEL, Contender, kube_scheduler, label_of, ours
from placewright_lab.bench.measuredcluster import FeedBroken, Patience, Plane, WaveFailed, measured_cluster
from placewright_lab.bench.schedulerperf.operations import CreatePods, LeftOutWorkload, NotKnown, PerfWorkload
from placewright_lab.bench.schedulerperf.perfrun import Measured, PerfRun, Progress, warm_up
from placewright_lab.bench.schedulerperf.throughput import throughput
from placewright_lab.bench.schedulerperf.verdicts import Contest, PerfTurn
from placewright_lab.bench.wavecomparison import order_of_waves
from placewright_lab.controlplane.flags import Features
from placewright_lab.controlplane.server import ControlPlane, ControlPlaneFailed, Options
from placewright_lab.simulation.workprocesses import usable_cores

#: An admission plugin that refuses pods whose priority has no class. Workloads have such pods, so upstream's harness turns it off, too.
_UNADMITTED: Final = ("Priority",)
#: Messages of programs about unknown feature gates, and of the API server about unknown fields. The server tells upper from lower case,
#: unlike upstream's harness.
_NOT_KNOWN: Final = re.compile(r"unrecognized feature gate: \w+|cannot set feature gate [^|\"]*|strict decoding error: [^|]*")
_FAILURES: Final = (WaveFailed, WatchBroken, FeedBroken, ControlPlaneFailed, RequestError)
#: Seconds without an event after which the last one has come.
PATIENCE: Final = Patience(binding=60.0, event=1.0)

#: Function of the workload, the scheduler, the turn and the number of turns. It returns a function that hears about the pods.
Say = Callable[[str, str], Progress]


@dataclass(frozen=True, slots=True)
class ContestPlan:
    """The plan of the workloads' runs.

    Attributes:
        programs: programs of the control plane, and the kube-scheduler.
        turns: number of turns of each scheduler.
        limit: seconds after which a turn is ended.
        made: notes about machine and versions.
    """

    programs: ContenderPrograms
    turns: int
    limit: float
    made: Mapping[str, str]


def contest(found: PerfWorkload | LeftOutWorkload, plan: ContestPlan, say: Say) -> Contest:
    """Run all turns of one workload. The result of a workload that cannot run here has the reason."""
    labels = (OUR_LABEL, label_of(plan.programs.minor))
    if isinstance(found, LeftOutWorkload):
        return Contest(found.name, labels=labels, left_out=found.why, made=plan.made)
    measured = sum(each.count for each in found.operations if isinstance(each, CreatePods) and each.collect_metrics)
    bare = Contest(
        found.name, found.nodes, found.pods, measured, found.gates, usable_cores(), labels, threshold=found.threshold, made=plan.made
    )
    turns: list[PerfTurn] = []
    for label in order_of_waves(*labels, plan.turns):
        try:
            turns.append(_turn(found, plan, label, say(found.name, label)))
        except NotKnown as unknown:
            return replace(bare, left_out=str(unknown))
    return replace(bare, turns=turns)


def _turn(workload: PerfWorkload, plan: ContestPlan, label: str, progress: Progress) -> PerfTurn:
    """Start everything, run the workload, end everything. Raises `NotKnown` for feature gates that a program does not have."""
    gates = ",".join(f"{gate}={str(value).lower()}" for gate, value in sorted(workload.gates.items()))
    programs = plan.programs
    options = Options(audit=False, features=Features(gates=gates, unadmitted=_UNADMITTED))
    try:
        with ExitStack() as stack:
            plane = stack.enter_context(ControlPlane(programs.assets, options))
            if gates:  # newer servers log unknown gates and continue
                _look_for_unknown((plane.folder / "kube-apiserver.log").read_text(errors="replace"), programs)
            runner = stack.enter_context(asyncio.Runner(loop_factory=loop_factory()))
            theirs = kube_scheduler(programs.kube_scheduler, programs.minor, plane.kubeconfig, gates)
            contender = ours(plane.kubeconfig) if label == OUR_LABEL else theirs
            return runner.run(run_turn(workload, plane, contender, plan.limit, progress))
    except _FAILURES as error:
        _look_for_unknown(str(error), programs)
        return PerfTurn(label, ended=str(error))


def _look_for_unknown(said: str, programs: ContenderPrograms) -> None:
    """Raise `NotKnown` if a program reports an unknown feature gate, a bad value of one, or an unknown field."""
    if word := _NOT_KNOWN.search(said):
        raise NotKnown(f"{word[0].strip()} (Kubernetes 1.{programs.assets.minor})")


async def run_turn(
    workload: PerfWorkload, plane: Plane, contender: Contender, limit: float, progress: Progress, patience: Patience = PATIENCE
) -> PerfTurn:
    """Run one workload with one scheduler on an empty API server. Raises `NotKnown`, and the errors that stop it."""
    async with measured_cluster(plane, patience) as cluster:
        await cluster.install(DEFAULT_SCHEDULER_NAME)
        async with cluster.started(contender) as running:
            await warm_up(cluster, running)
            async with cluster.watch("/api/v1/pods") as watch:
                run = PerfRun(cluster, workload, running, watch, progress)
                await run.check()
                try:
                    async with asyncio.timeout(limit):
                        await run.run()
                except TimeoutError:
                    bound = len(run.bound_so_far())
                    return PerfTurn(contender.label, ended=f"not at its end after {limit:g} s, {bound} measured pods bound")
                remains = await run.remains()
    if run.measured is None:
        return PerfTurn(contender.label, ended="its measurement never ended")
    turn = _turn_of(contender.label, run.measured)
    return replace(turn, bound=remains.bound, pending=remains.pending, deleted=remains.deleted)


def _turn_of(label: str, measured: Measured) -> PerfTurn:
    bound = measured.bound
    seconds = bound[-1] - measured.begin if bound else 0.0
    sampled = throughput(measured.begin, bound)
    return PerfTurn(label, len(bound), seconds, measured.cpu, measured.settled_cpu, measured.peak_bytes, measured.elsewhere, sampled)
