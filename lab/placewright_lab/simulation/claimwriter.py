"""The simulation's `ClaimWriter`. Claims are made, reserved, released and deleted at once, and allocated devices are ready.

Claims from templates are like those of the sandbox's controller. A pod that is gone or finished uses nothing, and loses its own claims.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from msgspec.structs import replace

from kubesandbox.devices.podclaims import PodClaim, generated_claim
from placewright.api.bad_input import bad_field
from placewright.api.decode import DecodeError, convert
from placewright.api.devices import (
    ALLOCATION_FINALIZER,
    AllocationResult,
    ConsumerReference,
    DeviceCondition,
    DeviceStatus,
    ResourceClaim,
    ResourceClaimStatus,
)
from placewright.api.errors import ClaimError
from placewright.api.objects import (
    NodeAllocatableClaimStatus,
    PodExtendedResourceClaimStatus,
    PodResourceClaim,
    PodResourceClaimStatus,
)
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.cluster.objects import ClusterObject
from placewright.scheduler.ports import Clock
from placewright_lab.simulation.virtualtime import until

TEMPLATE: Final = "ResourceClaimTemplate"
#: First resourceVersion of the simulation, above those of any recording, because newer versions are larger.
_FIRST_VERSION: Final = 10**15


@dataclass(eq=False)
class InstantClaimWriter:
    """Implements the framework's `ClaimWriter`.

    Attributes:
        show: function that shows the scheduler an object's new state.
        hide: function that tells the scheduler that an object is gone.
        tell: function that sets fields of the status of the pod with a uid.
    """

    cluster: Cluster
    clock: Clock
    begin: float
    show: Callable[[ClusterObject], None]
    hide: Callable[[ClusterObject], None]
    tell: Callable[[str, Mapping[str, object]], None]

    def __post_init__(self) -> None:
        self._table = self.cluster.objects.devices.claims
        self._templates: dict[str, tuple[dict[str, Any], ResourceClaim]] = {}
        self._writes = 0
        self._beside: set[asyncio.Task[None]] = set()

    # --- the controller's part ------------------------------------------------------------------------------------------------

    def template(self, manifest: Mapping[str, Any], where: str) -> None:
        """Make claims from this ResourceClaimTemplate from now on. Raises `InputError`."""
        meta = manifest.get("metadata") or {}
        name = f"{meta.get('namespace') or 'default'}/{meta.get('name')}"
        try:
            self._templates[name] = dict(manifest), convert((manifest.get("spec") or {}), ResourceClaim)
        except DecodeError as problem:
            raise bad_field(f"{where}: {TEMPLATE} {name}", str(problem), f"a valid {TEMPLATE}") from None

    def equipped(self, pod: PodInfo) -> PodInfo:
        """Return the pod with the claims of its templates. Existing claims and entries without a template stay unchanged."""
        known = {status.name for status in pod.pod.status.resource_claim_statuses or ()}
        made = [self._make(pod, entry) for entry in pod.pod.spec.resource_claims or () if entry.name not in known]
        found = [status for status in made if status is not None]
        if not found:
            return pod
        status = pod.pod.status
        return PodInfo(replace(pod.pod, status=replace(status, resource_claim_statuses=(*(status.resource_claim_statuses or ()), *found))))

    def pod_left(self, uid: str) -> None:
        """Release the claims of a pod that is gone or finished, and delete its own claims."""
        for claim in [claim for claim in self._table.values() if _made_for(claim, uid) or _named(claim, uid)]:
            shown = self._table.shown(claim.metadata.name, claim.metadata.namespace) or claim
            if _made_for(shown, uid):
                self.hide(shown)
            else:
                self.show(self._next(without(shown, {uid})))

    def _make(self, pod: PodInfo, entry: PodResourceClaim) -> PodResourceClaimStatus | None:
        manifest, template = self._templates.get(f"{pod.namespace}/{entry.resource_claim_template_name}", (None, None))
        if manifest is None or template is None:
            return None
        name = f"{pod.name}-{entry.name}-{pod.uid[-5:].replace('/', '-')}"
        owner = {"metadata": {"name": pod.name, "uid": pod.uid}}
        made = generated_claim(owner, PodClaim(entry.name, name, entry.resource_claim_template_name or "", owned=True), manifest)
        meta = convert(made["metadata"], type(template.metadata))
        meta = replace(meta, name=name, namespace=pod.namespace, uid=f"{pod.uid}/{entry.name}")
        self.show(self._next(replace(template, metadata=meta)))
        return PodResourceClaimStatus(name=entry.name, resource_claim_name=name)

    # --- the scheduler's writes -------------------------------------------------------------------------------------------------

    async def reserve(
        self, claim: ResourceClaim, allocation: AllocationResult | None, pod: PodInfo, group: ConsumerReference | None = None
    ) -> ResourceClaim:
        """Reserve the claim. Raises `ClaimError` for a claim that is gone, or in other hands."""
        current = self._current(claim)
        status = current.status
        if status.allocation is None and allocation is None:
            raise ClaimError(f"claim {claim.metadata.name} got deallocated elsewhere in the meantime")
        finalizers = current.metadata.finalizers or ()
        if status.allocation is None:
            status = replace(status, allocation=allocation, devices=tuple(_ready(allocation)) or None)
            finalizers = tuple(dict.fromkeys((*finalizers, ALLOCATION_FINALIZER)))
        elif allocation is not None and status.allocation.devices.results != allocation.devices.results:
            raise ClaimError(f"claim {claim.metadata.name} got allocated elsewhere in the meantime")
        consumers, added = status.reserved_for or (), group or ConsumerReference.of_pod(pod.name, pod.uid)
        if all(consumer.uid != added.uid for consumer in consumers):
            consumers = (*consumers, added)
        status = replace(status, reserved_for=consumers)
        written = self._next(replace(current, metadata=replace(current.metadata, finalizers=finalizers), status=status))
        self.show(written)
        return written

    async def release(self, claim: ResourceClaim, pod: PodInfo, *, deallocate: bool, group: ConsumerReference | None = None) -> None:
        """Release the claim, also one that is gone."""
        shown = self._table.shown(claim.metadata.name, claim.metadata.namespace)
        if shown is not None and shown.metadata.uid == claim.metadata.uid:
            freed = _freed(shown, {(group or pod).uid}, deallocate=deallocate)
            if freed.status != shown.status:
                self.show(self._next(freed))

    async def create(self, claim: ResourceClaim, generate_name: str) -> ResourceClaim:
        """Create the claim, with the number of claims before in its name."""
        name = f"{generate_name}{self._writes:05}"
        meta = replace(claim.metadata, name=name, uid=f"{claim.metadata.namespace}/{name}")
        made = self._next(replace(claim, metadata=meta, status=ResourceClaimStatus()))
        self.show(made)
        return made

    async def delete(self, claim: ResourceClaim) -> None:
        """Delete the claim, also one that is gone."""
        shown = self._table.shown(claim.metadata.name, claim.metadata.namespace)
        if shown is not None and shown.metadata.uid == claim.metadata.uid:
            self.hide(shown)

    async def tell_pod(self, pod: PodInfo, status: PodExtendedResourceClaimStatus) -> None:
        """Show the claim at once."""
        self.tell(pod.uid, {"extended_resource_claim_status": status})

    async def tell_node_resources(self, pod: PodInfo, statuses: Sequence[NodeAllocatableClaimStatus]) -> None:
        """Show the resources at once."""
        self.tell(pod.uid, {"node_allocatable_resource_claim_statuses": tuple(statuses) or None})

    async def until(self, done: Callable[[], bool], seconds: float) -> bool:
        """Wait until a condition holds, in virtual seconds."""
        return await until(self.clock, done, seconds)

    def waited(self, profile: str, drivers: Collection[str], status: str, seconds: float) -> None:
        """Ignore the wait, because the simulation counts none."""

    def beside(self, work: Coroutine[Any, Any, None]) -> None:
        """Run `work` in a task of its own."""
        task = asyncio.get_running_loop().create_task(work)
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)

    def now(self) -> float:
        """Return the virtual seconds since the scenario's beginning."""
        return self.begin + self.clock()

    def _current(self, claim: ResourceClaim) -> ResourceClaim:
        meta = claim.metadata
        shown = self._table.shown(meta.name, meta.namespace)
        if shown is None or shown.metadata.uid != meta.uid:
            raise ClaimError(f"claim {meta.namespace}/{meta.name} got deleted in the meantime")
        return shown

    def _next(self, claim: ResourceClaim) -> ResourceClaim:
        self._writes += 1
        return replace(claim, metadata=replace(claim.metadata, resource_version=str(_FIRST_VERSION + self._writes)))


