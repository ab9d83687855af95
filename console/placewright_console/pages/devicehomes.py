"""Finds the node that can use a device alone, as the slices of its pool say.

A device in reach of several nodes is at none of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from placewright.api.devices import AllocatedDevice, Device, ResourceSlice
from placewright.cluster.devices import DeviceObjects


class DeviceHome(NamedTuple):
    """A device as its driver publishes it.

    Attributes:
        published: False if no slice of the pool's latest generation has it.
        node: node that can use it alone; empty if several can.
        capacity: its capacities as they are written.
    """

    published: bool = False
    node: str = ""
    capacity: Mapping[str, str] = {}


def home_of(objects: DeviceObjects, result: AllocatedDevice) -> DeviceHome:
    """Find an allocated device. O(devices of its pool)."""
    for device, node in devices_at(latest(objects.slices.where(f"{result.driver}/{result.pool}"))):
        if device.name == result.device:
            capacity = {name: str(each.value) for name, each in (device.capacity or {}).items()}
            return DeviceHome(True, node, capacity)
    return DeviceHome()


def latest(slices: Iterable[ResourceSlice]) -> list[ResourceSlice]:
    """Return the slices of a pool's latest generation, which alone counts."""
    known = list(slices)
    generation = max((each.spec.pool.generation for each in known), default=0)
    return sorted((each for each in known if each.spec.pool.generation == generation), key=lambda each: each.metadata.name)


def devices_at(slices: Iterable[ResourceSlice]) -> Iterator[tuple[Device, str]]:
    """Yield the devices of slices, each with the node that can use it alone.

    Yields:
        Device and node; the node is empty if several nodes, or none that is known, can use the device.
    """
    for each in slices:
        own = each.spec.per_device_node_selection
        for device in each.spec.devices or ():
            yield device, (device.node_name if own else each.spec.node_name) or ""
