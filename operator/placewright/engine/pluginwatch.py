"""What plugins of all profiles did wrong: a record for each generation, totals for metrics, and pods to be told.

A PreEnqueue plugin that fails keeps a pod out of the queue before any attempt, and only attempts tell pods anything: so they are told here.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Final

from placewright.framework.runtime.failures import Call, PluginFailures
from placewright.framework.runtime.guard import Guarding
from placewright.framework.runtime.resolvedprofile import ResolvedProfile
from placewright.queue.queue import SchedulingQueue
from placewright.scheduler.failures import FAILED_SCHEDULING, SCHEDULER_ERROR
from placewright.scheduler.ports import EventRecorder, EventType, StatusWriter

BEAT_SECONDS: Final = 1.0
#: Generations of one profile that are remembered: the one in effect, and those refused since.
_MOST_GENERATIONS: Final = 20


class PluginWatch:
    """Failures by profile and generation.

    Attributes:
        totals: by profile, plugin and extension point, since the start.
    """

    def __init__(self, *, untouched: bool = False) -> None:
        """`untouched`: look at every call whether the plugin wrote into objects."""
        self.totals: Counter[tuple[str, str, str]] = Counter()
        self._untouched = untouched
        self._kept: dict[str, dict[int, PluginFailures]] = {}

    def guarding(self, profile: ResolvedProfile) -> Guarding:
        """How a generation's plugins are watched, however often it is built."""
        kept = self._kept.setdefault(profile.name, {})
        if profile.generation not in kept:
            kept[profile.generation] = PluginFailures(heard=self._counting(profile.name))
            for oldest in sorted(kept)[:-_MOST_GENERATIONS]:
                del kept[oldest]
        return Guarding(kept[profile.generation], self._untouched)

    def failures_of(self, name: str, generation: int | None) -> PluginFailures | None:
        """What went wrong under this generation; None for one that was never built here."""
        return None if generation is None else self._kept.get(name, {}).get(generation)

    def forget(self, name: str) -> None:
        """A profile is gone."""
        self._kept.pop(name, None)
        for key in [key for key in self.totals if key[0] == name]:
            del self.totals[key]

    def _counting(self, name: str) -> Callable[[Call], None]:
        def heard(call: Call) -> None:
            self.totals[name, call.plugin, call.point] += 1

        return heard

    # --- pods that no attempt tells ------------------------------------------------------------------------------------------------

    async def run(self, queue: SchedulingQueue, events: EventRecorder, status: StatusWriter, active: Callable[[], bool]) -> None:
        """Tell them at every beat at which this replica leads, each once for each reason, until cancelled."""
        told: dict[str, str] = {}
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            if active():
                self.tell(queue, events, status, told)
            else:
                told.clear()

    def tell(self, queue: SchedulingQueue, events: EventRecorder, status: StatusWriter, told: dict[str, str]) -> None:
        """Tell pods that a failing PreEnqueue plugin keeps out; `told` is by uid what was said."""
        for uid in [uid for uid in told if queue.get(uid) is None]:
            del told[uid]
        for failures in [each for kept in self._kept.values() for each in kept.values()]:
            for pod, message in failures.to_tell():
                queued = queue.get(pod.uid)
                if queued is not None and queued.gated and told.get(pod.uid) != message:
                    told[pod.uid] = message
                    events.record(queued.pod, EventType.WARNING, FAILED_SCHEDULING, "Scheduling", message)
                    status.pod_unscheduled(queued.pod, SCHEDULER_ERROR, message, None)
