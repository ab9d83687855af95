"""What `/metrics` shows: kube-scheduler's metrics under their own names, and ours. docs/metrics.md lists them.

`EngineSeries` hears one engine, and `EngineMetrics` tells of it; `families` is the list of all there is, for whoever makes dashboards,
rules or documents of it.
"""

from __future__ import annotations

from placewright.observability.metrics import own, upstream
from placewright.observability.metrics.engine import EngineMetrics, EngineSeries
from placewright.observability.metrics.family import MetricFamily, MetricKind

__all__ = ["EngineMetrics", "EngineSeries", "MetricFamily", "MetricKind", "declared", "families"]


def declared() -> tuple[tuple[MetricFamily, ...], tuple[MetricFamily, ...]]:
    """The metrics under kube-scheduler's names, and ours, each in the order of the module that declares them."""
    kube_schedulers, ours = (
        tuple(found for found in vars(table).values() if isinstance(found, MetricFamily)) for table in (upstream, own)
    )
    return kube_schedulers, ours


def families() -> tuple[MetricFamily, ...]:
    """Every metric that we declare, kube-scheduler's first; those of the process and of Python are the Prometheus library's."""
    kube_schedulers, ours = declared()
    return kube_schedulers + ours
