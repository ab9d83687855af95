"""Plugins whose longest work for a pod can be done in pieces before the pod is decided.

A decision runs in one go, on the columns as they stand. Most of what takes long in it is kept and follows the cluster by itself from then
on: pods counted for a selection, domains of a label. So for a pod that asks for much, these are made ready one by one, with the event
loop's turns in between; the decision then finds them, and sees what is true at that moment. What was not made ready, or not kept, it works
out itself: preparing changes no answer.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.interface import Plugin


class PreparingPlugin(Plugin, ABC):
    """Makes ready what deciding a pod will ask for."""

    @abstractmethod
    def prepare(self, pod: PodInfo, cluster: Cluster) -> Iterator[None]:
        """Work out one thing that is kept at a time, and yield; the cluster may be another one after each."""