def without(claim: ResourceClaim, uids: Collection[str]) -> ResourceClaim:
    """Return the claim without these pods. A claim without any pod has no devices, either."""
    named = any(consumer.uid in uids for consumer in claim.status.reserved_for or ())
    return _freed(claim, uids, deallocate=True) if named else claim


def _freed(claim: ResourceClaim, uids: Collection[str], *, deallocate: bool) -> ResourceClaim:
    left = tuple(consumer for consumer in claim.status.reserved_for or () if consumer.uid not in uids) or None
    kept = left is not None or not deallocate
    return replace(claim, status=replace(claim.status, reserved_for=left) if kept else ResourceClaimStatus())


def _made_for(claim: ResourceClaim, uid: str) -> bool:
    return any(owner.controller and owner.uid == uid for owner in claim.metadata.owner_references or ())


def _named(claim: ResourceClaim, uid: str) -> bool:
    return any(consumer.uid == uid for consumer in claim.status.reserved_for or ())


def _ready(allocation: AllocationResult | None) -> Iterator[DeviceStatus]:
    """Yield the drivers' reports on devices that need preparation."""
    for device in () if allocation is None else allocation.devices.results or ():
        if device.binding_conditions:
            conditions = tuple(DeviceCondition(type=kind, status="True") for kind in device.binding_conditions)
            yield DeviceStatus(device.driver, device.pool, device.device, device.share_id, conditions)
