"""Levels of what nodes without room lack of a waiting pod's requests, and the nodes that lack least.

The map shades these nodes by level. Without levels most nodes of a full cluster look the same: "rejected by NodeResourcesFit".
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.interface import Rows
from placewright.framework.runtime.evaluation import Evaluator
from placewright.plugins.noderesources.fit import NodeResourcesFit

#: Shares of a request: a node is at the first level if it lacks at most the first of them of each request.
LEVELS: Final = (0.1, 0.25, 0.5)
#: The level of nodes that offer none of a resource that they lack.
OFFERS_NONE: Final = len(LEVELS) + 1
#: Nodes that are listed with the amounts that they lack.
MOST_NEAREST: Final = 10
#: No node lacks anything.
NONE_LACK: Final[dict[str, Any]] = {"lacks": [], "lacking": {}, "nearest": []}


def near_misses(evaluator: Evaluator, cluster: Cluster, pod: PodInfo, rows: Rows) -> dict[str, Any]:
    """Find what nodes lack.

    Args:
        evaluator: evaluator of the pod's profile.
        cluster: cluster with the nodes.
        pod: pod without a node.
        rows: rows that NodeResourcesFit rejects first.

    Returns:
        `lacks`: number of nodes at each level; `lacking`: names by level, without the level of most nodes; `nearest`: the nodes that lack
        least, each with the missing amount by resource. A node that has room, and too many pods, lacks nothing.
    """
    fit = next((plugin for plugin in evaluator.runtime.filter if isinstance(plugin, NodeResourcesFit)), None)
    if fit is None or not len(rows):
        return NONE_LACK
    missing = fit.shortfalls(pod, cluster, rows)
    share, whole = np.zeros(len(rows)), np.zeros(len(rows))
    offers = np.ones(len(rows), np.bool_)
    for name, amounts in missing.items():
        part = amounts / pod.requests[name]
        whole += part
        share = np.maximum(share, part)
        offers &= (amounts == 0) | (cluster.resources.column(name).allocatable[rows] > 0)
    level = np.where(offers, np.searchsorted(LEVELS, share), OFFERS_NONE)
    counts = np.bincount(level, minlength=OFFERS_NONE + 1)
    lacking = {
        str(each): [name for row in rows[level == each].tolist() if (name := cluster.names[row]) is not None]
        for each in np.flatnonzero(counts).tolist()
        if each != counts.argmax()
    }
    near = np.flatnonzero(offers)
    near = near[np.argsort(whole[near], kind="stable")[:MOST_NEAREST]]
    nearest = [
        [cluster.names[rows[at]], {name: int(amounts[at]) for name, amounts in missing.items() if amounts[at]}] for at in near.tolist()
    ]
    return {"lacks": counts.tolist(), "lacking": lacking, "nearest": nearest}
