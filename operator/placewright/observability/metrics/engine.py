"""The metrics of one engine, counted and read, in a registry of their own, exported as text."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from importlib.metadata import version
from typing import Final

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.core import Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from placewright.engine.companions import Listeners
from placewright.engine.engine import Engine
from placewright.observability.metrics import groups, own, scrape, shadows
from placewright.observability.metrics.attempts import AttemptSeries
from placewright.observability.metrics.groups import ClaimSeries, GroupSeries
from placewright.observability.metrics.objectbytes import ObjectSizes
from placewright.observability.metrics.series import CounterSeries, Histograms, Series, counted, told
from placewright.observability.metrics.timings import EventTimes, HintTimes, RequestTimes


class EngineSeries:
    """All series that are counted as events happen. They are made before the engine, which is built with their listeners."""

    def __init__(self, server: str) -> None:
        """Count nothing yet.

        Args:
            server: the API server's URL.
        """
        self.attempts = AttemptSeries()
        self.groups = GroupSeries()
        self._claims = ClaimSeries()
        self._events = EventTimes()
        self._hints = HintTimes()
        self._requests = RequestTimes(server)

    @property
    def listeners(self) -> Listeners:
        """The listeners that count, for the engine's build."""
        return Listeners((self.attempts,), (self.groups,), (self._claims,), (self._requests,), self._events, self._hints)

    def __iter__(self) -> Iterator[Series]:
        for part in (self.attempts, self.groups, self._claims, self._events, self._hints, self._requests):
            yield from part.series()


class EngineMetrics(Collector):
    """Exports the counted figures of an engine, and the figures that are read from it at each scrape.

    The metrics of two engines in one process share the metrics of the process only.
    """

    def __init__(self, engine: Engine, series: EngineSeries) -> None:
        """Read nothing yet."""
        self._engine: Final = engine
        self._series: Final = series
        self._object_sizes = ObjectSizes(engine.deciding, engine.reading)
        self._build = told(own.BUILD, (version("placewright"), platform.python_version()))
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)
        ProcessCollector(registry=self._registry)
        PlatformCollector(registry=self._registry)
        GCCollector(registry=self._registry)

    async def refresh(self) -> None:
        """Bring up to date what takes several turns of the loop to count."""
        await self._object_sizes.refresh()

    def exposition(self, accept: str) -> tuple[bytes, str]:
        """Return all metrics as text, and its content type: OpenMetrics if the Accept header asks for it, else Prometheus' own format."""
        self._series.attempts.keep_only({name: active.profile for name, active in self._engine.deciding.live.active.items()})
        self._series.groups.keep_only(self._engine.deciding.live.active)
        encode, content_type = choose_encoder(accept)
        histograms = "".join(one.text() for one in self._series if isinstance(one, Histograms))
        return histograms.encode() + encode(self._registry), content_type

    def collect(self) -> Iterator[Metric]:
        """Read all metrics except histograms, which write their own text."""
        yield from (one.metric() for one in self._series if isinstance(one, CounterSeries))
        yield self._build
        yield from scrape.gauges(self._engine)
        yield counted(own.OBJECT_BYTES, {resource: float(nbytes) for resource, nbytes in self._object_sizes.by_resource.items()})
        deciding = self._engine.deciding
        yield from groups.standing(deciding)
        yield from scrape.profiles(deciding)
        yield from scrape.of_plugins((name, active.evaluator.runtime) for name, active in deciding.live.active.items())
        yield from shadows.compared(deciding.shadows.by_name)
        yield counted(own.SCORE_SHARE, self._series.attempts.shares())
