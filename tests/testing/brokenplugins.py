"""Plugins that break one promise of the contract each, and one that keeps all of them."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Collection, Hashable, Sequence
from datetime import UTC, datetime
from time import monotonic
from typing import Any

import numpy as np

from placewright.api.objects import Node, NodeName
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.events import Action, ClusterEventWithHint, EventResource, QueueingHint, event_with_hint
from placewright.framework.interface import (
    BindPlugin,
    BoolColumn,
    CycleState,
    FilterPlugin,
    IntColumn,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreFilterResult,
    QueueSortPlugin,
    Reads,
    Rejection,
    ReservePlugin,
    Rows,
    ScorePlugin,
    Seconds,
)
from placewright.framework.rowwise import RowVerdict, RowwiseFilter
from placewright.framework.scalar import ScalarFilter, ScalarScore
from placewright.framework.status import SUCCESS, Status, unschedulable

FULL = unschedulable("node(s) had two pods")


class TwoPods(FilterPlugin, ScorePlugin):
    """Keeps all promises: takes nodes with fewer than two pods, and prefers empty ones."""

    name = "TwoPods"
    reads = Reads.NODE_AND_ITS_PODS

    def filter(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> BoolColumn:
        return cluster.pod_count[rows] < 2

    def explain(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> list[Rejection]:
        return [Rejection(FULL, rows)]

    def score(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> IntColumn:
        return 100 - np.minimum(cluster.pod_count[rows], 100)


class DrawsLots(ScalarFilter):
    """Rejects nodes by chance."""

    name = "DrawsLots"

    def filter_node(self, pod: PodInfo, node: Node, pods: Collection[PodInfo]) -> Status:
        return FULL if random.random() < 0.5 else SUCCESS


class DrawsScores(ScalarScore):
    """Scores nodes by chance."""

    name = "DrawsScores"

    def score_node(self, pod: PodInfo, node: Node, pods: Collection[PodInfo]) -> int:
        return random.randrange(100)


class ClosesAtNight(ScalarFilter):
    """Goes by the hour of the wall clock."""

    name = "ClosesAtNight"

    def filter_node(self, pod: PodInfo, node: Node, pods: Collection[PodInfo]) -> Status:
        return SUCCESS if time.time() % 86_400 < 43_200 else FULL


class ClosesOnWeekends(ClosesAtNight):
    """Goes by the day, with a class that its module imported by name."""

    name = "ClosesOnWeekends"

    def filter_node(self, pod: PodInfo, node: Node, pods: Collection[PodInfo]) -> Status:
        now = datetime.now(UTC)
        return SUCCESS if isinstance(now, datetime) and now.weekday() < 5 else FULL


class AgesInPreFilter(TwoPods, PreFilterPlugin):
    """Reads the clock in PreFilter, and goes by it in Filter."""

    name = "AgesInPreFilter"

    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: Cluster) -> PreFilterResult:
        state.write("AgesInPreFilter", int(monotonic() // 43_200))
        return PreFilterResult()

    def filter(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> BoolColumn:
        return np.full(len(rows), state.read("AgesInPreFilter", int) % 2 == 0)


class AnswersNumbers(TwoPods):
    """Filter answers with numbers instead of truth values."""

    def filter(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> Any:
        return (cluster.pod_count[rows] < 2).astype(np.int64)


class ScoresTooHigh(TwoPods):
    """Fifty points for each pod on the node, without a limit."""

    def filter(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> BoolColumn:
        return np.ones(len(rows), np.bool_)

    def score(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> IntColumn:
        return 50 * cluster.pod_count[rows]


class RanksRows(TwoPods):
    """Scores a node by its place among the nodes that are asked about."""

    def score(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> IntColumn:
        return np.argsort(np.argsort(cluster.pod_count[rows], kind="stable")).astype(np.int64)


class ExplainsOne(TwoPods):
    """Explains the first of the rejected rows only."""

    def explain(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> list[Rejection]:
        return [Rejection(FULL, rows[:1])]


class ReadsTooLittle(TwoPods):
    """Says that it reads nodes alone, and counts their pods."""

    reads = Reads.NODE


class StaleFingerprint(TwoPods):
    """Reads the whole cluster, and takes it for unchanged as long as there are as many nodes."""

    reads = Reads.CLUSTER

    def filter(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> BoolColumn:
        return cluster.pod_count[rows] <= cluster.pod_count[cluster.present].mean()

    def fingerprint(self, state: CycleState, cluster: Cluster) -> Hashable:
        return cluster.node_count


class Remembers(TwoPods):
    """Never asks again about a node that was full once."""

    def __init__(self, args: Any, handle: Any) -> None:
        super().__init__(args, handle)
        self._full: set[NodeName | None] = set()

    def filter(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> BoolColumn:
        passes = super().filter(state, pod, cluster, rows)
        self._full |= {cluster.names[row] for row in rows[~passes].tolist()}
        return np.array([cluster.names[row] not in self._full for row in rows.tolist()], np.bool_)


class SignsNothing(TwoPods):
    """Reads the pod's priority, and its signature says that it reads nothing of the pod."""

    def filter(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> BoolColumn:
        return cluster.pod_count[rows] < (2 if pod.priority else 1)


class SleepsOn(TwoPods):
    """Hears of new nodes, and not of pods that go."""

    def events(self) -> Sequence[ClusterEventWithHint]:
        return (event_with_hint(EventResource.NODE, Action.ADD),)


class LabelsNodes(ScalarScore):
    """Notes on the node that it was looked at."""

    name = "LabelsNodes"

    def score_node(self, pod: PodInfo, node: Node, pods: Collection[PodInfo]) -> int:
        assert node.metadata.labels is not None
        node.metadata.labels["example.com/seen"] = "yes"
        return 1


class WritesColumns(TwoPods):
    """Counts the pod it is asked about into the columns."""

    def score(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> IntColumn:
        cluster.pod_count[rows] += 1
        return np.zeros(len(rows), np.int64)


class KeepsWhatItTook(ScalarFilter, ReservePlugin):
    """Takes one seat of a node for each pod, and never gives one back."""

    name = "KeepsWhatItTook"

    def __init__(self, args: Any, handle: Any) -> None:
        super().__init__(args, handle)
        self._taken: set[NodeName] = set()

    def filter_node(self, pod: PodInfo, node: Node, pods: Collection[PodInfo]) -> Status:
        return unschedulable("node(s) had no seat") if node.metadata.name in self._taken else SUCCESS

    def reserve(self, state: CycleState, pod: PodInfo, node: NodeName) -> Status:
        self._taken.add(node)
        return SUCCESS

    def unreserve(self, state: CycleState, pod: PodInfo, node: NodeName) -> None:
        """Forgotten."""


class Raises(TwoPods):
    """Looks for a label that most nodes lack."""

    def filter(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> BoolColumn:
        return np.array([(cluster.node(row).metadata.labels or {})["example.com/rack"] == "1" for row in cluster.rows()], np.bool_)


class HintRaises(TwoPods):
    """Its hint reads a pod where there is none any more."""

    def events(self) -> Sequence[ClusterEventWithHint]:
        return (event_with_hint(EventResource.ASSIGNED_POD, Action.ALL, self._after),)

    @staticmethod
    def _after(pod: PodInfo, old: PodInfo | None, new: PodInfo | None) -> QueueingHint:
        assert new is not None
        return QueueingHint.QUEUE


class GatesForGood(PreEnqueuePlugin):
    """Keeps pods back until three Services are there, and hears of none."""

    name = "GatesForGood"

    def pre_enqueue(self, pod: PodInfo) -> Status:
        return SUCCESS if len(self.handle.cluster.objects.services) > 2 else unschedulable("waiting for three Services")

    def events(self) -> Sequence[ClusterEventWithHint]:
        return (event_with_hint(EventResource.NODE, Action.DELETE),)


class JudgesOtherwise(TwoPods, RowwiseFilter):
    """Its judge goes by what was there when the judge was made."""

    reads = Reads.CLUSTER

    def judge(self, state: CycleState, pod: PodInfo, cluster: Cluster) -> RowVerdict:
        passes = np.ones(cluster.size, np.bool_)
        passes[cluster.rows()] = self.filter(state, pod, cluster, cluster.rows())
        return _Fixed(passes)


class _Fixed(RowVerdict):
    def __init__(self, passes: BoolColumn) -> None:
        self._passes = passes

    def passes(self, rows: Rows) -> BoolColumn:
        return self._passes[rows]

    def explain(self, rows: Rows) -> list[Rejection]:
        return [Rejection(FULL, rows)]


class SortsByText(QueueSortPlugin):
    """Some keys begin with text and others with a number."""

    name = "SortsByText"

    def sort_key(self, pod: PodInfo, timestamp: Seconds) -> tuple[Any, ...]:
        return (pod.priority or "none", timestamp)


class BindsInVain(PreBindPlugin, BindPlugin):
    """Waits for ever before the Binding, and answers with nothing instead of a status afterwards."""

    name = "BindsInVain"

    async def pre_bind(self, state: CycleState, pod: PodInfo, node: NodeName) -> Status:
        await asyncio.Event().wait()
        return SUCCESS

    async def bind(self, state: CycleState, pod: PodInfo, node: NodeName, annotations: dict[str, str]) -> Any:
        return None
