"""LoadAware: a plugin with data of its own, read from metrics.k8s.io by the scheduler."""

from placewright_load_aware.nodemetrics import NodeMetrics
from placewright_load_aware.plugin import LoadAware

__all__ = ["LoadAware", "NodeMetrics"]
