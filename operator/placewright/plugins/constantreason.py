"""A filter that has one thing to say about every node it rejects."""

from __future__ import annotations

from abc import ABC
from typing import ClassVar

from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.interface import CycleState, FilterPlugin, Rejection, Rows
from placewright.framework.status import Status


class ConstantReasonFilter(FilterPlugin, ABC):
    """Base for filters whose rejections all carry the same status, `rejection`."""

    rejection: ClassVar[Status]

    def explain(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> list[Rejection]:
        """One group with the one reason."""
        return [Rejection(self.rejection, rows)]
