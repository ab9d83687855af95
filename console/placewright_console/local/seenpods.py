"""The pods without a node of a file, for the pages of groups, claims and verdicts."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from placewright.api.podgroups import GroupRef
from placewright.api.pods import PodInfo
from placewright.framework.runtime.evaluation import Evaluator
from placewright_console.local.seenworld import SeenWorld
from placewright_console.local.verdicts import WaitingVerdicts
from placewright_console.pages.pendingpods import GroupTurn, WaitingPlace, unclaimed

#: Share of the time that verdicts about all nodes may take, because one person reads.
LOCAL_SHARE: Final = 0.5


class SeenPending:
    """The pending pods of a world. Implements `PendingPods`."""

    def __init__(self, world: SeenWorld, verdicts: WaitingVerdicts) -> None:
        """Look at a world.

        Args:
            world: world with the pods.
            verdicts: verdicts about them.
        """
        self._world = world
        self._verdicts = verdicts

    def named(self, namespace: str, name: str) -> PodInfo | None:
        """Find a pending pod. O(pending pods)."""
        return next((pod for pod in self.of_namespace(namespace) if pod.name == name), None)

    def of_namespace(self, namespace: str) -> Iterator[PodInfo]:
        """Iterate over the pending pods of a namespace. O(pending pods)."""
        return (pod for pod in self._world.pending.values() if pod.namespace == namespace)

    def members(self, ref: GroupRef) -> Collection[PodInfo]:
        """Return the pending members of a group."""
        return self._world.members.members(ref)

    def standing(self, pod: PodInfo) -> WaitingPlace:
        """Return where the scheduler would put the pod."""
        return self._verdicts.standing(pod)

    def evaluator(self, pod: PodInfo) -> Evaluator | str:
        """Return the evaluator of the pod's profile, or that no profile claims it."""
        return self._world.evaluators.get(pod.scheduler_name) or unclaimed(pod, self._world.evaluators)

    def turn_of(self, ref: GroupRef) -> GroupTurn:
        """Return nothing: a file has no queue."""
        return GroupTurn()
