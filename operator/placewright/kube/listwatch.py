"""Lists and watch events on the wire: a watch is cut into lines, and pages and lines are decoded into typed structs.

A whole page or line is decoded in one pass. Only when that fails is it decoded object by object, so that one bad object costs one object.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Generic, Protocol, TypeVar

import msgspec

from placewright.api.decode import DECODE_ERRORS, decoded
from placewright.api.objects import ObjectMeta
from placewright.kube.errors import error_from_answer

#: Bytes; a longer line is refused. etcd holds no object above 1.5 MiB by default, and the largest configured limits are a few times that.
LONGEST_LINE: Final = 64 * 2**20


class LineTooLong(ValueError):
    """A line exceeded the limit: the stream is not a watch, or the server is hostile."""


class LineSplitter:
    """Cuts a stream of chunks into lines. Its time is linear in the bytes, however many chunks a line takes."""

    __slots__ = ("_length", "_limit", "_partial")

    def __init__(self, limit: int = LONGEST_LINE) -> None:
        self._partial: list[bytes] = []
        self._length = 0
        self._limit = limit

    def feed(self, chunk: bytes) -> list[bytes]:
        """Add a chunk.

        Returns:
            The lines that this chunk completes, without newlines and without blank lines.

        Raises:
            LineTooLong: the line that has begun is longer than the limit.
        """
        if b"\n" not in chunk:
            self._keep(chunk)
            return []
        lines = chunk.split(b"\n")
        rest = lines.pop()
        if self._partial:
            self._partial.append(lines[0])
            lines[0] = b"".join(self._partial)
            self._partial.clear()
            self._length = 0
        self._keep(rest)
        return [line for line in lines if line]

    def _keep(self, piece: bytes) -> None:
        if piece:
            self._partial.append(piece)
            self._length += len(piece)
            if self._length > self._limit:
                raise LineTooLong(f"a line of more than {self._limit} bytes")


class Object(Protocol):
    """An object with metadata: every struct of `api.objects` that the API server lists."""

    @property
    def metadata(self) -> ObjectMeta:
        """Name, namespace, uid, resourceVersion."""


T = TypeVar("T", bound=Object)
#: `namespace/name`, or `name` for an object without a namespace.
ObjectKey = str


class Paged(Protocol):
    """One page of a list, in any decoding."""

    @property
    def following(self) -> str:
        """The token of the next page, empty on the last one."""


P = TypeVar("P", bound=Paged)


class ChangeType(StrEnum):
    """The type of a watch event."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"
    ERROR = "ERROR"


class Malformed(ValueError):
    """The bytes are no list and no event: no JSON, or an object without metadata."""


@dataclass(frozen=True, slots=True)
class UndecodableObject:
    """An object that does not have the shape of its kind. Its metadata could be read, so that it can be named and found again."""

    metadata: ObjectMeta
    error: str


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """One page of a list. `following` is the token of the next page, empty on the last one."""

    items: list[T | UndecodableObject]
    resource_version: str
    following: str


@dataclass(frozen=True, slots=True)
class Event(Generic[T]):
    """One line of a watch."""

    change: ChangeType
    object: T | UndecodableObject


class _ListMeta(msgspec.Struct, rename="camel", frozen=True):
    resource_version: str = ""
    following: str = msgspec.field(default="", name="continue")


class _RawPage(msgspec.Struct, frozen=True):
    metadata: _ListMeta = _ListMeta()
    items: list[msgspec.Raw] | None = None


class _RawEvent(msgspec.Struct, frozen=True):
    type: ChangeType
    object: msgspec.Raw


