"""Times of work that belongs to no attempt: handling events, calling queueing hints, and requests to the API server."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from yarl import URL

from placewright.api.pods import PodInfo
from placewright.framework.events import ClusterEvent, QueueingHint, QueueingHintFn
from placewright.observability.metrics import upstream
from placewright.observability.metrics.series import CounterSeries, Histograms, SeriesOfEvents
from placewright.scheduler.eventhandlers import Stopwatch

#: One call of a hint in so many is timed: a hint is called for thousands of pods in a row.
HINT_SAMPLE: Final = 10
_NO_ANSWER: Final = "<error>"
#: The outcome of a hint that raised, beside those of `QueueingHint`.
_BROKEN: Final = "Error"


class EventTimes(Stopwatch, SeriesOfEvents):
    """The times of handling events of watches. It is the `Stopwatch` of the event handlers."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        """Count nothing yet."""
        self._events = Histograms(upstream.EVENT_DURATION)
        self._clock = clock
        self._began = 0.0

    def begin(self) -> None:
        """Note the time at which the handling of an event begins."""
        self._began = self._clock()

    def handled(self, event: str) -> None:
        """Count the time since `begin` for an event."""
        self._events.at(event).observe(self._clock() - self._began)


class HintTimes(SeriesOfEvents):
    """The times of queueing hints. The queue calls it with each hint that it is about to use."""

    def __init__(self) -> None:
        self._hints = Histograms(upstream.HINT_DURATION)
        self._left = HINT_SAMPLE

    def __call__(self, plugin: str, event: ClusterEvent, hint: QueueingHintFn) -> QueueingHintFn:
        """Wrap a hint so that some of its calls are timed."""

        def timed(pod: PodInfo, old: Any, new: Any) -> QueueingHint:
            self._left -= 1
            if self._left:
                return hint(pod, old, new)
            self._left = HINT_SAMPLE
            outcome: str = _BROKEN
            began = time.perf_counter()
            try:
                answer = hint(pod, old, new)
                outcome = answer.value
            finally:
                self._hints.at(plugin, event.label, outcome).observe(time.perf_counter() - began)
            return answer

        return timed


class RequestTimes(SeriesOfEvents):
    """The series of requests to the API server. It is the API client's `RequestListener`; Kopf's requests are not counted."""

    def __init__(self, server: str) -> None:
        self._host: Final = URL(server).host_port_subcomponent or server
        self._requests = CounterSeries(upstream.REQUESTS)
        self._durations = Histograms(upstream.REQUEST_DURATION)
        self._waits = Histograms(upstream.RATE_LIMITER_DURATION)

    def answered(self, method: str, status: int | None) -> None:
        """Count a request when its answer begins, or when it fails.

        Args:
            method: HTTP method.
            status: status of the answer; None without an answer.
        """
        self._requests.at(_NO_ANSWER if status is None else str(status), method, self._host).value += 1

    def ended(self, method: str, waited: float, took: float) -> None:
        """Count the times of a request that has ended.

        Args:
            method: HTTP method.
            waited: seconds for its turn by the rate limit.
            took: seconds after that, to the end of its answer.
        """
        self._waits.at(method, self._host).observe(waited)
        self._durations.at(method, self._host).observe(took)
