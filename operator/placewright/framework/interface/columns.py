"""Rows and columns: how Filter and Score speak of all nodes at once, and what decides how long an answer is kept.

A row is a node's index in every column of `Cluster`. A row stays a node's own while the node exists; afterwards another node may get it.
A free row holds no node: a plugin may answer anything for it, and the framework ignores the answer.
"""

from __future__ import annotations

import enum
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewright.framework.status import Status

#: Node rows, shape (k,), intp. Never write into an array of rows that a call passes: other plugins get the same one.
Rows = NDArray[np.intp]
#: One yes or no for each row, shape (k,).
BoolColumn = NDArray[np.bool_]
#: One whole number for each row, shape (k,), int64. Floats would differ from kube-scheduler's integer division.
IntColumn = NDArray[np.int64]

#: The highest score of a node after normalisation; kube-scheduler's `MaxNodeScore`.
MAX_NODE_SCORE: Final = 100


class Reads(enum.Enum):
    """The things that a filter's or a score's column depends on, besides the pod.

    The framework trusts this: a column is computed again only if it depends on something that changed. A plugin that reads more than
    it declares decides on old facts, and nothing reports that. `placewright.testing` compares kept columns with fresh ones.

    NODE: the node object alone. A row is computed again when its node changes.
    NODE_AND_ITS_PODS: also the pods on that node. A row is computed again when its node changes, or a pod there comes, goes or changes.
    CLUSTER: anything. The whole column is computed again for every pod, unless `fingerprint` promises that nothing relevant changed.

    Example:
        class QuietNodes(ScorePlugin):
            reads = Reads.NODE_AND_ITS_PODS  # it counts the pods on each node, and looks at no other node
    """

    NODE = "node"
    NODE_AND_ITS_PODS = "node and its pods"
    CLUSTER = "cluster"


class Rejection(NamedTuple):
    """Rows that a filter rejected for one and the same reason.

    Attributes:
        status: why; one of UNSCHEDULABLE, UNSCHEDULABLE_AND_UNRESOLVABLE and PENDING.
        rows: the rejected rows, shape (k,).

    Example:
        Rejection(unschedulable("node(s) had no free seat"), rows[full])
    """

    status: Status
    rows: Rows
