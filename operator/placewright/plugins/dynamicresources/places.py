"""From where the devices of an allocated claim can be used: the claim's node selector, as a column."""

from __future__ import annotations

from typing import Final

import numpy as np

from placewright.api.devices import ResourceClaim
from placewright.api.objects import NodeSelector
from placewright.api.selectors import compile_node_selector
from placewright.cluster.cluster import Cluster
from placewright.framework.interface import BoolColumn
from placewright.plugins.memory import NodeMemory

_SELECTORS: Final = 256


class Places:
    """Columns of node selectors, kept until a node changes."""

    def __init__(self) -> None:
        self._memory = NodeMemory(_SELECTORS)

    def reaching(self, claim: ResourceClaim, cluster: Cluster) -> BoolColumn:
        """True for each row from where the claim's devices can be used; shape (size,). Without a selector that is everywhere."""
        allocation = claim.status.allocation
        selector = None if allocation is None else allocation.node_selector
        if selector is None:
            return cluster.present
        return self._memory.recall(cluster, selector, lambda: _column(selector, cluster))


def _column(selector: NodeSelector, cluster: Cluster) -> BoolColumn:
    terms = compile_node_selector(selector)
    column = np.zeros(cluster.size, np.bool_)
    for row in cluster.rows().tolist():
        meta = cluster.node(row).metadata
        column[row] = any(term.matches(meta.labels or {}, meta.name) for term in terms)
    return column
