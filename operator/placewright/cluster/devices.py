"""The resource.k8s.io objects: claims, slices, classes and taint rules, with allocations that are decided and not yet shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from msgspec.structs import replace

from placewright.api.counts import add_count
from placewright.api.devices import (
    EXTENDED_CLAIM,
    IMPLICIT_RESOURCE,
    AllocationResult,
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceSlice,
    devices_of,
)
from placewright.api.pods import PodInfo
from placewright.cluster.storage import Table, key_of

#: The kinds kept here.
DeviceObject = ResourceClaim | ResourceSlice | DeviceClass | DeviceTaintRule
DEVICE_KINDS: Final = (ResourceClaim, ResourceSlice, DeviceClass, DeviceTaintRule)
#: Called with (the claim as it was assumed, the claim as it is now, or None when it is gone).
ClaimListener = Callable[[ResourceClaim, ResourceClaim | None], None]


@dataclass(slots=True)
class Pending:
    """An allocation that was decided and that the API server does not show yet.

    Attributes:
        uid: uid of the claim; a claim of the same name and another uid is another claim.
        allocation: the devices that the claim gets.
        users: uids of the pods on their way to a node that need it.
        written: the claim's resourceVersion once the allocation was in it, from the answer or a watch, whichever came first;
            empty while the allocation is in flight.
        unseen: the API server has never shown the claim.
        awaited: a pod was refused because the allocation is in flight.
    """

    uid: str
    allocation: AllocationResult
    users: set[str] = field(default_factory=set)
    written: str = ""
    unseen: bool = False
    awaited: bool = False

    def note_written(self, version: str) -> None:
        """Note that the claim has the allocation in this version. An answer that comes late must not overwrite an earlier version."""
        if not self.written or (version.isdecimal() and self.written.isdecimal() and _newer(version, self.written)):
            self.written = version

    def precedes(self, version: str) -> bool:
        """Tell whether the allocation was written before a version. A claim that is shown without it in a later version has lost it.

        Returns:
            False while the allocation is in flight.
        """
        return bool(self.written) and _newer(version, self.written)


class ClaimTable(Table[ResourceClaim]):
    """ResourceClaims by namespace and name, with the allocations that are on their way to the API server.

    `where` finds the claims that serve the extended resources of a pod, by the pod's uid.

    A pending allocation holds through other changes of its claim, so that no device is allocated twice. It ends when the API
    server shows an allocation or its loss, or when it is withdrawn. A watch may show a finalizer before the allocation.

    A watch may show the allocation before the answer to the write arrives. Then the allocation counts as written from the watch
    on: no further event of the claim may follow, and pods that wait for it would wait for that event.

    Attributes:
        listeners: functions that are called when a pending allocation ends without an event of the API server.
    """

    __slots__ = ("_pending", "_releasing", "listeners")

    def __init__(self) -> None:
        super().__init__(owner_of_extended)
        self.listeners: list[ClaimListener] = []
        self._pending: dict[str, Pending] = {}
        self._releasing: dict[str, int] = {}

    def pending(self, claim: ResourceClaim) -> Pending | None:
        """Find the allocation on its way into a claim.

        Returns:
            The allocation; None when none is pending.
        """
        found = self._pending.get(key_of(claim.metadata))
        return found if found is not None and found.uid == claim.metadata.uid else None

    def allocate(self, claim: ResourceClaim, allocation: AllocationResult, user: str) -> Pending:
        """Assume that the claim has this allocation from now on. A claim that the table does not know is added."""
        meta = claim.metadata
        pending = self._pending[key_of(meta)] = Pending(meta.uid, allocation, {user})
        assumed = _allocated(claim, allocation)
        if self.get(meta.name, meta.namespace) is None:
            pending.unseen = True
            self._set(key_of(meta), assumed)
        else:
            self.assume(assumed)
        return pending

    def written(self, claim: ResourceClaim) -> None:
        """Note that the API server has accepted the pending allocation.

        Args:
            claim: the API server's answer. A watch may have shown a newer version.
        """
        pending = self.pending(claim)
        if pending is not None:
            pending.note_written(claim.metadata.resource_version)
            self._tell_waiting(pending, claim, claim)

    def wait_for(self, claim: ResourceClaim) -> None:
        """Note that a pod is refused because of the allocation on its way into this claim. Listeners are called when it has arrived."""
        pending = self.pending(claim)
        if pending is not None:
            pending.awaited = True

    def leave(self, claim: ResourceClaim, user: str) -> None:
        """Note that a pod is no longer on its way. Without such pods, a written allocation that is shown is no longer pending."""
        pending = self.pending(claim)
        if pending is None:
            return
        pending.users.discard(user)
        shown = self.shown(claim.metadata.name, claim.metadata.namespace)
        if shown is not None and not pending.unseen:
            self._reconsider(key_of(claim.metadata), pending, shown)

    def withdraw(self, claim: ResourceClaim) -> None:
        """Drop a pending allocation: the claim is as the API server shows it. Harmless when nothing is pending."""
        pending = self._pending.pop(key_of(claim.metadata), None)
        if pending is None:
            return
        if pending.unseen:
            super().remove(claim)
        else:
            self.restore(claim)
        self._tell_waiting(pending, claim, self.get(claim.metadata.name, claim.metadata.namespace))

    def put(self, item: ResourceClaim) -> ResourceClaim | None:
        """Add or replace a claim as `Table.put` does. A pending allocation outlives versions that were written without it.

        Returns:
            The claim as the API server showed it before; None for a new claim.
        """
        before = super().put(item)
        key = key_of(item.metadata)
        pending = self._pending.get(key)
        if pending is not None:
            if pending.unseen:
                before, pending.unseen = None, False
            self._reconsider(key, pending, item)
        return before

    def _reconsider(self, key: str, pending: Pending, shown: ResourceClaim) -> None:
        """Compare a claim that the API server shows anew with its pending allocation."""
        version, allocation = shown.metadata.resource_version, shown.status.allocation
        ours = allocation is not None and devices_of(allocation) == devices_of(pending.allocation)
        if ours and pending.uid == shown.metadata.uid:
            pending.note_written(version)
            pending.awaited = False  # the watch reports this version as an event, which waiting pods hear
        settled = not pending.users and (ours or pending.precedes(version))
        replaced = pending.uid != shown.metadata.uid or (allocation is not None and not ours)
        if settled or replaced:
            del self._pending[key]
            self.restore(shown)
            if not ours:
                self.tell(_allocated(shown, pending.allocation), shown)
        elif allocation is None and shown is self._items[key]:
            self.assume(_allocated(shown, pending.allocation))

    def remove(self, item: ResourceClaim) -> ResourceClaim | None:
        """Remove a claim as `Table.remove` does. The devices of a pending allocation are free.

        Returns:
            The claim as the API server showed it; None when it was unknown.
        """
        key = key_of(item.metadata)
        pending, taken = self._pending.pop(key, None), self._items.get(key)
        shown = super().remove(item)
        if pending is not None and taken is not None:
            self.tell(taken, None)
        return shown

    # --- who waits ------------------------------------------------------------------------------------------------------------

    def tell(self, before: ResourceClaim, now: ResourceClaim | None) -> None:
        """Tell listeners of a change that no watch will show.

        Args:
            before: the claim as it was assumed.
            now: the claim as it is; None when it is gone.
        """
        for listener in self.listeners:
            listener(before, now)

    def _tell_waiting(self, pending: Pending, claim: ResourceClaim, now: ResourceClaim | None) -> None:
        """Tell listeners that the allocation is no longer in flight; `now` is the claim as it is."""
        if pending.awaited:
            pending.awaited = False
            in_flight = replace(claim.status, allocation=None if now is claim else pending.allocation)
            self.tell(replace(claim, status=in_flight), now)

    # --- claims that are being released ---------------------------------------------------------------------------------------

    def releasing(self, claim: ResourceClaim) -> bool:
        """Tell whether a pod or the allocation is about to be taken off a claim.

        Returns:
            True when a decision must not count on either.
        """
        return claim.metadata.uid in self._releasing

    def begin_release(self, claim: ResourceClaim) -> None:
        """Note that the claim is going to be released. Each call needs an `end_release`."""
        add_count(self._releasing, claim.metadata.uid, 1)

    def end_release(self, claim: ResourceClaim) -> None:
        """Note that a release was written or failed."""
        if claim.metadata.uid in self._releasing:
            add_count(self._releasing, claim.metadata.uid, -1)


def owner_of_extended(claim: ResourceClaim) -> str:
    """Tell which pod's extended resources a claim serves.

    Returns:
        The pod's uid; "" for claims that serve none.
    """
    if (claim.metadata.annotations or {}).get(EXTENDED_CLAIM) != "true":
        return ""
    return next((owner.uid for owner in claim.metadata.owner_references or () if owner.controller), "")


def _allocated(claim: ResourceClaim, allocation: AllocationResult) -> ResourceClaim:
    return replace(claim, status=replace(claim.status, allocation=allocation))


def _newer(version: str, than: str) -> bool:
    """Return whether one resourceVersion is known to be later than another. Most are numbers; others are only known to differ."""
    # Decimal numbers without leading zeros compare by length, then as text, whichever size they have.
    if version.isdecimal() and than.isdecimal():
        return (len(version), version) > (len(than), than)
    return version != than


class DeviceObjects:
    """The tables of the resource.k8s.io objects.

    Attributes:
        claims: ResourceClaims by namespace and name; allocations that are not yet shown are assumed here.
        slices: ResourceSlices by name; `where` finds the slices of a driver's pool by `driver/pool`.
        classes: DeviceClasses by name.
        taint_rules: DeviceTaintRules by name.
        tables: the same tables, by kind.
    """

    def __init__(self) -> None:
        self._served: dict[str, str] = {}
        self._served_at = -1
        self.claims = ClaimTable()
        self.slices: Table[ResourceSlice] = Table(lambda item: f"{item.spec.driver}/{item.spec.pool.name}")
        self.classes: Table[DeviceClass] = Table()
        self.taint_rules: Table[DeviceTaintRule] = Table()
        kept = (self.claims, self.slices, self.classes, self.taint_rules)
        self.tables: Final[Mapping[type[Any], Table[Any]]] = MappingProxyType(dict(zip(DEVICE_KINDS, kept, strict=True)))

    def class_of(self, resource: str) -> str | None:
        """Find the class whose devices serve an extended resource.

        If several classes name the resource, the newest counts. If these are equally old, the first by name counts, as in
        kube-scheduler.

        Returns:
            The name of the class; None when no class serves the resource.
        """
        if self._served_at != self.classes.version:
            self._served_at = self.classes.version
            by_age = sorted(self.classes.values(), key=lambda one: one.metadata.name)
            by_age.sort(key=lambda one: one.metadata.creation_timestamp or "", reverse=True)
            self._served = {f"{IMPLICIT_RESOURCE}{one.metadata.name}": one.metadata.name for one in by_age}
            for one in by_age:
                if one.spec.extended_resource_name:
                    self._served.setdefault(one.spec.extended_resource_name, one.metadata.name)
        return self._served.get(resource)

    def served(self, pod: PodInfo) -> dict[str, str]:
        """Find the classes that serve a pod's requests.

        Returns:
            Class by resource, for the requested resources that a class serves.
        """
        if not len(self.classes):
            return {}
        found = ((name, self.class_of(name)) for name, amount in pod.requests.items() if amount and "/" in name)
        return {name: served_by for name, served_by in found if served_by is not None}
