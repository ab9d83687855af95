"""What `/metrics` shows: kube-scheduler's metrics under their own names, and ours. docs/metrics.md lists them.

`EngineSeries` hears one engine, and `EngineMetrics` tells of it; `families` is the list of all there is, for whoever makes dashboards,
rules or documents of it.
"""

from __future__ import annotations

from placewright.observability.metrics import own, upstream
from placewright.observability.metrics.engine import EngineMetrics, EngineSeries
from placewright.observability.metrics.family import MetricFamily, MetricKind

__all__ = ["EngineMetrics", "EngineSeries", "MetricFamily", "MetricKind", "families"]


def families() -> tuple[MetricFamily, ...]:
    """Every metric that we declare, kube-scheduler's first; those of the process and of Python are the Prometheus library's."""
    return tuple(found for table in (upstream, own) for found in vars(table).values() if isinstance(found, MetricFamily))
