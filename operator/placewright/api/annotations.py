"""Names of the annotations that Placewright writes, and the shape of what stands in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from placewright.api.decode import DECODE_ERRORS

#: On every pod that Placewright bound; it rides on the Binding, so the pod and its decision are one write. JSON: `Decision`.
DECISION: Final = "placewright.dev/decision"

#: On pods that have devices of their own on their node: which ones. JSON: resource name to indices, `{"example.com/gpu-milli": [3]}`.
DEVICES: Final = "placewright.dev/devices"
#: Stands under `DEVICES` of a pod that came with that annotation, where no devices were chosen for it: what came with it was not ours.
NO_DEVICES: Final = "{}"
#: Characters of what stands under `DEVICES`; the devices of the largest node, by number, have about as many.
_LONGEST_DEVICES: Final = 4096


class Decision(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Who decided a placement, and how close it was.

    Attributes:
        profile: name of the SchedulingProfile.
        generation: its generation when the decision was made.
        score: total score of the chosen node.
        runner_up: total score of the best node that was not chosen; None when there was no other.
        plugins: plugin name to its weighted part of `score`.
    """

    profile: str
    generation: int = 0
    score: int = 0
    runner_up: int | None = None
    plugins: dict[str, int] = msgspec.field(default_factory=dict)


def read_decision(annotations: dict[str, str] | None) -> Decision | None:
    """The decision in a pod's annotations, or None when there is none or it cannot be read."""
    text = (annotations or {}).get(DECISION)
    if text is None:
        return None
    try:
        return msgspec.json.decode(text, type=Decision)
    except (*DECODE_ERRORS, UnicodeEncodeError):
        return None


def write_devices(resource: str, devices: Sequence[int]) -> str:
    """What stands under `DEVICES` of a pod that has these devices of a resource."""
    return msgspec.json.encode({resource: list(devices)}).decode()


def read_devices(annotations: Mapping[str, str] | None, resource: str) -> tuple[int, ...] | None:
    """The devices of a resource that a pod has, or None when its annotations do not tell, or cannot be read."""
    text = (annotations or {}).get(DEVICES)
    if text is None or len(text) > _LONGEST_DEVICES:
        return None
    try:
        return msgspec.json.decode(text, type=dict[str, tuple[int, ...]]).get(resource)
    except (*DECODE_ERRORS, UnicodeEncodeError):
        return None
