"""Watch streams: the changes that one watcher sees, their form, and the queue in front of its connection.

A change is offered to every watch of its type when it is stored. Each watch keeps finished lines. Its connection sends all new lines since
the last write in one piece.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from kubesandbox.resources import ResourceType
from kubesandbox.status import ApiError, Object
from kubesandbox.storage.selectors import Predicate
from kubesandbox.storage.store import Change, ChangeType, Store, Stored

_encode = msgspec.json.Encoder().encode

#: Number of lines after which a slow watcher is cut off, like in the real server. Its first state may be longer.
MOST_PENDING_LINES: Final = 200_000

INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"


class View:
    """The form in which a request wants objects. `encode` gives JSON. Equal `key`s give equal bytes, and an empty one is never shared."""

    def __init__(self, resource: ResourceType, encode: Callable[[Stored], bytes], key: str = "") -> None:
        self.resource = resource
        self.encode = encode
        self.key = key


class Watch:
    """One stream, from the store's changes to lines of JSON.

    The connection is to be broken after `cut_after` lines (0 for never). Then `cut` is set.
    """

    def __init__(
        self,
        view: View,
        matches: Predicate | None,
        namespace: str | None,
        *,
        bookmarks: bool = False,
        cut_after: int = 0,
    ) -> None:
        self.view = view
        self.bookmarks = bookmarks
        self.closed = False
        self.broken = False
        self.cut = False
        self._left = cut_after
        self._matches = matches
        self._namespace = namespace
        self._pending: list[bytes] = []
        self._wake = asyncio.Event()

    def offer(self, change: Change) -> None:
        """Queue the lines about a change, if this watcher has to hear of it."""
        subject = change.current or change.previous
        assert subject is not None
        if self._namespace is not None and subject.namespace != self._namespace:
            return
        was, becomes = self._sees(change.previous), self._sees(change.current)
        if becomes:
            assert change.current is not None
            self._push(self._line(change, "MODIFIED" if was else "ADDED", change.current))
        elif was:
            self._push(self._line(change, "DELETED", change.departed))
        if len(self._pending) > MOST_PENDING_LINES:
            self.abort()

    def add_initial(self, stored: Iterable[Stored]) -> None:
        """Queue the present state as ADDED."""
        for each in stored:
            self._push(_line("ADDED", self.view.encode(each)))

    def bookmark(self, version: int, *, initial_events_end: bool = False) -> None:
        """Queue a bookmark: everything up to `version` has been sent."""
        metadata: Object = {"resourceVersion": str(version), "creationTimestamp": None}
        if initial_events_end:
            metadata["annotations"] = {INITIAL_EVENTS_END: "true"}
        resource = self.view.resource
        shown = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata}
        self._push(_line("BOOKMARK", _encode(shown)))

    def fail(self, error: ApiError) -> None:
        """End the stream with an ERROR event."""
        self._push(_line("ERROR", _encode(error.status())))
        self.close()

    def close(self) -> None:
        """End the stream after the queued lines."""
        self.closed = True
        self._wake.set()

    def abort(self) -> None:
        """Break the stream, like a lost connection."""
        self.broken = True
        self.close()

    async def next(self) -> bytes:
        """Return all queued lines once there are some, or nothing after the end of the stream."""
        while not self._pending and not self.closed:
            self._wake.clear()
            await self._wake.wait()
        if self.broken:
            return b""
        lines, self._pending = self._pending, []
        return b"".join(lines)

    def _sees(self, stored: Stored | None) -> bool:
        return stored is not None and (self._matches is None or self._matches(stored.object))

    def _line(self, change: Change, word: ChangeType, stored: Stored) -> bytes:
        if not self.view.key:
            return _line(word, self.view.encode(stored))
        key = (self.view.key, word)
        line = change.lines.get(key)
        if line is None:
            line = change.lines[key] = _line(word, self.view.encode(stored))
        return line

    def _push(self, line: bytes) -> None:
        if self.closed:
            return
        self._pending.append(line)
        self._left -= 1
        if self._left == 0:
            self.cut = True
            self.close()
        self._wake.set()


class Watches:
    """All streams of one server. `cut_after` applies to future ones."""

    def __init__(self, store: Store) -> None:
        self.cut_after = 0
        self._store = store
        self._open: set[Watch] = set()
        self._all_ended = asyncio.Event()

    def __len__(self) -> int:
        return len(self._open)

    def open(self, watch: Watch) -> None:
        """Tell the watch about changes from now on."""
        self._open.add(watch)
        self._store.collection(watch.view.resource.key).listeners.append(watch.offer)

    def forget(self, watch: Watch) -> None:
        """Remove a watch from the listeners to changes."""
        if watch in self._open:
            self._open.remove(watch)
            if not self._open:
                self._all_ended.set()
            self._store.collection(watch.view.resource.key).listeners.remove(watch.offer)

    def bookmark_all(self) -> None:
        """Send each watcher that asked for bookmarks its present version."""
        for watch in self._open:
            if watch.bookmarks:
                watch.bookmark(self._store.version)

    def expire(self, watch: Watch) -> None:
        """End a stream after its time. A client that asked for bookmarks gets one to resume from."""
        if watch.bookmarks:
            watch.bookmark(self._store.version)
        watch.close()

    def close_all(self) -> None:
        """End every stream after its queued lines."""
        for watch in tuple(self._open):
            watch.close()

    async def ended(self) -> None:
        """Return once the last stream has ended."""
        self._all_ended.clear()
        if self._open:
            await self._all_ended.wait()

    def abort_all(self, resource: str = "") -> int:
        """Break every stream, or those of the type with this plural. Return their number."""
        found = [watch for watch in self._open if resource in ("", watch.view.resource.plural)]
        for watch in found:
            watch.abort()
        return len(found)


def _line(word: str, shown: bytes) -> bytes:
    return b'{"type":"' + word.encode() + b'","object":' + shown + b"}\n"
