"""How fast a changed profile takes effect: pods arrive at a steady rate, and the profile is patched again and again.

The measured time begins when the patch is sent. It ends when our watch shows the first pod that a decision under it bound. In between, the
patch passes API server, watch, check and swap, and the next pod is decided and bound. All decisions are audited.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Final

import msgspec

from benchmarks.audit import Audit, distinct_weights
from kubesandbox.process import SandboxProcess
from placewright.api.annotations import Decision, read_decision
from placewright.api.objects import ObjectMeta, Pod
from placewright.api.profile import DEFAULT_SCHEDULER_NAME, GROUP, KIND, VERSION
from placewright.cli.definitions import crd_folders
from placewright.cli.options import whole_number
from placewright.kube.auth.login import load_config
from placewright.kube.client import ApiClient
from placewright.kube.profiles import profile_path
from placewright.kube.reflector import Reflector, Reflectors, Source
from placewright.offline.kinds import Manifest
from placewright_lab.bench.benchmark import MOST_NODES, BenchFailed, ResultTable, row_of, table
from placewright_lab.bench.madeup import mixed_nodes
from placewright_lab.bench.wavecomparison import percentiles
from placewright_lab.demo.feed import Feed, background
from placewright_lab.demo.livestate import PODS_PATH
from placewright_lab.demo.operatorprocess import OperatorProcess, operator_command
from placewright_lab.readers.openb import pod_manifest

SUMMARY: Final = "from a changed profile to the first decision under it, while pods arrive"
_COLUMNS: Final = {
    "nodes": "{nodes:,}",
    "pods/s": "{per_second:,.0f}",
    "reloads": "{reloads:,}",
    "p50 s": "{p50:.3f}",
    "p99 s": "{p99:.3f}",
    "pods": "{pods:,}",
    "bound": "{bound:,}",
    "twice": "{twice:,}",
    "proved": "{proved:,}",
}
PROFILE: Final = "reloaded"
#: Between the first decision under one change and the next change, in seconds.
PAUSE_SECONDS: Final = 0.15
_DEADLINE: Final = 120.0


class _Patched(msgspec.Struct):
    metadata: ObjectMeta


@dataclass(frozen=True, slots=True)
class Reloads:
    """The measurement, and the result of the audit.

    Attributes:
        rate: pods that were to arrive a second; `per_second`: pods that did.
        reloads: changes of the profile.
        p50, p99, longest: seconds from sending a change to seeing the first pod that was decided under it.
        pods, bound: created and bound; what is missing was lost.
        twice: pods that were seen on more than one node.
        torn: decisions that their own generation does not explain; `proved` of them name it beyond doubt.
    """

    nodes: int
    rate: int
    reloads: int
    p50: float
    p99: float
    longest: float
    pods: int
    bound: int
    per_second: float
    twice: int
    proved: int
    torn: tuple[str, ...]

    @property
    def faults(self) -> list[str]:
        """Findings of the audit; with one the figures mean nothing."""
        lost = self.pods - self.bound
        found = [f"{count} pods were {outcome}" for count, outcome in ((lost, "lost"), (self.twice, "seen on two nodes")) if count]
        return [*self.torn, *found]


def options(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--nodes", type=whole_number(1, MOST_NODES), default=1000, help="default: 1000")
    parser.add_argument("--rate", type=whole_number(1, 10_000), default=300, help="pods that arrive a second (default: 300)")
    parser.add_argument("--reloads", type=whole_number(1, 1_000), default=200, help="changes of the profile (default: 200)")


def run(args: argparse.Namespace) -> Sequence[ResultTable]:
    """Change the profile while pods arrive."""
    measured = asyncio.run(measure_reloads(args.nodes, args.rate, args.reloads))
    title = "reload: from a changed profile to the first pod decided under it"
    return (table(title, [row_of(measured)], _COLUMNS, measured.faults),)


class BoundPods:
    """The pods with a node, as the watch shows them.

    Attributes:
        decisions: decisions by pod.
        twice: keys of pods that were seen on more than one node.
    """

    def __init__(self) -> None:
        self.decisions: dict[str, Decision] = {}
        self.twice: list[str] = []
        self._nodes: dict[str, str] = {}
        self._first_seen: dict[int, float] = {}
        self._news = asyncio.Event()

    @property
    def count(self) -> int:
        """Number of bound pods."""
        return len(self._nodes)

    def changed(self, old: Pod | None, new: Pod) -> None:
        """Note the node and the decision of a bound pod."""
        if not new.spec.node_name:
            return
        if self._nodes.setdefault(new.metadata.uid, new.spec.node_name) != new.spec.node_name:
            self.twice.append(new.metadata.name)
        decision = read_decision(new.metadata.annotations)
        if decision is not None:
            self.decisions[new.metadata.name] = decision
            self._first_seen.setdefault(decision.generation, time.monotonic())
        self._news.set()

    def deleted(self, old: Pod) -> None:
        """Do nothing, because the benchmark deletes no pod."""

    def synced(self) -> None:
        """Do nothing, because pods tell their own state."""

    async def first_under(self, generation: int) -> float:
        """Wait for the first decision under this generation or a later one, and return when it was seen. Seconds, monotonic."""
        while not (times := [when for known, when in self._first_seen.items() if known >= generation]):
            await self._next()
        return min(times)

    async def until(self, bound: int) -> None:
        """Return when so many pods have a node."""
        while self.count < bound:
            await self._next()

    async def _next(self) -> None:
        self._news.clear()
        await self._news.wait()


async def measure_reloads(nodes: int, rate: int, reloads: int) -> Reloads:
    """Start a sandbox and an operator as processes, let pods arrive, and change the profile `reloads` times.

    Raise `BenchFailed` when a change does not take effect.
    """
    with tempfile.TemporaryDirectory(prefix="placewright-bench-") as folder:
        async with SandboxProcess(crds=crd_folders()) as sandbox, ApiClient(load_config(str(sandbox.kubeconfig))) as client:
            feed = Feed(client)
            await feed.create_objects([*mixed_nodes(nodes), _profile()])
            async with OperatorProcess(operator_command(sandbox.kubeconfig), Path(folder, "operator.log")) as operator:
                try:
                    return await Run(client, feed).measure(nodes, rate, reloads)
                except TimeoutError:
                    said = f"the operator's log ends: {operator.last_words()}"
                    raise BenchFailed(f"no pod was decided under the newest profile in {_DEADLINE:g} s; {said}") from None


def _profile() -> Manifest:
    spec = {"schedulerName": DEFAULT_SCHEDULER_NAME, "weights": distinct_weights(0)}
    return {"apiVersion": f"{GROUP}/{VERSION}", "kind": KIND, "metadata": {"name": PROFILE}, "spec": spec}


class Run:
    """One run on one API server that has nodes, the profile and an operator."""

    def __init__(self, client: ApiClient, feed: Feed) -> None:
        self._client = client
        self._feed = feed
        self._bound = BoundPods()
        self._audit = Audit({1: distinct_weights(0)})
        self._created = 0
        self._enough = False

    async def measure(self, nodes: int, rate: int, reloads: int) -> Reloads:
        """Change the profile while pods arrive, then wait for the last pod, and audit."""
        watching = Reflectors([Reflector(self._client, Source(PODS_PATH, Pod), self._bound)])
        watching.start()
        arriving = self._feed.create_pods(self._pods(), self._note_created, _refused, float(rate))
        try:
            async with background(arriving, "pods arrive") as arrival:
                async with asyncio.timeout(_DEADLINE):
                    began, before = await self._bound.first_under(1), self._created
                waits = [await self._change(number) for number in range(1, reloads + 1)]
                per_second = (self._created - before) / (time.monotonic() - began)
                self._enough = True
                await arrival
                # Pods that are still missing then are lost, and counted as such.
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_DEADLINE):
                        await self._bound.until(self._created)
        finally:
            await watching.stop()
        return self._summed_up(nodes, rate, waits, per_second)

    def _pods(self) -> Iterator[Manifest]:
        for number in count():
            if self._enough:
                return
            yield pod_manifest(f"plain-{number:06d}", cpu_milli=100, memory_mib=200, labels={"app": "plain"})

    def _note_created(self, _key: str) -> None:
        self._created += 1

    async def _change(self, number: int) -> float:
        """Apply change `number`, and return the seconds until a decision under it was seen."""
        await asyncio.sleep(PAUSE_SECONDS)
        weights = distinct_weights(number)
        sent = time.monotonic()
        answer = await self._client.patch(profile_path(PROFILE), {"spec": {"weights": weights}})
        generation = msgspec.json.decode(answer, type=_Patched).metadata.generation
        self._audit.weights[generation] = weights
        async with asyncio.timeout(_DEADLINE):
            return await self._bound.first_under(generation) - sent

    def _summed_up(self, nodes: int, rate: int, waits: list[float], per_second: float) -> Reloads:
        for pod, decision in self._bound.decisions.items():
            self._audit.look_at(pod, decision)
        p50, p99 = percentiles(waits)
        return Reloads(
            nodes, rate, len(waits), p50, p99, max(waits, default=0.0), self._created, self._bound.count, per_second,
            len(self._bound.twice), self._audit.proved, tuple(self._audit.torn),
        )  # fmt: skip


def _refused(key: str, problem: str) -> None:
    raise RuntimeError(f"the sandbox refused pod {key}: {problem}")
