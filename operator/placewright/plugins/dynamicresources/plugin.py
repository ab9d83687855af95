"""DynamicResources: devices for pods that claim them. Its arguments are those of KubeSchedulerConfiguration v1.

Implements PreEnqueue, PreFilter, Filter, PostFilter, PreScore, Score, Reserve, PreBind. `claims` finds the claims of a pod, and
`devices` the devices that they can get on a node. `binding` writes the claims after a node is chosen.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Annotated, Final

import msgspec
import numpy as np
from msgspec.structs import replace

from placewright.api.devices import ResourceClaim, devices_of
from placewright.api.durations import PATTERN, seconds
from placewright.api.errors import ClaimError
from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.cluster.devices import ClaimTable
from placewright.framework.constraints import Problem
from placewright.framework.events import ClusterEventWithHint
from placewright.framework.interface import (
    BoolColumn,
    CycleState,
    Diagnosis,
    Handle,
    IntColumn,
    MaxNormalised,
    PostFilterPlugin,
    PostFilterResult,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    Reads,
    Rejection,
    ReservePlugin,
    Rows,
)
from placewright.framework.remedies import Remedy, RemedyKind, RemedyPlugin
from placewright.framework.rowwise import PlainRowVerdict, RowVerdict, RowwiseFilter
from placewright.framework.status import SKIP, SUCCESS, Status, error, unresolvable, unschedulable
from placewright.plugins.dynamicresources import binding
from placewright.plugins.dynamicresources.answers import NOTHING_KEPT, ClaimReach, KeptClaims, RowAnswers, devices_kept, has_preferences
from placewright.plugins.dynamicresources.claims import (
    NOTHING_CLAIMED,
    Extension,
    NotReady,
    PodDeviceClaims,
    called,
    claims_of,
    ending_claims,
    extension_of,
    group_claims,
    has_room,
    reserved_for,
    reserved_for_group,
    shape_of,
    shapes,
    unused_but_by,
)
from placewright.plugins.dynamicresources.devices import CANNOT_ALLOCATE, Allocated, Refusal
from placewright.plugins.dynamicresources.hints import DeviceHints
from placewright.plugins.dynamicresources.noderesources import ClaimStatuses, fault_of, room_for, statuses_of, used_by_another

_LEAST_BINDING_SECONDS: Final = 1.0
_DURATION: Final = msgspec.Meta(
    extra_json_schema={"pattern": PATTERN, "description": "a duration such as 10s"}, extra={"allowed": "a duration such as 10s"}
)


class DynamicResourcesArgs(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Timeouts: of the search for devices on one node (0s: none), and of a pod's wait until its devices are ready."""

    filter_timeout: Annotated[str, _DURATION] = "10s"
    binding_timeout: Annotated[str, _DURATION] = "600s"

    @property
    def binding_seconds(self) -> float:
        """`binding_timeout` in seconds."""
        return seconds(self.binding_timeout) or 0.0

    def validate(self) -> list[Problem]:
        """Refuse a binding timeout of less than a second."""
        waits = seconds(self.binding_timeout)
        return [] if waits is None or waits >= _LEAST_BINDING_SECONDS else [("bindingTimeout", self.binding_timeout, "1s or more")]


NAME: Final = "DynamicResources"
_RESERVED: Final = f"{NAME}/reserved"
DELETED: Final = "deletion of ResourceClaim completed"
DEALLOCATED: Final = "deallocation of ResourceClaim completed"
UNRESERVED: Final = "ResourceClaim unreserved for PodGroup"
STILL_NOT: Final = "still not schedulable"
NOT_FOUND: Final = "not found"
IN_USE: Final = "resourceclaim in use"
NOT_AVAILABLE: Final = "resourceclaim not available on the node"
TIMED_OUT: Final = "device binding timeout: context deadline exceeded"


