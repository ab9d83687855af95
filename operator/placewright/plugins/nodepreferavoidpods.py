"""NodePreferAvoidPods: nodes that would rather not have the pods of certain controllers. Implements Score.

kube-scheduler had it in its default profile, with weight 10,000, up to 1.22. A node names ReplicationControllers and ReplicaSets in the
annotation `scheduler.alpha.kubernetes.io/preferAvoidPods`.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from datetime import datetime
from typing import Annotated, Final, NamedTuple

import msgspec
import numpy as np

from placewright.api.decode import DECODE_ERRORS
from placewright.api.objects import Node, OwnerReference
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.cluster.journal import distinct
from placewright.framework.events import ClusterEventWithHint
from placewright.framework.interface import MAX_NODE_SCORE, CycleState, Handle, IntColumn, NoArgs, Rows, ScorePlugin
from placewright.plugins.podtopologyspread.defaultselectors import owner_of

NAME: Final = "NodePreferAvoidPods"
ANNOTATION: Final = "scheduler.alpha.kubernetes.io/preferAvoidPods"
_AVOIDABLE: Final = frozenset({"ReplicationController", "ReplicaSet"})
_NOWHERE: Final[frozenset[int]] = frozenset()


class Controller(NamedTuple):
    """The controllers whose pods are to be avoided."""

    kind: str
    uid: str


class _PodSignature(msgspec.Struct, frozen=True, rename="camel"):
    pod_controller: OwnerReference | None = None


class _AvoidedPod(msgspec.Struct, frozen=True, rename="camel"):
    pod_signature: _PodSignature | None = None
    eviction_time: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    reason: str | None = None
    message: str | None = None


class _AvoidedPods(msgspec.Struct, frozen=True, rename="camel"):
    """The annotation's value, all of it: as in kube-scheduler, one wrong field and none of it counts."""

    prefer_avoid_pods: tuple[_AvoidedPod, ...] | None = None


_DECODER: Final = msgspec.json.Decoder(_AvoidedPods)


class NodePreferAvoidPods(ScorePlugin[NoArgs]):
    """Prefers nodes whose annotation does not name the pod's controller."""

    name = NAME

    def __init__(self, args: NoArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._avoided = _Avoided()

    def sign(self, pod: PodInfo) -> Hashable:
        """The pod's controller if some node avoids it, else an empty signature: all other pods score the same on all nodes."""
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
            rows = distinct(changed)
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


def avoided_by(node: Node) -> frozenset[Controller]:
    """The controllers that a node's annotation names; none when it cannot be read."""
    text = (node.metadata.annotations or {}).get(ANNOTATION)
    if not text:
        return frozenset()
    try:
        found = _DECODER.decode(text)
    except DECODE_ERRORS:
        return frozenset()
    signatures = (each.pod_signature for each in found.prefer_avoid_pods or ())
    owners = (signature.pod_controller for signature in signatures if signature)
    return frozenset(Controller(owner.kind, owner.uid) for owner in owners if owner)


def _controller(pod: PodInfo) -> Controller | None:
    owner = owner_of(pod) if pod.pod.metadata.owner_references else None
    return Controller(owner.kind, owner.uid) if owner and owner.kind in _AVOIDABLE else None
