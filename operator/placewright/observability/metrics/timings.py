"""How long things took that belong to no attempt: taking in events, asking hints, and requests to the API server."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any, Final

from yarl import URL

from placewright.api.pods import PodInfo
from placewright.framework.events import ClusterEvent, QueueingHint, QueueingHintFn
from placewright.observability.metrics import upstream
from placewright.observability.metrics.series import Cell, CounterSeries, Histogram, Histograms, Series

#: A hint is asked about thousands of pods in a row: the time of one question in so many is taken.
HINT_SAMPLE: Final = 10
_NO_ANSWER: Final = "<error>"
#: Beside the answers' own values.
_BROKEN: Final = "Error"


class EventTimes:
    """How long it took to take in what watches showed; the intake's `Stopwatch`."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        """`clock`: seconds."""
        self._events = Histograms(upstream.EVENT_DURATION)
        self._known: dict[str, Histogram] = {}
        self._clock = clock
        self._began = 0.0

    def begin(self) -> None:
        """Somebody brings news."""
        self._began = self._clock()

    def handled(self, event: str) -> None:
        """Count what was done about it."""
        found = self._known.get(event)
        if found is None:
            found = self._known[event] = self._events.at(event)
        found.observe(self._clock() - self._began)

    def series(self) -> Iterable[Series]:
        """For export."""
        return (self._events,)


class HintTimes:
    """How long hints took; called by the queue with every hint that it is about to use, and answers one that is timed."""

    def __init__(self) -> None:
        self._hints = Histograms(upstream.HINT_DURATION)
        self._left = HINT_SAMPLE

    def __call__(self, plugin: str, event: ClusterEvent, hint: QueueingHintFn) -> QueueingHintFn:
        """The same hint, with its time taken now and then."""

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

    def series(self) -> Iterable[Series]:
        """For export."""
        return (self._hints,)


class RequestTimes:
    """What the API client hears of its requests, as its `RequestListener`. Kopf's own are not among them."""

    def __init__(self, server: str) -> None:
        self._host: Final = URL(server).host_port_subcomponent or server
        self._requests = CounterSeries(upstream.REQUESTS)
        self._durations = Histograms(upstream.REQUEST_DURATION)
        self._waits = Histograms(upstream.RATE_LIMITER_DURATION)
        self._answers: dict[tuple[str, int | None], Cell] = {}
        self._times: dict[str, tuple[Histogram, Histogram]] = {}

    def answered(self, method: str, status: int | None) -> None:
        """Count the beginning of an answer, or that none came."""
        cell = self._answers.get((method, status))
        if cell is None:
            code = _NO_ANSWER if status is None else str(status)
            cell = self._answers[method, status] = self._requests.at(code, method, self._host)
        cell.value += 1

    def ended(self, method: str, waited: float, took: float) -> None:
        """Count how long a request waited for its turn, and how long it took then, its whole answer included."""
        known = self._times.get(method)
        if known is None:
            known = self._times[method] = (self._waits.at(method, self._host), self._durations.at(method, self._host))
        known[0].observe(waited)
        known[1].observe(took)

    def series(self) -> Iterable[Series]:
        """For export."""
        return (self._requests, self._durations, self._waits)
