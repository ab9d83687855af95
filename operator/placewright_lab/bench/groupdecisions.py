"""How fast groups of pods are decided without an API server: the real queue, columns and cycle, and bindings that always succeed.

One decision is: pop, take the other members along, and for each of them PreFilter, Filter, PreScore, Score, choose, assume, Reserve; then
Permit for all. The members of a group are alike, as a job's are. As in `benchmark`, the processor's time is measured.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from placewright.api.podgroups import GROUP_LABEL
from placewright.api.profile import default_profile
from placewright.framework.runtime.handle import NoBinder, NoVolumeWriter, ProfileHandle
from placewright.offline.world import world_from
from placewright.plugins.catalog import in_tree
from placewright.profiles.resolve import resolve
from placewright.queue.queue import SchedulingQueue
from placewright.scheduler.cycle import SchedulingCycle
from placewright.scheduler.policy import ProfilePolicy
from placewright.scheduler.scheduler import Ports, Scheduler
from placewright_lab.bench.decisions import RUNS, Nothing, bound_at_once, timed
from placewright_lab.bench.madeup import gpu_nodes
from placewright_lab.bench.workloads import openb_mix
from placewright_lab.readers.kinds import Manifest
from placewright_lab.readers.openb import NAMESPACE

NODES: Final = 1523
GROUPS: Final = 300
MEMBERS: Final = 8
WANTED: Final = 200
_WARM_UP: Final = 20


@dataclass(frozen=True, slots=True)
class Groups:
    """One line of the table.

    Attributes:
        members: of each group; all of them are needed.
        placed: groups that found nodes.
        seconds: of processor time, of each run.
    """

    nodes: int
    groups: int
    members: int
    placed: int
    seconds: tuple[float, ...]

    @property
    def per_second(self) -> float:
        """Groups decided a second, by the median run."""
        return self.groups / statistics.median(self.seconds)


def measure_groups(nodes: int = NODES, groups: int = GROUPS, members: int = MEMBERS) -> Groups:
    """Decide groups of pods in the openb proportions on nodes like openb's, `RUNS` times on a fresh cluster each."""
    manifests = [*gpu_nodes(nodes), *_groups(groups + _WARM_UP, members)]
    outcomes = [_run(manifests, groups) for _ in range(RUNS)]
    return Groups(nodes, groups, members, outcomes[-1][1], tuple(seconds for seconds, _ in outcomes))


def _groups(groups: int, members: int) -> list[Manifest]:
    """PodGroups and their pods; the pods of each are copies of one of the mix."""
    made: list[Manifest] = []
    for index, shape in enumerate(openb_mix(groups)):
        name = f"job-{index:05d}"
        meta = {"name": name, "namespace": NAMESPACE, "uid": name}
        made.append({"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": meta, "spec": {"minMember": members}})
        labels = {**shape["metadata"]["labels"], GROUP_LABEL: name}
        made += [
            {**shape, "metadata": {"name": f"{name}-{member}", "namespace": NAMESPACE, "uid": f"{name}-{member}", "labels": labels}}
            for member in range(members)
        ]
    return made


def _run(manifests: Sequence[Manifest], groups: int) -> tuple[float, int]:
    """(seconds, groups placed) of everything after the warm-up."""
    world = world_from(manifests, "benchmark")
    queue = SchedulingQueue(lambda _name: policy, time.monotonic)
    handle = ProfileHandle(world.cluster, NoBinder(), queue.nominator, (), NoVolumeWriter(), members=queue.pod_groups)
    evaluator = handle.evaluator(resolve(default_profile(), in_tree()), in_tree())
    policy = ProfilePolicy(evaluator.runtime)
    cycle = SchedulingCycle(world.cluster, queue.nominator, random.Random(0))
    ports = Ports(Nothing(), Nothing(), Nothing(), start=bound_at_once)
    scheduler = Scheduler(world.cluster, queue, lambda _name: evaluator, cycle, ports, time.monotonic)
    for pod in world.pending.values():
        queue.add(pod)
    return timed(scheduler, groups, _WARM_UP)
