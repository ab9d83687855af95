"""The console's pages of a running operator, for the doorkeeper before them.

The operator finds this module by the entry point group `placewright.pages`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, nullcontext
from typing import Final

from placewright.http.routes import JSON, Answer, Question, RequestRefused
from placewright.serving.readerrights import Visitor
from placewright.serving.rights import Rights
from placewright.serving.schedulerview import SchedulerView
from placewright_console.live.enginetimeline import EngineTimeline, seen_shadows
from placewright_console.live.livesource import LiveSource
from placewright_console.live.streams import ConsoleStreams
from placewright_console.pages.datapages import DATA_PAGES, FEED
from placewright_console.pages.shadowrows import shadow_rows
from placewright_console.pages.source import CompanySource
from placewright_console.pages.statedelta import Section
from placewright_console.pages.staticpages import StaticPage, static_pages
from placewright_console.pages.verdictdesk import BUSY, TOO_MANY

_LINES: Final = "application/x-ndjson"
#: Length of the pause after an explanation, as a multiple: explanations take a fifth of the event loop's time.
_REST: Final = 4.0
#: Explanations that wait for their turn.
_MOST_WAITING: Final = 50
_NOT_FOUND: Final = 404


class Console:
    """One replica's console. Implements `Pages`.

    Attributes:
        streams: streams of its readers.
        opening: the feed.
    """

    opening = FEED

    def __init__(self, source: CompanySource, clock: Callable[[], float] = time.monotonic) -> None:
        """Publish nothing yet; `open` does.

        Args:
            source: source of the state and the pages.
            clock: seconds, monotonic.
        """
        self.streams = ConsoleStreams(source, clock)
        self._source = source
        self._turn = _Turn()

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Publish for as long as the context is open."""
        async with self.streams.open():
            yield

    def end_all(self) -> None:
        """End the streams."""
        self.streams.end_all()

    def file(self, name: str) -> StaticPage | None:
        """Find a file of the pages; None for one that is not there."""
        return static_pages().get(name)

    async def answer(self, name: str, question: Question, visitor: Visitor) -> Answer:
        """Answer a question for data.

        Args:
            name: name of the data.
            question: request with its parameters.
            visitor: person who asks.

        Raises:
            RequestRefused: the question is wrong (400), there is no such data (404), or too many ask (503).
        """
        if name == FEED:
            packing = {"Content-Encoding": "gzip"} if question.packed else {}
            following = self.streams.follow(visitor, packed=question.packed)
            return Answer(following, _LINES, headers={**packing, "Vary": "Accept-Encoding"})
        page = DATA_PAGES.get(name)
        if page is None:
            raise RequestRefused(_NOT_FOUND, "404 page not found")
        async with self._turn.taken() if page.in_turn else nullcontext():
            return Answer(await page.answer(self._source, question.query, visitor.rights), JSON)


@asynccontextmanager
async def open_pages(view: SchedulerView) -> AsyncIterator[Console]:
    """Make the console. Implements `PagesPackage`.

    Yields:
        The console, which publishes for as long as the context is open.
    """
    timeline = None if view.attempts is None else EngineTimeline(view)

    def more(rights: Rights) -> Mapping[str, Section]:
        """Return shadows, and with metrics the last hour, which is kept whether or not there are readers."""
        hour = {} if timeline is None else {"time": timeline.time(), "marks": timeline.marks()}
        shadows = shadow_rows(seen_shadows(view), rights)
        can = [each for each, offered in (("time", hour), ("shadows", shadows)) if offered]
        return {**hour, "shadows": shadows, "about": {"can": can}}

    sampling = None if timeline is None else asyncio.create_task(timeline.run(), name="time line")
    console = Console(LiveSource(view, more))
    try:
        async with console.open():
            yield console
    finally:
        if sampling is not None:
            sampling.cancel()


class _Turn:
    """Makes answers that take long one after the other, with pauses between them in which pods are placed."""

    def __init__(self) -> None:
        self._one = asyncio.Lock()
        self._waiting = 0
        self._free_at = 0.0

    @asynccontextmanager
    async def taken(self) -> AsyncIterator[None]:
        """Wait for a turn. Raise `RequestRefused` if too many wait."""
        if self._waiting >= _MOST_WAITING:
            raise RequestRefused(BUSY, TOO_MANY)
        self._waiting += 1
        try:
            async with self._one:
                await asyncio.sleep(max(self._free_at - time.monotonic(), 0))
                began = time.monotonic()
                try:
                    yield
                finally:
                    now = time.monotonic()
                    self._free_at = now + (now - began) * _REST
        finally:
            self._waiting -= 1
