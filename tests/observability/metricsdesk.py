"""An operator whose metrics are looked at, and what they say, read by the Prometheus library's parsers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_plain
from prometheus_client.registry import Collector

from handlers.stage import FAST, Running, Stage, operator
from placewright.engine.companions import Companions
from placewright.engine.engine import Engine
from placewright.engine.options import EngineOptions
from placewright.observability.metrics import EngineMetrics, EngineSeries
from placewright.observability.metrics.series import CounterSeries, Histograms, Series

OPENMETRICS: Final = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"
PLAIN: Final = "text/plain;version=0.0.4"


class Seen:
    """One scrape."""

    def __init__(self, body: bytes, content_type: str) -> None:
        self.text = body.decode()
        self.content_type = content_type
        parse = parse_openmetrics if content_type.startswith("application/openmetrics-text") else parse_plain
        self.families: dict[str, Metric] = {one.name: one for one in parse(self.text)}
        self._samples = [sample for one in self.families.values() for sample in one.samples]

    def value(self, name: str, /, **labels: str) -> float:
        """The one sample of that name and exactly these labels; `KeyError` where there is none."""
        found = [sample.value for sample in self._samples if sample.name == name and sample.labels == labels]
        if len(found) != 1:
            raise KeyError(f"{name}{labels}: {len(found)} samples")
        return float(found[0])

    def total(self, name: str, /, **labels: str) -> float:
        """The sum of all samples of that name that have these labels, whatever others."""
        return sum(sample.value for sample in self._samples if sample.name == name and labels.items() <= sample.labels.items())

    def values(self, name: str, label: str) -> set[str]:
        """All values of a label."""
        return {sample.labels[label] for sample in self._samples if sample.name == name and label in sample.labels}


def seen(metrics: EngineMetrics, accept: str = PLAIN) -> Seen:
    """Ask for them."""
    return Seen(*metrics.exposition(accept))


def read(series: Iterable[Series]) -> Seen:
    """As they would be exported, without an engine."""
    kept = list(series)

    class Collected(Collector):
        def collect(self) -> Iterable[Metric]:
            return [one.metric() for one in kept if isinstance(one, CounterSeries)]

    registry = CollectorRegistry()
    registry.register(Collected())
    histograms = "".join(one.text() for one in kept if isinstance(one, Histograms))
    return Seen(histograms.encode() + generate_latest(registry), PLAIN)


@dataclass(frozen=True)
class Watched:
    """An operator at work, and its metrics."""

    running: Running
    metrics: EngineMetrics

    @property
    def engine(self) -> Engine:
        return self.running.engine

    def seen(self, accept: str = PLAIN) -> Seen:
        return seen(self.metrics, accept)


@asynccontextmanager
async def watched(stage: Stage, options: EngineOptions = FAST) -> AsyncIterator[Watched]:
    """Started before anything has happened, as `/metrics` is."""
    series = EngineSeries(stage.sandbox.server)
    async with operator(stage, options, lambda _info: Companions(series.listeners)) as running:
        yield Watched(running, EngineMetrics(running.engine, series))
