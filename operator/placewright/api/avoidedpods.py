"""The annotation by which a node names the controllers whose pods it would rather not have.

kube-scheduler read it up to 1.22. The plugin NodePreferAvoidPods reads it, and snapshots keep it.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final, NamedTuple

import msgspec

from placewright.api.decode import DECODE_ERRORS
from placewright.api.objects import Node, OwnerReference

ANNOTATION: Final = "scheduler.alpha.kubernetes.io/preferAvoidPods"


class Controller(NamedTuple):
    """The controllers whose pods are to be avoided."""

    kind: str
    uid: str


class _PodSignature(msgspec.Struct, frozen=True, rename="camel"):
    pod_controller: OwnerReference | None = None


class _AvoidedPod(msgspec.Struct, frozen=True, rename="camel"):
    pod_signature: _PodSignature | None = None
    eviction_time: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    reason: str | None = None
    message: str | None = None


class _AvoidedPods(msgspec.Struct, frozen=True, rename="camel"):
    """The annotation's value, all of it: as in kube-scheduler, one wrong field and none of it counts."""

    prefer_avoid_pods: tuple[_AvoidedPod, ...] | None = None


_DECODER: Final = msgspec.json.Decoder(_AvoidedPods)


def avoided_by(node: Node) -> frozenset[Controller]:
    """Read the controllers that a node's annotation names.

    Returns:
        The controllers; none when the annotation cannot be read.
    """
    text = (node.metadata.annotations or {}).get(ANNOTATION)
    if not text:
        return frozenset()
    try:
        found = _DECODER.decode(text)
    except DECODE_ERRORS:
        return frozenset()
    signatures = (each.pod_signature for each in found.prefer_avoid_pods or ())
    owners = (signature.pod_controller for signature in signatures if signature)
    return frozenset(Controller(owner.kind, owner.uid) for owner in owners if owner)
