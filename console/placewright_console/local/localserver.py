"""The console's HTTP server on loopback: the pages, the exchange of the secret, the feed, and what a person asks for."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Final, Protocol

import msgspec
from aiohttp import web

from placewright.api.decode import DecodeError, decode
from placewright.http.accept import CANCELLED_WHEN_GONE
from placewright.http.routes import SECURITY_HEADERS, RequestRefused
from placewright.serving.rights import ALL_NAMESPACES
from placewright_console.local.doorkeeper import DATA, SESSION, Doorkeeper
from placewright_console.local.handthrough import WRITE_SECONDS, HandThrough, dropped_when_it_ends
from placewright_console.pages.datapages import DATA_PAGES, FEED, DataPage
from placewright_console.pages.feed import Feed
from placewright_console.pages.source import CompanySource
from placewright_console.pages.staticpages import static_pages

LOOPBACK: Final = "127.0.0.1"
#: Seconds between two publications: one local reader costs little.
_BEAT: Final = 0.1
#: Length of the pause after a publication, as a multiple: very many waiting pods take long.
_REST: Final = 4.0
#: Seconds of silence after which an empty line is sent: the page calls its data old when it hears nothing for three.
_SILENCE: Final = 1.0
_LARGEST_BODY: Final = 4096
_END_SECONDS: Final = 1.0
_BAD_REQUEST: Final = 400
_NOT_FOUND: Final = 404
_FORBIDDEN: Final = 403


class _Secret(msgspec.Struct):
    """The body with which the page enters."""

    secret: str


_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class MorePages(Protocol):
    """Pages of another package, such as what-if."""

    @property
    def can(self) -> Sequence[str]:
        """Words of `about.can`, by which the pages are offered."""

    @property
    def under_way(self) -> bool:
        """Whether a question is being answered, so that work that can wait should."""

    def routes(self) -> Iterable[web.RouteDef]:
        """Return the routes. All paths are below `DATA`, where the server asks for the session."""


class ConsoleServer:
    """Serves one console on this machine.

    Attributes:
        url: address for the person who started it; works once.
        feed: feed of the source's state.
    """

    def __init__(
        self, source: CompanySource, listening: socket.socket, more: MorePages | None = None, through: HandThrough | None = None
    ) -> None:
        """Make the server; `serving` runs it.

        Args:
            source: source of the state and the pages.
            listening: socket on loopback.
            more: pages of another package; None if `about.can` offers none.
            through: hands an operator's console through while it is open, in place of the source; None: there is no operator.
        """
        port = listening.getsockname()[1]
        self._source = source
        self._through = through
        self._listening = listening
        self._more = more
        self._door = Doorkeeper(port)
        self._asked = 0.0
        self.feed = Feed(source)
        self.url = f"http://{LOOPBACK}:{port}/#{self._door.fragment}"

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Serve for as long as the context is open."""
        app = web.Application(middlewares=[self._guarded], client_max_size=_LARGEST_BODY)
        app.add_routes(
            [
                web.post(SESSION, self._session),
                self._data(FEED, self._feed),
                *(self._data(name, self._answering(page)) for name, page in DATA_PAGES.items()),
                *(() if self._more is None else self._more.routes()),
                web.get("/{page}", self._page),
                web.get("/", self._page),
            ]
        )
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=_END_SECONDS, **CANCELLED_WHEN_GONE)
        await runner.setup()
        # A group, so that an error of the publisher ends the console: pages that stand still would look like a quiet cluster.
        async with asyncio.TaskGroup() as group:
            publishing = group.create_task(self._publish())
            try:
                await web.SockSite(runner, self._listening).start()
                yield
            finally:
                publishing.cancel()
                self.feed.close()
                await runner.cleanup()

    async def _publish(self) -> None:
        """Bring the source forward and publish. Evaluations are cut into slices, between which requests are answered."""
        loop = asyncio.get_running_loop()
        due = loop.time()
        while True:
            # A page is several requests, each several turns of the loop: between two evaluations they would take long.
            answers = self._more is not None and self._more.under_way
            busy = not answers and self._asked + _BEAT < loop.time() and self._source.advance()
            if self._through is not None and self._through.is_open:
                self.feed.close()  # the readers ask again, and are handed through
            elif (began := loop.time()) >= due and self.feed.readers:
                self.feed.publish()
                due = loop.time() + max(_BEAT, _REST * (loop.time() - began))
            await asyncio.sleep(0 if busy else _BEAT)

    def _data(self, name: str, own: _Handler) -> web.RouteDef:
        """Make the route of data that an operator's console has, too."""

        async def answer(request: web.Request) -> web.StreamResponse:
            through = self._through
            return await (through.answer(request, name) if through is not None and through.is_open else own(request))

        return web.get(f"{DATA}{name}", answer)

    def _answering(self, page: DataPage) -> _Handler:
        """Make the handler of a page's data from the source. The reader is the person who started this, who may see all."""

        async def answer(request: web.Request) -> web.Response:
            query = {name: request.query.getall(name) for name in request.query}
            found = await page.answer(self._source, query, ALL_NAMESPACES)
            return web.Response(body=found, headers={"Content-Type": "application/json", "Cache-Control": "no-store"})

        return answer

    @web.middleware
    async def _guarded(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        try:
            self._door.admit(request.method, request.path, request.headers)
            self._asked = asyncio.get_running_loop().time()
            answer = await handler(request)
        except web.HTTPException as problem:
            problem.headers.update(SECURITY_HEADERS)
            raise
        except RequestRefused as refused:
            answer = web.Response(status=refused.status, text=f"{refused}\n", headers={"Cache-Control": "no-store"})
        except (DecodeError, RecursionError) as problem:  # a question that nests deeper than a page would ask
            answer = web.Response(status=_BAD_REQUEST, text=f"the request is not as expected: {problem}\n")
        if not answer.prepared:
            answer.headers.update(SECURITY_HEADERS)
        return answer

    async def _page(self, request: web.Request) -> web.Response:
        page = static_pages().get(request.match_info.get("page", ""))
        if page is None:
            raise RequestRefused(_NOT_FOUND, "404 page not found")
        return web.Response(body=page.body, headers={"Content-Type": page.content_type, "Cache-Control": "no-cache"})

    async def _session(self, request: web.Request) -> web.Response:
        session = self._door.exchange(decode(await request.read(), _Secret).secret)
        if session is None:
            raise RequestRefused(_FORBIDDEN, "this URL was used before, or is another console's: start `placewright console` again")
        return web.Response(text=session, headers={"Cache-Control": "no-store"})

    async def _feed(self, request: web.Request) -> web.StreamResponse:
        reader = self.feed.join(ALL_NAMESPACES)
        try:
            answer = web.StreamResponse(headers={"Content-Type": "application/x-ndjson", "Cache-Control": "no-store", **SECURITY_HEADERS})
            await answer.prepare(request)
            with dropped_when_it_ends(request):
                async for line in reader.lines(_SILENCE):
                    async with asyncio.timeout(WRITE_SECONDS):
                        await answer.write(line)
            return answer
        finally:
            self.feed.leave(reader)
