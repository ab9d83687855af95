"""Which devices of its node a pod gets: the paper's choice, that after which the node is least fragmented."""

from __future__ import annotations

import numpy as np

from placewright.plugins.devicefragmentation.workload import Ask, Nodes, Workload


def choose(workload: Workload, node: Nodes, ask: Ask, units: int) -> tuple[int, ...]:
    """Indices of the devices; there is room for the pod, which is not counted in `node`, one row.

    Of devices that are equally good for a share, the fullest; of those, the first. Whole devices are the first free ones.
    """
    free = node.devices[0]
    if ask.units > units:
        return tuple(np.flatnonzero(free == units)[: ask.units // units].tolist())
    useful = workload.useful_after(node, ask)[0]
    return (int(np.lexsort((free, -useful))[0]),)
