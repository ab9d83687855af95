"""The order in which kube-scheduler up to 1.22 lists nodes: one of each zone in turn (`nodeTree` of its cache)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from placewright.cluster.cluster import Cluster
from placewright.framework.memory import NodeMemory
from placewright.framework.zones import zones


def zone_walk(memory: NodeMemory, cluster: Cluster) -> NDArray[np.intp]:
    """Return each row's place when nodes are taken from one zone after the other in turn.

    Zones come in the order of their first node, and nodes without a zone are a zone too. Free rows have places as well.

    Args:
        memory: keeps the places until a node changes.
        cluster: its node labels are read.

    Returns:
        Places by row, shape (size,), from 0.
    """
    return memory.recall(cluster, ("walk",), lambda: _zone_walk(zones(memory, cluster).codes, cluster.present))


def _zone_walk(codes: NDArray[np.intp], present: NDArray[np.bool_]) -> NDArray[np.intp]:
    # Free rows last: they hold no node, so no zone begins with one.
    rows = np.concatenate([np.flatnonzero(present), np.flatnonzero(~present)])
    _, first, zone = np.unique(codes[rows], return_index=True, return_inverse=True)
    by_zone = np.argsort(zone, kind="stable")
    sizes = np.bincount(zone)
    nth = np.empty(len(rows), np.intp)
    nth[by_zone] = np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    place = np.empty(len(rows), np.intp)
    place[rows[np.lexsort((first[zone], nth))]] = np.arange(len(rows))
    return place
