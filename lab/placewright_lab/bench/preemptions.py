"""Time of an attempt to preempt, for a pod that fits nowhere, on a full cluster of less important pods.

One attempt is the whole cycle: PreFilter, Filter, the reason why each node was rejected, and then the search for victims. No pod is
evicted, so every attempt meets the same cluster. Like in `benchmark`, the processor's time counts.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from placewright.api.pods import PodInfo
from placewright.api.profile import default_profile
from placewright.framework.runtime.evaluation import Evaluator
from placewright.offline.kinds import Manifest
from placewright.offline.world import OfflineCluster, offline_cycle, offline_evaluator, world_from
from placewright.plugins.catalog import in_tree
from placewright.profiles.resolve import resolve
from placewright.scheduler.cycle import FitError, SchedulingCycle
from placewright_lab.bench.decisions import nothing_old_collected
from placewright_lab.bench.workloads import HOSTNAME, ZONE, affinity_to, spread_over
from placewright_lab.readers.openb import node_manifest, pod_manifest
from placewright_lab.readers.tracefile import NAMESPACE

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
