"""Records the failures of plugins: by generation of a profile, as totals for metrics, and on the pods that they hold back.

A PreEnqueue plugin that fails keeps a pod out of the queue. Then no attempt writes the pod's condition, so it is written here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final

from placewright.framework.runtime.failures import Call, PluginFailures
from placewright.framework.runtime.guard import Guarding
from placewright.framework.runtime.resolvedprofile import ResolvedProfile
from placewright.queue.queue import SchedulingQueue
from placewright.scheduler.attempts import Attempt, Result
from placewright.scheduler.failures import FAILED_SCHEDULING, SCHEDULER_ERROR
from placewright.scheduler.ports import EventRecorder, EventType, StatusWriter

#: Generations of a profile whose failures are kept: the one in effect, and those refused since.
_MOST_GENERATIONS: Final = 20


class PluginWatch:
    """The failures of plugins, by profile and generation.

    Attributes:
        totals: failures since the start, by (profile, plugin, extension point).
        told: the message that a gated pod was last told, by its uid.
    """

    def __init__(self, *, untouched: bool = False) -> None:
        """Record nothing yet.

        Args:
            untouched: check after each call whether the plugin wrote into objects, which is slow.
        """
        self.totals: Counter[tuple[str, str, str]] = Counter()
        self.told: dict[str, str] = {}
        self._untouched = untouched
        self._kept: dict[str, dict[int, PluginFailures]] = {}

    def guarding(self, profile: ResolvedProfile) -> Guarding:
        """Return the guard for the plugins of a generation. A generation that is built again gets the same record of failures."""
        kept = self._kept.setdefault(profile.name, {})
        if profile.generation not in kept:
            kept[profile.generation] = PluginFailures(heard=self._counting(profile.name))
            for oldest in sorted(kept)[:-_MOST_GENERATIONS]:
                del kept[oldest]
        return Guarding(kept[profile.generation], self._untouched)

    def failures_of(self, name: str, generation: int | None) -> PluginFailures | None:
        """Find the failures under a generation of a profile.

        Args:
            name: name of the profile.
            generation: None if none is in effect.

        Returns:
            None for a generation that was not built here.
        """
        return None if generation is None else self._kept.get(name, {}).get(generation)

    def attempt_ended(self, attempt: Attempt) -> None:
        """Note whether an attempt failed, under its generation."""
        failures = self.failures_of(attempt.profile.name, attempt.profile.generation)
        if failures is not None and not failures.passed:
            failures.attempted(attempt.uid, failed=attempt.result is Result.ERROR)

    def pod_entered(self, place: str, event: str) -> None:
        """Ignored: only attempts call plugins that can fail a pod.

        Args:
            place: the sub-queue.
            event: that brought the pod there.
        """

    def forget(self, name: str) -> None:
        """Drop the record of a deleted profile."""
        self._kept.pop(name, None)
        for key in [key for key in self.totals if key[0] == name]:
            del self.totals[key]

    def _counting(self, name: str) -> Callable[[Call], None]:
        def heard(call: Call) -> None:
            self.totals[name, call.plugin, call.point] += 1

        return heard

    # --- pods without an attempt ---------------------------------------------------------------------------------------------------

    def tell(self, queue: SchedulingQueue, events: EventRecorder, status: StatusWriter) -> None:
        """Tell the pods that a failing PreEnqueue plugin keeps out, each once for each message.

        Args:
            queue: knows the gated pods.
            events: events of these pods.
            status: status for their PodScheduled condition.
        """
        for uid in [uid for uid in self.told if queue.get(uid) is None]:
            del self.told[uid]
        for failures in [each for kept in self._kept.values() for each in kept.values()]:
            for pod, message in failures.to_tell():
                queued = queue.get(pod.uid)
                if queued is not None and queued.gated and self.told.get(pod.uid) != message:
                    self.told[pod.uid] = message
                    events.record(queued.pod, EventType.WARNING, FAILED_SCHEDULING, "Scheduling", message)
                    status.pod_unscheduled(queued.pod, SCHEDULER_ERROR, message, None)
