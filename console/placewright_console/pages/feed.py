"""The feed: one state and its changes, as lines of JSON for any number of readers.

The first line that a reader gets is a whole state, and each line after it a delta. Every line has the version that it leads to, and a
delta the version that it applies to. A reader that misses one asks again and gets a whole state.

A line is encoded once for each class of rights, and packed once if a reader takes gzip. A slow reader is dropped when its lines take too
much memory. So no reader can delay the publisher or another reader.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from placewright.http.routes import RequestRefused
from placewright.serving.fairroom import FairRoom
from placewright.serving.rights import ALL_NAMESPACES, Rights
from placewright_console.pages.feedline import EMPTY_LINE, FeedLine
from placewright_console.pages.statedelta import Section, Sections, changed_rows

#: Bytes of deltas that wait for one reader; beyond, the reader is dropped. A whole state is one object for all readers of a class.
MOST_BYTES_BEHIND: Final = 4 * 2**20
#: Rows up to which a delta is sent even where it puts more rows than there were.
_FEW_ROWS: Final = 1000
#: Readers at once, and classes of rights among them, beside the class of readers who may see all namespaces.
MOST_READERS: Final = 200
MOST_CLASSES: Final = 50
#: Readers that are given a line before others have their turn.
READERS_A_STEP: Final = 8
_NO_ROOM: Final = 503
_NO_ROWS: Final[Section] = {}


class StateSource(Protocol):
    """Makes the state that the feed publishes."""

    def sections(self, rights: Rights) -> Sections:
        """Return the state as readers of these rights may see it. Rows that have not changed are the same objects as before."""

    def release(self) -> None:
        """Drop what is kept for readers: the last one has left. The next `sections` begins anew."""


class FeedReader:
    """One reader of the feed.

    Attributes:
        dropped: the reader did not keep up. It gets no more lines and has to ask again.
    """

    def __init__(self, rights: Rights, first: FeedLine, *, packed: bool = False) -> None:
        """Begin with a whole state.

        Args:
            rights: rights of the reader.
            first: the line with the state.
            packed: whether the reader takes lines as pieces of a gzip stream.
        """
        self.rights = rights
        self.dropped = False
        self._packed = packed
        self._lines = deque([first.as_read(packed=packed)])
        self._behind = 0
        self._news = asyncio.Event()
        self._news.set()

    def give(self, line: FeedLine, *, anew: bool = False) -> None:
        """Add a line, or drop the reader.

        Args:
            line: the next one.
            anew: it is a whole state, before which nothing else need be read.
        """
        said = line.as_read(packed=self._packed)
        if anew and not self.dropped:
            self._lines.clear()
            self._lines.append(said)
            self._behind = 0
            self._news.set()
            return
        self._behind += len(said)
        if self._behind > MOST_BYTES_BEHIND:
            self.drop()
        elif not self.dropped:
            self._lines.append(said)
            self._news.set()

    def drop(self) -> None:
        """End the lines."""
        self.dropped = True
        self._lines.clear()
        self._news.set()

    async def lines(self, silence: float) -> AsyncIterator[bytes]:
        """Yield the lines as they come, until the reader is dropped.

        Args:
            silence: seconds after which an empty line is yielded, so that both sides notice a broken connection.

        Yields:
            A line with its line end.
        """
        while not self.dropped:
            try:
                async with asyncio.timeout(silence):
                    await self._news.wait()
            except TimeoutError:
                yield EMPTY_LINE.as_read(packed=self._packed)
                continue
            self._news.clear()
            self._behind = 0
            taken = list(self._lines)
            self._lines.clear()
            for line in taken:
                yield line


class _SectionStep(NamedTuple):
    """The change of a section: the rows that readers have afterwards, how many are new, and the parts of the delta, encoded."""

    after: Section
    new: int
    put: msgspec.Raw | None
    gone: list[str]


class _Publication:
    """One publication to all classes. Sections that are the same object for several classes are compared, copied and encoded once."""

    def __init__(self) -> None:
        self._steps: dict[tuple[int, int], _SectionStep] = {}
        self._copies: dict[int, dict[str, Any]] = {}
        #: Objects that are known by their identity here, which others would get if these went.
        self._held: list[Section] = []

    def step(self, before: Section, rows: Section) -> _SectionStep:
        """Find how the rows that readers have become the ones of the source."""
        key = id(before), id(rows)
        known = self._steps.get(key)
        if known is None:
            self._held += (before, rows)
            new, gone = changed_rows(before, rows)
            put = msgspec.Raw(msgspec.json.encode(new)) if new else None
            known = self._steps[key] = _SectionStep(self._copy(rows) if new or gone else before, len(new), put, gone)
        return known

    def _copy(self, rows: Section) -> Section:
        """Copy rows, because the source goes on to change its section."""
        copy = self._copies.get(id(rows))
        if copy is None:
            copy = self._copies[id(rows)] = dict(rows)
        return copy


class _RightsClass:
    """The readers of one class of rights, and the state that they have."""

    def __init__(self, state: Sections) -> None:
        #: A copy, because the source goes on to change its sections.
        self.state: Sections = {name: dict(rows) for name, rows in state.items()}
        #: Counts the changes of this class: readers that may see less miss nothing by a change that they may not see.
        self.version = 1
        self.readers: set[FeedReader] = set()
        self._whole: FeedLine | None = None

    def whole(self) -> FeedLine:
        """Return the whole state as a line, encoded once for all readers that come between two changes."""
        if self._whole is None:
            self._whole = FeedLine.of({"version": self.version, "state": self.state})
        return self._whole

    def change(self, after: Sections, publication: _Publication) -> tuple[FeedLine, bool] | None:
        """Go on to another state.

        Returns:
            The line for the readers, and whether it is a whole state, as where nearly all of it is new; None if the states are equal.
        """
        put: dict[str, msgspec.Raw] = {}
        gone: dict[str, list[str]] = {}
        state: dict[str, Section] = {}
        known, new = sum(map(len, self.state.values())), 0
        for name, rows in after.items():
            step = publication.step(self.state.get(name, _NO_ROWS), rows)
            state[name] = step.after
            new += step.new
            if step.put is not None:
                put[name] = step.put
            if step.gone:
                gone[name] = step.gone
        if not put and not gone:
            return None
        before, self.version = self.version, self.version + 1
        self.state, self._whole = state, None
        if new > max(known, _FEW_ROWS):
            return self.whole(), True
        delta = {"put": put} if not gone else {"gone": gone} if not put else {"put": put, "gone": gone}
        return FeedLine.of({"from": before, "version": self.version, "delta": delta}), False


class Feed:
    """Publishes one source to its readers.

    Example:
        reader = feed.join(ALL_NAMESPACES)
        feed.publish()                          # a few times a second
        async for line in reader.lines(15.0):
            await response.write(line)
    """

    def __init__(self, source: StateSource) -> None:
        """Begin without readers."""
        self._source = source
        self._classes: dict[Rights, _RightsClass] = {}
        #: The classes of readers who may not see all namespaces, each with the party of its first reader.
        self._narrow: FairRoom[Rights] = FairRoom()

    @property
    def readers(self) -> int:
        """Number of readers."""
        return sum(len(each.readers) for each in self._classes.values())

    def join(self, rights: Rights, party: str = "", *, packed: bool = False) -> FeedReader:
        """Add a reader. If no class is free, the party with the most classes loses its oldest, whose readers are dropped.

        Args:
            rights: rights of the reader.
            party: party of the reader; parties share the classes.
            packed: whether the lines are pieces of a gzip stream (`feedline`).

        Returns:
            The reader; `leave` removes it.

        Raises:
            RequestRefused: there is no room for another one (503).
        """
        if self.readers >= MOST_READERS:
            raise RequestRefused(_NO_ROOM, "too many readers follow; try again later")
        known = self._classes.get(rights)
        if known is None:
            if rights != ALL_NAMESPACES:
                self._open_narrow(rights, party)
            known = self._classes[rights] = _RightsClass(self._source.sections(rights))
        reader = FeedReader(rights, known.whole(), packed=packed)
        known.readers.add(reader)
        return reader

    def _open_narrow(self, rights: Rights, party: str) -> None:
        if len(self._narrow) >= MOST_CLASSES:
            loser = self._narrow.who_makes_room_for(party)
            if loser is None:
                raise RequestRefused(_NO_ROOM, "too many readers of different rights follow; try again later")
            self._narrow.leave(loser)
            for reader in self._classes.pop(loser).readers:
                reader.drop()
        self._narrow.enter(rights, party)

    def leave(self, reader: FeedReader) -> None:
        """Remove a reader, and with the last one of a class what is kept for the class."""
        known = self._classes.get(reader.rights)
        if known is not None:
            known.readers.discard(reader)
            if not known.readers:
                del self._classes[reader.rights]
                self._narrow.leave(reader.rights)
                if not self._classes:
                    self._source.release()

    def publish(self) -> None:
        """Give each reader the changes since the last call. Does nothing without readers."""
        for _ in self.publishing():
            pass

    def publishing(self) -> Iterator[None]:
        """Publish to one class of readers after the other, so that a server can do other things in between.

        The source is not to be brought forward before the end.

        Yields:
            None, after each class, and after each few readers, whose lines are written before the next few get theirs.
        """
        publication = _Publication()
        for rights, known in list(self._classes.items()):
            if self._classes.get(rights) is not known:
                continue  # its last reader has left meanwhile
            change = known.change(self._source.sections(rights), publication)
            if change is not None:
                line, anew = change
                for number, reader in enumerate(list(known.readers), 1):
                    reader.give(line, anew=anew)
                    if number % READERS_A_STEP == 0:
                        yield
            yield

    def close(self) -> None:
        """End the lines of all readers."""
        for known in self._classes.values():
            for reader in known.readers:
                reader.drop()
