"""Finds the shortage of a group on an offline cluster, by placing its members one after the other."""

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

#: Most members that are tried of a larger group, to bound the time of the trial.
_MOST_MEMBERS: Final = 512


class Members:
    """The pods without a node, by group. Implements the framework's `GangMembers`."""

    def __init__(self) -> None:
        self._pods: dict[GroupRef, list[PodInfo]] = {}

    def add(self, pod: PodInfo) -> None:
        """Add a pod without a node."""
        if pod.pod_group is not None:
            self._pods.setdefault(pod.pod_group, []).append(pod)

    def remove(self, pod: PodInfo) -> None:
        """Remove a pod that got a node or is gone; harmless for a pod that was not added."""
        if pod.pod_group is None or pod.pod_group not in self._pods:
            return
        left = [each for each in self._pods[pod.pod_group] if each.uid != pod.uid]
        if left:
            self._pods[pod.pod_group] = left
        else:
            del self._pods[pod.pod_group]

    def members(self, ref: GroupRef) -> Collection[PodInfo]:
        """Return the pods of a group."""
        return self._pods.get(ref, ())

    def ready_members(self, ref: GroupRef, beside: PodInfo) -> Mapping[str, int]:
        """Count the members of a group that may be tried, by schedulerName.

        Args:
            ref: the group.
            beside: a pod that counts as a member, too.
        """
        ready = {pod.uid: pod.scheduler_name for pod in (*self.members(ref), beside) if pod.may_be_tried}
        return Counter(ready.values())


def tried_lacks(evaluator: Evaluator, cluster: Cluster, ref: GroupRef, members: Collection[PodInfo]) -> str:
    """Find the shortage of a group by placing its members.

    The members stay placed, so the cluster cannot be used for another question afterwards.

    Returns:
        The shortage in words. It is empty if enough members fit, are decided one by one, or must fit one domain.
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
    result = cycle.chosen(evaluator, evaluation)
    cluster.assume(pod, result.node)
    status = evaluator.runtime.run_reserve(result.state, pod, result.node)
    if not status.ok:
        cluster.forget(pod, result.node)
        raise FitError(status.message)
