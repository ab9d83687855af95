"""Tells of objects that come into a selection, as pods do that fail, and keeps none of them.

A reflector holds every object of its collection, to tell which have vanished. Here they are news and no state, and there may be a hundred
thousand of them. Objects that came before the first watch may be missed, and those of a long gap between two watches.
"""

from __future__ import annotations

from typing import TypeVar

from placewright.api.objectbounds import bounded
from placewright.kube.listwatch import ChangeType, Event, Object, UndecodableObject
from placewright.kube.reflector import Reflector

T = TypeVar("T", bound=Object)


class Arrivals(Reflector[T]):
    """Watches a selection from now on. The sink hears `changed`, with no object before, once for each object that comes into it.

    Arrivals(client, Source("/api/v1/pods", FailedPod, field_selector="status.phase=Failed"), sink)
    """

    async def _list(self) -> None:
        """Read the collection's version, and no more than one object."""
        page = self._wire.page(await self.client.get(self.source.path, self.source.selectors | {"limit": "1"}))
        self.version = page.resource_version
        self._recovered()
        self.counts.lists += 1
        self.has_synced.set()

    def _take(self, event: Event[T]) -> None:
        """Pass over objects that change within the selection or leave it; they are known, or not wanted any more."""
        if event.change in (ChangeType.MODIFIED, ChangeType.DELETED):
            event = Event(ChangeType.BOOKMARK, event.object)
        super()._take(event)

    def _put(self, item: T | UndecodableObject) -> None:
        if isinstance(item, UndecodableObject):
            self.counts.bad_object += 1
        else:
            self._tell(self.sink.changed, None, bounded(item))
