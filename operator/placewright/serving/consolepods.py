"""The pods without a node of a running operator, for the pages of a group, of a claim and of a pod's verdicts."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from datetime import datetime

from placewright.api.objects import PodKey
from placewright.api.podgroups import GroupRef
from placewright.api.pods import PodInfo
from placewright.console.pendingpods import GroupTurn, WaitingPlace
from placewright.engine.engine import Engine
from placewright.explain.groupfacts import kept_nodes
from placewright.framework.runtime.evaluation import Evaluator
from placewright.profiles.problem import did_you_mean
from placewright.serving.explainpages import suspect_reason


def created_at(pod: PodInfo) -> float:
    """Return the time at which a pod was created, seconds since 1970; 0.0 where it is not known."""
    try:
        return datetime.fromisoformat(pod.created).timestamp()
    except ValueError:
        return 0.0


class QueuedPods:
    """The pods of an engine's queue. Implements `PendingPods`.

    Example:
        CompanyPages(engine.cluster, QueuedPods(engine), time.monotonic)
    """

    def __init__(self, engine: Engine) -> None:
        """Look at an engine.

        Args:
            engine: only read.
        """
        self._engine = engine

    def named(self, namespace: str, name: str) -> PodInfo | None:
        """Find a pod without a node.

        Args:
            namespace: of the pod.
            name: of the pod.

        Returns:
            None for an unknown pod, and for one that is assumed on a node already.
        """
        uid = self._engine.queue.uid_of(PodKey(f"{namespace}/{name}"))
        return None if uid is None else self._waiting(uid)

    def of_namespace(self, namespace: str) -> Iterator[PodInfo]:
        """The waiting pods of a namespace. O(pods of the queue)."""
        for uid in list(self._engine.queue.uids()):
            pod = self._waiting(uid)
            if pod is not None and pod.namespace == namespace:
                yield pod

    def members(self, ref: GroupRef) -> Collection[PodInfo]:
        """The members of a group that are in the queue."""
        return self._engine.queue.pod_groups.members(ref)

    def standing(self, pod: PodInfo) -> WaitingPlace:
        """Where in the queue the pod is, and since when it exists."""
        place = self._engine.queue.locate(pod.uid)
        return WaitingPlace("" if place is None else place.value, created_at(pod))

    def evaluator(self, pod: PodInfo) -> Evaluator | str:
        """The evaluator of the pod's profile; or why the pod is not evaluated: no profile claims it, or it is a suspect."""
        engine = self._engine
        queued, active = engine.queue.get(pod.uid), engine.live.by_scheduler_name(pod.scheduler_name)
        suspect = "" if queued is None else suspect_reason(engine, queued)
        if suspect:
            return suspect
        if active is None:
            meant = did_you_mean(pod.scheduler_name, engine.live.active)
            return f"no profile takes pods of schedulerName {pod.scheduler_name!r}{meant}"
        return active.evaluator

    def turn_of(self, ref: GroupRef) -> GroupTurn:
        """The group's wait, its failures, its shortage at the last attempt, and the nodes that are kept for it."""
        engine = self._engine
        queued, plan = engine.queue.pod_groups.get(ref), engine.scheduler.pod_groups.reservations.plan_of(ref)
        kept = {} if plan is None else kept_nodes(plan.nodes.values())
        if queued is None:
            return GroupTurn(kept=kept)
        return GroupTurn(round(time.monotonic() - queued.since, 3), queued.failures, queued.lacks, kept)

    def _waiting(self, uid: str) -> PodInfo | None:
        return None if self._engine.cluster.placement(uid) is not None else self._engine.queue.latest(uid)
