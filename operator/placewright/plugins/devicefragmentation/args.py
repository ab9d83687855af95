"""Arguments of DeviceFragmentation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Final

import msgspec

from placewright.api.bad_input import in_json
from placewright.api.quantity import QuantityError
from placewright.api.requests import canonical, is_extended_resource
from placewright.framework.constraints import Problem, not_empty, within

#: Most devices of one node that the plugin tells apart. It does not use further ones.
MOST_DEVICES: Final = 256
_MOST_UNITS: Final = 1_000_000
_MOST_PODS: Final = 1_000_000
_MOST_SHAPES: Final = 1024


class TypicalPod(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A shape of pods that the profile expects, and its weight among the shapes."""

    requests: Mapping[str, str]
    node_selector: Mapping[str, str] | None = None
    popularity: Annotated[int, within(1, _MOST_PODS)] = 1


class DeviceFragmentationArgs(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Arguments of DeviceFragmentation.

    `resource` counts the units of all devices of a node together; each device has `unitsPerDevice` of them. The mix is the `shapes` most
    frequent shapes of the last `window` pods that requested the resource. If `typicalPods` are given, they alone are the mix.
    """

    resource: Annotated[str, not_empty("the name of an extended resource")] = "openb/gpu-milli"
    units_per_device: Annotated[int, within(1, _MOST_UNITS)] = 1000
    window: Annotated[int, within(1, _MOST_PODS)] = 10_000
    shapes: Annotated[int, within(1, _MOST_SHAPES)] = 128
    typical_pods: tuple[TypicalPod, ...] = ()

    def validate(self) -> list[Problem]:
        """Check that nodes can offer the resource, and that each typical pod requests an amount that a pod may."""
        return list(_problems(self))


def may_be_asked(units: int, units_per_device: int) -> bool:
    """Return whether the units are a share of one device, or whole devices."""
    return 0 < units <= units_per_device or (units > 0 and units % units_per_device == 0)


def _problems(args: DeviceFragmentationArgs) -> Iterator[Problem]:
    if not is_extended_resource(args.resource):
        yield "resource", in_json(args.resource), "the name of an extended resource, such as nvidia.com/gpu"
        return
    for index, typical in enumerate(args.typical_pods):
        path = f"typicalPods[{index}].requests"
        try:
            units = canonical(typical.requests).get(args.resource, 0)
        except QuantityError as error:
            yield path, str(error), "quantities, as in a pod"
            continue
        if not may_be_asked(units, args.units_per_device):
            allowed = f"1 to {args.units_per_device}, or a multiple of {args.units_per_device}"
            yield f"{path}.{args.resource}", str(units), allowed
