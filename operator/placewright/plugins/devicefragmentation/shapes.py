"""What of a pod says where pods like it could go: the task classes of the mix that fragmentation is measured by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec

from placewright.api.objects import NodeSelector
from placewright.api.pods import NO_LABELS, PodInfo
from placewright.api.requests import CPU, MEMORY
from placewright.api.selectors import compile_node_selector, selector_from_pairs
from placewright.plugins.nodeaffinity import RequiredNodeAffinity

#: Of pods that go to any node.
ANY_NODE: Final = b""


class Shape(NamedTuple):
    """One class of pods.

    Attributes:
        units: of the device's resource.
        cpu, memory: milli-CPU and bytes.
        selection: node selector and required node affinity as canonical JSON; empty for most.
    """

    units: int
    cpu: int
    memory: int
    selection: bytes


def shape_of(pod: PodInfo, resource: str) -> Shape:
    """The class of a pod that asks for this resource."""
    requests = pod.requests
    return Shape(requests.get(resource, 0), requests.get(CPU, 0), requests.get(MEMORY, 0), selection_of(pod))


def selection_of(pod: PodInfo) -> bytes:
    """Node selector and required node affinity as canonical JSON; empty where there is neither."""
    return selection_from(pod.pod.spec.node_selector, _required(pod))


def selection_from(selector: Mapping[str, str] | None, required: NodeSelector | None = None) -> bytes:
    """The same from its parts."""
    return msgspec.json.encode((selector, required), order="deterministic") if selector or required else ANY_NODE


def demand_of(selection: bytes) -> RequiredNodeAffinity:
    """What `selection_of` wrote down, ready to be asked of nodes."""
    if selection == ANY_NODE:
        return RequiredNodeAffinity()
    selector, required = msgspec.json.decode(selection, type=tuple[dict[str, str] | None, NodeSelector | None])
    terms = None if required is None else compile_node_selector(required)
    return RequiredNodeAffinity(selector_from_pairs(selector or NO_LABELS), terms)


def _required(pod: PodInfo) -> NodeSelector | None:
    affinity = pod.pod.spec.affinity.node_affinity if pod.pod.spec.affinity else None
    return affinity.required_during_scheduling_ignored_during_execution if affinity else None
