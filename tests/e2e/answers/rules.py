"""Scores whose rule changed between 1.20 and 1.36, each by plain arithmetic as it was before and as it is after.

Sources: the plugins of both versions. Every function takes a scene and gives the normalised score of each feasible node.
"""

from __future__ import annotations

from collections.abc import Sequence

from e2e.answers.scene import ByNode, Scene
from placewright.api.objects import Container
from placewright.api.pods import PodInfo
from placewright.api.requests import CPU, MEMORY, canonical

_MIB = 2**20


# --- NodeResourcesBalancedAllocation ---------------------------------------------------------------------------------------------


def balanced_by_difference(scene: Scene) -> ByNode:
    """1.20: 100·(1 − |CPU fraction − memory fraction|), or 0 when either is full; who asks for nothing counts with the defaults."""
    return {node: _difference(*_fractions_with_defaults(scene, node)) for node in sorted(scene.our_feasible)}


def _fractions_with_defaults(scene: Scene, node: str) -> tuple[float, float]:
    pods = [*scene.on_nodes[node], scene.pod]
    offer = _allocatable(scene, node)
    return sum(p.scoring_cpu for p in pods) / offer[CPU], sum(p.scoring_memory for p in pods) / offer[MEMORY]


def _difference(cpu: float, memory: float) -> int:
    return 0 if cpu >= 1 or memory >= 1 else int((1 - abs(cpu - memory)) * 100)


def balanced_by_what_it_changes(scene: Scene) -> ByNode:
    """1.36: 50 + half of (50 + how much evener the pod makes the node), by real requests; nothing for pods that request neither."""
    if not (scene.pod.requests.get(CPU) or scene.pod.requests.get(MEMORY)):
        return dict.fromkeys(sorted(scene.our_feasible), 0)
    return {node: _change(scene, node) for node in sorted(scene.our_feasible)}


def _change(scene: Scene, node: str) -> int:
    there = scene.on_nodes[node]
    offer = _allocatable(scene, node)

    def evenness(pods: Sequence[PodInfo]) -> int:
        used = {name: sum(p.requests.get(name, 0) for p in pods) for name in (CPU, MEMORY)}
        cpu, memory = (min(used[name] / offer[name], 1.0) for name in (CPU, MEMORY))
        return int((1 - abs(cpu - memory) / 2) * 100)

    return 50 + (50 + evenness([*there, scene.pod]) - evenness(there)) // 2


def _allocatable(scene: Scene, node: str) -> dict[str, int]:
    return canonical(scene.nodes[node].status.allocatable or {})


# --- ImageLocality ---------------------------------------------------------------------------------------------------------------


def images_of_containers(scene: Scene) -> ByNode:
    """1.20: init containers do not count."""
    return _locality(scene, scene.spec.containers or ())


def images_of_all_containers(scene: Scene) -> ByNode:
    """1.36: init containers count as containers do."""
    return _locality(scene, (*(scene.spec.init_containers or ()), *(scene.spec.containers or ())))


def _locality(scene: Scene, containers: Sequence[Container]) -> ByNode:
    sizes = {name: _images(scene, name) for name in scene.nodes}
    low, high = 23 * _MIB, 1000 * _MIB * len(containers)

    def score(node: str) -> int:
        total = 0
        for image in (_tagged(container.image) for container in containers):
            if image in sizes[node]:
                share = sum(image in each for each in sizes.values()) / len(sizes)
                total += int(sizes[node][image] * share)
        return 100 * (min(max(total, low), high) - low) // (high - low)

    return {node: score(node) for node in sorted(scene.our_feasible)}


def _images(scene: Scene, node: str) -> dict[str, int]:
    return {name: image.size_bytes for image in scene.nodes[node].status.images or () for name in image.names or ()}


def _tagged(image: str) -> str:
    return image if ":" in image.rpartition("/")[2] else f"{image}:latest"


# --- InterPodAffinity ------------------------------------------------------------------------------------------------------------


def affinity_from_zero(scene: Scene) -> ByNode:
    """1.20: between the lowest and the highest sum, each no farther in than 0."""
    raw = scene.raw_scores("InterPodAffinity")
    return _between(raw, min(0, *raw.values()), max(0, *raw.values()))


def affinity_from_lowest(scene: Scene) -> ByNode:
    """1.36: between the lowest and the highest sum."""
    raw = scene.raw_scores("InterPodAffinity")
    return _between(raw, min(raw.values()), max(raw.values()))


def _between(raw: ByNode, low: int, high: int) -> ByNode:
    return {node: 0 if high == low else int(100 * ((score - low) / (high - low))) for node, score in raw.items()}
