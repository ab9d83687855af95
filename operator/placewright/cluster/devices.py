"""Claims to devices, and the devices, as the API server shows them and as they are assumed to be: tables by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from placewright.api.devices import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from placewright.cluster.storage import Table

#: The kinds kept here.
DeviceObject = ResourceClaim | ResourceSlice | DeviceClass | DeviceTaintRule
DEVICE_KINDS: Final = (ResourceClaim, ResourceSlice, DeviceClass, DeviceTaintRule)


class DeviceObjects:
    """The resource.k8s.io objects of the cluster.

    Attributes:
        claims: ResourceClaims by name and namespace; what was allocated and not yet written is assumed here.
        slices: ResourceSlices by name; `where` finds those of a driver's pool, `driver/pool`.
        classes: DeviceClasses by name.
        taint_rules: DeviceTaintRules by name.
    """

    def __init__(self) -> None:
        self.claims: Table[ResourceClaim] = Table()
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
