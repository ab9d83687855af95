"""ServiceAffinity: the pods of a Service on nodes of one kind, spread within it."""

from placewright.plugins.serviceaffinity.args import ServiceAffinityArgs
from placewright.plugins.serviceaffinity.plugin import ServiceAffinity

__all__ = ["ServiceAffinity", "ServiceAffinityArgs"]
