"""The devices that a simulated driver publishes for a node: whole ones, partitions, or shared ones. Pure functions."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from kubesandbox.status import Object

DRIVER: Final = "gpu.sandbox.placewright.dev"
EXTENDED_RESOURCE: Final = "sandbox.placewright.dev/gpu"
ATTACHED: Final = "sandbox.placewright.dev/attached"
ATTACH_FAILED: Final = "sandbox.placewright.dev/attach-failed"
#: Number of devices that the API server allows in one slice.
MAX_COUNTER_SETS: Final = 8
#: Number of the smallest parts of a device with partitions.
UNITS: Final = 8
PARTS: Final = (("whole", 1), ("half", 2), ("quarter", 4))


class DeviceKind(StrEnum):
    """The way in which claims share the devices of a node."""

    WHOLE = "whole"
    PARTITIONS = "partitions"
    SHARES = "shares"
    ATTACHED = "attached"


@dataclass(frozen=True)
class DeviceLayout:
    """The devices of each node.

    Attributes:
        count: number of devices of a node.
        kind: `WHOLE` for one claim each. `PARTITIONS` for devices that are also allocated in halves and quarters, with counters of the
            pool. `SHARES` for any number of claims, by the memory that they ask for. `ATTACHED` for whole devices that are attached
            before binding.
        model, memory, driver_version: attributes of the devices.
        numa_nodes: number of NUMA nodes, over which the devices are spread evenly.
        driver: name of the driver and of the DeviceClass.
        slice_size: largest number of devices in one ResourceSlice.
        attach_seconds: seconds from allocation to the binding condition, `ATTACHED` only.
        label: label of the nodes with devices; empty for all nodes.
    """

    count: int = 8
    kind: DeviceKind = DeviceKind.WHOLE
    model: str = "sandbox-80"
    memory: int = 80
    driver_version: str = "1.0.0"
    numa_nodes: int = 2
    driver: str = DRIVER
    slice_size: int = 64
    attach_seconds: float = 0.2
    label: str = ""

    def is_for(self, node: Object) -> bool:
        """Return whether the node gets devices."""
        return not self.label or self.label in (node["metadata"].get("labels") or {})


def devices_of(layout: DeviceLayout, node: str) -> list[Object]:
    """Return the devices of a node in the form of a ResourceSlice."""
    made: list[Object] = []
    for index in range(layout.count):
        whole = _whole(layout, node, index)
        made += _partitions(layout, whole, index) if layout.kind is DeviceKind.PARTITIONS else [whole]
    return made


def counters_of(layout: DeviceLayout) -> list[Object]:
    """Return the counter sets of partitions, one a device, or nothing for other kinds."""
    if layout.kind is not DeviceKind.PARTITIONS:
        return []
    amounts = {"memory": {"value": f"{layout.memory}Gi"}, "units": {"value": str(UNITS)}}
    return [{"name": f"gpu-{index}", "counters": amounts} for index in range(layout.count)]


def device_class(layout: DeviceLayout) -> Object:
    """Return a class of all devices of the driver. Pods may also ask for them with an extended resource."""
    selector = {"cel": {"expression": f'device.driver == "{layout.driver}"'}}
    return {"metadata": {"name": layout.driver}, "spec": {"selectors": [selector], "extendedResourceName": EXTENDED_RESOURCE}}


def _whole(layout: DeviceLayout, node: str, index: int) -> Object:
    identity = uuid.uuid5(uuid.NAMESPACE_DNS, f"{layout.driver}/{node}/{index}")
    attributes: Object = {
        "model": {"string": layout.model},
        "uuid": {"string": f"gpu-{identity}"},
        "index": {"int": index},
        "numa": {"int": index * layout.numa_nodes // layout.count},
        "driverVersion": {"version": layout.driver_version},
    }
    memory: Object = {"value": f"{layout.memory}Gi"}
    device: Object = {"name": f"gpu-{index}", "attributes": attributes, "capacity": {"memory": memory}}
    if layout.kind is DeviceKind.SHARES:
        allowed = {"min": "1Gi", "step": "1Gi", "max": f"{layout.memory}Gi"}
        memory["requestPolicy"] = {"default": "1Gi", "validRange": allowed}
        device["allowMultipleAllocations"] = True
    elif layout.kind is DeviceKind.ATTACHED:
        device |= {"bindingConditions": [ATTACHED], "bindingFailureConditions": [ATTACH_FAILED]}
    return device


def _partitions(layout: DeviceLayout, whole: Object, index: int) -> list[Object]:
    """Make the whole device and its parts. They use the same counters, so an allocated one excludes others."""
    made: list[Object] = []
    for profile, parts in PARTS:
        memory, units = f"{layout.memory * 1024 // parts}Mi", str(UNITS // parts)
        takes = {"counterSet": f"gpu-{index}", "counters": {"memory": {"value": memory}, "units": {"value": units}}}
        for part in range(parts):
            name = whole["name"] if parts == 1 else f"{whole['name']}-{profile}-{part}"
            attributes = {**whole["attributes"], "profile": {"string": profile}}
            has = {"memory": {"value": memory}}
            made.append({"name": name, "attributes": attributes, "capacity": has, "consumesCounters": [takes]})
    return made
