"""Followers of a cluster's pods: counts that few profiles need, and that `Cluster` keeps only while a plugin holds the follower.

A cluster refers to its followers weakly, so a follower ends with the plugin that made it. Without followers, a pod that comes, changes
or goes costs a look at an empty list.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import ClassVar, Concatenate, ParamSpec
from weakref import ref

from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.cluster.dryrun import Moves

P = ParamSpec("P")

_logger = logging.getLogger(__name__)


class PodFollower:
    """Told of pods on nodes, after the columns have counted them. Each method does nothing until it is overridden.

    A cluster with a follower of readiness takes a pod's change of readiness for a change that counts: the row is journalled, and shadows
    hear of it.

    No method may raise, because the cluster's change has happened. A follower that raises is logged and told nothing more.

    Example:
        class PodsOfTeams(PodFollower):
            def __init__(self, cluster: Cluster) -> None:
                self.counts = Counter(standing.pod.labels.get("team") for standing in cluster.placements())
                cluster.pod_followers.add(self)

            def pod_enters(self, pod: PodInfo, row: int | None) -> None:
                self.counts[pod.labels.get("team")] += 1

            def pod_leaves(self, pod: PodInfo, row: int | None) -> None:
                self.counts[pod.labels.get("team")] -= 1

    Attributes:
        follows_readiness: tell `pod_changes` of a pod that became Ready, or is not Ready any more.
    """

    follows_readiness: ClassVar[bool] = True

    def pod_enters(self, pod: PodInfo, row: int | None) -> None:
        """Take in a pod that was assumed or shown on a node.

        Args:
            pod: not on any node before.
            row: None for a node that no watch has shown yet.
        """

    def pod_changes(self, old: PodInfo, new: PodInfo, row: int | None) -> None:
        """Take in a pod that stays on its node and counts differently now, in a column or by its readiness."""

    def pod_confirmed(self, pod: PodInfo, row: int | None) -> None:
        """Take in that the API server shows an assumed pod on its node, with the annotations of its Binding."""

    def pod_leaves(self, pod: PodInfo, row: int | None) -> None:
        """Take in a pod that left its node, was deleted there, or has ended."""

    def row_appears(self, row: int, pods: Iterable[PodInfo]) -> None:
        """Take in a new node."""

    def row_ends(self, row: int, node: NodeName) -> None:
        """Take in that a node is gone. Its pods leave later, each by itself, and have no row until then."""

    def dry_run_counts(self, pods: Moves, sign: int) -> None:
        """Take in a step of a dry run, or its undoing.

        Args:
            pods: each with the row that it is put on or taken from.
            sign: 1 for put on, -1 for taken from.
        """


class PodFollowers:
    """The followers of one cluster, as one.

    Attributes:
        known: the followers. An attribute and no method, because it is looked at for every pod, even if there are none. It is replaced
            and not changed, because a follower may end while others are told.
        follow_readiness: whether one of them follows readiness.
    """

    def __init__(self) -> None:
        self.known: tuple[ref[PodFollower], ...] = ()
        self.follow_readiness = False

    def add(self, follower: PodFollower) -> None:
        """Tell a follower of everything from now on, for as long as it exists."""
        self._know((*self.known, ref(follower, self._ended)))

    def _ended(self, gone: ref[PodFollower]) -> None:
        self._know([each for each in self.known if each is not gone])

    def drop(self, follower: PodFollower) -> None:
        """Tell a follower of nothing any more; harmless for one that is not told."""
        self._know([each for each in self.known if each() is not follower])

    def _know(self, followers: Iterable[ref[PodFollower]]) -> None:
        self.known = tuple(followers)
        self.follow_readiness = any(follower.follows_readiness for each in self.known if (follower := each()) is not None)

    def tell(self, event: Callable[Concatenate[PodFollower, P], None], *about: P.args, **more: P.kwargs) -> None:
        """Call a method of each follower, such as `PodFollower.pod_enters`. A follower that raises is dropped."""
        for each in self.known:
            follower = each()
            if follower is None:
                continue
            try:
                getattr(follower, event.__name__)(*about, **more)
            except MemoryError:
                raise
            except Exception:
                _logger.exception("a plugin or a shadow failed to follow the pods, and is told of no further changes")
                self.drop(follower)
