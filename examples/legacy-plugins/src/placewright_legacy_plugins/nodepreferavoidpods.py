"""NodePreferAvoidPods: nodes that would rather not have the pods of certain controllers. Implements Score.

kube-scheduler had it in its default profile, with weight 10,000, up to 1.22. A node names ReplicationControllers and ReplicaSets in the
annotation `scheduler.alpha.kubernetes.io/preferAvoidPods`.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final

import numpy as np

from placewright.api.avoidedpods import Controller, avoided_by
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.events import ClusterEventWithHint
from placewright.framework.interface import MAX_NODE_SCORE, CycleState, Handle, IntColumn, NoArgs, Rows, ScorePlugin

NAME: Final = "NodePreferAvoidPods"
_AVOIDABLE: Final = frozenset({"ReplicationController", "ReplicaSet"})
_NOWHERE: Final[frozenset[int]] = frozenset()


class NodePreferAvoidPods(ScorePlugin[NoArgs]):
    """Prefers nodes whose annotation does not name the pod's controller."""

    name = NAME

    def __init__(self, args: NoArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._avoided = _Avoided()

    def sign(self, pod: PodInfo) -> Hashable:
        """Return the pod's controller if some node avoids it. All other pods score the same on all nodes."""
        controller = _controller(pod)
        return controller if controller and self._avoided.rows(controller, self.handle.cluster) else ()

    def score(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> IntColumn:
        """0 where the pod's controller is to be avoided, else 100."""
        scores = np.full(len(rows), MAX_NODE_SCORE, np.int64)
        controller = _controller(pod)
        where = self._avoided.rows(controller, cluster) if controller else _NOWHERE
        if where:
            scores[np.isin(rows, list(where))] = 0
        return scores

    def events(self) -> Sequence[ClusterEventWithHint]:
        """None: it rejects no pod."""
        return ()


class _Avoided:
    """Which rows avoid which controllers; kept up to date node by node."""

    def __init__(self) -> None:
        self._cluster: Cluster | None = None
        self._position = 0
        self._at: dict[int, frozenset[Controller]] = {}
        self._rows: dict[Controller, set[int]] = {}

    def rows(self, controller: Controller, cluster: Cluster) -> frozenset[int] | set[int]:
        """Rows of the nodes that avoid it; not to be written."""
        if cluster.node_journal.position != self._position or cluster is not self._cluster:
            self._catch_up(cluster)
        return self._rows.get(controller, _NOWHERE)

    def _catch_up(self, cluster: Cluster) -> None:
        changed = cluster.node_journal.since(self._position) if cluster is self._cluster else None
        if changed is None:
            self._at.clear()
            self._rows.clear()
            rows = cluster.rows()
        else:
            rows = np.unique(changed)
        present = cluster.present
        for row in rows.tolist():
            self._set(row, avoided_by(cluster.node(row)) if present[row] else frozenset())
        self._cluster, self._position = cluster, cluster.node_journal.position

    def _set(self, row: int, avoided: frozenset[Controller]) -> None:
        for controller in self._at.pop(row, ()):
            self._rows[controller].discard(row)
            if not self._rows[controller]:
                del self._rows[controller]
        for controller in avoided:
            self._rows.setdefault(controller, set()).add(row)
        if avoided:
            self._at[row] = avoided


def _controller(pod: PodInfo) -> Controller | None:
    owner = next((each for each in pod.pod.metadata.owner_references or () if each.controller), None)
    return Controller(owner.kind, owner.uid) if owner and owner.kind in _AVOIDABLE else None
