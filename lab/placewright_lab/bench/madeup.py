"""Made-up clusters and pods for the demo and the benchmarks. They are seeded, so equal calls return equal objects.

The tables of shapes are ours. They have round numbers in the proportions of mixed clusters, and, for `gpu_pods`, of clusters that share
GPUs between pods.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final, NamedTuple

from placewright.offline.kinds import Manifest
from placewright_lab.readers.openb import node_manifest, pod_manifest

ZONES: Final = ("a", "b", "c")


class NodeShape(NamedTuple):
    """A size of nodes, and its frequency."""

    share: int
    cpu_milli: int
    memory_mib: int
    gpus: int = 0
    model: str = ""


class PodShape(NamedTuple):
    """A kind of pods, its requests, and its frequency."""

    share: int
    app: str
    cpu_milli: int
    memory_mib: int
    gpu_milli: int = 0


MIXED_NODES: Final = (
    NodeShape(40, 16_000, 64 * 1024),
    NodeShape(30, 32_000, 128 * 1024),
    NodeShape(15, 64_000, 256 * 1024, 4, "T4"),
    NodeShape(15, 96_000, 384 * 1024, 8, "A10"),
)
GPU_NODES: Final = (
    NodeShape(20, 64_000, 256 * 1024),
    NodeShape(37, 96_000, 384 * 1024, 8, "A10"),
    NodeShape(35, 96_000, 384 * 1024, 2, "T4"),
    NodeShape(8, 64_000, 320 * 1024, 4, "V100"),
)
MIXED_PODS: Final = (
    PodShape(35, "web", 500, 1024),
    PodShape(25, "api", 1000, 2048),
    PodShape(15, "cache", 2000, 8192),
    PodShape(12, "batch", 4000, 8192),
    PodShape(8, "inference", 4000, 16_384, 500),
    PodShape(5, "training", 8000, 32_768, 1000),
)
GPU_PODS: Final = (
    PodShape(13, "cpu-only", 16_000, 48 * 1024),
    PodShape(12, "shared-large", 4000, 6 * 1024, 800),
    PodShape(14, "shared-half", 10_000, 40 * 1024, 500),
    PodShape(10, "shared-small", 4000, 20 * 1024, 250),
    PodShape(43, "one-gpu", 12_000, 48 * 1024, 1000),
    PodShape(7, "one-gpu-small", 4000, 8 * 1024, 1000),
    PodShape(1, "eight-gpus", 80_000, 300 * 1024, 8000),
)


def mixed_nodes(count: int, seed: int = 0) -> list[Manifest]:
    """Make nodes of mixed sizes in three zones. A third of them have GPUs."""
    return make_nodes(MIXED_NODES, count, seed)


def gpu_nodes(count: int, seed: int = 0) -> list[Manifest]:
    """Make nodes of a cluster for GPUs. Most of them have some, four a node on average."""
    return make_nodes(GPU_NODES, count, seed)


def make_nodes(shapes: Sequence[NodeShape], count: int, seed: int) -> list[Manifest]:
    """Make `count` nodes named `node-00000...`, with shapes drawn by share."""
    drawn = random.Random(seed).choices(shapes, [s.share for s in shapes], k=count)
    nodes = []
    for index, shape in enumerate(drawn):
        _, cpu, memory, gpus, model = shape
        node = node_manifest(f"node-{index:05d}", cpu_milli=cpu, memory_mib=memory, gpus=gpus, model=model)
        node["metadata"]["labels"]["topology.kubernetes.io/zone"] = f"zone-{ZONES[index % len(ZONES)]}"
        nodes.append(node)
    return nodes


def plain_pods(count: int) -> list[Manifest]:
    """Make pods that are all alike: 100m of CPU, 200 MiB."""
    return [pod_manifest(f"plain-{i:06d}", cpu_milli=100, memory_mib=200, labels={"app": "plain"}) for i in range(count)]


def mixed_pods(count: int, seed: int = 0) -> list[Manifest]:
    """Make pods of six kinds, some with a GPU or a half. Each wants about 2 CPUs on average."""
    return make_pods(MIXED_PODS, count, seed)


def gpu_pods(count: int, seed: int = 0) -> list[Manifest]:
    """Make pods of a cluster that shares GPUs. Most of them ask for one GPU or a part of one."""
    return make_pods(GPU_PODS, count, seed)


def make_pods(shapes: Sequence[PodShape], count: int, seed: int) -> list[Manifest]:
    """Make `count` pods with the names of their kinds, and shapes drawn by share."""
    drawn = random.Random(seed).choices(shapes, [s.share for s in shapes], k=count)
    return [
        pod_manifest(
            f"{shape.app}-{index:06d}",
            cpu_milli=shape.cpu_milli,
            memory_mib=shape.memory_mib,
            gpu_milli=shape.gpu_milli,
            labels={"app": shape.app},
        )
        for index, shape in enumerate(drawn)
    ]
