"""Extended resources that devices serve, as scores count them: the devices of a class that a row reaches, and those in use.

They count on nodes that do not offer the resource themselves (KEP-5004). Source: kube-scheduler 1.36 `resource_allocation.go`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import numpy as np

from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.interface import Handle, IntColumn
from placewright.plugins.dynamicresources.devices import ClusterDevices

DEVICES: Final = "DynamicResources"


class WholeNumbers(NamedTuple):
    """One resource by row, without the pod."""

    taken: IntColumn
    allocatable: IntColumn


class DeviceBackedResources:
    """The extended resources of a profile's scores that devices may serve."""

    def __init__(self, handle: Handle, scored: Iterable[str]) -> None:
        self._handle = handle
        self._scored = frozenset(name for name in scored if "/" in name)
        self._devices: ClusterDevices | None = None

    def of(self, pod: PodInfo) -> Mapping[str, str]:
        """Return the class that serves each scored resource of the pod. Their scores follow devices, so no column may be kept."""
        if not self._scored or not self._handle.runs(DEVICES):
            return {}
        return {name: served_by for name, served_by in self._handle.cluster.objects.devices.served(pod).items() if name in self._scored}

    def amounts(self, served_by: str, cluster: Cluster, offered: WholeNumbers) -> WholeNumbers:
        """Return the amounts of a resource with the devices of its class on rows that do not offer it; columns of shape (size,)."""
        if self._devices is None:
            self._devices = ClusterDevices(self._handle.cluster)
        self._devices.refresh()
        reached, used = self._devices.in_class(served_by)
        taken, allocatable = offered.taken[: cluster.size], offered.allocatable[: cluster.size]
        offers = allocatable > 0
        return WholeNumbers(np.where(offers, taken, used), np.where(offers, allocatable, reached))
