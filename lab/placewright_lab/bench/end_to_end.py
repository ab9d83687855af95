"""Time from created to bound through a sandbox in another process, for one operator process and a burst of pods."""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from kubesandbox.process import SandboxProcess
from placewright.api.objects import PodKey
from placewright.cli.definitions import crd_folders
from placewright.cli.options import whole_number
from placewright.kube.auth.login import load_config
from placewright.kube.client import ApiClient
from placewright.offline.kinds import Manifest
from placewright_lab.bench.benchmark import MOST_NODES, MOST_PODS, ResultTable, row_of, table
from placewright_lab.bench.madeup import mixed_nodes, mixed_pods, plain_pods
from placewright_lab.bench.wavecomparison import cpu_seconds, percentiles, resident_bytes
from placewright_lab.demo.feed import Feed, pod_key
from placewright_lab.demo.livestate import Profiles, watch_run
from placewright_lab.demo.operatorprocess import OperatorProcess, operator_command
from placewright_lab.demo.scenario import make_scenario
from placewright_lab.demo.summary import Tracker
from placewright_lab.readers.inputs import Inputs

WARM_UP: Final = 10
_READY_SECONDS: Final = 600.0
_RUN_SECONDS: Final = 900.0
_LOOK_SECONDS: Final = 0.05


class _SomePods(msgspec.Struct):
    items: list[msgspec.Raw]


SUMMARY: Final = "from created to bound, through a sandbox in another process"
_COLUMNS: Final = {
    "nodes": "{nodes:,}",
    "assigned": "{assigned:,}",
    "pods": "{pods:,}",
    "bound": "{bound:,}",
    "pods/s": "{per_second:,.0f}",
    "p50 ms": "{latency_ms[0]:,.0f}",
    "p99 ms": "{latency_ms[1]:,.0f}",
    "CPU ms/pod": "{cpu_a_pod[0]:.2f}",
    "server": "{cpu_a_pod[1]:.2f}",
    "MB": "{megabytes:,.0f}",
}


@dataclass(frozen=True, slots=True)
class EndToEnd:
    """The result of the measurement.

    Attributes:
        per_second: pods bound a second, from the first creation to the last observed binding.
        p50, p99: seconds from creation to observed binding.
        operator_cpu, server_cpu: CPU seconds of each process during the run.
        operator_bytes: resident memory of the operator after the run.
    """

    nodes: int
    assigned: int
    pods: int
    bound: int
    per_second: float
    p50: float
    p99: float
    operator_cpu: float
    server_cpu: float
    operator_bytes: int

    @property
    def latency_ms(self) -> tuple[float, float]:
        """Median and p99 of the milliseconds from creation to observed binding."""
        return 1000 * self.p50, 1000 * self.p99

    @property
    def cpu_a_pod(self) -> tuple[float, float]:
        """Milliseconds of CPU a pod, of the operator and of the API server."""
        return 1000 * self.operator_cpu / self.pods, 1000 * self.server_cpu / self.pods

    @property
    def megabytes(self) -> float:
        """Resident memory of the operator after the run."""
        return self.operator_bytes / 1e6


