"""Which devices are in use, by the allocations of claims: those that are written, and those that we assume."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from placewright.api.devices import AllocatedDevice, ResourceClaim
from placewright.api.quantity import QuantityError, nano
from placewright.plugins.dynamicresources.pools import DeviceId

_NOTHING: Final[Mapping[str, int]] = {}


@dataclass(slots=True)
class Use:
    """How a device is used.

    Attributes:
        owners: claims that have it for themselves; more than one only if somebody made a mistake.
        shares: shares of it that are given out.
        taken: of its capacities, by all shares together, in nano-units.
    """

    owners: int = 0
    shares: int = 0
    taken: dict[str, int] = field(default_factory=dict)


class Usage:
    """Devices in use. Access for administrators uses nothing."""

    def __init__(self) -> None:
        self._uses: dict[DeviceId, Use] = {}
        self._by_claim: dict[str, tuple[AllocatedDevice, ...]] = {}

    def owned(self, device: DeviceId) -> bool:
        """True when a claim has this device for itself."""
        use = self._uses.get(device)
        return use is not None and use.owners > 0

    def shared(self, device: DeviceId) -> bool:
        """True when shares of this device are given out."""
        use = self._uses.get(device)
        return use is not None and use.shares > 0

    def taken(self, device: DeviceId) -> Mapping[str, int]:
        """What is taken of a device's capacities, in nano-units."""
        use = self._uses.get(device)
        return _NOTHING if use is None else use.taken

    def in_use(self, device: DeviceId) -> bool:
        """True when anybody has this device, or a share of it."""
        return device in self._uses

    def set_claim(self, key: str, claim: ResourceClaim | None) -> Iterable[DeviceId]:
        """A claim is like this now, or gone; returns the devices whose use that changed."""
        allocation = None if claim is None else claim.status.allocation
        now = () if allocation is None else tuple(each for each in allocation.devices.results or () if not each.admin_access)
        before = self._by_claim.pop(key, ())
        if now:
            self._by_claim[key] = now
        if now == before:
            return ()
        for result in before:
            self._count(result, -1)
        for result in now:
            self._count(result, 1)
        return {device_of(result) for result in (*before, *now)}

    def _count(self, result: AllocatedDevice, sign: int) -> None:
        device = device_of(result)
        use = self._uses.setdefault(device, Use())
        if result.share_id is None:
            use.owners += sign
        else:
            use.shares += sign
            for name, amount in (result.consumed_capacity or {}).items():
                use.taken[name] = use.taken.get(name, 0) + sign * _nanos(amount)
        if not use.owners and not use.shares:
            del self._uses[device]


def device_of(result: AllocatedDevice) -> DeviceId:
    """The device of a result."""
    return DeviceId(result.driver, result.pool, result.device)


def _nanos(amount: str | float) -> int:
    """API servers let no other than amounts pass; what is none after all counts for nothing."""
    try:
        return nano(amount)
    except QuantityError:
        return 0
