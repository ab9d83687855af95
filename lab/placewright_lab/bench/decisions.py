"""The speed of decisions without an API server: the real queue, columns and cycle, and a binding that always succeeds.

One decision is: pop, PreFilter, Filter, PreScore, Score, choose, assume, Reserve, Permit. Every node is evaluated. Nothing here waits, so
that processor time is measured. On an idle machine it equals the time on the clock.

Time of an attempt to preempt, for a pod that fits nowhere, on a full cluster of less important pods.

One attempt is the whole cycle: PreFilter, Filter, the reason why each node was rejected, and then the search for victims. No pod is
evicted, so every attempt meets the same cluster. Like in `benchmark`, the processor's time counts.

The pods that the decision benchmarks place, and the pods that run in their clusters beforehand.

The pairwise workloads have the constraints of scheduler_perf's SchedulingPodAntiAffinity, SchedulingPodAffinity, TopologySpreading and
PreferredTopologySpreading. Their clusters are busier: two pods run on each node beforehand.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from placewright.api.objects import Condition, NodeName
from placewright.api.pods import PodInfo
from placewright.api.profile import default_profile
from placewright.framework.runtime.evaluation import Evaluator
from placewright.framework.runtime.resolvedprofile import ResolvedProfile
from placewright.offline.kinds import Manifest
from placewright.offline.world import OfflineCluster, offline_cycle, offline_evaluator, world_from
from placewright.plugins.catalog import in_tree
from placewright.profiles.resolve import resolve
from placewright.queue.queue import SchedulingQueue
from placewright.scheduler.cycle import FitError, SchedulingCycle
from placewright.scheduler.policy import ProfilePolicy
from placewright.scheduler.ports import Clock, EventType
from placewright.scheduler.scheduler import Ports, Scheduler
from placewright_lab.bench.madeup import GPU_PODS, PodShape, gpu_nodes, make_pods, mixed_nodes, plain_pods
from placewright_lab.readers.openb import NAMESPACE, node_manifest, pod_manifest

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


RUNS: Final = 3
WARM_UP: Final = 200


@dataclass(frozen=True, slots=True)
class Measurement:
    """A line of the table.

    Attributes:
        deployments: number of Deployments that the pods come from; None if the workload has none.
        running: pods on nodes before the first decision.
        placed, pending: measured pods by their outcome.
        wanted: decisions a second that we want; None without a goal.
        seconds: processor seconds of each run.
    """

    workload: str
    deployments: int | None
    nodes: int
    running: int
    pods: int
    placed: int
    pending: int
    wanted: int | None
    seconds: tuple[float, ...]

    @property
    def per_second(self) -> float:
        """Decisions a second in the median run."""
        return self.pods / statistics.median(self.seconds)

    @property
    def name(self) -> str:
        """Name of the workload, with the number of Deployments."""
        return self.workload if self.deployments is None else f"{self.workload} of {self.deployments}"


class Nothing:
    """The ports of a scheduler without an API server. They drop everything."""

    def record(self, pod: PodInfo, kind: EventType, reason: str, action: str, note: str) -> None:
        """Drop the event: a benchmark has no reader of events."""

    def pod_unscheduled(self, pod: PodInfo, reason: str, message: str, nominated_node: NodeName | None) -> None:
        """Drop the condition: a benchmark has no reader of conditions."""

    def pod_nominated(self, pod: PodInfo, node: NodeName) -> None:
        """Drop the nomination."""

    def pod_condition(self, pod: PodInfo, condition: Condition) -> None:
        """Drop the condition."""

    async def evict(self, victim: PodInfo, preemptor: PodInfo, node: NodeName) -> None:
        """Evict nothing, because the benchmark evicts no pod."""


@dataclass(frozen=True, slots=True)
class DecisionBenchmark:
    """A workload, and the setting of its profile.

    Attributes:
        deployments: number of Deployments that the pods come from; None if the workload has none.
        percentage: percentage of nodes to score; 0 for all.
    """

    name: str
    workload: Workload
    deployments: int | None = None
    percentage: int = 0

    def measure(self, nodes: int, pods: int) -> Measurement:
        """Decide so many pods on so many nodes, `RUNS` times on a fresh cluster each."""
        workload = self.workload
        before = workload.cluster(nodes)
        pending = workload.pods(pods + WARM_UP)
        profile = resolve(default_profile(preset=workload.preset, percentage_of_nodes_to_score=self.percentage), in_tree())
        outcomes = [run_once(before, pending, profile) for _ in range(RUNS)]
        placed, seconds = outcomes[-1][1], tuple(seconds for seconds, _ in outcomes)
        running = len(before) - nodes
        return Measurement(self.name, self.deployments, nodes, running, pods, placed, pods - placed, workload.wanted, seconds)


def run_once(before: Sequence[Manifest], pods: Sequence[Manifest], profile: ResolvedProfile) -> tuple[float, int]:
    """Decide all pods. Return the processor seconds and the number of placed pods after the warm-up."""
    world = world_from([*before, *pods], "benchmark")
    scheduler = offline_scheduler(world, profile)
    for pod in world.pending.values():
        scheduler.queue.add(pod)
    return timed(scheduler, len(pods) - WARM_UP, WARM_UP)


def offline_scheduler(
    world: OfflineCluster, profile: ResolvedProfile | None = None, clock: Clock = time.monotonic, **queue_options: Any
) -> Scheduler:
    """Build a scheduler with an empty queue.

    Args:
        world: the cluster.
        profile: None for the default one.
        clock: seconds, of the queue.
        queue_options: further arguments of `SchedulingQueue`.
    """
    queue = SchedulingQueue(lambda _name: policy, clock, **queue_options)
    resolved = profile or resolve(default_profile(), in_tree())
    evaluator = offline_evaluator(resolved, in_tree(), world.cluster, queue.pod_groups)
    policy = ProfilePolicy(evaluator.runtime)
    ports = Ports(Nothing(), Nothing(), Nothing(), start=bound_at_once)
    return Scheduler(world.cluster, queue, lambda _name: evaluator, offline_cycle(world.cluster), ports, time.monotonic)


def timed(scheduler: Scheduler, count: int, warm_up: int) -> tuple[float, int]:
    """Make so many decisions about pods or groups, after a warm-up. Return the processor seconds, and the number of successes.

    Raises `RuntimeError` if the queue runs empty before, or if a decision fails with an error.
    """
    _decide(scheduler, warm_up)
    with nothing_old_collected:
        start = time.process_time()
        placed = _decide(scheduler, count)
        seconds = time.process_time() - start
    if scheduler.counts.errors:
        raise RuntimeError(f"{scheduler.counts.errors} decisions broke; their errors are in the log")
    return seconds, placed


def bound_at_once(binding: Coroutine[Any, Any, Any]) -> None:
    """Close the binding without running it: for these benchmarks the pod is bound."""
    binding.close()


class _Frozen:
    """A context that keeps old objects out of garbage collection until the outermost `with` ends."""

    def __init__(self) -> None:
        self._depth = 0

    def __enter__(self) -> None:
        gc.collect()
        gc.freeze()
        self._depth += 1

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if not self._depth:
            gc.unfreeze()


#: A context that collects garbage once, and then leaves all remaining objects alone. So a cluster's size costs no time. A program with
#: a large heap opens it once around all measurements, and so pays for its heap once.
nothing_old_collected: Final = _Frozen()


def _decide(scheduler: Scheduler, count: int) -> int:
    placed = 0
    for _ in range(count):
        queued = scheduler.queue.pop()
        if queued is None:
            raise RuntimeError("the queue ran empty before the benchmark was over")
        before = scheduler.counts.scheduled
        scheduler.schedule_one(queued)
        if scheduler.counts.scheduled > before:
            for flight in tuple(scheduler.queue.in_flight):
                scheduler.queue.done(flight.queued.uid)
            placed += 1
    return placed


ATTEMPTS: Final = 20
WANTED_MS: Final = 50
#: Number of running pods, and of volumes, that fill a node.
PER_NODE: Final = 4
_WARM_UP: Final = 3
_LEVELS: Final = 5
_WEB: Final = {"app": "web"}
_ZONES: Final = ("zone-a", "zone-b", "zone-c")
_DRIVER: Final = "disks.example"


@dataclass(frozen=True, slots=True)
class Variety:
    """A kind of preemptors, and of clusters that they meet.

    Attributes:
        spec: constraints of the preemptors.
        web_spec: constraints of running web pods, which have the same labels as the preemptors.
        web_per_node: number of web pods on a node; the other pods are batch pods.
        claims: True if every pod has a volume.
    """

    spec: Mapping[str, Any] = field(default_factory=dict)
    web_spec: Mapping[str, Any] = field(default_factory=dict)
    web_per_node: int = 2
    claims: bool = False


_SPREAD: Final = {"topologySpreadConstraints": [spread_over(key, 1, "DoNotSchedule", _WEB) for key in (ZONE, HOSTNAME)]}
_ANTI_AFFINITY: Final = {"affinity": affinity_to("podAntiAffinity", HOSTNAME, _WEB)}

VARIETIES: Final[dict[str, Variety]] = {
    "preemption": Variety(),
    "preemption-hard-spread": Variety(_SPREAD, _SPREAD),
    "preemption-anti-affinity": Variety(_ANTI_AFFINITY, _ANTI_AFFINITY, 1),
    "preemption-affinity": Variety({"affinity": affinity_to("podAffinity", ZONE, _WEB)}),
    "preemption-claims": Variety(claims=True),
}


@dataclass(frozen=True, slots=True)
class Attempts:
    """One line of the table.

    Attributes:
        running: number of pods on nodes.
        victims: number of victims over all attempts.
        milliseconds: duration of each attempt.
    """

    workload: str
    nodes: int
    running: int
    victims: int
    milliseconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """Milliseconds of the median attempt."""
        return statistics.median(self.milliseconds)

    @property
    def victims_each(self) -> float:
        """Victims of an attempt, on average."""
        return self.victims / len(self.milliseconds)

    @property
    def slowest(self) -> float:
        """Milliseconds of the slowest attempt."""
        return max(self.milliseconds)


def measure_attempts(name: str, nodes: int) -> Attempts:
    """Try `ATTEMPTS` pods of a variety. Raises `KeyError` for an unknown one."""
    variety = VARIETIES[name]
    world = _world(variety, nodes)
    evaluator = offline_evaluator(resolve(default_profile(), in_tree()), in_tree(), world.cluster)
    cycle = offline_cycle(world.cluster)
    first, measured = list(world.pending.values())[:_WARM_UP], list(world.pending.values())[_WARM_UP:]
    for pod in first:
        _attempt(cycle, evaluator, pod)
    with nothing_old_collected:
        outcomes = [_timed_attempt(cycle, evaluator, pod) for pod in measured]
    return Attempts(name, nodes, PER_NODE * nodes, sum(found for _, found in outcomes), tuple(took for took, _ in outcomes))


def _timed_attempt(cycle: SchedulingCycle, evaluator: Evaluator, pod: PodInfo) -> tuple[float, int]:
    """Return the milliseconds of an attempt, and the number of its victims."""
    start = time.process_time()
    victims = _attempt(cycle, evaluator, pod)
    return 1000 * (time.process_time() - start), len(victims)


def _attempt(cycle: SchedulingCycle, evaluator: Evaluator, pod: PodInfo) -> tuple[PodInfo, ...]:
    """Return the victims of an attempt. A cluster that is too small for the constraints has none."""
    try:
        cycle.place(evaluator, pod)
    except FitError as found:
        return found.victims
    raise RuntimeError(f"{pod.key} needed no preemption")


def _world(variety: Variety, nodes: int) -> OfflineCluster:
    manifests = [_node(index) for index in range(nodes)]
    manifests += [_running(variety, index, nodes) for index in range(PER_NODE * nodes)]
    manifests += [_preemptor(variety, index) for index in range(ATTEMPTS + _WARM_UP)]
    if variety.claims:
        manifests += [_csi_node(index) for index in range(nodes)]
        manifests += [each for pod in manifests if pod["kind"] == "Pod" for each in _claim_and_volume(pod["metadata"]["name"])]
    return world_from(manifests, "benchmark")


def _node(index: int) -> Manifest:
    node = node_manifest(f"node-{index:05d}", cpu_milli=4000, memory_mib=16 * 1024)
    node["metadata"]["labels"][ZONE] = _ZONES[index % len(_ZONES)]
    return node


def _running(variety: Variety, index: int, nodes: int) -> Manifest:
    is_web = index // nodes < variety.web_per_node
    pod = pod_manifest(f"running-{index:06d}", cpu_milli=900, memory_mib=1024, labels=_WEB if is_web else {"app": "batch"})
    pod["spec"] |= {"nodeName": f"node-{index % nodes:05d}", "priority": index % _LEVELS, **(variety.web_spec if is_web else {})}
    pod["status"] = {"startTime": f"2026-01-01T00:{index % 60:02d}:00Z"}
    return _with_claim(pod) if variety.claims else pod


def _preemptor(variety: Variety, index: int) -> Manifest:
    pod = pod_manifest(f"urgent-{index:03d}", cpu_milli=1000, memory_mib=1024, labels=_WEB)
    pod["spec"] |= {"priority": 1000, **variety.spec}
    return _with_claim(pod) if variety.claims else pod


def _with_claim(pod: Manifest) -> Manifest:
    pod["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": pod["metadata"]["name"]}}]
    return pod


def _csi_node(index: int) -> Manifest:
    name = f"node-{index:05d}"
    driver = {"name": _DRIVER, "nodeID": name, "allocatable": {"count": PER_NODE}}
    return {"kind": "CSINode", "metadata": {"name": name}, "spec": {"drivers": [driver]}}


def _claim_and_volume(name: str) -> tuple[Manifest, Manifest]:
    """Return a claim with its volume. The volume's driver takes `PER_NODE` volumes on a node."""
    meta = {"name": name, "namespace": NAMESPACE, "annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
    claim = {"volumeName": f"of-{name}", "accessModes": ["ReadWriteOnce"], "storageClassName": "disks"}
    volume = {
        "csi": {"driver": _DRIVER, "volumeHandle": name},
        "claimRef": {"namespace": NAMESPACE, "name": name},
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "10Gi"},
        "storageClassName": "disks",
    }
    return (
        {"kind": "PersistentVolumeClaim", "metadata": meta, "spec": claim, "status": {"phase": "Bound"}},
        {"kind": "PersistentVolume", "metadata": {"name": f"of-{name}"}, "spec": volume, "status": {"phase": "Bound"}},
    )
