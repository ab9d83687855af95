"""Limits in preemption's trials: the rows under trial are counted anew before each look."""

from __future__ import annotations

from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.apart import FilterAsJudge
from placewright.framework.interface import BoolColumn, CycleState, FilterPlugin, Rows
from placewright.plugins.nodevolumelimits.attached import AttachedVolumes


class CountingJudge(FilterAsJudge):
    """Asks a filter that reads counted volumes, once they are counted."""

    def __init__(self, plugin: FilterPlugin, state: CycleState, pod: PodInfo, cluster: Cluster, counted: AttachedVolumes) -> None:
        super().__init__(plugin, state, pod, cluster)
        self._counted = counted

    def passes(self, rows: Rows) -> BoolColumn:
        """What the filter says of the volumes that are there now."""
        self._counted.catch_up()
        return super().passes(rows)
