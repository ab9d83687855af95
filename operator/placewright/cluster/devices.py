"""Claims to devices, and the devices, as the API server shows them and as they are assumed to be: tables by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from msgspec.structs import replace

from placewright.api.devices import (
    EXTENDED_CLAIM,
    IMPLICIT_RESOURCE,
    Allocation,
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceSlice,
)
from placewright.api.pods import PodInfo
from placewright.cluster.storage import Table, key_of

#: The kinds kept here.
DeviceObject = ResourceClaim | ResourceSlice | DeviceClass | DeviceTaintRule
DEVICE_KINDS: Final = (ResourceClaim, ResourceSlice, DeviceClass, DeviceTaintRule)


@dataclass(slots=True)
class Pending:
    """An allocation that was decided, and that the API server does not show yet.

    Attributes:
        uid: of the claim; another one of its name has nothing to do with it.
        allocation: what the claim gets.
        users: uids of the pods on their way to a node that need it.
        written: the resourceVersion that the claim had once the allocation was in it; empty while it is not.
        unseen: the API server has never shown the claim.
    """

    uid: str
    allocation: Allocation
    users: set[str] = field(default_factory=set)
    written: str = ""
    unseen: bool = False


class ClaimTable(Table[ResourceClaim]):
    """ResourceClaims by name and namespace, with allocations that are being written.

    `where` finds those that serve the extended resources of the pod of a uid.

    A pending allocation holds, whatever else about the claim changes meanwhile, until the API server shows an allocation, or shows that
    the claim has lost it again, or it is withdrawn. So no device is given away twice because a finalizer was seen too early.
    """

    __slots__ = ("_pending", "_releasing")

    def __init__(self) -> None:
        super().__init__(owner_of_extended)
        self._pending: dict[str, Pending] = {}
        self._releasing: dict[str, int] = {}

    def pending(self, claim: ResourceClaim) -> Pending | None:
        """The allocation on its way into this claim, or None."""
        found = self._pending.get(key_of(claim.metadata))
        return found if found is not None and found.uid == claim.metadata.uid else None

    def allocate(self, claim: ResourceClaim, allocation: Allocation, user: str) -> Pending:
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
        """The API server has taken the pending allocation: it answered with this claim."""
        pending = self.pending(claim)
        if pending is not None:
            pending.written = claim.metadata.resource_version

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
        if pending is not None and pending.unseen:
            super().remove(claim)
        elif pending is not None:
            self.restore(claim)

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
        allocated = shown.status.allocation is not None
        settled = not pending.users and (allocated or _newer(shown.metadata.resource_version, pending))
        if settled or pending.uid != shown.metadata.uid:
            del self._pending[key]
            self.restore(shown)
        elif not allocated and shown is self._items[key]:
            self.assume(_allocated(shown, pending.allocation))

    def remove(self, item: ResourceClaim) -> ResourceClaim | None:
        """As any table's."""
        self._pending.pop(key_of(item.metadata), None)
        return super().remove(item)

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


def _allocated(claim: ResourceClaim, allocation: Allocation) -> ResourceClaim:
    return replace(claim, status=replace(claim.status, allocation=allocation))


def _newer(version: str, pending: Pending) -> bool:
    """Whether a claim that is shown without its allocation was written after that: then it has lost it. Versions are numbers."""
    if not pending.written:
        return False
    if version.isdecimal() and pending.written.isdecimal():
        return (len(version), version) > (len(pending.written), pending.written)
    return version != pending.written


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