class Identity(msgspec.Struct, rename="camel", frozen=True):
    """The fields of metadata that tell an object and its version."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""

    def as_metadata(self) -> ObjectMeta:
        """Return metadata with these fields alone."""
        return ObjectMeta(name=self.name, namespace=self.namespace, uid=self.uid, resource_version=self.resource_version)


class _OnlyIdentity(msgspec.Struct, frozen=True):
    metadata: Identity = Identity()


_RAW_PAGE: Final = msgspec.json.Decoder(_RawPage)
_RAW_EVENT: Final = msgspec.json.Decoder(_RawEvent)
_IDENTITY: Final = msgspec.json.Decoder(_OnlyIdentity)


class Wire(Generic[T]):
    """Decodes lists and events of one kind."""

    def __init__(self, kind: type[T]) -> None:
        items: Any = msgspec.defstruct(
            f"{kind.__name__}Page",
            [("metadata", _ListMeta, _ListMeta()), ("items", list[kind] | None, None)],  # type: ignore[valid-type]
        )
        event: Any = msgspec.defstruct(f"{kind.__name__}Event", [("type", ChangeType), ("object", kind)])
        self.kind = kind
        self._page: msgspec.json.Decoder[Any] = msgspec.json.Decoder(items)
        self._event: msgspec.json.Decoder[Any] = msgspec.json.Decoder(event)
        self._object: msgspec.json.Decoder[T] = msgspec.json.Decoder(kind)

    def page(self, body: bytes) -> Page[T]:
        """Decode one page of a list.

        Returns:
            The page; an object of a wrong shape is a `UndecodableObject` in it.

        Raises:
            Malformed: the text is no list.
        """
        try:
            page = decoded(self._page, body)
            return Page(page.items or [], page.metadata.resource_version, page.metadata.following)
        except DECODE_ERRORS:
            return self._page_apart(body)

    def event(self, line: bytes) -> Event[T]:
        """Decode one line of a watch.

        Returns:
            The event. An object of a wrong shape is a `UndecodableObject`.

        Raises:
            ApiError: the server ends the watch by an ERROR line, and gives the reason.
            Malformed: the line is no watch event.
        """
        try:
            event = decoded(self._event, line)
            if event.type is not ChangeType.ERROR:
                return Event(event.type, event.object)
        except DECODE_ERRORS:
            pass
        return self._event_apart(line)

    def _page_apart(self, body: bytes) -> Page[T]:
        try:
            page = decoded(_RAW_PAGE, body)
        except DECODE_ERRORS as error:
            raise Malformed(f"no list of {self.kind.__name__}: {error}") from None
        items = [self._one(raw) for raw in page.items or ()]
        return Page(items, page.metadata.resource_version, page.metadata.following)

    def _event_apart(self, line: bytes) -> Event[T]:
        try:
            event = decoded(_RAW_EVENT, line)
        except DECODE_ERRORS as error:
            raise Malformed(f"no watch event of {self.kind.__name__}: {error}") from None
        if event.type is ChangeType.ERROR:
            refusal = error_from_answer(0, bytes(event.object))
            raise refusal if refusal.status else Malformed(f"an ERROR line without a Status: {refusal.message}")
        return Event(event.type, self._one(event.object))

    def _one(self, raw: msgspec.Raw) -> T | UndecodableObject:
        try:
            return decoded(self._object, raw)
        except DECODE_ERRORS as error:
            return UndecodableObject(_metadata(raw), str(error))


async def pages(
    get: Callable[[Mapping[str, str]], Awaitable[bytes]], read: Callable[[bytes], P], params: Mapping[str, str]
) -> AsyncIterator[P]:
    """Read the pages of one list, in order.

    Args:
        get: requests one page by its query.
        read: decodes a page.
        params: query of the first page, such as a limit and selectors.

    Raises:
        Exception: any error of `get` and `read`.
    """
    asked = dict(params)
    while True:
        page = read(await get(asked))
        yield page
        if not page.following:
            return
        # A continued list stays at the version of its first page, and may not name one.
        asked = {name: value for name, value in params.items() if not name.startswith("resourceVersion")} | {"continue": page.following}


def _metadata(raw: msgspec.Raw) -> ObjectMeta:
    try:
        return decoded(_IDENTITY, raw).metadata.as_metadata()
    except DECODE_ERRORS as error:
        raise Malformed(f"an object without metadata: {error}") from None


def object_key(metadata: ObjectMeta) -> ObjectKey:
    """Build an object's key.

    Returns:
        `namespace/name`; `name` alone for an object without a namespace.
    """
    return f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name
