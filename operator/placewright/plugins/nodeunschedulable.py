"""NodeUnschedulable: cordoned nodes take only pods that tolerate it. Implements Filter."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final

import numpy as np

from placewright.api.objects import Node, Taint
from placewright.api.pods import PodInfo
from placewright.api.tolerations import tolerated
from placewright.cluster.cluster import Cluster
from placewright.framework.events import Action, ClusterEventWithHint, EventResource, event_with_hint
from placewright.framework.filters import ConstantReasonFilter
from placewright.framework.interface import BoolColumn, CycleState, Rows
from placewright.framework.remedies import Remedy, RemedyKind, RemedyPlugin
from placewright.framework.status import unresolvable
from placewright.plugins.shared.hints import came_to_suit, own_change

#: The taint that a cordoned node counts as.
UNSCHEDULABLE_TAINT: Final = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


class NodeUnschedulable(ConstantReasonFilter, RemedyPlugin):
    """Rejects nodes with `spec.unschedulable`."""

    name = "NodeUnschedulable"
    rejection = unresolvable("node(s) were unschedulable")
    settles = frozenset({RemedyKind.UNCORDON})
    remedies_are_cheap = True

    def sign(self, pod: PodInfo) -> Hashable:
        """Sign the pod by whether it tolerates cordoned nodes."""
        return _tolerates_cordon(pod)

    def filter(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> BoolColumn:
        """Allow schedulable nodes; all nodes if the pod tolerates the cordon."""
        if _tolerates_cordon(pod):
            return np.ones(len(rows), np.bool_)
        return ~cluster.unschedulable[rows]

    def remedies(self, state: CycleState, pod: PodInfo, cluster: Cluster, row: int) -> list[Remedy]:
        """Propose to uncordon the node."""
        return [Remedy(self.name, RemedyKind.UNCORDON, "an end of its cordon (kubectl uncordon)")]

    def events(self) -> Sequence[ClusterEventWithHint]:
        """Declare nodes that are or become schedulable, and tolerations that the pod gains."""
        return (
            event_with_hint(
                EventResource.NODE,
                Action.ADD | Action.UPDATE_NODE_TAINT,
                came_to_suit(Node, _is_schedulable),
            ),
            own_change(Action.UPDATE_POD_TOLERATION, lambda _old, new: _tolerates_cordon(new)),
        )


def _tolerates_cordon(pod: PodInfo) -> bool:
    return tolerated(UNSCHEDULABLE_TAINT, pod.pod.spec.tolerations or ())


def _is_schedulable(_pod: PodInfo, node: Node) -> bool:
    return not node.spec.unschedulable
