"""Evicts pods for a resize in place that waits for room on its node, if the profile says so (KEP-5836).

The columns count such a pod with the amounts that it asks for. So no other pod takes the room that becomes free, and the kubelet resizes
the pod. It may serve another resize first. So the pod is looked at until it is resized.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from placewright.api.pods import PodInfo
from placewright.api.preemption import PREEMPT
from placewright.cluster.cluster import Cluster
from placewright.framework.preemption.evictions import priority_of
from placewright.framework.runtime.evaluation import Evaluator
from placewright.framework.runtime.guard import why
from placewright.framework.status import Code
from placewright.scheduler.ports import Clock, EventRecorder, EventType, Lead, Start
from placewright.scheduler.preemption import Preemption, Preemptor

RESIZE_WAITS: Final = "ResizeWaits"
_PREEMPTING: Final = "Preempting"
#: Pods that are tried at a review: a search on one node takes less than a millisecond, and other pods wait.
MOST_A_REVIEW: Final = 10
#: Seconds before the next look at a pod: kube-scheduler's default backoff.
_FIRST: Final = 1.0
_LONGEST: Final = 10.0


@dataclass(slots=True)
class _Wait:
    """A pod's next look.

    Attributes:
        requests: amounts that were tried; other amounts are tried at once.
        due: time of the next look, in seconds of the clock.
        backoff: seconds between this look and the one after it.
        told: message of the last event.
    """

    requests: object
    due: float
    backoff: float = _FIRST
    told: str = ""


@dataclass(eq=False)
class DeferredResizes:
    """Reviews the pods whose resize their kubelet has deferred.

    Attributes:
        cluster: knows these pods.
        profiles: evaluator of a schedulerName, or None.
        preemption: carries out the evictions.
        events: recorder of the event `ResizeWaits`.
        lead: tells whether this replica may evict.
        clock: seconds, monotonic.
        start: runs evictions beside the decisions.
    """

    cluster: Cluster
    profiles: Callable[[str], Evaluator | None]
    preemption: Preemption
    events: EventRecorder
    lead: Lead
    clock: Clock
    start: Start
    _waits: dict[str, _Wait] = field(default_factory=dict, init=False)

    def review(self) -> None:
        """Look at pods whose time has come: the longest overdue first, and among equals the ones of the highest priority."""
        deferred = self.cluster.deferred_resizes
        if not deferred or not self.lead.active:
            self._waits.clear()
            return
        now = self.clock()
        for uid in self._waits.keys() - deferred:
            del self._waits[uid]
        due = [pod for uid in deferred if (pod := self._due(uid, now)) is not None]
        due.sort(key=lambda pod: (self._waits[pod.uid].due, -priority_of(self.cluster.pod_groups, pod), pod.created, pod.uid))
        for pod in due[:MOST_A_REVIEW]:
            self._look(pod, now)

    def _due(self, uid: str, now: float) -> PodInfo | None:
        """Return a pod that is to be looked at now."""
        place = self.cluster.placement(uid)
        assert place is not None  # `Cluster.deferred_resizes` has only pods on nodes
        wait = self._waits.get(uid)
        if wait is None or wait.requests != place.pod.requests:
            wait = self._waits[uid] = _Wait(place.pod.requests, now)
        evaluator = self.profiles(place.pod.scheduler_name)
        rules = None if evaluator is None else evaluator.runtime.preemption_rules
        wanted = rules is not None and rules.spec.deferred_resizes == PREEMPT
        return place.pod if wanted and wait.due <= now and not self.cluster.leaves(place.pod) else None

    def _look(self, pod: PodInfo, now: float) -> None:
        wait, evaluator = self._waits[pod.uid], self.profiles(pod.scheduler_name)
        wait.due, wait.backoff = now + wait.backoff, min(2 * wait.backoff, _LONGEST)
        assert evaluator is not None  # `_due` has tested it
        runtime = evaluator.runtime
        try:
            result = runtime.run_make_room_in_place(pod)
        except MemoryError:
            raise
        except Exception as problem:  # noqa: BLE001 - a plugin may raise anything
            self._tell(pod, wait, why(problem))
            return
        if result.status.ok and result.victims:
            self.start(self.preemption.make_room(Preemptor(pod, pod.node_name, runtime.profile.preempting), result.victims))
        elif result.status.code is Code.UNSCHEDULABLE:
            self._tell(pod, wait, result.status.message)

    def _tell(self, pod: PodInfo, wait: _Wait, message: str) -> None:
        """Record an event, unless the last one said the same."""
        if message != wait.told:
            wait.told = message
            self.events.record(pod, EventType.WARNING, RESIZE_WAITS, _PREEMPTING, message)
