"""Clusters in which many Deployments run, and pods that arrive from them at random; in the other workloads pods look alike.

Each Deployment has its own name, label and requests, and belongs to one of fifty teams, which have a namespace each. Its constraints, where
it has any, are about its own pods, as Helm charts ship them.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from placewright.offline.kinds import Manifest
from placewright_lab.bench.decisions import DecisionBenchmark
from placewright_lab.bench.madeup import mixed_nodes
from placewright_lab.bench.workloads import HOSTNAME, ZONE, affinity_to, spread_over
from placewright_lab.readers.openb import pod_manifest

#: Number of Deployments that are measured by default.
DEPLOYMENTS: Final = (20, 3000)
#: Pods a node that run before the first decision.
RUNNING_PER_NODE: Final = 6
#: More pods than are measured, or run on one layer of nodes.
MOST_PODS: Final = 1_000_000
_TEAMS: Final = 50
#: Steps of CPU and memory; no factor in common, and a few single MiB, so that the first 83,224 Deployments have different requests.
_CPU_STEPS: Final = 101
_MEMORY_STEPS: Final = 103
_SINGLE_MIB: Final = 8


@dataclass(frozen=True, slots=True)
class DeploymentsWorkload:
    """Pods of so many Deployments, drawn at random.

    Attributes:
        deployments: how many there are; None: each pod has one of its own, so that no two are alike.
        kind: of constraints, a key of `KINDS`.
        seed: of the order in which pods come, and of the nodes on which some run beforehand.
        sizes, count, wanted, preset: as in `Workload`.
    """

    deployments: int | None
    kind: str
    seed: int = 0
    sizes: tuple[int, ...] = (5000,)
    count: int = 3000
    wanted: int | None = None
    preset: str | None = None

    def cluster(self, nodes: int) -> list[Manifest]:
        """Return the nodes, and the pods on them."""
        return [*mixed_nodes(nodes), *self._running(nodes)]

    def pods(self, count: int) -> list[Manifest]:
        """Pending pods."""
        return list(self._drawn(0, count, "arriving"))

    def _running(self, nodes: int) -> Iterator[Manifest]:
        """On random nodes, so that a Deployment's pods stand nearly as its constraints want them."""
        places, chance = list(range(nodes)), random.Random(self.seed)
        for layer in range(1, RUNNING_PER_NODE + 1):
            chance.shuffle(places)
            for pod, place in zip(self._drawn(layer * MOST_PODS, nodes, "running"), places, strict=True):
                pod["spec"]["nodeName"] = f"node-{place:05d}"
                yield pod

    def _drawn(self, first: int, count: int, what: str) -> Iterator[Manifest]:
        """Pods of Deployments numbered from `first`, where each has one of its own."""
        chance = random.Random(f"{what} {first} {self.seed}")
        for number in range(first, first + count):
            deployment = number if self.deployments is None else chance.randrange(self.deployments)
            yield _pod(deployment, f"{what}-{number:07d}", self.kind)


def _pod(deployment: int, name: str, kind: str) -> Manifest:
    app, team = f"app-{deployment:05d}", f"team-{deployment % _TEAMS:02d}"
    memory_mib = 64 + _SINGLE_MIB * (deployment % _MEMORY_STEPS) + deployment // (_CPU_STEPS * _MEMORY_STEPS) % _SINGLE_MIB
    pod = pod_manifest(name, cpu_milli=50 + 5 * (deployment % _CPU_STEPS), memory_mib=memory_mib, labels={"app": app, "team": team})
    pod["metadata"]["namespace"] = team
    pod["spec"] |= KINDS[kind](app)
    return pod


def _nothing(_app: str) -> Mapping[str, Any]:
    return {}


def _soft(app: str) -> Mapping[str, Any]:
    """Soft spread over zones, and a preference for hosts where no other of the Deployment's pods is."""
    own = {"app": app}
    term = {"labelSelector": {"matchLabels": own}, "topologyKey": HOSTNAME}
    preferred = [{"weight": 100, "podAffinityTerm": term}]
    return {
        "topologySpreadConstraints": [spread_over(ZONE, 1, "ScheduleAnyway", own)],
        "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}},
    }


def _hard(app: str) -> Mapping[str, Any]:
    return {"topologySpreadConstraints": [spread_over(key, 5, "DoNotSchedule", {"app": app}) for key in (ZONE, HOSTNAME)]}


def _apart(app: str) -> Mapping[str, Any]:
    return {"affinity": affinity_to("podAntiAffinity", HOSTNAME, {"app": app})}


#: By kind, the constraints of a Deployment's pods, given its label `app`.
KINDS: Final = {"plain": _nothing, "soft": _soft, "hard": _hard, "anti": _apart}


#: Workloads of as many Deployments as one likes, by name.
DEPLOYMENT_WORKLOADS: Final = {f"deployments-{kind}": kind for kind in KINDS}
ALL_DIFFERENT: Final = "all-different"


def deployment_benchmarks(name: str, deployments: Iterable[int], seed: int, percentage: int) -> list[DecisionBenchmark]:
    """One of `DEPLOYMENT_WORKLOADS` for each number of Deployments, or `ALL_DIFFERENT`."""
    if name == ALL_DIFFERENT:
        return [DecisionBenchmark(name, DeploymentsWorkload(None, "plain", seed, wanted=800), None, percentage)]
    kind = DEPLOYMENT_WORKLOADS[name]
    return [DecisionBenchmark(name, DeploymentsWorkload(n, kind, seed, wanted=1500), n, percentage) for n in deployments]
