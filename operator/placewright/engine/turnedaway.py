"""Watches failed pods while a profile wants to know which pods kubelets turned away.

The watch of pods on nodes ends with the pod's last state before it failed, so these pods have a watch of their own. It costs an event for
each pod that fails; without such a profile there is none.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Final

from placewright.api.objects import NodeName
from placewright.api.turnedaway import FailedPod, owner_of
from placewright.cluster.cluster import Cluster
from placewright.kube.arrivals import Arrivals
from placewright.kube.client import ApiClient
from placewright.kube.reflector import Source
from placewright.plugins.turnedaway import TurnedAwayPods, record_of

FAILED_PODS: Final = "spec.nodeName!=,status.phase=Failed"
_PODS_PATH: Final = "/api/v1/pods"


class TurnedAwaySink:
    """Notes failed pods that a kubelet turned away."""

    def __init__(self, record: TurnedAwayPods, now: Callable[[], float]) -> None:
        """Take the record.

        Args:
            record: of the cluster.
            now: seconds since 1970.
        """
        self._record = record
        self._now = now

    def changed(self, old: FailedPod | None, new: FailedPod) -> None:
        """Take a pod that has failed.

        Args:
            old: not read.
            new: the pod.
        """
        if new.turned_away:
            self._record.note(owner_of(new.metadata), NodeName(new.spec.node_name), new.status.reason, self._now())

    def deleted(self, old: FailedPod) -> None:
        """Do nothing: a pod that is deleted was turned away all the same."""

    def synced(self) -> None:
        """Do nothing: there is no list to be complete."""


class FailedPodsWatch:
    """The watch, on and off.

    Args:
        client: watches.
        cluster: its record is told.
        now: seconds since 1970.
    """

    def __init__(self, client: ApiClient, cluster: Cluster, now: Callable[[], float]) -> None:
        self._client = client
        self._cluster = cluster
        self._record = record_of(cluster)
        self._sink = TurnedAwaySink(self._record, now)
        self._wanted = False
        self._turned = asyncio.Event()
        self._pods: Arrivals[FailedPod] | None = None

    @property
    def watching(self) -> bool:
        """Whether each pod that fails from now on is seen."""
        return self._pods is not None and self._pods.has_synced.is_set()

    def turn(self, *, on: bool) -> None:
        """Begin to watch, or end it, at the next turn of the event loop. The record stays until it is too old.

        Args:
            on: whether a profile wants to know.
        """
        if on is self._wanted:
            return
        self._wanted = on
        self._turned.set()
        followers = self._cluster.pod_followers
        (followers.add if on else followers.drop)(self._record)

    async def run(self) -> None:
        """Watch whenever it is wanted, until cancelled."""
        while True:
            self._turned.clear()
            if not self._wanted:
                await self._turned.wait()
                continue
            self._pods = Arrivals(self._client, Source(_PODS_PATH, FailedPod, field_selector=FAILED_PODS), self._sink)
            watching = asyncio.create_task(self._pods.run(), name="failed pods")
            turned = asyncio.create_task(self._turned.wait())
            try:
                await asyncio.wait([watching, turned], return_when=asyncio.FIRST_COMPLETED)
                if watching.done():
                    watching.result()  # no answer of the server ends it, so this raises
            finally:
                self._pods = None
                for task in (watching, turned):
                    task.cancel()
                    with contextlib.suppress(asyncio.CancelledError):
                        await task
