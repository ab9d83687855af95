"""TaintToleration: taints keep pods off that do not tolerate them; soft taints cost score. Implements Filter, PreScore, Score."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Final

from placewright.api.objects import Node
from placewright.api.pods import PodInfo
from placewright.api.tolerations import first_untolerated, intolerable_preferences
from placewright.cluster.cluster import Cluster
from placewright.framework.assignedpods import is_itself
from placewright.framework.events import Action, ClusterEventWithHint, EventResource, QueueingHint, interest
from placewright.framework.interface import BoolColumn, CycleState, IntColumn, MaxNormalised, PreScorePlugin, Rows
from placewright.framework.status import SUCCESS, Status, unresolvable
from placewright.plugins.constantreason import ConstantReasonFilter

NAME: Final = "TaintToleration"
REASON: Final = "node(s) had untolerated taint(s)"


class TaintToleration(ConstantReasonFilter, PreScorePlugin, MaxNormalised):
    """Rejects nodes with an untolerated NoSchedule or NoExecute taint; prefers nodes with fewer untolerated PreferNoSchedule taints."""

    name = NAME
    rejection = unresolvable(REASON)
    reverse = True
    default_weight = 3

    def sign(self, pod: PodInfo) -> Hashable:
        """The tolerations, in order."""
        return tuple(pod.pod.spec.tolerations or ())

    def filter(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> BoolColumn:
        """Asked once per distinct taint set."""
        tolerations = pod.pod.spec.tolerations or ()
        return cluster.taints.where(rows, lambda taints: first_untolerated(taints, tolerations) is None)

    def pre_score(self, state: CycleState, pod: PodInfo, cluster: Cluster, feasible: Rows) -> Status:
        """Nothing to find out beforehand; the point is there because profiles may name it."""
        return SUCCESS

    def score(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> IntColumn:
        """Number of soft taints not tolerated; fewer is better."""
        tolerations = pod.pod.spec.tolerations or ()
        return cluster.taints.gather(rows, lambda taints: intolerable_preferences(taints, tolerations))

    def events(self) -> Sequence[ClusterEventWithHint]:
        """A node whose taints the pod now tolerates; tolerations the pod gains."""
        return (
            interest(EventResource.NODE, Action.ADD | Action.UPDATE_NODE_TAINT, _taints_became_tolerable),
            interest(EventResource.POD, Action.UPDATE_POD_TOLERATION, _own_tolerations_changed, is_itself),
        )


def _taints_became_tolerable(pod: PodInfo, old: Node | None, new: Any) -> QueueingHint:
    tolerations = pod.pod.spec.tolerations or ()

    def tolerable(node: Node) -> bool:
        return first_untolerated(node.spec.taints or (), tolerations) is None

    helps = isinstance(new, Node) and tolerable(new) and (old is None or not tolerable(old))
    return QueueingHint.QUEUE if helps else QueueingHint.SKIP


def _own_tolerations_changed(pod: PodInfo, _old: Any, new: Any) -> QueueingHint:
    return QueueingHint.QUEUE if isinstance(new, PodInfo) and new.uid == pod.uid else QueueingHint.SKIP