class DynamicResources(
    PreEnqueuePlugin[DynamicResourcesArgs],
    PreFilterPlugin,
    RowwiseFilter,
    RemedyPlugin,
    PostFilterPlugin,
    PreScorePlugin,
    MaxNormalised,
    ReservePlugin,
    PreBindPlugin,
):
    """Restricts pods to nodes where their claims have, or can get, devices."""

    name = NAME
    reads = Reads.CLUSTER
    default_weight = 2

    def __init__(self, args: DynamicResourcesArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._search: RowAnswers | None = None
        self._places = ClaimReach()

    @property
    def _table(self) -> ClaimTable:
        return self.handle.cluster.objects.devices.claims

    def _searching(self, cluster: Cluster, demand: PodDeviceClaims) -> RowAnswers:
        """Return the search for this pod, without the devices that are kept for others."""
        search = self._all_devices(cluster)
        search.devices.inventory.keep(demand.kept)
        return search

    def _all_devices(self, cluster: Cluster) -> RowAnswers:
        if self._search is None:
            self._search = RowAnswers(cluster, self.handle.in_force)
        return self._search

    # --- before nodes ----------------------------------------------------------------------------------------------------------

    def sign(self, pod: PodInfo) -> Hashable:
        """Sign the pod by the shapes of its claims and its use of the node. Pods of one template are equal."""
        extension = extension_of(pod, self.handle.cluster)
        if not pod.pod.spec.resource_claims and extension is None:
            return ()
        try:
            asked = shapes(claims_of(pod, self._table))
        except NotReady:
            return (pod.uid,)
        return asked, extension and shape_of(extension.whole.claim), _bid(pod)

    def pre_enqueue(self, pod: PodInfo) -> Status:
        """Hold the pod back until each of its claims exists and is the pod's to use.

        A deleted claim that lists the pod goes only after PostFilter has released it. So such a pod is attempted.
        """
        if not pod.pod.spec.resource_claims:
            return SUCCESS
        try:
            claims_of(pod, self._table)
        except NotReady as problem:
            return SUCCESS if any(ending_claims(pod, self._table)) else unresolvable(str(problem))
        return SUCCESS

    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: Cluster) -> PreFilterResult:
        """Skip pods without claims; reject pods whose claims cannot be used on any node now."""
        state.write(NAME, NOTHING_CLAIMED)
        extension = extension_of(pod, cluster)
        if not pod.pod.spec.resource_claims and extension is None:
            return PreFilterResult(SKIP)
        try:
            claims = claims_of(pod, cluster.objects.devices.claims)
        except NotReady as problem:
            return PreFilterResult(unresolvable(str(problem)))
        if not claims and extension is None:
            return PreFilterResult(SKIP)
        kept = self._kept_for_nominated(pod, cluster)
        demand = self._demand(claims, extension, kept)
        refusal = self._refusal(pod, demand)
        if refusal.ok and demand.wanted:
            search = self._searching(cluster, demand)
            search.devices.refresh()
            refusal = search.devices.check(demand.wanted)
        if refusal.ok:
            state.write(NAME, demand)
        return PreFilterResult(refusal)

    def _kept_for_nominated(self, pod: PodInfo, cluster: Cluster) -> KeptClaims:
        nominated = self.handle.nominated_before(pod)
        return devices_kept(nominated, cluster, self._all_devices(cluster).devices) if nominated else NOTHING_KEPT

    def _demand(self, claims: Sequence[ResourceClaim], extension: Extension | None, kept: KeptClaims) -> PodDeviceClaims:
        allocated = tuple([claim for claim in claims if claim.status.allocation is not None])
        wanted = tuple([claim for claim in claims if claim.status.allocation is None])
        return PodDeviceClaims(allocated, wanted, frozenset(self._broken(allocated)), shapes(wanted), extension, kept)

    def _broken(self, allocated: Iterable[ResourceClaim]) -> Iterable[str]:
        for claim in allocated:
            if not binding.must_wait(claim) or self._table.pending(claim) is not None:
                continue
            try:
                late = not binding.ready(claim) and binding.too_late(claim, self.handle.claims.now(), self.args.binding_seconds)
            except ClaimError:
                late = True
            if late:
                yield claim.metadata.uid

    def _refusal(self, pod: PodInfo, demand: PodDeviceClaims) -> Status:
        stale = demand.extension.stale if demand.extension is not None else None
        for claim in (*demand.claims, *(() if stale is None else (stale,))):
            if self._table.releasing(claim):
                return error(f"resource claim {called(claim)} is in the process of being released")
            pending = self._table.pending(claim)
            if pending is not None and not pending.written and pod.pod_group is None:
                self._table.wait_for(claim)
                return unresolvable(f"resource claim {called(claim)} is in the process of being allocated")
            if f"nominated/{claim.metadata.uid}" in demand.kept:
                return unresolvable(f"resource claim {called(claim)} is in the process of being allocated")
            if claim.status.allocation is not None and not has_room(claim) and not self._lists(claim, pod):
                return unresolvable(IN_USE)
        return SUCCESS

    @staticmethod
    def _lists(claim: ResourceClaim, pod: PodInfo) -> bool:
        return reserved_for(claim, pod) or reserved_for_group(claim, pod)

    # --- nodes -----------------------------------------------------------------------------------------------------------------

    def filter(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> BoolColumn:
        """Allow rows that reach all allocated claims and can serve the others."""
        demand = state.read(NAME, PodDeviceClaims)
        fits = self._with_devices(demand, cluster, rows)
        devices = self._searching(cluster, demand).devices
        devices.refresh()
        if devices.inventory.maps():
            for place in np.flatnonzero(fits).tolist():
                fits[place] = self._room(pod, demand, cluster, int(rows[place])).ok
        return fits

    def _with_devices(self, demand: PodDeviceClaims, cluster: Cluster, rows: Rows) -> BoolColumn:
        fits = self._available(demand, cluster, rows)
        if demand.extension is None:
            return fits & self._served(demand, 0, cluster, rows)
        if demand.extension.stale is not None:
            return np.zeros(len(rows), np.bool_)
        codes = demand.extension.codes(cluster, rows)
        for code in np.unique(codes).tolist():
            fits[codes == code] &= self._served(demand, code, cluster, rows[codes == code])
        return fits

    def _served(self, demand: PodDeviceClaims, code: int, cluster: Cluster, rows: Rows) -> BoolColumn:
        claims, signature = demand.asked(code)
        return self._searching(cluster, demand).fits(claims, signature, rows) if claims else np.ones(len(rows), np.bool_)

    def failure(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> Status:
        """End the attempt, as upstream, if a selector has no answer on any node that other plugins allow.

        If a search ran out of steps before it found a node, the attempt ends as upstream on a timeout. The pod is then tried again after
        its backoff.
        """
        demand, search = state.read(NAME, PodDeviceClaims), self._all_devices(cluster)
        search.devices.inventory.keep(demand.kept)
        codes = np.zeros(len(rows), np.int64) if demand.extension is None else demand.extension.codes(cluster, rows)
        asked = [(*demand.asked(code), rows[codes == code]) for code in np.unique(codes).tolist()]
        for why in (search.ending, search.unfinished):
            refusal = next((found for each in asked if each[0] and (found := why(*each)) is not None), None)
            if refusal is not None:
                return error(refusal.message)
        return SUCCESS

    def explain(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> list[Rejection]:
        """Reject rows with one reason each. As upstream, unallocatable claims come before claims with devices elsewhere."""
        demand = state.read(NAME, PodDeviceClaims)
        by_reason: dict[Status, list[int]] = {}
        for row in rows.tolist():
            by_reason.setdefault(self._reason(pod, demand, cluster, row), []).append(row)
        return [Rejection(status, np.array(found, np.intp)) for status, found in by_reason.items()]

    def _reason(self, pod: PodInfo, demand: PodDeviceClaims, cluster: Cluster, row: int) -> Status:
        if demand.extension is not None and demand.extension.stale is not None:
            return unresolvable("cannot schedule extended resource claim")
        claims, signature = demand.asked(self._code(demand, cluster, row))
        if claims:
            answer = self._searching(cluster, demand).answer(claims, signature, row)
            if isinstance(answer, Refusal):
                return unresolvable(answer.message)
        if not self._available(demand, cluster, np.array([row], np.intp))[0]:
            return unresolvable(NOT_AVAILABLE)
        room = self._room(pod, demand, cluster, row)
        return unresolvable(CANNOT_ALLOCATE) if room.ok else room

    def _room(self, pod: PodInfo, demand: PodDeviceClaims, cluster: Cluster, row: int) -> Status:
        """Return whether a row has room for what the pod takes with its claims. The row can serve them."""
        if not self._all_devices(cluster).devices.inventory.maps(row):
            return SUCCESS
        if used := used_by_another(pod, demand.allocated, cluster, row):
            return unresolvable(used)
        try:
            statuses = self._node_resources(pod, demand, cluster, row)
        except ValueError as wrong:
            return unresolvable(str(wrong))
        fault = fault_of(pod, statuses)
        return unresolvable(fault) if fault else room_for(pod, statuses, cluster, row)

    def _node_resources(self, pod: PodInfo, demand: PodDeviceClaims, cluster: Cluster, row: int) -> ClaimStatuses:
        """Return what the pod takes of a row's node with its claims. Raise `ValueError` for a faulty device."""
        search = self._searching(cluster, demand)
        if not search.devices.inventory.maps(row):
            return ()
        claims, signature = demand.asked(self._code(demand, cluster, row))
        answer = search.answer(claims, signature, row) if claims else None
        found = zip(claims, answer.allocations, strict=True) if isinstance(answer, Allocated) else ()
        had = [(claim, claim.status.allocation) for claim in demand.allocated if claim.status.allocation is not None]
        return statuses_of(pod, (*had, *found), self._table, search.devices.inventory)

    def remedies(self, state: CycleState, pod: PodInfo, cluster: Cluster, row: int) -> list[Remedy]:
        """Propose more devices of the classes that the node has too few of."""
        more = self._shortage(state, cluster, row)
        if not more:
            return []
        text = " and ".join(f"{count} more device{'s' if count > 1 else ''} of class {name}" for name, count in more.items())
        return [Remedy(self.name, RemedyKind.MORE_DEVICES, text, devices=dict(more))]

    def nearest_first(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> Rows:
        """Order rows by how many devices of the wanted class are free, if that is known."""
        simple = self.free(state, cluster)
        return rows if simple is None else rows[np.argsort(-simple[2][rows], kind="stable")]

    def _shortage(self, state: CycleState, cluster: Cluster, row: int) -> Mapping[str, int] | None:
        """Return by class how many more devices a rejected row's node needs; None if something else is lacking."""
        demand = state.read(NAME, PodDeviceClaims)
        stale = demand.extension is not None and demand.extension.stale is not None
        if stale or not self._available(demand, cluster, np.array([row], np.intp))[0]:
            return None
        claims, _ = demand.asked(self._code(demand, cluster, row))
        return self._searching(cluster, demand).devices.shortage(row, claims) if claims else None

    def wants_devices(self, state: CycleState) -> bool:
        """Return whether the pod has claims that are allocated with its node."""
        demand = state.data.get(NAME)
        return isinstance(demand, PodDeviceClaims) and (bool(demand.wanted) or demand.extension is not None)

    def free(self, state: CycleState, cluster: Cluster) -> tuple[str, int, IntColumn] | None:
        """Return class, number wanted, and free devices of each row, shape (size,); None if the demand is not that simple."""
        demand = state.data.get(NAME)
        if not isinstance(demand, PodDeviceClaims) or not demand.wanted or demand.extension is not None:
            return None
        search = self._searching(cluster, demand)
        search.devices.refresh()
        return search.devices.free(demand.wanted)

    @staticmethod
    def _code(demand: PodDeviceClaims, cluster: Cluster, row: int) -> int:
        """Return the code of the pod's extended resources that the node of this row lacks."""
        return 0 if demand.extension is None else demand.extension.code_of(cluster, row)

    def _available(self, demand: PodDeviceClaims, cluster: Cluster, rows: Rows) -> BoolColumn:
        if demand.broken:
            return np.zeros(len(rows), np.bool_)
        fits = np.ones(len(rows), np.bool_)
        for claim in demand.allocated:
            fits &= self._places.reaching(claim, cluster)[rows]
        return fits

    def fingerprint(self, state: CycleState, cluster: Cluster) -> Hashable:
        """Return the claims, and the versions of all tables that their answers depend on."""
        demand, tables = state.read(NAME, PodDeviceClaims), cluster.objects.devices.tables.values()
        uids = tuple([claim.metadata.uid for claim in demand.allocated])
        special = None if demand.extension is None else (shape_of(demand.extension.whole.claim), demand.extension.stale is None)
        gaps = self._all_devices(cluster).gaps
        kept = tuple(
            [(key, frozenset(devices_of(claim.status.allocation))) for key, claim in demand.kept.items() if claim.status.allocation]
        )
        return (
            uids,
            demand.broken,
            demand.signature,
            special,
            kept,
            gaps,
            cluster.pod_journal.position if self._all_devices(cluster).devices.inventory.maps() else None,
            cluster.node_journal.position,
            *[table.version for table in tables],
        )

    def judge(self, state: CycleState, pod: PodInfo, cluster: Cluster) -> RowVerdict:
        """Judge rows without regard to pods, because victims keep their devices until they are gone."""
        return PlainRowVerdict(self, state, pod, cluster)

    def post_filter(self, state: CycleState, pod: PodInfo, cluster: Cluster, diagnosis: Diagnosis) -> PostFilterResult:
        """Release one claim that keeps the pod waiting. Always UNSCHEDULABLE.

        Such a claim ties the pod to nodes where it does not fit, and no other pod uses it. Or it is being deleted and still lists the pod.
        A leader that ends between the claim's write and the Binding leaves it so. kube-scheduler lets pod and claim wait for each other.

        It is an error if another plugin rejected the pod before this one's PreFilter ran. kube-scheduler then attempts no preemption, and
        neither do we.
        """
        try:
            demand = state.read(NAME, PodDeviceClaims)
        except KeyError:
            return PostFilterResult(error(NOT_FOUND))
        rows = cluster.rows()
        tying = (claim for claim in demand.allocated if unused_but_by(claim, pod) and self._is_elsewhere(claim, demand, cluster, rows))
        for claim in chain(ending_claims(pod, self._table), tying):
            if self._table.pending(claim) is None and not self._table.releasing(claim):
                self._table.begin_release(claim)
                self.handle.claims.beside(binding.deallocate(claim, pod, self._table, self.handle.claims))
                return PostFilterResult(unschedulable(DEALLOCATED))
        if demand.empty:
            return PostFilterResult(unschedulable("no new claims to deallocate"))
        stale = demand.extension.stale if demand.extension is not None else None
        if stale is not None:
            self._table.begin_release(stale)
            self.handle.claims.beside(binding.remove(stale, self._table, self.handle.claims))
            return PostFilterResult(unschedulable(DELETED))
        return PostFilterResult(unschedulable(UNRESERVED if self._unreserves(pod, demand, cluster) else STILL_NOT))

    def _unreserves(self, pod: PodInfo, demand: PodDeviceClaims, cluster: Cluster) -> bool:
        """Take a group without members on nodes off one of its claims, whose devices may be in the wrong place."""
        group, shared = group_claims(pod, cluster)
        if group is None or self._has_other_members(pod):
            return False
        for claim in demand.allocated:
            listed = claim.metadata.uid in shared and reserved_for_group(claim, pod)
            if listed and self._table.pending(claim) is None and not self._table.releasing(claim):
                self._table.begin_release(claim)
                self.handle.claims.beside(binding.leave_group(claim, pod, group, self._table, self.handle.claims))
                return True
        return False

    def _is_elsewhere(self, claim: ResourceClaim, demand: PodDeviceClaims, cluster: Cluster, rows: Rows) -> bool:
        """Return whether some node cannot use the claim's devices."""
        return claim.metadata.uid in demand.broken or not self._places.reaching(claim, cluster)[rows].all()

    def pre_score(self, state: CycleState, pod: PodInfo, cluster: Cluster, feasible: Rows) -> Status:
        """Skip pods without a claim that has alternatives."""
        demand = state.data.get(NAME)
        return SUCCESS if isinstance(demand, PodDeviceClaims) and any(map(has_preferences, demand.wanted)) else SKIP

    def score(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> IntColumn:
        """Score rows higher that serve requests by earlier alternatives."""
        demand = state.read(NAME, PodDeviceClaims)
        return self._searching(cluster, demand).points(demand.wanted, demand.signature, rows)

    # --- once a node is chosen -------------------------------------------------------------------------------------------------

    def reserve(self, state: CycleState, pod: PodInfo, node: NodeName) -> Status:
        """Reserve devices for the pod's claims, so that later pods do not get them."""
        cluster, demand = self.handle.cluster, state.data.get(NAME)
        row = cluster.row(node)
        if row is None or not isinstance(demand, PodDeviceClaims) or demand.empty:
            return SUCCESS
        reserved, code = binding.ReservedClaims(), self._code(demand, cluster, row)
        reserved.node_resources = self._node_resources(pod, demand, cluster, row)
        claims, signature = demand.asked(code)
        if claims:
            answer = self._searching(cluster, demand).answer(claims, signature, row)
            if isinstance(answer, Refusal):
                return unresolvable(answer.message)
            for claim in demand.wanted:  # another pod may have taken the devices while extenders were asked
                now = self._table.get(claim.metadata.name, claim.metadata.namespace)
                if now is None or now.metadata.uid != claim.metadata.uid or now.status.allocation is not None:
                    self._table.wait_for(claim)
                    return unresolvable(f"resource claim {called(claim)} is in the process of being allocated")
            found = zip(claims, answer.allocations, strict=True)
            reserved.shares += [binding.take(claim, allocation, pod, self._table) for claim, allocation in found]
            if code and demand.extension is not None:
                reserved.shares[-1].variant = demand.extension.variant(code)
        reserved.shares += [binding.join(claim, pod, self._table) for claim in demand.allocated]
        group, shared = group_claims(pod, cluster)
        for share in reserved.shares:
            share.group = group if share.claim.metadata.uid in shared else None
        state.taken_with_claims = reserved.node_resources
        state.write(_RESERVED, reserved)
        return SUCCESS

    def unreserve(self, state: CycleState, pod: PodInfo, node: NodeName) -> None:
        """Undo reservations that were not written at once, and written ones in the background."""
        reserved = state.data.pop(_RESERVED, None)
        if isinstance(reserved, binding.ReservedClaims):
            binding.give_back(reserved, pod, self._table, self.handle.claims, others=self._has_other_members(pod))

    def _has_other_members(self, pod: PodInfo) -> bool:
        """Return whether another pod of the pod's group is on a node, or on its way there."""
        return pod.pod_group is not None and bool(self.handle.cluster.pod_groups.placed(pod.pod_group) - {pod.uid})

    def pre_bind_pre_flight(self, state: CycleState, pod: PodInfo, node: NodeName) -> Status:
        """Skip pods without a reservation."""
        return SUCCESS if isinstance(state.data.get(_RESERVED), binding.ReservedClaims) else SKIP

    async def pre_bind(self, state: CycleState, pod: PodInfo, node: NodeName) -> Status:
        """Write the claims, and wait until every device is ready."""
        reserved = state.data.get(_RESERVED)
        if not isinstance(reserved, binding.ReservedClaims):
            return SUCCESS
        try:
            for share in reserved.shares:
                allocation = share.allocation
                if allocation is not None:
                    allocation = replace(allocation, allocation_timestamp=binding.timestamp(self.handle.claims.now()))
                await binding.write(share, pod, self._table, self.handle.claims, allocation)
            await binding.tell(reserved, pod, self.handle.claims)
            await self._devices_ready(state, reserved, pod, node)
        except ClaimError as problem:
            return error(str(problem))
        binding.settle(reserved, pod, self._table)
        return SUCCESS

    async def _devices_ready(self, state: CycleState, reserved: binding.ReservedClaims, pod: PodInfo, node: NodeName) -> None:
        """Wait until all devices are ready, and report the outcome and its duration."""
        drivers = binding.drivers_awaited(reserved.claims)
        if not drivers:
            return
        began, outcome = self.handle.claims.now(), "error"
        try:
            ended = await self._made_ready(state, reserved, pod, node)
            outcome = "success" if ended else "timeout"
        except binding.DeviceFailed:
            outcome = "failure"
            raise
        finally:
            took = max(self.handle.claims.now() - began, 0.0)
            self.handle.claims.waited(pod.scheduler_name, drivers, outcome, took)
        if not ended:
            raise ClaimError(TIMED_OUT)

    async def _made_ready(self, state: CycleState, reserved: binding.ReservedClaims, pod: PodInfo, node: NodeName) -> bool:
        self.handle.announce(pod, "BindingConditionsPending", "Scheduling", f"waiting for binding conditions for device on node {node}")

        def all_ready() -> bool:
            if state.abandoned:
                raise ClaimError("pod does not exist any more")
            return all(binding.ready(self._now(claim)) for claim in reserved.claims)

        return await self.handle.claims.until(all_ready, self.args.binding_seconds)

    def _now(self, claim: ResourceClaim) -> ResourceClaim:
        """Return the claim as its driver last reported it. Raise `ClaimError` if it is gone."""
        shown = self._table.shown(claim.metadata.name, claim.metadata.namespace)
        if shown is None or shown.metadata.uid != claim.metadata.uid:
            raise ClaimError(f"resourceclaim {called(claim)} does not exist any more")
        return shown

    def events(self) -> Sequence[ClusterEventWithHint]:
        """Declare the pod's claims, devices that become free, classes, slices and nodes."""
        return DeviceHints(self.handle.cluster.objects.devices, self._takes_room).events()

    def _takes_room(self) -> bool:
        """Return whether any device takes resources of its node."""
        devices = self._all_devices(self.handle.cluster).devices
        devices.refresh()
        return devices.inventory.maps()


def _bid(pod: PodInfo) -> Hashable:
    """Return the part of a pod that says how much it takes of its node, with claims and without. Pods with pod-level resources differ."""
    spec = pod.pod.spec
    uses = tuple([container.resources.claims for container in (*(spec.init_containers or ()), *(spec.containers or ()))])
    return frozenset(pod.requests.items()), uses, pod.uid if spec.resources is not None else None
