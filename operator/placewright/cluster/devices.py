"""Claims to devices, and the devices, as the API server shows them and as they are assumed to be: tables by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from msgspec.structs import replace

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
#: (a claim as it was taken to be, as it is now; None where there is none).
ClaimListener = Callable[[ResourceClaim, ResourceClaim | None], None]


@dataclass(slots=True)
class Pending:
    """An allocation that was decided, and that the API server does not show yet.

    Attributes:
        uid: of the claim; another one of its name has nothing to do with it.
        allocation: what the claim gets.
        users: uids of the pods on their way to a node that need it.
        written: the resourceVersion that the claim had once the allocation was in it, by an answer or a watch, whichever was first;
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
        """The claim of this version has the allocation. An answer that comes late says nothing of what was written after it."""
        if not self.written or (version.isdecimal() and self.written.isdecimal() and _newer(version, self.written)):
            self.written = version

    def precedes(self, version: str) -> bool:
        """Whether the allocation was written before this version: a claim that is shown without it has lost it then."""
        return bool(self.written) and _newer(version, self.written)


class ClaimTable(Table[ResourceClaim]):
    """ResourceClaims by name and namespace, with allocations that are being written.

    `where` finds those that serve the extended resources of the pod of a uid.

    A pending allocation holds, whatever else about the claim changes meanwhile, until the API server shows an allocation, or shows that
    the claim has lost it again, or it is withdrawn. So no device is given away twice because a finalizer was seen too early.

    A watch may show what we wrote before the answer to the write is there. Then it is written from that moment on: no other news of the
    claim may follow, and pods that wait for it would wait for that.

    Attributes:
        listeners: hear of pending allocations that end without news of the API server's, and of devices that get free with them.
    """

    __slots__ = ("_pending", "_releasing", "listeners")

    def __init__(self) -> None:
        super().__init__(owner_of_extended)
        self.listeners: list[ClaimListener] = []
        self._pending: dict[str, Pending] = {}
        self._releasing: dict[str, int] = {}

    def pending(self, claim: ResourceClaim) -> Pending | None:
        """The allocation on its way into this claim, or None."""
        found = self._pending.get(key_of(claim.metadata))
        return found if found is not None and found.uid == claim.metadata.uid else None

    def allocate(self, claim: ResourceClaim, allocation: AllocationResult, user: str) -> Pending:
        """From now on the claim has this; `user` is the pod for which. A claim of which the table knows nothing is kept, too."""
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
        """The API server has taken the pending allocation: it answered with this claim. A watch may have shown a newer one."""
        pending = self.pending(claim)
        if pending is not None:
            pending.note_written(claim.metadata.resource_version)
            self._tell_waiting(pending, claim, claim)

    def wait_for(self, claim: ResourceClaim) -> None:
        """A pod cannot be placed because of the allocation that is on its way into this claim: listeners hear when it is not any more."""
        pending = self.pending(claim)
        if pending is not None:
            pending.awaited = True

    def leave(self, claim: ResourceClaim, user: str) -> None:
        """The pod is not on its way any more. A written allocation that nobody is on the way with, and that is shown, is not pending."""
        pending = self.pending(claim)
        if pending is None:
            return
        pending.users.discard(user)
        shown = self.shown(claim.metadata.name, claim.metadata.namespace)
        if shown is not None and not pending.unseen:
            self._reconsider(key_of(claim.metadata), pending, shown)

    def withdraw(self, claim: ResourceClaim) -> None:
        """The claim is as the API server shows it; fine when nothing is pending."""
        pending = self._pending.pop(key_of(claim.metadata), None)
        if pending is None:
            return
        if pending.unseen:
            super().remove(claim)
        else:
            self.restore(claim)
        self._tell_waiting(pending, claim, self.get(claim.metadata.name, claim.metadata.namespace))

    def put(self, item: ResourceClaim) -> ResourceClaim | None:
        """As any table's; a pending allocation outlives what was written without it."""
        before = super().put(item)
        key = key_of(item.metadata)
        pending = self._pending.get(key)
        if pending is not None:
            if pending.unseen:
                before, pending.unseen = None, False
            self._reconsider(key, pending, item)
        return before

    def _reconsider(self, key: str, pending: Pending, shown: ResourceClaim) -> None:
        """The API server shows the claim anew."""
        version, allocation = shown.metadata.resource_version, shown.status.allocation
        ours = allocation is not None and devices_of(allocation) == devices_of(pending.allocation)
        if ours and pending.uid == shown.metadata.uid:
            pending.note_written(version)
            pending.awaited = False  # this is news for everybody
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
        """As any table's; what was pending is free."""
        key = key_of(item.metadata)
        pending, taken = self._pending.pop(key, None), self._items.get(key)
        shown = super().remove(item)
        if pending is not None and taken is not None:
            self.tell(taken, None)
        return shown

    # --- who waits ------------------------------------------------------------------------------------------------------------

    def tell(self, before: ResourceClaim, now: ResourceClaim | None) -> None:
        """Let listeners know what became of a claim, though the API server shows nothing new of it."""
        for listener in self.listeners:
            listener(before, now)

    def _tell_waiting(self, pending: Pending, claim: ResourceClaim, now: ResourceClaim | None) -> None:
        """The allocation is not in flight any more: the claim is as it `now` is."""
        if pending.awaited:
            pending.awaited = False
            in_flight = replace(claim.status, allocation=None if now is claim else pending.allocation)
            self.tell(replace(claim, status=in_flight), now)

    # --- claims that are being released ---------------------------------------------------------------------------------------

    def releasing(self, claim: ResourceClaim) -> bool:
        """Whether somebody is about to take a pod or the allocation off the claim; nobody should count on either then."""
        return claim.metadata.uid in self._releasing

    def begin_release(self, claim: ResourceClaim) -> None:
        """It is going to be released; to be ended as often."""
        uid = claim.metadata.uid
        self._releasing[uid] = self._releasing.get(uid, 0) + 1

    def end_release(self, claim: ResourceClaim) -> None:
        """It was released, or could not be."""
        uid = claim.metadata.uid
        left = self._releasing.get(uid, 0) - 1
        if left > 0:
            self._releasing[uid] = left
        else:
            self._releasing.pop(uid, None)


