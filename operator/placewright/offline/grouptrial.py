"""What a group of pods would lack on a cluster that nobody else uses: its members are placed one after the other, and stay there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Final

from placewright.api.podgroups import GroupRef
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.runtime.evaluation import Evaluator
from placewright.offline.world import offline_cycle
from placewright.scheduler.cycle import FitError, SchedulingCycle
from placewright.scheduler.podgroups.shortage import lacking

#: Of a group that is larger, so many are tried.
_MOST_MEMBERS: Final = 512


class Members:
    """Pods without a node, by group. Implements the framework's `GangMembers`."""

    def __init__(self) -> None:
        self._pods: dict[GroupRef, list[PodInfo]] = {}

    def add(self, pod: PodInfo) -> None:
        """A pod has no node."""
        if pod.pod_group is not None:
            self._pods.setdefault(pod.pod_group, []).append(pod)

    def members(self, ref: GroupRef) -> Collection[PodInfo]:
        """Those of one group."""
        return self._pods.get(ref, ())

    def ready_members(self, ref: GroupRef, beside: PodInfo) -> Mapping[str, int]:
        """How many of them may be tried, by scheduler name."""
        ready = {pod.uid: pod.scheduler_name for pod in (*self.members(ref), beside) if pod.may_be_tried}
        return Counter(ready.values())


def tried_lacks(evaluator: Evaluator, cluster: Cluster, ref: GroupRef, members: Collection[PodInfo]) -> str:
    """What the group lacks, in words; "" where enough members fit, or that is not decided for all at once, or within one domain.

    What the members take is not given back: the cluster is of no use for anything else afterwards.
    """
    pod_group = cluster.pod_groups.get(ref)
    if pod_group is None or pod_group.basic or cluster.pod_groups.placed(ref) or (pod_group.topology_key and pod_group.topology_required):
        return ""
    cycle, failures = offline_cycle(cluster), list[FitError]()
    ordered = sorted(members, key=lambda pod: (-pod.priority, pod.created))[:_MOST_MEMBERS]
    for pod in ordered:
        try:
            _take(cycle, evaluator, cluster, pod)
        except FitError as failure:
            failures.append(failure)
    placed = len(ordered) - len(failures)
    return "" if placed >= pod_group.min_member else lacking(pod_group.min_member, placed, pod_group.min_member - len(ordered), failures)


def _take(cycle: SchedulingCycle, evaluator: Evaluator, cluster: Cluster, pod: PodInfo) -> None:
    evaluation = cycle.evaluate(evaluator, pod)
    if evaluation.count == 0:
        raise cycle.refusal(evaluator, evaluation)
    placement = cycle.chosen(evaluator, evaluation)
    cluster.assume(pod, placement.node)
    status = evaluator.runtime.run_reserve(placement.state, pod, placement.node)
    if not status.ok:
        cluster.forget(pod, placement.node)
        raise FitError(status.message)
