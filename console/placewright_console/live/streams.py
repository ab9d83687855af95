"""The console's streams: a state that is published twice a second to readers of different rights.

A reader's rights are looked at again while the stream is open. If they changed, the stream goes on with the state of the new rights. If
they are gone, it ends. All streams end when this replica no longer leads, because its state is no longer the one that counts.

The source is brought forward in slices with a rest after each, and only while there are readers.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Final

from placewright.http.routes import Following, RequestRefused
from placewright.serving.fairroom import FairRoom
from placewright.serving.readerrights import Visitor
from placewright_console.pages.feed import Feed, FeedReader
from placewright_console.pages.feedline import PACKED_HEAD
from placewright_console.pages.publisher import BEAT, keep_publishing
from placewright_console.pages.source import ConsoleSource

_log = logging.getLogger(__name__)

#: Seconds between two looks at the rights of all readers.
RIGHTS_SECONDS: Final = 10.0
#: Seconds for which a stream goes on while the API server does not say whether it may.
UNSAID_SECONDS: Final = 60.0
#: Seconds of silence after which an empty line is sent, so that both sides notice a broken connection.
SILENCE_SECONDS: Final = 15.0
#: Streams at once. Each holds a connection (`http.accept`).
MOST_STREAMS: Final = 120
#: Seconds without a publication after a defect.
_AFTER_DEFECT_SECONDS: Final = 5.0
_NO_ROOM: Final = 503
_NOT_HERE: Final = 500


class _Stream:
    """One reader's stream. It joins the feed anew if the reader's rights changed."""

    def __init__(self, feed: Feed, visitor: Visitor, now: float, *, packed: bool) -> None:
        self._packed = packed
        self.visitor = visitor
        #: When the API server last said what the reader may.
        self.judged_at = now
        self._feed = feed
        self._joined: FeedReader = feed.join(visitor.rights, visitor.party, packed=packed)

    async def lines(self) -> AsyncGenerator[bytes, None]:
        """Yield the lines until the stream ends."""
        if self._packed:
            yield PACKED_HEAD
        while True:
            joined = self._joined
            async for line in joined.lines(SILENCE_SECONDS):
                yield line
            if joined is self._joined:
                return

    def change(self, visitor: Visitor) -> None:
        """Go on with the state that readers of other rights see. Raises `RequestRefused`."""
        before, self._joined = self._joined, self._feed.join(visitor.rights, self.visitor.party, packed=self._packed)
        self.visitor = replace(visitor, party=self.visitor.party)
        self._feed.leave(before)
        before.drop()

    def end(self) -> None:
        """End the lines. A second call does nothing."""
        self._feed.leave(self._joined)
        self._joined.drop()


class ConsoleStreams:
    """All streams of one replica.

    Attributes:
        feed: feed that they read.
    """

    def __init__(self, source: ConsoleSource, clock: Callable[[], float] = time.monotonic) -> None:
        """Publish nothing yet; `open` does.

        Args:
            source: source of the state.
            clock: seconds, monotonic; how long a stream goes on without an answer of the API server.
        """
        self.feed = Feed(source)
        self._source = source
        self._clock = clock
        self._streams: FairRoom[_Stream] = FairRoom()

    def __len__(self) -> int:
        return len(self._streams)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Publish, and look at rights, for as long as the context is open."""
        tasks = [
            asyncio.create_task(self._for_ever(lambda: keep_publishing(self.feed, self._source, BEAT)), name="console"),
            asyncio.create_task(self._for_ever(self._look_at_rights), name="console's rights"),
        ]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            self.end_all()
            await asyncio.gather(*tasks, return_exceptions=True)

    def follow(self, visitor: Visitor, *, packed: bool) -> Following:
        """Begin a stream.

        Args:
            visitor: person who asks; judged again while the stream is open.
            packed: whether the client takes gzip.

        Raises:
            RequestRefused: there are too many streams (503).
        """
        if len(self._streams) >= MOST_STREAMS:
            self._make_room(visitor.party)
        stream = _Stream(self.feed, visitor, self._clock(), packed=packed)
        self._streams.enter(stream, visitor.party)

        def end() -> None:
            self._end(stream)

        return Following(stream.lines(), end)

    def end_all(self) -> None:
        """End all streams."""
        for stream in self._streams:
            self._end(stream)

    def _end(self, stream: _Stream) -> None:
        self._streams.leave(stream)
        stream.end()

    def _make_room(self, party: str) -> None:
        """End the oldest stream of the party with the most, if that party keeps as many as the newcomer gets; otherwise refuse."""
        loser = self._streams.who_makes_room_for(party)
        if loser is None:
            raise RequestRefused(_NO_ROOM, f"too many readers: {len(self._streams)} follow; try again later")
        self._end(loser)

    async def _for_ever(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do something again and again. A defect ends the streams and is logged: placing pods goes on."""
        while True:
            try:
                await work()
            except MemoryError:
                raise
            except Exception:  # noqa: BLE001 - a defect of the console must leave the scheduler at work
                _log.exception("the console has a defect; its readers begin anew")
                self.end_all()
                await asyncio.sleep(_AFTER_DEFECT_SECONDS)

    async def _look_at_rights(self) -> None:
        await asyncio.sleep(RIGHTS_SECONDS)
        await asyncio.gather(*(self._judge(stream) for stream in self._streams))

    async def _judge(self, stream: _Stream) -> None:
        """Ask again what a reader may see, and have the stream show that and no more."""
        try:
            visitor = await stream.visitor.again()
        except RequestRefused as refused:
            if refused.status < _NOT_HERE or self._clock() - stream.judged_at > UNSAID_SECONDS:
                self._end(stream)
            return
        stream.judged_at = self._clock()
        if visitor.rights == stream.visitor.rights or stream not in self._streams:
            return
        try:
            stream.change(visitor)
        except RequestRefused:
            self._end(stream)
