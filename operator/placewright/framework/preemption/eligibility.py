"""May this pod preempt others at all, and where might it help?"""

from __future__ import annotations

from typing import Final

import numpy as np

from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.interface import Diagnosis, Rows
from placewright.framework.preemption.evictions import may_preempt, priority_of
from placewright.framework.status import Code

NEVER: Final = "not eligible due to preemptionPolicy=Never."
WAITING_FOR_VICTIM: Final = "not eligible due to a terminating pod on the nominated node."
_DISRUPTION: Final = ("DisruptionTarget", "True", "PreemptionByScheduler")


def why_not_eligible(pod: PodInfo, cluster: Cluster, diagnosis: Diagnosis) -> str:
    """Say why a pod may not preempt now.

    A pod whose earlier victims are still leaving waits for them, unless its nominated node has become hopeless.

    Returns:
        kube-scheduler's words; "" where the pod may preempt.
    """
    if not may_preempt(cluster.pod_groups, pod):
        return NEVER
    row = cluster.row(pod.nominated_node) if pod.nominated_node else None
    # A nominated node that is gone, or can never hold the pod, is nothing to wait for.
    if row is None or _code_of(row, diagnosis) is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
        return ""
    return WAITING_FOR_VICTIM if victims_leave(cluster, pod, pod.nominated_node) else ""


def victims_leave(cluster: Cluster, pod: PodInfo, node: NodeName) -> bool:
    """Return whether pods that the pod may evict are leaving the node because of a preemption."""
    priority, pod_groups = priority_of(cluster.pod_groups, pod), cluster.pod_groups
    return any(
        min(other.priority, priority_of(pod_groups, other)) < priority and _leaves_for_preemption(cluster, other)
        for other in cluster.pods_on(node)
    )


def rows_where_it_may_help(cluster: Cluster, diagnosis: Diagnosis) -> Rows:
    """Find the rows where evicting pods may help.

    Returns:
        Rows that were rejected with UNSCHEDULABLE, ascending; shape (k,). Rows with any other status are left out.
    """
    explicit = [rejection.rows for rejection in diagnosis.rejections]
    helpful = [rejection.rows for rejection in diagnosis.rejections if rejection.status.code is Code.UNSCHEDULABLE]
    if diagnosis.absent is not None and diagnosis.absent.code is Code.UNSCHEDULABLE:
        helpful.append(np.setdiff1d(cluster.rows(), np.concatenate([np.zeros(0, np.intp), *explicit])))
    return np.sort(np.concatenate([np.zeros(0, np.intp), *helpful]))


def _code_of(row: int, diagnosis: Diagnosis) -> Code | None:
    for status, rows in diagnosis.rejections:
        if row in rows:
            return status.code
    return None if diagnosis.absent is None else diagnosis.absent.code


def _leaves_for_preemption(cluster: Cluster, pod: PodInfo) -> bool:
    if cluster.leaves(pod) and not pod.terminating:
        return True
    conditions = pod.pod.status.conditions or ()
    return pod.terminating and any((c.type, c.status, c.reason) == _DISRUPTION for c in conditions)
