"""Objects in memory, one version counter over all of them, and the recent changes of each type.

An object is a dict that never changes, beside its JSON bytes. Reads, lists and watches send those bytes and never encode. This module only
stores, and `writes` has the rules. Everything runs on one event loop, so a read and a write without `await` between them are a transaction.

Watch streams: the changes that one watcher sees, their form, and the queue in front of its connection.

A change is offered to every watch of its type when it is stored. Each watch keeps finished lines. Its connection sends all new lines since
the last write in one piece.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import KW_ONLY, dataclass, field
from operator import attrgetter
from typing import Final, Literal

import msgspec

from kubesandbox.resources import GroupResource, ResourceType
from kubesandbox.status import ApiError, Object, expired
from kubesandbox.storage.selectors import Predicate

ChangeType = Literal["ADDED", "MODIFIED", "DELETED"]
_encode = msgspec.json.Encoder().encode


class Stored:
    """One object in one version. `object` is read-only by agreement, and `encoded` is its JSON."""

    __slots__ = ("encoded", "name", "namespace", "object", "version")

    def __init__(self, namespace: str, name: str, version: int, content: Object) -> None:
        self.namespace = namespace
        self.name = name
        self.version = version
        self.object = _with_kind_first(content)
        self.encoded = _encode(self.object)

    @property
    def uid(self) -> str:
        """Uid of the object."""
        uid: str = self.object["metadata"]["uid"]
        return uid


@dataclass(slots=True, eq=False)
class Change:
    """One write: the object before, the object after (None once deleted), and its new version.

    `lines` caches the lines that watches share, by a key of their choice, until all watches have the change.
    """

    version: int
    previous: Stored | None
    current: Stored | None
    lines: dict[tuple[str, str], bytes] = field(default_factory=dict)
    _departed: Stored | None = None

    @property
    def type(self) -> ChangeType:
        """Type of this change for a watch without a selector."""
        if self.previous is None:
            return "ADDED"
        return "DELETED" if self.current is None else "MODIFIED"

    @property
    def departed(self) -> Stored:
        """Previous content under this change's version. Like the real server, a stream sends it as DELETED."""
        if self._departed is None:
            last = self.previous
            assert last is not None, "nothing departs on creation"
            metadata = {**last.object["metadata"], "resourceVersion": str(self.version)}
            content = {**last.object, "metadata": metadata}
            self._departed = Stored(last.namespace, last.name, self.version, content)
        return self._departed

    def forget_lines(self) -> None:
        """Drop the cached lines, which only new watches would still need."""
        self.lines = {}
        self._departed = None


Listener = Callable[[Change], None]


class Collection:
    """All objects of one type, and its latest changes (at least `history`, at most twice as many)."""

    def __init__(self, history: int) -> None:
        self.namespaces: dict[str, dict[str, Stored]] = {}
        self.listeners: list[Listener] = []
        self._history = history
        self._changes: list[Change] = []
        self._floor = 0

    def listed(self, namespace: str | None) -> list[Stored]:
        """Return objects by namespace and name, of all namespaces for None."""
        wanted: Iterable[str] = sorted(self.namespaces) if namespace is None else (namespace,)
        found: list[Stored] = []
        for each in wanted:
            named = self.namespaces.get(each, {})
            found.extend(named[name] for name in sorted(named))
        return found

    def record(self, change: Change) -> None:
        """Keep a change for watches that resume, and tell the listeners."""
        self._changes.append(change)
        # Half of them go at once, because dropping one for each change would move the list each time.
        if len(self._changes) >= 2 * self._history:
            self._floor = self._changes[-self._history - 1].version
            del self._changes[: -self._history]
        # A copy, because a listener may close its watch, and so leave the list.
        for listener in tuple(self.listeners):
            listener(change)
        change.forget_lines()

    def since(self, version: int) -> list[Change]:
        """Return the changes after `version`. Raises ApiError 410 if some of them are gone."""
        if version < self._floor:
            raise expired(f"too old resource version: {version} ({self._floor})")
        return self._changes[bisect_right(self._changes, version, key=attrgetter("version")) :]

    def compact(self, version: int) -> None:
        """Forget all changes up to `version`."""
        self._floor = version
        self._changes = self._changes[bisect_right(self._changes, version, key=attrgetter("version")) :]


