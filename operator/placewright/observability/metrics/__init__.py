"""The metrics of `/metrics`: kube-scheduler's under their own names, and ours. docs/metrics.md lists them.

`EngineSeries` listens to an engine and `EngineMetrics` exports its figures. `families` is the list of all metrics, from which dashboards,
rules and documents are made.
"""

from __future__ import annotations

from placewright.observability.metrics import own, upstream
from placewright.observability.metrics.engine import EngineMetrics, EngineSeries
from placewright.observability.metrics.family import MetricFamily, MetricKind

__all__ = ["EngineMetrics", "EngineSeries", "MetricFamily", "MetricKind", "declared", "families"]


def declared() -> tuple[tuple[MetricFamily, ...], tuple[MetricFamily, ...]]:
    """Return the metrics under kube-scheduler's names, and ours, each in the order of the module that declares them."""
    kube_schedulers, ours = (tuple(found for found in vars(table).values() if isinstance(found, MetricFamily)) for table in (upstream, own))
    return kube_schedulers, ours


def families() -> tuple[MetricFamily, ...]:
    """Return the metrics that we declare, kube-scheduler's first. The Prometheus library adds those of the process and of Python."""
    kube_schedulers, ours = declared()
    return kube_schedulers + ours
