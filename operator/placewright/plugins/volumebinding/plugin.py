"""VolumeBinding, its arguments as in KubeSchedulerConfiguration v1, and its events.

Implements PreFilter, Filter, PreScore, Score, Reserve, PreBind. A pod's claims must be bound to volumes that its node reaches. Claims that
wait for their first consumer must find a volume there, or get one provisioned. Reserve assumes that, so that the next pod sees it, and
PreBind writes it. Source of the events: kube-scheduler `volumebinding/volume_binding.go`.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Annotated, Final

import msgspec
import numpy as np

from placewright.api.boundedcache import forgets_unasked
from placewright.api.bytecount import bytes_of
from placewright.api.compatibility import Rule
from placewright.api.errors import VolumeError
from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.api.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    StorageClass,
)
from placewright.cluster.cluster import Cluster
from placewright.framework.constraints import Problem, within
from placewright.framework.events import Action, ClusterEventWithHint, EventResource, QueueingHint, event_with_hint
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
from placewright.plugins.noderesources.args import ShapePoint, shape_problems
from placewright.plugins.shared import podclaims
from placewright.plugins.shared.csimigration import migrated_plugins
from placewright.plugins.shared.hints import changed_in, was_in_the_way
from placewright.plugins.volumebinding.bindings import (
    ReservedVolumes,
    all_bound,
    assume,
    naming_claim,
    naming_node,
    restore,
)
from placewright.plugins.volumebinding.claims import PodVolumeClaims, claim_names, claims_of, fully_bound
from placewright.plugins.volumebinding.findings import REASONS, VolumeFindings, find_volumes, fullness_scores
from placewright.plugins.volumebinding.reach import StorageReach, volume_limit

# --- arguments -------------------------------------------------------------------------------------------------------------------


class VolumeBindingArgs(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Seconds that a pod waits for its volumes at most, and the shape that scores the use of storage.

    Without a shape nodes are not scored, unless the rule StorageCapacityScoring is in force (1.37). Then the emptiest storage scores best.
    In kube-scheduler a shape needs that feature gate; here it needs none.
    """

    bind_timeout_seconds: Annotated[int, within(0)] = 600
    shape: tuple[ShapePoint, ...] | None = None

    def validate(self) -> list[Problem]:
        """Refuse a shape without points, or with points that do not rise."""
        return [] if self.shape is None else list(shape_problems(self.shape, "shape"))


#: Shape of a profile that gives none, under StorageCapacityScoring: as kube-scheduler `apis/config/v1/defaults.go`.
_EMPTIEST: Final = (ShapePoint(utilization=0, score=10), ShapePoint(utilization=100, score=0))


# --- events -----------------------------------------------------------------------------------------------------


def _driver_changed(pod: PodInfo, old: CSIDriver | None, new: CSIDriver | None) -> QueueingHint:
    """Queue if a driver of one of the pod's inline volumes stopped to count capacity."""
    if not isinstance(old, CSIDriver) or not isinstance(new, CSIDriver):
        return QueueingHint.SKIP
    stopped = bool(old.spec.storage_capacity) and not new.spec.storage_capacity
    uses = any(volume.csi is not None and volume.csi.driver == new.metadata.name for volume in pod.pod.spec.volumes or ())
    return QueueingHint.when(stopped and uses)


def _capacity_changed(_pod: PodInfo, old: CSIStorageCapacity | None, new: CSIStorageCapacity | None) -> QueueingHint:
    """Queue for capacity where none was known, or for more than before."""
    if not isinstance(old, CSIStorageCapacity) or not isinstance(new, CSIStorageCapacity):
        return QueueingHint.QUEUE
    before, now = volume_limit(old), volume_limit(new)
    return QueueingHint.when(now is not None and (before is None or now > before))


