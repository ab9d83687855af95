"""Names of the annotations that Placewright writes or reads, and the JSON in those it writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeVar

import msgspec

from placewright.api.decode import DECODE_ERRORS

T = TypeVar("T")

#: Annotation of every pod that Placewright bound. The Binding carries it, so that pod and decision are one write. JSON: `Decision`.
DECISION: Final = "placewright.dev/decision"

#: Annotation of pods with the devices that they have on their node. JSON: resource name to indices, `{"example.com/gpu-milli": [3]}`.
DEVICES: Final = "placewright.dev/devices"
#: Replaces a value of `DEVICES` that a pod was created with. Such a value is not ours, and no devices were chosen.
NO_DEVICES: Final = "{}"
#: Annotation of pods with the most pods like them that a node, a rack or a zone may hold. The plugin DomainLimit reads it.
DOMAIN_LIMITS: Final = "placewright.dev/domain-limits"
#: Characters of a value of `DEVICES` that is read; the indices of all devices of the largest node take about as many.
_LONGEST_DEVICES: Final = 4096


class Decision(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The profile that decided a placement, and how close the decision was.

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
    """Read the decision from a pod's annotations.

    Returns:
        The decision; None when there is none, or it cannot be read.
    """
    return _read((annotations or {}).get(DECISION), Decision)


def write_devices(resource: str, devices: Sequence[int]) -> str:
    """Write the value of `DEVICES`."""
    return msgspec.json.encode({resource: list(devices)}).decode()


def read_devices(annotations: Mapping[str, str] | None, resource: str) -> tuple[int, ...] | None:
    """Read a pod's devices from its annotations.

    Returns:
        Indices on the node; None when the annotations do not tell.
    """
    text = (annotations or {}).get(DEVICES)
    if text is not None and len(text) > _LONGEST_DEVICES:
        return None
    devices = _read(text, dict[str, tuple[int, ...]])
    return None if devices is None else devices.get(resource)


def _read(text: str | None, kind: type[T]) -> T | None:
    try:
        return None if text is None else msgspec.json.decode(text, type=kind)
    except (*DECODE_ERRORS, UnicodeEncodeError):
        return None
