"""VolumeBinding, its arguments as in KubeSchedulerConfiguration v1, and the changes that could help a pod that it rejected.

Implements PreFilter, Filter, PreScore, Score, Reserve, PreBind. A pod's claims must be bound to volumes that its node can reach; claims
that wait for their first consumer must find a volume there, or have one made: that is assumed in Reserve, so that the next pod sees it, and
written in PreBind. Source of the changes: kube-scheduler `volumebinding/volume_binding.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Annotated, Final

import msgspec
import numpy as np

from placewright.api.boundedcache import forgets_unasked
from placewright.api.bytecount import bytes_of
from placewright.api.errors import VolumeError
from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.api.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolumeClaim,
    StorageClass,
)
from placewright.cluster.cluster import Cluster
from placewright.cluster.storage import StorageObjects
from placewright.framework.constraints import within
from placewright.framework.events import Action, ClusterEventWithHint, EventResource, QueueingHint, interest
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
from placewright.plugins.noderesources.args import ShapePoint
from placewright.plugins.shared.csimigration import migrated_plugins
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


#: (path inside args, what was found, what is allowed)
Problem = tuple[str, str, str]


class VolumeBindingArgs(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """How long a pod may wait for its volumes (seconds), and how nodes are scored by how full their storage gets.

    Without a shape nodes are not scored, which is the default of kube-scheduler 1.36, where a shape needs the feature gate
    StorageCapacityScoring. Here it needs nothing.
    """

    bind_timeout_seconds: Annotated[int, within(0)] = 600
    shape: tuple[ShapePoint, ...] | None = None

    def validate(self) -> list[Problem]:
        """A shape has corners, and they rise."""
        return [] if self.shape is None else _shape_problems(self.shape)


def _shape_problems(shape: tuple[ShapePoint, ...]) -> list[Problem]:
    if not shape:
        return [("shape", "[]", "at least one point")]
    problems: list[Problem] = []
    before = -1
    for i, point in enumerate(shape):
        if point.utilization <= before:
            problems.append((f"shape[{i}].utilization", str(point.utilization), "more than the point before"))
        before = point.utilization
    return problems


# --- changes that could help -----------------------------------------------------------------------------------------------------


def _class_changed(_pod: PodInfo, old: StorageClass | None, new: StorageClass | None) -> QueueingHint:
    """A new class; another choice of nodes in an old one."""
    if not isinstance(old, StorageClass) or not isinstance(new, StorageClass):
        return QueueingHint.QUEUE
    return QueueingHint.QUEUE if (old.allowed_topologies or ()) != (new.allowed_topologies or ()) else QueueingHint.SKIP


def _claim_changed(pod: PodInfo, _old: PersistentVolumeClaim | None, new: PersistentVolumeClaim | None) -> QueueingHint:
    """A claim of the pod's own."""
    if not isinstance(new, PersistentVolumeClaim) or new.metadata.namespace != pod.namespace:
        return QueueingHint.SKIP
    return QueueingHint.QUEUE if any(name == new.metadata.name for name, _ in claim_names(pod)) else QueueingHint.SKIP


def _csi_node_changed(_pod: PodInfo, old: CSINode | None, new: CSINode | None) -> QueueingHint:
    """A new one; another set of in-tree plugins whose volumes a driver handles."""
    if not isinstance(old, CSINode) or not isinstance(new, CSINode):
        return QueueingHint.QUEUE
    return QueueingHint.QUEUE if migrated_plugins(old) != migrated_plugins(new) else QueueingHint.SKIP


def _driver_changed(pod: PodInfo, old: CSIDriver | None, new: CSIDriver | None) -> QueueingHint:
    """A driver of one of the pod's inline volumes stopped to count capacity."""
    if not isinstance(old, CSIDriver) or not isinstance(new, CSIDriver):
        return QueueingHint.SKIP
    stopped = bool(old.spec.storage_capacity) and not new.spec.storage_capacity
    uses = any(volume.csi is not None and volume.csi.driver == new.metadata.name for volume in pod.pod.spec.volumes or ())
    return QueueingHint.QUEUE if stopped and uses else QueueingHint.SKIP


def _capacity_changed(_pod: PodInfo, old: CSIStorageCapacity | None, new: CSIStorageCapacity | None) -> QueueingHint:
    """Room where there was none known, or more than before."""
    if not isinstance(old, CSIStorageCapacity) or not isinstance(new, CSIStorageCapacity):
        return QueueingHint.QUEUE
    before, now = volume_limit(old), volume_limit(new)
    return QueueingHint.QUEUE if now is not None and (before is None or now > before) else QueueingHint.SKIP


_NEW_OR_CHANGED: Final = Action.ADD | Action.UPDATE
EVENTS: Final[Sequence[ClusterEventWithHint]] = (
    interest(EventResource.STORAGE_CLASS, _NEW_OR_CHANGED, _class_changed),
    interest(EventResource.PERSISTENT_VOLUME_CLAIM, _NEW_OR_CHANGED, _claim_changed),
    interest(EventResource.PERSISTENT_VOLUME, _NEW_OR_CHANGED),
    interest(EventResource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL),
    interest(EventResource.CSI_NODE, _NEW_OR_CHANGED, _csi_node_changed),
    interest(EventResource.CSI_DRIVER, Action.UPDATE, _driver_changed),
    interest(EventResource.CSI_STORAGE_CAPACITY, _NEW_OR_CHANGED, _capacity_changed),
)


