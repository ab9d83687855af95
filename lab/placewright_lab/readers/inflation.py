"""More pods than a trace has, drawn from it until they ask for more GPUs than there are. So one sees how full a cluster can get.

Weng et al. (USENIX ATC 2023) compare schedulers in this way, because a trace that was recorded on a cluster mostly fits it.
"""

from __future__ import annotations

import random
from typing import Final

from placewright.api.bad_input import bad_field
from placewright.api.objects import Node
from placewright.api.pods import PodInfo
from placewright.api.requests import canonical
from placewright.offline.kinds import Manifest
from placewright.offline.world import read_object
from placewright_lab.readers.openb import gpus_in
from placewright_lab.simulation.scenario import Scenario

_NEEDED: Final = "a scenario with nodes that have GPUs, and pods without a node that ask for some"
#: Metadata of a single pod.
_ITS_OWN: Final = frozenset({"uid", "resourceVersion", "creationTimestamp", "generateName"})
_LONGEST_NAME: Final = 200


def inflated(scenario: Scenario, percent: int, seed: int) -> Scenario:
    """Return the scenario with other pods to place, drawn at random with equal chances from the pods without a node.

    The drawn pods ask for `percent` of all GPUs of the nodes. They are there at the beginning, in the order of the draw, and stay. Equal
    seeds draw the same pods. Raises `InputError` for a scenario with changes over time, without GPUs, or without pods that ask for any.
    """
    if scenario.happenings:
        raise bad_field("--inflate", f"{scenario.source}, in which pods come and go", "a snapshot, manifests or a trace")
    stay: list[Manifest] = []
    waiting: list[tuple[Manifest, float]] = []
    offered = 0.0
    for manifest in scenario.objects:
        item = read_object(manifest, scenario.source) if manifest.get("kind") in ("Node", "Pod") else None
        if isinstance(item, PodInfo) and not item.node_name:
            waiting.append((manifest, gpus_in(item.requests)))
            continue
        stay.append(manifest)
        if isinstance(item, Node):
            offered += gpus_in(canonical(item.status.allocatable or {}))
    if not offered or not any(gpus for _, gpus in waiting):
        raise bad_field("--inflate", scenario.source, _NEEDED)
    drawn = _draw(waiting, offered * percent / 100, random.Random(seed))
    return Scenario(f"{scenario.source}, inflated to {percent} % of its GPUs", [*stay, *drawn], kubernetes=scenario.kubernetes)


def _draw(waiting: list[tuple[Manifest, float]], wanted: float, rng: random.Random) -> list[Manifest]:
    drawn: list[Manifest] = []
    total = 0.0
    while total < wanted:
        manifest, gpus = rng.choice(waiting)
        drawn.append(_again(manifest, len(drawn)))
        total += gpus
    return drawn


def _again(manifest: Manifest, number: int) -> Manifest:
    """Return another pod like this one, with the number in its name."""
    meta = {key: value for key, value in manifest["metadata"].items() if key not in _ITS_OWN}
    name = f"{str(manifest['metadata'].get('name', 'pod'))[:_LONGEST_NAME]}-{number:06d}"
    return {**manifest, "metadata": {**meta, "name": name}}
