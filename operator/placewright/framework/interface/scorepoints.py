"""The points that rank the nodes which can hold a pod: PreScore, Score and its normalisation; and PreparingPlugin for long decisions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator
from typing import Any, ClassVar

import numpy as np

from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.interface.columns import MAX_NODE_SCORE, IntColumn, Reads, Rows
from placewright.framework.interface.cyclestate import CycleState
from placewright.framework.interface.plugin import ArgsT, Plugin
from placewright.framework.status import Status


class PreScorePlugin(Plugin[ArgsT], ABC):
    """Looks at the feasible nodes once, before scoring.

    When: at least two nodes can hold the pod. A single feasible node, and a nominated node that still fits, are taken without scoring;
        `explain`, `evaluate` and the comparison of domains for a group score a single node, too.
    How often: once per attempt that scores, for a plugin with `Reads.CLUSTER` or without columns. For others once for all pods of one
        signature: their SUCCESS or SKIP, and their values in the state, are kept with the columns.
    By: live, shadows, `explain`, `evaluate` and `simulate`.
    Runs: on the event loop, within the scheduling cycle: it never awaits.
    Reads: the pod, the cluster and the state. Only a plugin with `Reads.CLUSTER` may look at `feasible`. The answers of other plugins are
        kept for pods with other feasible nodes.
    May change: the state.
    Statuses:
        SUCCESS: the next plugin is asked.
        SKIP: this plugin's Score adds nothing for this pod and is not called in this attempt.
        UNSCHEDULABLE, UNSCHEDULABLE_AND_UNRESOLVABLE, PENDING, ERROR: the attempt ends as an error, because a pod that nodes can hold is
            not unschedulable. The pod backs off by the count of its errors in a row; no event ends that early. Answer ERROR here.

    Example:
        def pre_score(self, state, pod, cluster, feasible):
            return SUCCESS if "example.com/rack" in pod.labels else SKIP
    """

    @abstractmethod
    def pre_score(self, state: CycleState, pod: PodInfo, cluster: Cluster, feasible: Rows) -> Status:
        """Prepare what Score needs.

        Args:
            state: the state that PreFilter left.
            pod: the pod, as for Score.
            cluster: the cluster as it stands.
            feasible: the rows that can hold the pod, shape (k,), ascending; only to be read.

        Returns:
            SUCCESS, SKIP or ERROR.
        """


class ScorePlugin(Plugin[ArgsT], ABC):
    """Ranks the feasible nodes.

    The node with the highest sum of weight times score wins; chance decides between nodes with equal sums. Scores are 0 to 100 after
    normalisation.

    When: after all PreScore plugins, unless this one answered SKIP.
    How often: as seldom as `reads` allows. A local plugin is asked about the rows that changed since a pod of the same signature was
        scored. Infeasible rows are among them. A plugin with `Reads.CLUSTER` is asked about the feasible rows once per attempt. If it has
        a fingerprint, it is asked about all rows when the fingerprint changes. `summarise` is called if the set of feasible rows or a raw
        score may have changed. `normalise` is called for rows whose score or summary changed.
    By: live, shadows, `explain`, `evaluate` and `simulate`.
    Runs: on the event loop, within the scheduling cycle: it never awaits. It costs what a filter costs.
    Reads: what `reads` declares, the state, and of the pod what `sign` returns.
    May change: nothing.
    Statuses: none. A score outside 0 to 100 of a feasible node, and an exception, end the attempt as an error: the pod backs off.

    Example:
        class NewNodes(MaxNormalised):
            name = "NewNodes"
            reverse = True  # less is better

            def score(self, state, pod, cluster, rows):
                return self._age_in_days(cluster)[rows]
    """

    #: Things that the raw column depends on, besides the pod.
    reads: ClassVar[Reads] = Reads.NODE
    #: Whether a subclass wrote `summarise`. Python sets it when the class is made; an author never does.
    normalised: ClassVar[bool] = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        # Known once, so that scores without normalisation cost no call a pod.
        cls.normalised = cls.summarise is not ScorePlugin.summarise

    @abstractmethod
    def score(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> IntColumn:
        """Return raw scores.

        Args:
            state: the state that PreScore left.
            pod: one of all pods with its signature.
            cluster: the cluster as it stands.
            rows: shape (k,), in any order; only to be read. Rows that cannot hold the pod, and free rows, may be among them; their scores
                are not used.

        Returns:
            A new array of shape (len(rows),), int64. Without normalisation the scores of feasible rows must lie in 0 to 100.
        """

    def summarise(self, state: CycleState, raw: IntColumn) -> Hashable | None:
        """Return what normalisation needs to know of all feasible rows together, such as their maximum.

        While it stays the same, a changed row is normalised alone. So return a few numbers, never the array.

        Args:
            state: the state that PreScore left.
            raw: raw scores of all feasible rows and of no others, shape (k,).

        Returns:
            A hashable value; None: raw scores are final.
        """
        return None

    def normalise(self, state: CycleState, raw: IntColumn, summary: Any) -> IntColumn:
        """Bring raw scores to 0 to 100, each by itself.

        Args:
            state: the state that PreScore left.
            raw: raw scores of some rows, shape (k,). Infeasible rows may be among them; their results are not used.
            summary: the answer of `summarise`; never None.

        Returns:
            Scores of the same shape. A row's score may depend on its raw score and on `summary` alone.
        """
        return raw

    def fingerprint(self, state: CycleState, cluster: Cluster) -> Hashable | None:
        """Promise that a kept column of raw scores still holds, for `Reads.CLUSTER`. Called once per attempt that scores, before `score`.

        Args:
            state: the state that PreScore left.
            cluster: the cluster as it stands.

        Returns:
            A value that is equal only if the raw scores of all rows for pods of this signature are equal; None promises nothing.
        """
        return None


class MaxNormalised(ScorePlugin[ArgsT], ABC):
    """Scores normalised by their maximum: 100·raw/maximum in integer division, kube-scheduler's `DefaultNormalizeScore`.

    If every raw score is 0, all nodes get 0, or 100 with `reverse`.

    Attributes:
        reverse: whether less is better; the score is then 100 minus the above.
    """

    reverse: ClassVar[bool] = False

    def summarise(self, state: CycleState, raw: IntColumn) -> Hashable | None:
        """Return the highest raw score, at least 0. Implements `ScorePlugin.summarise`."""
        return max(int(raw.max(initial=0)), 0)

    def normalise(self, state: CycleState, raw: IntColumn, summary: int) -> IntColumn:
        """Return 100·raw/summary, or 100 less that; the same for all rows if the maximum is 0. Implements `ScorePlugin.normalise`."""
        if summary == 0:  # upstream's rule; it also keeps the division from failing
            return np.full_like(raw, MAX_NODE_SCORE) if self.reverse else raw
        scaled = MAX_NODE_SCORE * raw // summary
        return MAX_NODE_SCORE - scaled if self.reverse else scaled


class PreparingPlugin(Plugin[ArgsT], ABC):
    """Prepares the decision of a large pod piece by piece, so that no turn of the event loop is long.

    When: before the attempt of a pod whose decision looks at more than about a million things. Such a pod has many affinity terms, on a
        large cluster. Nearly all pods are decided without preparation.
    How often: once per such attempt, for each plugin of this kind.
    By: live, and the placing of a group's members. No other caller prepares: a decision works out itself what was not prepared.
    Runs: on the event loop. It yields after each piece, and other pods are decided before it goes on.
    Reads: the pod, the cluster, and the plugin's memory.
    May change: the plugin's memory, and only so that answers stay the same.
    Statuses: none. An exception is logged, and the pod is decided without preparation.

    Example:
        def prepare(self, pod, cluster):
            for term in terms_of(pod):
                self._counts.of(cluster, term)  # kept, and brought up to date by each later call
                yield
    """

    @abstractmethod
    def prepare(self, pod: PodInfo, cluster: Cluster) -> Iterator[None]:
        """Work out one thing at a time, and yield after each one.

        Args:
            pod: the pod as the queue handed it out.
            cluster: may have changed after every yield.
        """
