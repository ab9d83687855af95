"""VolumeBinding. Implements PreFilter, Filter, PreScore, Score, Reserve, PreBind.

A pod's claims must be bound to volumes that its node can reach; those that wait for their first consumer must find a volume there, or
have one made: that is assumed in Reserve, so that the next pod sees it, and written in PreBind.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final

import numpy as np

from placewright.api.errors import VolumeError
from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.events import ClusterEventWithHint
from placewright.framework.interface import (
    BoolColumn,
    CycleState,
    Handle,
    IntColumn,
    PreBindPlugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    Reads,
    Rejection,
    ReservePlugin,
    Rows,
    ScorePlugin,
)
from placewright.framework.rowwise import PlainRowVerdict, RowVerdict, RowwiseFilter
from placewright.framework.status import SKIP, SUCCESS, Status, error, unresolvable
from placewright.plugins.volumebinding.args import VolumeBindingArgs
from placewright.plugins.volumebinding.claims import PodClaims, claims_of
from placewright.plugins.volumebinding.finding import REASONS, Findings, find_volumes
from placewright.plugins.volumebinding.hints import interests
from placewright.plugins.volumebinding.reach import Reach
from placewright.plugins.volumebinding.reserving import Reserved, all_bound, assume, naming_claim, naming_node, restore
from placewright.plugins.volumebinding.scoring import fullness_scores

NAME: Final = "VolumeBinding"
_RESERVED: Final = f"{NAME}/reserved"
TIMED_OUT: Final = "context deadline exceeded"


class VolumeBinding(PreFilterPlugin, RowwiseFilter, PreScorePlugin, ScorePlugin, ReservePlugin, PreBindPlugin):
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
        tables = (storage.claims, storage.volumes, storage.classes, storage.csi_nodes, storage.csi_drivers, storage.capacities)
        return (names, waiting, *(table.version for table in tables), cluster.node_journal.position)

    def judge(self, state: CycleState, pod: PodInfo, cluster: Cluster) -> RowVerdict:
        """No pod on any node has a say."""
        return PlainRowVerdict(self, state, pod, cluster)

    def _find(self, state: CycleState, cluster: Cluster) -> Findings:
        fingerprint = self.fingerprint(state, cluster)
        if self._last is None or self._last[0] != fingerprint:
            self._last = (fingerprint, find_volumes(state.read(NAME, PodClaims), cluster, self._reach))
        return self._last[1]

    def pre_score(self, state: CycleState, pod: PodInfo, cluster: Cluster, feasible: Rows) -> Status:
        """Skip where the profile gives no shape, and pods whose claims take nothing new."""
        claims = state.data.get(NAME)
        return SUCCESS if self.args.shape and isinstance(claims, PodClaims) and claims.to_bind else SKIP

    def score(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> IntColumn:
        """By how full the storage would get."""
        scores: IntColumn = fullness_scores(self._find(state, cluster), self.args.shape or (), cluster, self._reach)[rows]
        return scores

    def reserve(self, state: CycleState, pod: PodInfo, node: NodeName) -> Status:
        """Let what the pod's claims take on this node be taken, for pods that come after it."""
        cluster = self.handle.cluster
        claims, row = state.data.get(NAME), cluster.row(node)
        if row is None or not isinstance(claims, PodClaims) or not claims.to_bind:
            return SUCCESS
        findings = self._find(state, cluster)
        bindings = [(naming_claim(volume, claim), claim) for claim, volume in findings.bindings(row)]
        # A pod may name a claim twice; written twice, the second write would find its version gone.
        made = {claim.metadata.name: claim for claim in findings.to_provision(row)}
        provisions = [naming_node(claim, node) for claim in made.values()]
        state.write(_RESERVED, assume(bindings, provisions, cluster.objects.storage))
        return SUCCESS

    def unreserve(self, state: CycleState, pod: PodInfo, node: NodeName) -> None:
        """Give back what is not written, or not shown yet: where it is written, the API server will show it."""
        reserved = state.data.pop(_RESERVED, None)
        if isinstance(reserved, Reserved):
            restore(reserved, self.handle.cluster.objects.storage)

    async def pre_bind(self, state: CycleState, pod: PodInfo, node: NodeName) -> Status:
        """Write, and wait until every claim has its volume."""
        reserved = state.data.get(_RESERVED)
        if not isinstance(reserved, Reserved):
            return SUCCESS
        try:
            written = await self._write(reserved)
            done = await self.handle.volumes.until(lambda: self._bound(state, written, node), self.args.bind_timeout_seconds)
        except VolumeError as problem:
            return error(f"binding volumes: {problem}")
        return SUCCESS if done else error(f"binding volumes: {TIMED_OUT}")

    async def _write(self, reserved: Reserved) -> Reserved:
        """Write in turn; what was written stays written when the next fails, as upstream, and is found again at the next try."""
        bindings = [(await self.handle.volumes.bind(volume), claim) for volume, claim in reserved.bindings]
        return Reserved(tuple(bindings), tuple([await self.handle.volumes.select_node(claim) for claim in reserved.provisions]))

    def _bound(self, state: CycleState, written: Reserved, node: NodeName) -> bool:
        if state.abandoned:
            raise VolumeError("pod does not exist any more")
        cluster = self.handle.cluster
        row = cluster.row(node)
        if row is None:
            raise VolumeError(f'failed to get node "{node}": node "{node}" not found')
        return all_bound(written, cluster.node(row), cluster.objects.storage)

    def events(self) -> Sequence[ClusterEventWithHint]:
        """Claims of the pod's, volumes, classes, nodes, and room in storage."""
        return interests(lambda: self.handle.cluster.objects.storage)


def _rejection(flags: int) -> Status:
    return unresolvable(*(reason for flag, reason in REASONS.items() if flags & flag))
