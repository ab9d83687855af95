"""NodeMetrics of metrics.k8s.io: what a node used of its resources a moment ago, and how the scheduler reads it."""

from __future__ import annotations

from typing import Final

from placewright.api.objects import KubeObject, ObjectMeta
from placewright.framework.sources import ObjectSource


class NodeMetrics(KubeObject, frozen=True):
    """One node's sample.

    Attributes:
        metadata: its name is the node's.
        timestamp: when the sample was taken, RFC 3339.
        usage: by resource, such as `{"cpu": "1250m"}`; quantities.
    """

    metadata: ObjectMeta = ObjectMeta()
    timestamp: str = ""
    usage: dict[str, str] | None = None


#: metrics.k8s.io has no watch. metrics-server takes samples every 15 s by default; what was not read for two minutes is nobody's load now.
NODE_METRICS: Final = ObjectSource(
    NodeMetrics,
    group="metrics.k8s.io",
    resource="nodes",
    versions=("v1beta1",),
    poll_seconds=15.0,
    stale_after_seconds=120.0,
    plain_fields=frozenset({"timestamp", "usage"}),
)