def options(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--nodes", type=whole_number(1, MOST_NODES), default=1000, help="default: 1000")
    parser.add_argument("--pods", type=whole_number(1, MOST_PODS), default=5000, help="default: 5000")
    assigned = "pods that are on nodes before the operator starts (default: 0)"
    parser.add_argument("--assigned", type=whole_number(0, MOST_PODS), default=0, help=assigned)


def run(args: argparse.Namespace) -> Sequence[ResultTable]:
    """Measure one burst of pods."""
    measured = asyncio.run(measure_end_to_end(args.nodes, args.pods, args.assigned))
    title = "end to end, from created to bound; CPU and MB of the operator, CPU of the API server"
    return (table(title, [row_of(measured, "latency_ms", "cpu_a_pod", "megabytes")], _COLUMNS),)


async def measure_end_to_end(nodes: int, pods: int, assigned: int) -> EndToEnd:
    """Put `assigned` pods on nodes, start the operator, and create `pods` pods as fast as the server accepts them."""
    scenario = make_scenario(Inputs(nodes=mixed_nodes(nodes), pods=mixed_pods(pods)))
    with tempfile.TemporaryDirectory(prefix="placewright-bench-") as folder:
        async with SandboxProcess(crds=crd_folders()) as sandbox, ApiClient(load_config(str(sandbox.kubeconfig))) as client:
            feed = Feed(client)
            await feed.create_objects(scenario.objects)
            await _create(feed, _assigned_pods(scenario.nodes, assigned))
            async with OperatorProcess(operator_command(sandbox.kubeconfig), Path(folder, "operator.log")) as operator:
                tracker, profiles = Tracker({pod_key(pod): pod for pod in scenario.pods}), Profiles()
                watching = watch_run(client, tracker, profiles, time.monotonic)
                watching.start()
                async with asyncio.timeout(_READY_SECONDS):
                    await profiles.wait_active(scenario.profile, 1)
                await _warm_up(client, feed)
                before = cpu_seconds(operator.pid), cpu_seconds(sandbox.pid)
                times = await _burst(feed, tracker, scenario.pods)
                after = cpu_seconds(operator.pid), cpu_seconds(sandbox.pid)
                resident = resident_bytes(operator.pid)
                await watching.stop()
    return _summed_up(nodes, assigned, pods, times, (after[0] - before[0], after[1] - before[1]), resident)


async def _create(feed: Feed, pods: list[Manifest]) -> None:
    await feed.create_pods(pods, lambda _key: None, _refused)


def _refused(key: PodKey, problem: str) -> None:
    raise RuntimeError(f"the sandbox refused pod {key}: {problem}")


def _assigned_pods(nodes: Sequence[Manifest], count: int) -> list[Manifest]:
    """Return pods that already stand on nodes, in turn."""
    pods = mixed_pods(count, seed=1)
    for number, pod in enumerate(pods):
        pod["metadata"]["name"] = f"assigned-{number:06d}"
        pod["spec"]["nodeName"] = nodes[number % len(nodes)]["metadata"]["name"]
    return pods


async def _warm_up(client: ApiClient, feed: Feed) -> None:
    """Place a few small pods first. Then the operator has read the whole cluster."""
    await _create(feed, plain_pods(WARM_UP))
    unplaced = {"fieldSelector": "spec.nodeName=", "limit": "1"}
    async with asyncio.timeout(_READY_SECONDS):
        while (await client.get_as("/api/v1/pods", _SomePods, unplaced)).items:  # noqa: ASYNC110 - the event is in another process
            await asyncio.sleep(_LOOK_SECONDS)


async def _burst(feed: Feed, tracker: Tracker, pods: Sequence[Manifest]) -> list[tuple[float, float]]:
    """Create the pods. Return the times of creation and binding of each bound pod, on one monotonic clock."""
    creating = asyncio.create_task(
        feed.create_pods(
            pods, lambda key: tracker.created(key, time.monotonic()), lambda key, why: tracker.refused(key, why, time.monotonic())
        )
    )
    async with asyncio.timeout(_RUN_SECONDS):
        while not tracker.finished(time.monotonic()):  # noqa: ASYNC110 - the tracker is pure and has no event to wait for
            await asyncio.sleep(_LOOK_SECONDS)
    await creating
    return tracker.times()


def _summed_up(nodes: int, assigned: int, pods: int, times: list[tuple[float, float]], cpu: tuple[float, float], resident: int) -> EndToEnd:
    p50, p99 = percentiles([bound - created for created, bound in times])
    span = max(bound for _, bound in times) - min(created for created, _ in times) if times else float("inf")
    return EndToEnd(nodes, assigned, pods, len(times), len(times) / span, p50, p99, *cpu, resident)
