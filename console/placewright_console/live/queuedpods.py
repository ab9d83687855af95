"""The pods without a node of a running operator, for the pages of groups, claims and verdicts."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator

from placewright.api.objects import PodKey
from placewright.api.podgroups import GroupRef
from placewright.api.pods import PodInfo
from placewright.framework.runtime.evaluation import Evaluator
from placewright.profiles.problem import did_you_mean
from placewright.serving.schedulerview import SchedulerView
from placewright_console.pages.pendingpods import GroupTurn, WaitingPlace, unix_seconds


class QueuedPods:
    """The pods of a scheduler's queue. Implements `PendingPods`.

    Example:
        CompanyPages(view.cluster, QueuedPods(view), time.monotonic)
    """

    def __init__(self, view: SchedulerView) -> None:
        """Look at a scheduler."""
        self._view = view

    def named(self, namespace: str, name: str) -> PodInfo | None:
        """Find a pod without a node.

        Returns:
            None for an unknown pod, and for one that is assumed on a node already.
        """
        uid = self._view.queue.uid_of(PodKey(f"{namespace}/{name}"))
        return None if uid is None else self._waiting(uid)

    def of_namespace(self, namespace: str) -> Iterator[PodInfo]:
        """Iterate over the waiting pods of a namespace. O(pods of the queue)."""
        for uid in list(self._view.queue.uids()):
            pod = self._waiting(uid)
            if pod is not None and pod.namespace == namespace:
                yield pod

    def members(self, ref: GroupRef) -> Collection[PodInfo]:
        """Return the members of a group that are in the queue."""
        return self._view.queue.pod_groups.members(ref)

    def standing(self, pod: PodInfo) -> WaitingPlace:
        """Return the pod's place in the queue, and since when it exists."""
        place = self._view.queue.locate(pod.uid)
        return WaitingPlace("" if place is None else place.value, unix_seconds(pod.created))

    def evaluator(self, pod: PodInfo) -> Evaluator | str:
        """Return the evaluator of the pod's profile, or why there is none: no profile claims the pod, or it is a suspect."""
        view = self._view
        queued, active = view.queue.get(pod.uid), view.live.by_scheduler_name(pod.scheduler_name)
        suspect = "" if queued is None else view.suspect_reason(queued)
        if suspect:
            return suspect
        if active is None:
            meant = did_you_mean(pod.scheduler_name, view.live.active)
            return f"no profile takes pods of schedulerName {pod.scheduler_name!r}{meant}"
        return active.evaluator

    def turn_of(self, ref: GroupRef) -> GroupTurn:
        """Return the group's wait, its failures, its shortage at the last attempt, and the nodes that are kept for it."""
        view = self._view
        queued, kept = view.queue.pod_groups.get(ref), view.kept_for(ref)
        if queued is None:
            return GroupTurn(kept=kept)
        return GroupTurn(round(time.monotonic() - queued.since, 3), queued.failures, queued.lacks, kept)

    def _waiting(self, uid: str) -> PodInfo | None:
        return None if self._view.cluster.placement(uid) is not None else self._view.queue.latest(uid)