def interests(storage: Callable[[], StorageObjects]) -> Sequence[ClusterEventWithHint]:
    """The plugin's events. `storage`: claims as they are when an event comes."""

    def pod_left(_pod: PodInfo, old: PodInfo | None, _new: PodInfo | None) -> QueueingHint:
        return _pod_left(old, storage())

    # Upstream is not told of pods for which volumes were taken and never written, and tries pods that want them again after minutes.
    return (*EVENTS, interest(EventResource.ASSIGNED_POD, Action.DELETE, pod_left))


def _pod_left(gone: PodInfo | None, storage: StorageObjects) -> QueueingHint:
    """A pod was on its way to a node: where one of its claims has no volume, the volume that was taken for it may be free."""
    if not isinstance(gone, PodInfo):
        return QueueingHint.SKIP
    claims = (storage.claims.get(name, gone.namespace) for name, _ in claim_names(gone))
    return QueueingHint.QUEUE if any(claim is not None and not fully_bound(claim) for claim in claims) else QueueingHint.SKIP


# --- the plugin ------------------------------------------------------------------------------------------------------------------


NAME: Final = "VolumeBinding"
_RESERVED: Final = f"{NAME}/reserved"
TIMED_OUT: Final = "context deadline exceeded"


class VolumeBinding(PreFilterPlugin[VolumeBindingArgs], RowwiseFilter, PreScorePlugin, ScorePlugin, ReservePlugin, PreBindPlugin):
    """Keeps pods to nodes that reach their volumes."""

    name = NAME
    reads = Reads.CLUSTER

    def __init__(self, args: VolumeBindingArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._reach = StorageReach()
        #: What was found last: a cycle asks for the same several times, and preemption once a node.
        self._last: tuple[Hashable, VolumeFindings] | None = None
        forgets_unasked(self)

    @property
    def nbytes(self) -> int:
        """Bytes of the last findings, as far as a cache would keep them."""
        return bytes_of(self._last)

    def forget_unasked(self) -> None:
        """Forget what was found last: its claims may be gone."""
        self._last = None

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
        claims, storage = state.read(NAME, PodVolumeClaims), cluster.objects.storage
        names = tuple((claim.metadata.namespace, claim.metadata.name) for claim in claims.bound)
        waiting = tuple((demand.claim.metadata.namespace, demand.claim.metadata.name) for demand in claims.to_bind)
        tables = (storage.claims, storage.volumes, storage.classes, storage.csi_nodes, storage.csi_drivers, storage.capacities)
        return (names, waiting, *(table.version for table in tables), cluster.node_journal.position)

    def judge(self, state: CycleState, pod: PodInfo, cluster: Cluster) -> RowVerdict:
        """No pod on any node has a say."""
        return PlainRowVerdict(self, state, pod, cluster)

    def _find(self, state: CycleState, cluster: Cluster) -> VolumeFindings:
        fingerprint = self.fingerprint(state, cluster)
        if self._last is None or self._last[0] != fingerprint:
            self._last = (fingerprint, find_volumes(state.read(NAME, PodVolumeClaims), cluster, self._reach))
        return self._last[1]

    def pre_score(self, state: CycleState, pod: PodInfo, cluster: Cluster, feasible: Rows) -> Status:
        """Skip where the profile gives no shape, and pods whose claims take nothing new."""
        claims = state.data.get(NAME)
        return SUCCESS if self.args.shape and isinstance(claims, PodVolumeClaims) and claims.to_bind else SKIP

    def score(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> IntColumn:
        """By how full the storage would get."""
        scores: IntColumn = fullness_scores(self._find(state, cluster), self.args.shape or (), cluster, self._reach)[rows]
        return scores

    def reserve(self, state: CycleState, pod: PodInfo, node: NodeName) -> Status:
        """Let what the pod's claims take on this node be taken, for pods that come after it."""
        cluster = self.handle.cluster
        claims, row = state.data.get(NAME), cluster.row(node)
        if row is None or not isinstance(claims, PodVolumeClaims) or not claims.to_bind:
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
        if isinstance(reserved, ReservedVolumes):
            restore(reserved, self.handle.cluster.objects.storage)

    def pre_bind_pre_flight(self, state: CycleState, pod: PodInfo, node: NodeName) -> Status:
        """SKIP where nothing was reserved."""
        return SUCCESS if isinstance(state.data.get(_RESERVED), ReservedVolumes) else SKIP

    async def pre_bind(self, state: CycleState, pod: PodInfo, node: NodeName) -> Status:
        """Write, and wait until every claim has its volume."""
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
        """Write in turn; what was written stays written when the next fails, as upstream, and is found again at the next try."""
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
        """Claims of the pod's, volumes, classes, nodes, and room in storage."""
        return interests(lambda: self.handle.cluster.objects.storage)


def _rejection(flags: int) -> Status:
    return unresolvable(*(reason for flag, reason in REASONS.items() if flags & flag))