_NEW_OR_CHANGED: Final = Action.ADD | Action.UPDATE
EVENTS: Final[Sequence[ClusterEventWithHint]] = (
    event_with_hint(EventResource.STORAGE_CLASS, _NEW_OR_CHANGED, changed_in(StorageClass, lambda one: one.allowed_topologies or ())),
    event_with_hint(EventResource.PERSISTENT_VOLUME_CLAIM, _NEW_OR_CHANGED, podclaims.after_claim_change),
    event_with_hint(EventResource.PERSISTENT_VOLUME, _NEW_OR_CHANGED),
    event_with_hint(EventResource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL),
    event_with_hint(EventResource.CSI_NODE, _NEW_OR_CHANGED, changed_in(CSINode, migrated_plugins)),
    event_with_hint(EventResource.CSI_DRIVER, Action.UPDATE, _driver_changed),
    event_with_hint(EventResource.CSI_STORAGE_CAPACITY, _NEW_OR_CHANGED, _capacity_changed),
)


# --- the plugin ------------------------------------------------------------------------------------------------------------------


NAME: Final = "VolumeBinding"
_RESERVED: Final = f"{NAME}/reserved"
TIMED_OUT: Final = "context deadline exceeded"


class VolumeBinding(PreFilterPlugin[VolumeBindingArgs], RowwiseFilter, PreScorePlugin, ScorePlugin, ReservePlugin, PreBindPlugin):
    """Restricts pods to nodes that reach their volumes."""

    name = NAME
    reads = Reads.CLUSTER

    def __init__(self, args: VolumeBindingArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._shape = args.shape or (_EMPTIEST if handle.in_force(Rule.STORAGE_CAPACITY_SCORING) else ())
        self._reach = StorageReach()
        #: The last findings: a cycle asks for the same several times, and preemption once a node.
        self._last: tuple[Hashable, VolumeFindings] | None = None
        forgets_unasked(self)

    @property
    def nbytes(self) -> int:
        """Bytes of the last findings, as far as a cache would keep them."""
        return bytes_of(self._last)

    def forget_unasked(self) -> None:
        """Forget the last findings, because their claims may be gone."""
        self._last = None

    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: Cluster) -> PreFilterResult:
        """Skip pods without claims; reject pods whose claims cannot be used on any node now."""
        claims = claims_of(pod, cluster.objects.storage)
        if claims is None:
            return PreFilterResult(SKIP)
        if isinstance(claims, Status):
            return PreFilterResult(claims)
        state.write(NAME, claims)
        return PreFilterResult()

    def filter(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> BoolColumn:
        """Allow rows where every claim has, or can get, a volume that the node reaches."""
        fits: BoolColumn = self._find(state, cluster).wrong[rows] == 0
        return fits

    def explain(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> list[Rejection]:
        """Name all faults of a node, in kube-scheduler's order."""
        wrong = self._find(state, cluster).wrong[rows]
        return [Rejection(_rejection(int(flags)), rows[wrong == flags]) for flags in np.unique(wrong)]

    def fingerprint(self, state: CycleState, cluster: Cluster) -> Hashable:
        """Return the claims, and the versions of all tables that the findings depend on."""
        claims, storage = state.read(NAME, PodVolumeClaims), cluster.objects.storage
        names = tuple((claim.metadata.namespace, claim.metadata.name) for claim in claims.bound)
        waiting = tuple((demand.claim.metadata.namespace, demand.claim.metadata.name) for demand in claims.to_bind)
        tables = (storage.claims, storage.volumes, storage.classes, storage.csi_nodes, storage.csi_drivers, storage.capacities)
        return (names, waiting, *(table.version for table in tables), cluster.node_journal.position)

    def judge(self, state: CycleState, pod: PodInfo, cluster: Cluster) -> RowVerdict:
        """Judge rows without regard to other pods."""
        return PlainRowVerdict(self, state, pod, cluster)

    def _find(self, state: CycleState, cluster: Cluster) -> VolumeFindings:
        fingerprint = self.fingerprint(state, cluster)
        if self._last is None or self._last[0] != fingerprint:
            self._last = (fingerprint, find_volumes(state.read(NAME, PodVolumeClaims), cluster, self._reach))
        return self._last[1]

    def pre_score(self, state: CycleState, pod: PodInfo, cluster: Cluster, feasible: Rows) -> Status:
        """Skip without a shape, and if the pod's claims need no new volume."""
        claims = state.data.get(NAME)
        return SUCCESS if self._shape and isinstance(claims, PodVolumeClaims) and claims.to_bind else SKIP

    def score(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> IntColumn:
        """Score rows by how full their storage would get."""
        scores: IntColumn = fullness_scores(self._find(state, cluster), self._shape, cluster, self._reach)[rows]
        return scores

    def reserve(self, state: CycleState, pod: PodInfo, node: NodeName) -> Status:
        """Reserve the volumes of the pod's claims on this node, so that later pods do not take them."""
        cluster = self.handle.cluster
        claims, row = state.data.get(NAME), cluster.row(node)
        if row is None or not isinstance(claims, PodVolumeClaims) or not claims.to_bind:
            return SUCCESS
        findings = self._find(state, cluster)
        bindings = [(naming_claim(volume, claim), claim) for claim, volume in findings.bindings(row)]
        # A pod may name a claim twice. A second write would fail, because the first one changed the version.
        made = {claim.metadata.name: claim for claim in findings.to_provision(row)}
        provisions = [naming_node(claim, node) for claim in made.values()]
        state.write(_RESERVED, assume(bindings, provisions, cluster.objects.storage))
        return SUCCESS

    def unreserve(self, state: CycleState, pod: PodInfo, node: NodeName) -> None:
        """Undo what is not written, or not shown yet; the API server will show the rest."""
        reserved = state.data.pop(_RESERVED, None)
        if isinstance(reserved, ReservedVolumes):
            restore(reserved, self.handle.cluster.objects.storage)

    def pre_bind_pre_flight(self, state: CycleState, pod: PodInfo, node: NodeName) -> Status:
        """Skip pods without a reservation."""
        return SUCCESS if isinstance(state.data.get(_RESERVED), ReservedVolumes) else SKIP

    async def pre_bind(self, state: CycleState, pod: PodInfo, node: NodeName) -> Status:
        """Write the reservation, and wait until every claim has its volume."""
        reserved = state.data.get(_RESERVED)
        if not isinstance(reserved, ReservedVolumes):
            return SUCCESS
        try:
            written = await self._write(reserved)
            done = await self.handle.volumes.until(lambda: self._bound(state, written, node), self.args.bind_timeout_seconds)
        except VolumeError as problem:
            return error(f"binding volumes: {problem}")
        return SUCCESS if done else error(f"binding volumes: {TIMED_OUT}")

    async def _write(self, reserved: ReservedVolumes) -> ReservedVolumes:
        """Write one after another. If one fails, earlier writes stay, as upstream, and the next try finds them."""
        bindings = [(await self.handle.volumes.bind(volume), claim) for volume, claim in reserved.bindings]
        return ReservedVolumes(tuple(bindings), tuple([await self.handle.volumes.select_node(claim) for claim in reserved.provisions]))

    def _bound(self, state: CycleState, written: ReservedVolumes, node: NodeName) -> bool:
        if state.abandoned:
            raise VolumeError("pod does not exist any more")
        cluster = self.handle.cluster
        row = cluster.row(node)
        if row is None:
            raise VolumeError(f'failed to get node "{node}": node "{node}" not found')
        return all_bound(written, cluster.node(row), cluster.objects.storage)

    def events(self) -> Sequence[ClusterEventWithHint]:
        """Declare the pod's claims, volumes, classes, nodes, and storage capacity."""
        # Upstream ignores deleted pods whose volumes were reserved but never written, and tries pods that wait for them after minutes.
        return (*EVENTS, event_with_hint(EventResource.ASSIGNED_POD, Action.DELETE, was_in_the_way(PodInfo, self._had_unbound_claims)))

    def _had_unbound_claims(self, _pod: PodInfo, old: PodInfo) -> bool:
        """Return whether a claim of a pod is unbound. Once the pod is deleted, the volume reserved for it may be free."""
        claims = self.handle.cluster.objects.storage.claims
        named = (claims.get(name, old.namespace) for name, _ in claim_names(old))
        return any(claim is not None and not fully_bound(claim) for claim in named)


def _rejection(flags: int) -> Status:
    return unresolvable(*(reason for flag, reason in REASONS.items() if flags & flag))
