"""The metrics of one engine: everything that is counted and read, in a registry of its own, as text for whoever asks."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import version
from typing import Final

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.core import Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from placewright.engine.beside import Listeners
from placewright.engine.engine import Engine
from placewright.observability.metrics import groups, own, scrape, shadows
from placewright.observability.metrics.attempts import AttemptSeries
from placewright.observability.metrics.groups import ClaimSeries, GroupSeries
from placewright.observability.metrics.series import CounterSeries, Histograms, Series, counted, told
from placewright.observability.metrics.timings import EventTimes, HintTimes, RequestTimes


class EngineSeries:
    """Everything that is counted as it happens: made before the engine, which is built with its listeners."""

    def __init__(self, server: str) -> None:
        """`server`: the API server's URL."""
        self.attempts = AttemptSeries()
        self.groups = GroupSeries()
        self._claims = ClaimSeries()
        self._events = EventTimes()
        self._hints = HintTimes()
        self._requests = RequestTimes(server)

    @property
    def listeners(self) -> Listeners:
        """Who hears the engine."""
        return Listeners((self.attempts,), (self.groups,), (self._claims,), (self._requests,), self._events, self._hints)

    def __iter__(self) -> Iterator[Series]:
        for part in (self.attempts, self.groups, self._claims, self._events, self._hints, self._requests):
            yield from part.series()


class EngineMetrics:
    """Tells what was counted of one engine, and what is read off it.

    Two of them, of two engines in one process, share nothing but the process.
    """

    def __init__(self, engine: Engine, series: EngineSeries) -> None:
        """`series`: those that the engine was built with."""
        self._engine: Final = engine
        self._series: Final = series
        self._build = told(own.BUILD, (version("placewright"), platform.python_version()))
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(_Read(self._others))
        ProcessCollector(registry=self._registry)
        PlatformCollector(registry=self._registry)
        GCCollector(registry=self._registry)

    def exposition(self, accept: str) -> tuple[bytes, str]:
        """All metrics as text, and its content type: OpenMetrics where the Accept header asks for it, else Prometheus' own format."""
        self._series.attempts.keep_only({name: active.profile for name, active in self._engine.live.active.items()})
        self._series.groups.keep_only(self._engine.live.active)
        encode, content_type = choose_encoder(accept)
        histograms = "".join(one.text() for one in self._series if isinstance(one, Histograms))
        return histograms.encode() + encode(self._registry), content_type

    def _others(self) -> Iterator[Metric]:
        """All but histograms."""
        yield from (one.metric() for one in self._series if isinstance(one, CounterSeries))
        yield self._build
        yield from scrape.gauges(self._engine)
        yield from groups.standing(self._engine)
        yield from scrape.profiles(self._engine)
        yield from shadows.compared(self._engine.shadows.by_name)
        yield counted(own.SCORE_SHARE, self._series.attempts.shares())


class _Read(Collector):
    """Collects by calling."""

    def __init__(self, collect: Callable[[], Iterable[Metric]]) -> None:
        self._collect = collect

    def collect(self) -> Iterable[Metric]:
        return self._collect()
