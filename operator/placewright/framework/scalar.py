"""A first plugin without columns: one pod, one node, one answer.

`ScalarFilter` and `ScalarScore` ask one plain method per node and build the columns from it. They are enabled, weighted and explained as
any other plugin. Their price is a Python call per node. It is paid again only for nodes that changed since a pod that looks alike. What
works this way can be vectorised later by extending `FilterPlugin` or `ScorePlugin` instead; nothing else changes.

Example:
    class Quiet(ScalarScore):
        name = "Quiet"

        def score_node(self, pod, node, pods):
            return 100 - min(len(pods), 100)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Hashable
from typing import Final

import msgspec
import numpy as np
from msgspec.structs import replace

from placewright.api.bytecount import short_key
from placewright.api.objects import Node
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.errors import PluginError
from placewright.framework.interface import (
    ArgsT,
    BoolColumn,
    CycleState,
    FilterPlugin,
    IntColumn,
    Plugin,
    Reads,
    Rejection,
    Rows,
    ScorePlugin,
)
from placewright.framework.runtime.answers import WrongAnswer
from placewright.framework.status import SUCCESS, Code, Status
from placewright.framework.steps import FILTER, SCORE

#: The volume that the API server adds to every pod, under a name that no two pods share.
_TOKEN_VOLUME: Final = "kube-api-access-"  # noqa: S105 - a prefix of names


class ScalarPlugin(Plugin[ArgsT]):
    """The base of both kinds: such a plugin looks at the pod's template, and at one node with the pods on it.

    Pods made from one template look alike, and share columns. A plugin that also reads a pod's own name, uid or status returns None in
    `sign`. A row is judged again when a pod there comes, goes, or changes its requests, host ports, labels or affinity.
    """

    def sign(self, pod: PodInfo) -> Hashable | None:
        """Return namespace, labels, annotations, owners and spec as one key.

        Everything that a template writes is in it, so an author cannot forget a field. The volume with the API server's token is left
        out, because no two pods share its name.

        Args:
            pod: any.

        Returns:
            The JSON of all this, or a digest of it if it is long.
        """
        meta, spec = pod.pod.metadata, pod.pod.spec
        volumes = tuple(volume for volume in spec.volumes or () if not volume.name.startswith(_TOKEN_VOLUME))
        seen = (meta.namespace, meta.labels, meta.annotations, meta.owner_references, replace(spec, volumes=volumes))
        return short_key(msgspec.json.encode(seen, order="deterministic"))


class ScalarFilter(ScalarPlugin[ArgsT], FilterPlugin[ArgsT], ABC):
    """Says of one node at a time whether it can hold the pod."""

    reads = Reads.NODE_AND_ITS_PODS

    @abstractmethod
    def filter_node(self, pod: PodInfo, node: Node, pods: Collection[PodInfo]) -> Status:
        """Judge whether one node can hold the pod.

        Args:
            pod: only to be read.
            node: only to be read.
            pods: those on the node, assumed ones included; only to be read.

        Returns:
            SUCCESS, or why the pod cannot go there: `unschedulable("why")`, or `unresolvable("why")` if evicting pods there cannot help.
        """

    def filter(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> BoolColumn:
        """Ask `filter_node` row by row.

        Raises:
            PluginError: its answer is neither success nor a rejection.
        """
        return np.fromiter((self._verdict(pod, cluster, row).ok for row in rows.tolist()), np.bool_, len(rows))

    def explain(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> list[Rejection]:
        """Ask `filter_node` again, and group its answers."""
        groups: dict[Status, list[int]] = {}
        for row in rows.tolist():
            groups.setdefault(self._verdict(pod, cluster, row), []).append(row)
        return [Rejection(status, np.array(group, np.intp)) for status, group in groups.items()]

    def _verdict(self, pod: PodInfo, cluster: Cluster, row: int) -> Status:
        name = cluster.names[row]
        if name is None:
            return SUCCESS  # a free row fits no pod anyway
        status = self.filter_node(pod, cluster.node(row), tuple(cluster.pods_on(name)))
        if not isinstance(status, Status) or status.code in (Code.WAIT, Code.SKIP):
            wrong = WrongAnswer(status, 'SUCCESS or unschedulable("why")', f" for node {name}")
            raise PluginError(self.name, FILTER, str(wrong))
        if status.ok or status.rejected:
            return status
        raise PluginError(self.name, FILTER, status.message)


class ScalarScore(ScalarPlugin[ArgsT], ScorePlugin[ArgsT], ABC):
    """Rates one node at a time, 0 to 100. Extend `MaxNormalised`, too, to have any numbers scaled by the highest."""

    reads = Reads.NODE_AND_ITS_PODS

    @abstractmethod
    def score_node(self, pod: PodInfo, node: Node, pods: Collection[PodInfo]) -> int:
        """Say how well a node suits the pod.

        Args:
            pod: only to be read.
            node: only to be read; it may be one that cannot hold the pod.
            pods: those on the node, assumed ones included; only to be read.

        Returns:
            A whole number, more is better.
        """

    def score(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> IntColumn:
        """Ask `score_node` row by row.

        Raises:
            PluginError: its answer is no whole number.
        """
        return np.fromiter((self._rating(pod, cluster, row) for row in rows.tolist()), np.int64, len(rows))

    def _rating(self, pod: PodInfo, cluster: Cluster, row: int) -> int:
        name = cluster.names[row]
        if name is None:  # a free row, whose score is not used
            return 0
        rating = self.score_node(pod, cluster.node(row), tuple(cluster.pods_on(name)))
        # True is an int in Python, and as a score surely a mistake.
        if not isinstance(rating, (int, np.integer)) or isinstance(rating, bool):
            raise PluginError(self.name, SCORE, str(WrongAnswer(rating, "a whole number", f" for node {name}")))
        return int(rating)
