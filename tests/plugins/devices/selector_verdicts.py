"""A device, and the answer of an expression in CEL about it."""

from __future__ import annotations

from typing import Any

import msgspec
from device_worlds import DRIVERS, device

from placewright.api.devices import Device
from placewright.plugins.dynamicresources.selectors import CompiledSelector, DeviceShapes

Body = dict[str, Any]
GPU = DRIVERS[0]
MINE = f'device.attributes["{GPU}"]'
MEMORY = f'device.capacity["{GPU}"].memory'
VERSION = {"version": "1.10.0-rc.1+build"}
ATTRIBUTES = {"model": "a100", "numa": 3, "fast": True, "ver": VERSION, "other.example.com/rank": 7, "name": "über"}
A100 = device("gpu-0", attributes=ATTRIBUTES, capacity={"memory": "40Gi", "other.example.com/cores": "1500m"})


def shape_of(body: Body) -> Any:
    return DeviceShapes().of(GPU, msgspec.json.decode(msgspec.json.encode(body), type=Device))


def verdict(expression: str, body: Body = A100) -> bool | str:
    """The answer, or why there is none."""
    answer: bool | str = shape_of(body).matches(CompiledSelector(expression))
    return answer
