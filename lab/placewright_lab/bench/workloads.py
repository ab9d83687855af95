"""The pods that the decision benchmarks place, and the pods that run in their clusters beforehand.

The pairwise workloads have the constraints of scheduler_perf's SchedulingPodAntiAffinity, SchedulingPodAffinity, TopologySpreading and
PreferredTopologySpreading. Their clusters are busier: two pods run on each node beforehand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from placewright.offline.kinds import Manifest
from placewright_lab.bench.madeup import GPU_PODS, PodShape, gpu_nodes, make_pods, mixed_nodes, plain_pods
from placewright_lab.readers.openb import pod_manifest

ZONE: Final = "topology.kubernetes.io/zone"
HOSTNAME: Final = "kubernetes.io/hostname"
#: Pods that run on a node before the first decision, in workloads that have any.
RUNNING_PER_NODE: Final = 2
_VARIANTS: Final = 22
_GREEN: Final = {"color": "green"}


def _no_pods(_nodes: int) -> list[Manifest]:
    return []


@dataclass(frozen=True, slots=True)
class Workload:
    """A kind of pods to place, and the cluster that they meet.

    Attributes:
        pods: function that makes that many pending pods.
        running: function that makes the pods that run on that many nodes beforehand.
        sizes, count: numbers of nodes, and number of pods, by default.
        wanted: decisions a second that we want at 5,000 nodes, or at the only one of `sizes`; None without a goal.
        nodes: function that makes that many nodes.
        preset: preset of the profile that decides.
    """

    pods: Callable[[int], list[Manifest]]
    running: Callable[[int], list[Manifest]] = _no_pods
    sizes: tuple[int, ...] = (1000, 5000, 15000)
    count: int = 10_000
    wanted: int | None = None
    nodes: Callable[[int], list[Manifest]] = mixed_nodes
    preset: str | None = None

    def cluster(self, nodes: int) -> list[Manifest]:
        """Return the nodes, and the pods on them."""
        return [*self.nodes(nodes), *self.running(nodes)]


def openb_mix(count: int) -> list[Manifest]:
    """Make pods in the proportions of a cluster that shares GPUs. Like in the openb trace, there are some 150 distinct requests."""
    shapes = [_varied(shape, step) for shape in GPU_PODS for step in range(_VARIANTS)]
    return make_pods(shapes, count, seed=0)


def _varied(shape: PodShape, step: int) -> PodShape:
    return shape._replace(cpu_milli=shape.cpu_milli // 4 + 250 * step, memory_mib=shape.memory_mib // 4 + 512 * step)


def spread_over(key: str, max_skew: int, when_unsatisfiable: str, labels: Mapping[str, str]) -> Manifest:
    """Return a topology spread constraint."""
    selector = {"matchLabels": dict(labels)}
    return {"maxSkew": max_skew, "topologyKey": key, "whenUnsatisfiable": when_unsatisfiable, "labelSelector": selector}


def affinity_to(kind: str, key: str, labels: Mapping[str, str]) -> Manifest:
    """Return an affinity with one required term. `kind` is podAffinity or podAntiAffinity."""
    term = {"labelSelector": {"matchLabels": dict(labels)}, "topologyKey": key}
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def _small(name: str, spec: Mapping[str, Any] | None) -> Manifest:
    """Return a pod of scheduler_perf's size. One with constraints is green, and others have no colour."""
    pod = pod_manifest(name, cpu_milli=100, memory_mib=500, labels=_GREEN if spec is not None else {})
    pod["spec"] |= spec or {}
    return pod


def _pairwise(alike: int, spec: Mapping[str, Any], wanted: int) -> Workload:
    """Return a workload of pods with constraints. One node of `alike` runs such a pod beforehand."""

    def pods(count: int) -> list[Manifest]:
        return [_small(f"green-{index:06d}", spec) for index in range(count)]

    def running(nodes: int) -> list[Manifest]:
        made = []
        for index in range(RUNNING_PER_NODE * nodes):
            made.append(_small(f"running-{index:06d}", spec if index < nodes and index % alike == 0 else None))
            made[-1]["spec"]["nodeName"] = f"node-{index % nodes:05d}"
        return made

    return Workload(pods, running, (5000,), 3000, wanted)


def _spread(when_unsatisfiable: str) -> Manifest:
    return {"topologySpreadConstraints": [spread_over(key, 5, when_unsatisfiable, _GREEN) for key in (ZONE, HOSTNAME)]}


WORKLOADS: Final[dict[str, Workload]] = {
    "plain": Workload(plain_pods),
    "openb-mix": Workload(openb_mix),
    "gpu-shares": Workload(openb_mix, sizes=(1523,), count=5000, wanted=1000, nodes=gpu_nodes, preset="gpu-fragmentation"),
    "hard-spread": _pairwise(1, _spread("DoNotSchedule"), 1500),
    "soft-spread": _pairwise(1, _spread("ScheduleAnyway"), 1500),
    "required-anti-affinity": _pairwise(5, {"affinity": affinity_to("podAntiAffinity", HOSTNAME, _GREEN)}, 800),
    "required-affinity": _pairwise(1, {"affinity": affinity_to("podAffinity", ZONE, _GREEN)}, 800),
}