class Store:
    """Every object of one server. `version` is the newest resourceVersion, and `listeners` hear of all types."""

    def __init__(self, history: int = 10_000) -> None:
        self.version = 1
        self.compacted = 0
        self.listeners: list[Callable[[GroupResource, Change], None]] = []
        self._history = history
        self._collections: dict[GroupResource, Collection] = {}

    def collection(self, key: GroupResource) -> Collection:
        """Return the objects of one type."""
        found = self._collections.get(key)
        if found is None:
            found = self._collections[key] = Collection(self._history)
        return found

    def types(self) -> list[GroupResource]:
        """Return the types that hold, or once held, objects."""
        return list(self._collections)

    def get(self, key: GroupResource, namespace: str, name: str) -> Stored | None:
        """Return one object, or None. `namespace` is empty for cluster-scoped types."""
        return self.collection(key).namespaces.get(namespace, {}).get(name)

    def content(self, key: GroupResource, namespace: str, name: str) -> Object:
        """Return the content of one object, empty without such an object."""
        found = self.get(key, namespace, name)
        return {} if found is None else found.object

    def listed(self, key: GroupResource, namespace: str | None = None) -> list[Stored]:
        """Return the objects of a type in order, of all namespaces for None."""
        return self.collection(key).listed(namespace)

    def put(self, key: GroupResource, namespace: str, name: str, content: Object) -> Stored:
        """Write `content`, whose metadata the caller hands over, as the newest version."""
        self.version += 1
        content["metadata"]["resourceVersion"] = str(self.version)
        stored = Stored(namespace, name, self.version, content)
        collection = self.collection(key)
        named = collection.namespaces.setdefault(namespace, {})
        previous = named.get(name)
        named[name] = stored
        self._record(key, collection, Change(self.version, previous, stored))
        return stored

    def remove(self, key: GroupResource, namespace: str, name: str) -> Stored:
        """Remove an object. Return its last content under the version of the removal. Raises KeyError for an unknown object."""
        collection = self.collection(key)
        named = collection.namespaces[namespace]
        previous = named.pop(name)
        if not named:
            del collection.namespaces[namespace]
        self.version += 1
        change = Change(self.version, previous, None)
        departed = change.departed
        self._record(key, collection, change)
        return departed

    def _record(self, key: GroupResource, collection: Collection, change: Change) -> None:
        collection.record(change)
        for listener in self.listeners:
            listener(key, change)

    def compact(self) -> None:
        """Forget all history. A watch that resumes from an older version, or a list that continues, gets 410."""
        self.compacted = self.version
        for collection in self._collections.values():
            collection.compact(self.version)


#: Namespace and name, with an empty namespace for cluster-scoped objects.
Key = tuple[str, str]


class Index:
    """Objects of one type by keys in their content, like an indexer of client-go. `keys_of` returns the keys of an object."""

    def __init__(self, store: Store, resource: GroupResource, keys_of: Callable[[Object], Iterable[Hashable]]) -> None:
        self._keys_of = keys_of
        #: Dicts that serve as ordered sets.
        self._found: defaultdict[Hashable, dict[Key, None]] = defaultdict(dict)
        for each in store.listed(resource):
            self._on_change(Change(each.version, None, each))
        store.collection(resource).listeners.append(self._on_change)

    def __getitem__(self, key: Hashable) -> list[Key]:
        return list(self._found.get(key, ()))

    def _on_change(self, change: Change) -> None:
        if (old := change.previous) is not None:
            for key in self._keys_of(old.object):
                self._found[key].pop((old.namespace, old.name), None)
                if not self._found[key]:
                    del self._found[key]
        if (new := change.current) is not None:
            for key in self._keys_of(new.object):
                self._found[key][new.namespace, new.name] = None


def _with_kind_first(content: Object) -> Object:
    """Put kind and apiVersion first, so that lists of built-in types can leave them out by cutting bytes."""
    if next(iter(content), "kind") == "kind":
        return content
    return {"kind": content.get("kind"), "apiVersion": content.get("apiVersion"), **content}


#: Number of lines after which a slow watcher is cut off, like in the real server. Its first state may be longer.
MOST_PENDING_LINES: Final = 200_000

INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"


@dataclass(frozen=True, eq=False)
class View:
    """The form in which a request wants objects. `encode` gives JSON. Equal `key`s give equal bytes, and an empty one is never shared."""

    resource: ResourceType
    encode: Callable[[Stored], bytes]
    key: str = ""


@dataclass(eq=False)
class Watch:
    """One stream, from the store's changes to lines of JSON.

    The connection is to be broken after `cut_after` lines (0 for never). Then `cut` is set.
    """

    view: View
    matches: Predicate | None
    namespace: str | None
    _: KW_ONLY
    bookmarks: bool = False
    cut_after: int = 0

    def __post_init__(self) -> None:
        self.closed = False
        self.broken = False
        self.cut = False
        self._pending: list[bytes] = []
        self._wake = asyncio.Event()

    def offer(self, change: Change) -> None:
        """Queue the lines about a change, if this watcher has to hear of it."""
        if self.namespace is not None and (change.current or change.departed).namespace != self.namespace:
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
        return stored is not None and (self.matches is None or self.matches(stored.object))

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
        self.cut_after -= 1
        if self.cut_after == 0:
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
