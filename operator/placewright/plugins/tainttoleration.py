"""TaintToleration: taints repel pods that do not tolerate them; soft taints lower the score. Implements Filter, PreScore, Score."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from collections.abc import Set as AbstractSet

from placewright.api.objects import Node, Taint
from placewright.api.pods import PodInfo
from placewright.api.tolerations import HARD_EFFECTS, TolerationSet
from placewright.cluster.cluster import Cluster
from placewright.framework.events import Action, ClusterEventWithHint, EventResource, event_with_hint
from placewright.framework.filters import ConstantReasonFilter
from placewright.framework.interface import BoolColumn, CycleState, IntColumn, MaxNormalised, PreScorePlugin, Rows
from placewright.framework.remedies import NeededToleration, Remedy, RemedyKind, RemedyPlugin
from placewright.framework.status import SUCCESS, Status, unresolvable
from placewright.plugins.nodeunschedulable import UNSCHEDULABLE_TAINT
from placewright.plugins.shared.hints import came_to_suit, own_change


class TaintToleration(ConstantReasonFilter, RemedyPlugin, PreScorePlugin, MaxNormalised):
    """Rejects nodes with an untolerated NoSchedule or NoExecute taint; prefers nodes with fewer untolerated PreferNoSchedule taints."""

    name = "TaintToleration"
    rejection = unresolvable("node(s) had untolerated taint(s)")
    remedies_are_cheap = True
    reverse = True
    default_weight = 3

    def sign(self, pod: PodInfo) -> Hashable:
        """Sign the pod by its tolerations, in order."""
        return tuple(pod.pod.spec.tolerations or ())

    def filter(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> BoolColumn:
        """Allow rows whose taints the pod tolerates, computed once per distinct set of taints."""
        return cluster.taints.where(rows, TolerationSet(pod.pod.spec.tolerations or ()).tolerates_all)

    def remedies(self, state: CycleState, pod: PodInfo, cluster: Cluster, row: int) -> list[Remedy]:
        """Propose tolerations for the taints, except for that of a cordon."""
        tolerations = TolerationSet(pod.pod.spec.tolerations or ())
        taints = _untolerated(cluster.taints.get(row), tolerations, cordoned=bool(cluster.unschedulable[row]))
        if not taints:
            return []
        text = " and ".join(f"a toleration for taint {taint.key}={taint.value or ''}:{taint.effect}" for taint in taints)
        needed = tuple(NeededToleration(taint.key, taint.value or "", taint.effect) for taint in taints)
        return [Remedy(self.name, RemedyKind.TOLERATION, text, tolerations=needed)]

    def passes_after(self, state: CycleState, pod: PodInfo, cluster: Cluster, kinds: AbstractSet[RemedyKind], rows: Rows) -> BoolColumn:
        """Allow rows also with remedies, without the taint of a node that one uncordons."""
        cordoned, tolerations = RemedyKind.UNCORDON in kinds, TolerationSet(pod.pod.spec.tolerations or ())
        return cluster.taints.where(rows, lambda taints: not _untolerated(taints, tolerations, cordoned=cordoned))

    def pre_score(self, state: CycleState, pod: PodInfo, cluster: Cluster, feasible: Rows) -> Status:
        """Pass: the point exists only because profiles may name it."""
        return SUCCESS

    def score(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> IntColumn:
        """Count the soft taints that the pod does not tolerate; fewer is better."""
        return cluster.taints.gather(rows, TolerationSet(pod.pod.spec.tolerations or ()).intolerable_preferences)

    def events(self) -> Sequence[ClusterEventWithHint]:
        """Declare nodes whose taints the pod now tolerates, and tolerations that the pod gains."""
        return (
            event_with_hint(EventResource.NODE, Action.ADD | Action.UPDATE_NODE_TAINT, came_to_suit(Node, _tolerates)),
            own_change(Action.UPDATE_POD_TOLERATION, lambda _old, _new: True),
        )


def _untolerated(taints: Iterable[Taint], tolerations: TolerationSet, *, cordoned: bool) -> list[Taint]:
    """Return the hard taints that the pod does not tolerate, without that of a cordoned node."""
    found = [taint for taint in taints if taint.effect in HARD_EFFECTS and not tolerations.covers(taint)]
    return [taint for taint in found if not (cordoned and taint.key == UNSCHEDULABLE_TAINT.key)]


def _tolerates(pod: PodInfo, node: Node) -> bool:
    return TolerationSet(pod.pod.spec.tolerations or ()).tolerates_all(node.spec.taints or ())
