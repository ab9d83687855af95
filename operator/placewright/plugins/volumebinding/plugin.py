"""VolumeBinding. Implements PreFilter, Filter, Reserve.

A pod's claims must be bound to volumes that its node can reach; those that wait for their first consumer must find a volume there, or
have one made.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final

import numpy as np

from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.events import EventInterest
from placewright.framework.interface import (
    BoolColumn,
    CycleState,
    FilterPlugin,
    Handle,
    PreFilterPlugin,
    PreFilterResult,
    Reads,
    Rejection,
    ReservePlugin,
    Rows,
)
from placewright.framework.status import SKIP, SUCCESS, Status, unresolvable
from placewright.plugins.volumebinding.args import VolumeBindingArgs
from placewright.plugins.volumebinding.claims import PodClaims, claims_of
from placewright.plugins.volumebinding.finding import REASONS, Findings, find_volumes
from placewright.plugins.volumebinding.hints import EVENTS
from placewright.plugins.volumebinding.reach import Reach

NAME: Final = "VolumeBinding"
NOT_WRITTEN: Final = "pod has unbound PersistentVolumeClaims that wait for its node, which this version of placewright does not bind"


class VolumeBinding(PreFilterPlugin, FilterPlugin, ReservePlugin):
    """Keeps pods to nodes that reach their volumes."""

    name = NAME
    Args = VolumeBindingArgs
    reads = Reads.CLUSTER

    def __init__(self, args: VolumeBindingArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._reach = Reach()
        #: What was found last: a cycle asks for the same several times, and preemption once a node.
        self._last: tuple[Hashable, Findings] | None = None

    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: Cluster) -> PreFilterResult:
        """Skip pods without claims; refuse those whose claims cannot be used now, wherever the pod goes."""
        claims = claims_of(pod, cluster.objects.storage)
        if claims is None:
            return PreFilterResult(SKIP)
        if isinstance(claims, Status):
            return PreFilterResult(claims)
        state.write(NAME, claims)
        return PreFilterResult()

    def filter(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> BoolColumn:
        """True where every claim has, or can get, a volume that the node reaches."""
        fits: BoolColumn = self._find(state, cluster).wrong[rows] == 0
        return fits

    def explain(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> list[Rejection]:
        """All that is wrong with a node, in kube-scheduler's order."""
        wrong = self._find(state, cluster).wrong[rows]
        return [Rejection(_rejection(int(flags)), rows[wrong == flags]) for flags in np.unique(wrong)]

    def fingerprint(self, state: CycleState, cluster: Cluster) -> Hashable:
        """The claims, and how often anything changed that is looked at for them."""
        claims, storage = state.read(NAME, PodClaims), cluster.objects.storage
        names = tuple((claim.metadata.namespace, claim.metadata.name) for claim in claims.bound)
        waiting = tuple((demand.claim.metadata.namespace, demand.claim.metadata.name) for demand in claims.to_bind)
        tables = (storage.claims, storage.volumes, storage.classes, storage.csi_drivers, storage.capacities)
        return (names, waiting, *(table.version for table in tables), cluster.node_journal.position)

    def _find(self, state: CycleState, cluster: Cluster) -> Findings:
        fingerprint = self.fingerprint(state, cluster)
        if self._last is None or self._last[0] != fingerprint:
            self._last = (fingerprint, find_volumes(state.read(NAME, PodClaims), cluster, self._reach))
        return self._last[1]

    def reserve(self, state: CycleState, pod: PodInfo, node: NodeName) -> Status:
        """Refuse a pod whose claims would have to be written to: nothing here does that yet."""
        claims = state.data.get(NAME)
        return unresolvable(NOT_WRITTEN) if isinstance(claims, PodClaims) and claims.to_bind else SUCCESS

    def unreserve(self, state: CycleState, pod: PodInfo, node: NodeName) -> None:
        """Nothing was taken."""

    def events(self) -> Sequence[EventInterest]:
        """Claims of the pod's, volumes, classes, nodes, and room in storage."""
        return EVENTS


def _rejection(flags: int) -> Status:
    return unresolvable(*(reason for flag, reason in REASONS.items() if flags & flag))
