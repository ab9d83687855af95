"""NodeName: a pod that names its node goes there or nowhere. Implements Filter."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.events import Action, ClusterEventWithHint, EventResource, event_with_hint
from placewright.framework.filters import ConstantReasonFilter
from placewright.framework.interface import BoolColumn, CycleState, Rows
from placewright.framework.status import unresolvable


class NodeName(ConstantReasonFilter):
    """Rejects every node but the one in `spec.nodeName`."""

    name = "NodeName"
    rejection = unresolvable("node(s) didn't match the requested node name")

    def sign(self, pod: PodInfo) -> Hashable:
        """Sign the pod by the requested name."""
        return pod.node_name

    def filter(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> BoolColumn:
        """Allow the requested row; all rows if none is requested."""
        if not pod.node_name:
            return np.ones(len(rows), np.bool_)
        row = cluster.row(pod.node_name)
        return np.zeros(len(rows), np.bool_) if row is None else rows == row

    def events(self) -> Sequence[ClusterEventWithHint]:
        """Declare new nodes, because only a new node can have the name."""
        return (event_with_hint(EventResource.NODE, Action.ADD),)
