"""Reads: pages of a list from one consistent snapshot, and the start of a watch."""

from __future__ import annotations

import itertools
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

import msgspec

from kubesandbox import status
from kubesandbox.resources import ResourceType, presented
from kubesandbox.status import ApiError, Object
from kubesandbox.storage.selectors import Predicate
from kubesandbox.storage.store import Store, Stored, View, Watch, Watches

_encode = msgspec.json.Encoder().encode
#: Number of unfinished lists that can continue, so that clients without a next request do not fill the memory.
MOST_SNAPSHOTS: Final = 64


@dataclass(frozen=True, slots=True)
class ListOptions:
    """The query of a list or watch. `limit` 0 means all, and `version` is the sent resourceVersion."""

    limit: int = 0
    token: str = ""
    version: str = ""
    match: str = ""
    bookmarks: bool = False
    initial_events: bool | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """A list or one page of it: the objects, the version of the whole list, and the token of the next page.

    A token is the number of a snapshot and a place in it.
    """

    objects: list[Stored]
    version: int
    token: str = ""
    remaining: int = 0

    @property
    def metadata(self) -> Object:
        """The ListMeta of the page."""
        shown: Object = {"resourceVersion": str(self.version)}
        if self.token:
            shown["continue"] = self.token
            shown["remainingItemCount"] = self.remaining
        return shown


@dataclass
class Reads:
    """All reads of one server. It keeps the newest `MOST_SNAPSHOTS` snapshots of unfinished lists."""

    store: Store
    watches: Watches

    def __post_init__(self) -> None:
        self._snapshots: OrderedDict[int, Page] = OrderedDict()
        self._numbers = itertools.count(1)

    def page(self, resource: ResourceType, namespace: str | None, matches: Predicate | None, options: ListOptions) -> Page:
        """Return one page of a list. Raises ApiError 410 if its snapshot is gone, and 400 for a bad token."""
        if options.token:
            return self._continued(options)
        self._check_version(options)
        found = self.store.listed(resource.key, namespace)
        if matches is not None:
            found = [each for each in found if matches(each.object)]
        if not options.limit or len(found) <= options.limit:
            return Page(found, self.store.version)
        # Later pages come from this snapshot, because writes in between would shift the places of objects.
        number = next(self._numbers)
        self._snapshots[number] = Page(found, self.store.version)
        if len(self._snapshots) > MOST_SNAPSHOTS:
            self._snapshots.popitem(last=False)
        return self._slice(number, 0, options.limit)

    def watch(
        self,
        view: View,
        namespace: str | None,
        matches: Predicate | None,
        options: ListOptions,
    ) -> Watch:
        """Open a watch. Without a version it begins with the present state, otherwise with every change since then."""
        key = view.resource.key
        watch = Watch(view, matches, namespace, bookmarks=options.bookmarks, cut_after=self.watches.cut_after)
        from_start = options.version in ("", "0") if options.initial_events is None else options.initial_events
        try:
            if from_start:
                found = self.store.listed(key, namespace)
                watch.add_initial(each for each in found if matches is None or matches(each.object))
            elif options.version not in ("", "0"):
                for change in self.store.collection(key).since(int(options.version)):
                    watch.offer(change)
        # Like in the real server, the error is in the stream, because clients handle it there.
        except ApiError as gone:
            watch.fail(gone)
            return watch
        if from_start and options.initial_events and options.bookmarks:
            watch.bookmark(self.store.version, initial_events_end=True)
        self.watches.open(watch)
        return watch

    def encode_page(self, view: View, page: Page) -> bytes:
        """Encode a list from the bytes in the store. Like on the real server, only custom items have their kind."""
        resource = view.resource
        head = _encode({"kind": resource.collection_kind, "apiVersion": resource.api_version, "metadata": page.metadata})
        # We join bytes instead of encoding one document, because objects are encoded once, in their write.
        items = [view.encode(each) for each in page.objects]
        if resource.custom:
            return head[:-1] + b',"items":[' + b",".join(items) + b"]}"
        return head[:-1] + b',"items":[' + _without_kind(resource, items) + b"]}"

    def _check_version(self, options: ListOptions) -> None:
        version = int(options.version or 0)
        if version > self.store.version:
            message = f"Timeout: Too large resource version: {version}, current: {self.store.version}"
            causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
            raise ApiError(504, "Timeout", message, {"causes": causes}, retry_after=1)
        if options.match == "Exact" and version != self.store.version:
            raise status.expired(f"The resourceVersion for the provided list is too old: {version}")

    def _continued(self, options: ListOptions) -> Page:
        try:
            number, start = map(int, options.token.split("."))
        except ValueError as error:
            raise status.bad_request("continue key is not valid: it must come from an earlier page") from error
        snapshot = self._snapshots.get(number)
        if snapshot is None or snapshot.version < self.store.compacted or start < 0:
            self._snapshots.pop(number, None)
            message = (
                "The provided continue parameter is too old to display a consistent list result. "
                "You can start a new list without the continue parameter."
            )
            raise status.expired(message)
        return self._slice(number, start, options.limit or len(snapshot.objects))

    def _slice(self, number: int, start: int, limit: int) -> Page:
        snapshot = self._snapshots[number]
        end = start + limit
        objects = snapshot.objects[start:end]
        remaining = len(snapshot.objects) - end
        if remaining <= 0:
            return Page(objects, snapshot.version)
        return Page(objects, snapshot.version, f"{number}.{end}", remaining)


def _without_kind(resource: ResourceType, items: list[bytes]) -> bytes:
    # Stored objects begin with their kind (`Stored`), so cutting a prefix is enough.
    kind = _encode({"kind": resource.kind, "apiVersion": resource.api_version})[:-1] + b","
    cut = [memoryview(item)[len(kind) :] if item.startswith(kind) else memoryview(item)[1:] for item in items]
    return b"{" + b",{".join(cut) if cut else b""


def plain_view(resource: ResourceType) -> View:
    """Show unchanged objects, in the version of `resource`."""
    wanted = resource.api_version

    def encode(stored: Stored) -> bytes:
        if stored.object.get("apiVersion") == wanted:
            return stored.encoded
        return _encode(presented(resource, stored.object))

    return View(resource, encode, key=wanted)