def owner_of_extended(claim: ResourceClaim) -> str:
    """The uid of the pod for whose extended resources the claim was made; empty for all other claims."""
    if (claim.metadata.annotations or {}).get(EXTENDED_CLAIM) != "true":
        return ""
    return next((owner.uid for owner in claim.metadata.owner_references or () if owner.controller), "")


def _allocated(claim: ResourceClaim, allocation: AllocationResult) -> ResourceClaim:
    return replace(claim, status=replace(claim.status, allocation=allocation))


def _newer(version: str, than: str) -> bool:
    """Whether a version is known to come after another one; most are numbers."""
    if version.isdecimal() and than.isdecimal():
        return (len(version), version) > (len(than), than)
    return version != than


class DeviceObjects:
    """The resource.k8s.io objects of the cluster.

    Attributes:
        claims: ResourceClaims by name and namespace; what was allocated and not yet written is assumed here.
        slices: ResourceSlices by name; `where` finds those of a driver's pool, `driver/pool`.
        classes: DeviceClasses by name.
        taint_rules: DeviceTaintRules by name.
    """

    def __init__(self) -> None:
        self._served: dict[str, str] = {}
        self._served_at = -1
        self.claims = ClaimTable()
        self.slices: Table[ResourceSlice] = Table(lambda item: f"{item.spec.driver}/{item.spec.pool.name}")
        self.classes: Table[DeviceClass] = Table()
        self.taint_rules: Table[DeviceTaintRule] = Table()
        self.tables: Final[Mapping[type[Any], Table[Any]]] = MappingProxyType(
            {
                ResourceClaim: self.claims,
                ResourceSlice: self.slices,
                DeviceClass: self.classes,
                DeviceTaintRule: self.taint_rules,
            }
        )

    def class_of(self, resource: str) -> str | None:
        """The class whose devices serve an extended resource; of several the newest, of those the first by name."""
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
        """The resources that the pod requests and that classes serve, with the classes."""
        if not len(self.classes):
            return {}
        found = ((name, self.class_of(name)) for name, amount in pod.requests.items() if amount and "/" in name)
        return {name: served_by for name, served_by in found if served_by is not None}
