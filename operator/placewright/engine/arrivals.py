"""Watches the objects that a plugin's follower is told of, while a profile runs the plugin.

Such a watch costs an event for each object that comes into the selection; without such a profile there is none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from placewright.cluster.cluster import Cluster
from placewright.engine.children import first_of
from placewright.engine.discovery import CallingSink
from placewright.framework.sources import AnySource
from placewright.kube.arrivals import Arrivals
from placewright.kube.client import ApiClient
from placewright.kube.reflector import Source


class ArrivalsWatch:
    """The watch for one source, on and off.

    Args:
        client: watches.
        cluster: followed while the watch is on.
        source: has a follower.
        now: seconds since 1970.
    """

    def __init__(self, client: ApiClient, cluster: Cluster, source: AnySource, now: Callable[[], float]) -> None:
        assert source.follower is not None
        self._client = client
        self._cluster = cluster
        self._source = Source(source.path, source.kind, field_selector=source.field_selector, label_selector=source.selector.query)
        self._follower = source.follower(cluster)
        self._sink = CallingSink[Any](lambda _, new: self._follower.object_arrives(new, now()))
        self._wanted = False
        self._turned = asyncio.Event()
        self._arrivals: Arrivals[Any] | None = None

    @property
    def watching(self) -> bool:
        """Whether each object that appears from now on is seen."""
        return self._arrivals is not None and self._arrivals.has_synced.is_set()

    def set_enabled(self, *, on: bool) -> None:
        """Begin to watch, or end it, at the next turn of the event loop. What the follower remembers stays.

        Args:
            on: whether a profile runs a plugin with this source.
        """
        if on is self._wanted:
            return
        self._wanted = on
        self._turned.set()
        followers = self._cluster.pod_followers
        (followers.add if on else followers.drop)(self._follower)

    async def run(self) -> None:
        """Watch whenever it is wanted, until cancelled."""
        while True:
            self._turned.clear()
            if not self._wanted:
                await self._turned.wait()
                continue
            self._arrivals = Arrivals(self._client, self._source, self._sink)
            try:
                await first_of(self._arrivals.run(), self._turned.wait())  # no answer of the server ends the first
            finally:
                self._arrivals = None
