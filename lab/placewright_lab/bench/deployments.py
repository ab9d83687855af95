"""Clusters in which many Deployments run, and pods that arrive from them at random.

In the other workloads pods look alike. Here each Deployment has its own name, label and requests. Each belongs to one of fifty teams, which
have a namespace each. Constraints of a Deployment are about its own pods, like in Helm charts.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from typing import Any, Final

from placewright.offline.kinds import Manifest
from placewright_lab.bench.decisions import HOSTNAME, ZONE, DecisionBenchmark, Workload, affinity_to, spread_over
from placewright_lab.readers.openb import pod_manifest

#: Number of Deployments that are measured by default.
DEPLOYMENTS: Final = (20, 3000)
#: Pods that run on a node before the first decision.
RUNNING_PER_NODE: Final = 6
#: A number above that of measured pods, and of pods on one layer of nodes.
MOST_PODS: Final = 1_000_000
_TEAMS: Final = 50
#: Steps of CPU and memory; no factor in common, and a few single MiB, so that the first 83,224 Deployments have different requests.
_CPU_STEPS: Final = 101
_MEMORY_STEPS: Final = 103
_SINGLE_MIB: Final = 8


def deployments_workload(deployments: int | None, kind: str, seed: int = 0, wanted: int | None = None) -> Workload:
    """Return a workload with pods of so many Deployments, drawn at random. For None, each pod has a Deployment of its own.

    `kind` is a key of `KINDS`. `seed` decides the order in which pods come, and the nodes on which pods run beforehand.
    """

    def drawn(first: int, count: int, what: str) -> list[Manifest]:
        chance = random.Random(f"{what} {first} {seed}")
        numbers = range(first, first + count)
        owners = numbers if deployments is None else [chance.randrange(deployments) for _ in numbers]
        return [_pod(owner, f"{what}-{number:07d}", kind) for owner, number in zip(owners, numbers, strict=True)]

    def running(nodes: int) -> list[Manifest]:
        """Make pods on random nodes, so that a Deployment's pods stand nearly as its constraints ask."""
        places, chance, made = list(range(nodes)), random.Random(seed), []
        for layer in range(1, RUNNING_PER_NODE + 1):
            chance.shuffle(places)
            for pod, place in zip(drawn(layer * MOST_PODS, nodes, "running"), places, strict=True):
                pod["spec"]["nodeName"] = f"node-{place:05d}"
                made.append(pod)
        return made

    return Workload(lambda count: drawn(0, count, "arriving"), running, (5000,), 3000, wanted)


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
    """Return a soft spread over zones, and a preference for hosts without another pod of the Deployment."""
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


#: Functions by kind from a Deployment's label `app` to the constraints of its pods.
KINDS: Final = {"plain": _nothing, "soft": _soft, "hard": _hard, "anti": _apart}


#: Kinds of constraints by the name of the workload, which has any number of Deployments.
DEPLOYMENT_WORKLOADS: Final = {f"deployments-{kind}": kind for kind in KINDS}
ALL_DIFFERENT: Final = "all-different"


def deployment_benchmarks(name: str, deployments: Iterable[int], seed: int, percentage: int) -> list[DecisionBenchmark]:
    """Return a benchmark of `DEPLOYMENT_WORKLOADS` for each number of Deployments, or the benchmark `ALL_DIFFERENT`."""
    if name == ALL_DIFFERENT:
        return [DecisionBenchmark(name, deployments_workload(None, "plain", seed, 800), None, percentage)]
    kind = DEPLOYMENT_WORKLOADS[name]
    return [DecisionBenchmark(name, deployments_workload(n, kind, seed, 1500), n, percentage) for n in deployments]
