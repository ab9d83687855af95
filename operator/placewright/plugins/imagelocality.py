"""ImageLocality: prefer nodes that already have the pod's images. Implements Score.

score = 100·(sum − min)/(max − min), where min = 23 MiB and max = 1000 MiB·containers. The sum adds
⌊size·(nodes with the image / all nodes)⌋ for each image, and is clamped to [min, max]. Source: kube-scheduler `imagelocality`.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

import numpy as np

from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.interface import MAX_NODE_SCORE, CycleState, IntColumn, Reads, Rows, ScorePlugin

_MIB: Final = 1024 * 1024
MIN_THRESHOLD: Final = 23 * _MIB
MAX_CONTAINER_THRESHOLD: Final = 1000 * _MIB


class ImageLocality(ScorePlugin):
    """Scores bytes that need no pull, discounted for images that few nodes have."""

    name = "ImageLocality"
    reads = Reads.CLUSTER

    def sign(self, pod: PodInfo) -> Hashable:
        """Sign the pod by its images, with repetitions."""
        return _images(pod), _container_count(pod)

    def fingerprint(self, state: CycleState, cluster: Cluster) -> Hashable:
        """Return the versions of images and nodes, because scores depend on nothing else."""
        return cluster.images.version, cluster.node_count

    def score(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> IntColumn:
        """Score each row from 0 to 100."""
        known = [image for name in _images(pod) if (image := cluster.images.get(name)) is not None]
        if not known:
            return np.zeros(len(rows), np.int64)
        total = np.zeros(cluster.size, np.int64)
        for image in known:
            share = len(image.rows) / cluster.node_count
            total[np.fromiter(image.rows, np.intp, len(image.rows))] += int(image.size * share)
        ceiling = MAX_CONTAINER_THRESHOLD * _container_count(pod)
        clamped = np.clip(total[rows], MIN_THRESHOLD, max(ceiling, MIN_THRESHOLD))
        return MAX_NODE_SCORE * (clamped - MIN_THRESHOLD) // max(ceiling - MIN_THRESHOLD, 1)


def normalised_image_name(name: str) -> str:
    """Return the name with a tag: `nginx` is `nginx:latest`. A colon before the last slash is a registry's port."""
    return name if name.rfind(":") > name.rfind("/") else f"{name}:latest"


def _images(pod: PodInfo) -> tuple[str, ...]:
    spec = pod.pod.spec
    containers = [c.image for c in (*(spec.init_containers or ()), *(spec.containers or ()))]
    volumes = [volume.image.reference for volume in spec.volumes or () if volume.image is not None]
    return tuple(normalised_image_name(image) for image in (*containers, *volumes))


def _container_count(pod: PodInfo) -> int:
    return len(pod.pod.spec.init_containers or ()) + len(pod.pod.spec.containers or ())
