"""LoadAware: nodes by the CPU that is in use there, not by what pods have requested. Implements Filter and Score.

Of a node without a fresh sample it says nothing: Filter lets the node pass, Score gives it half of the points.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from placewright.api.objects import Node, NodeName
from placewright.api.pods import PodInfo
from placewright.api.quantity import QuantityError, nano
from placewright.cluster.cluster import Cluster
from placewright.framework.events import Action, ClusterEventWithHint, EventResource, QueueingHint, event_with_hint
from placewright.framework.interface import (
    MAX_NODE_SCORE,
    BoolColumn,
    CycleState,
    Handle,
    IntColumn,
    Reads,
    Rejection,
    Rows,
    ScorePlugin,
)
from placewright.framework.rowwise import PlainRowVerdict, RowVerdict, RowwiseFilter
from placewright.framework.status import unresolvable
from placewright_load_aware.nodemetrics import NODE_METRICS, NodeMetrics

#: Evicting pods frees CPU, but the next sample comes later than the dry run of preemption: so making room is no remedy.
REJECTION: Final = unresolvable("node(s) had too much CPU in use")
#: Of a node without a fresh sample.
UNKNOWN: Final = -1


@dataclass(frozen=True)
class LoadAwareArgs:
    """From where on a node is too busy, and how long a sample counts."""

    most_cpu_percent: Annotated[int, msgspec.Meta(ge=1, le=100, description="A node with more of its CPU in use takes no pod.")] = 85
    sample_seconds: Annotated[
        int, msgspec.Meta(ge=1, description="A sample so much older than the newest one is passed over, in seconds.")
    ] = 90


class LoadAware(RowwiseFilter[LoadAwareArgs], ScorePlugin):
    """Prefers nodes with idle CPU, and rejects those that are busy."""

    name = "LoadAware"
    sources = (NODE_METRICS,)
    reads = Reads.CLUSTER

    def __init__(self, args: LoadAwareArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._kept: tuple[Hashable, NDArray[np.int64]] = ((), np.zeros(0, np.int64))

    # --- the column ----------------------------------------------------------------------------------------------------------

    def fingerprint(self, state: CycleState, cluster: Cluster) -> Hashable:
        """Columns hold until a sample or a node changes."""
        return _version(cluster)

    def _in_use(self, cluster: Cluster) -> NDArray[np.int64]:
        """Return CPU in use by row, in percent of what the node offers, rounded down; `UNKNOWN` without a fresh sample; shape (size,)."""
        key = _version(cluster)
        if self._kept[0] != key:
            self._kept = (key, self._worked_out(cluster))
        return self._kept[1]

    def _worked_out(self, cluster: Cluster) -> NDArray[np.int64]:
        column = np.full(cluster.size, UNKNOWN, np.int64)
        samples = list(cluster.objects.of(NodeMetrics).values())
        oldest = max((_seconds(each) for each in samples), default=0.0) - self.args.sample_seconds
        for sample in samples:
            row = cluster.row(NodeName(sample.metadata.name))
            if row is not None and _seconds(sample) >= oldest:
                column[row] = _percent(sample, cluster.node(row))
        return column

    # --- the extension points ------------------------------------------------------------------------------------------------

    def filter(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> BoolColumn:
        """Pass nodes whose CPU use is unknown, or within the limit of the arguments."""
        passes: BoolColumn = self._in_use(cluster)[rows] <= self.args.most_cpu_percent
        return passes

    def explain(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> list[Rejection]:
        """One reason for all."""
        return [Rejection(REJECTION, rows)]

    def judge(self, state: CycleState, pod: PodInfo, cluster: Cluster) -> RowVerdict:
        """Preemption may try many nodes at once: pods that leave in its dry run change no sample."""
        return PlainRowVerdict(self, state, pod, cluster)

    def score(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> IntColumn:
        """100 less the percent in use; 50 where nothing is known."""
        used = self._in_use(cluster)[rows]
        return np.where(used == UNKNOWN, MAX_NODE_SCORE // 2, MAX_NODE_SCORE - np.clip(used, 0, MAX_NODE_SCORE))

    def events(self) -> Sequence[ClusterEventWithHint]:
        """Return events of new samples, and of nodes that come or offer other resources. A poll is one event without an object."""
        return (
            event_with_hint(NODE_METRICS.name, Action.ALL, self._some_node_takes_pods),
            event_with_hint(EventResource.NODE, Action.ADD | Action.UPDATE_NODE_ALLOCATABLE, self._some_node_takes_pods),
        )

    def _some_node_takes_pods(self, _pod: PodInfo, _old: object, _new: object) -> QueueingHint:
        in_use = self._in_use(self.handle.cluster)[self.handle.cluster.rows()]
        return QueueingHint.QUEUE if bool((in_use <= self.args.most_cpu_percent).any()) else QueueingHint.SKIP


def _version(cluster: Cluster) -> Hashable:
    return (cluster.objects.of(NodeMetrics).version, cluster.node_journal.position)


def _seconds(sample: NodeMetrics) -> float:
    """When the sample was taken, in seconds since 1970; 0 where that cannot be read."""
    try:
        return datetime.fromisoformat(sample.timestamp).timestamp()
    except ValueError:
        return 0.0


def _percent(sample: NodeMetrics, node: Node) -> int:
    """CPU in use of what the node offers, in percent; `UNKNOWN` where either cannot be read."""
    try:
        used, offered = nano((sample.usage or {}).get("cpu", "")), nano((node.status.allocatable or {}).get("cpu", ""))
    except QuantityError:
        return UNKNOWN
    return 100 * used // offered if offered > 0 and used >= 0 else UNKNOWN
