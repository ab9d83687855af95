"""Hands the data of an operator's console on to the browser, no faster than the browser takes it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import aiohttp
import msgspec
from aiohttp import web

from placewright.cli.operatorport import CannotAsk
from placewright.http.routes import SECURITY_HEADERS, RequestRefused
from placewright_console.local.operatorlink import OperatorLink

#: The media types that an operator's console answers with. Anything else is handed on as text.
_TYPES: Final = frozenset({"application/json", "application/x-ndjson", "text/plain"})
#: Seconds that the browser may take for a piece. A browser that takes longer is dropped, and begins anew.
WRITE_SECONDS: Final = 30.0
_OK: Final = 200
_AWAY: Final = 503
_UNAUTHORIZED: Final = 401
_FORBIDDEN: Final = 403
_FEED: Final = "feed"


class HandThrough:
    """Answers the browser with the operator's answers."""

    def __init__(self, link: OperatorLink, is_open: Callable[[], bool], local: Callable[[], Mapping[str, Any]]) -> None:
        """Hand nothing on yet.

        Args:
            link: link to the operator.
            is_open: whether the operator answers, or is looked for; False while its data comes from elsewhere.
            local: rows of the section `about` that this machine adds to the state.
        """
        self._link = link
        self._is_open = is_open
        self._local = local

    @property
    def is_open(self) -> bool:
        """Whether requests are handed through."""
        return self._is_open()

    async def answer(self, request: web.Request, name: str) -> web.StreamResponse:
        """Answer a request for data.

        Args:
            request: request of the browser.
            name: name of the data, such as `feed`.

        Returns:
            The operator's answer.

        Raises:
            RequestRefused: it is away (503).
        """
        try:
            async with self._link.answer(name, dict(request.query)) as theirs:
                if theirs.status == _UNAUTHORIZED or (theirs.status == _FORBIDDEN and name == _FEED):
                    self._link.lost()  # the token or the right is no longer what it was
                    raise RequestRefused(_AWAY, "the operator's console does not admit the kubeconfig's user any more")
                return await self._handed_on(request, theirs, name)
        except CannotAsk as problem:
            raise RequestRefused(_AWAY, str(problem)) from None

    async def _handed_on(self, request: web.Request, theirs: aiohttp.ClientResponse, name: str) -> web.StreamResponse:
        kind = theirs.content_type if theirs.content_type in _TYPES else "text/plain"
        headers = {"Content-Type": f"{kind}; charset=utf-8", "Cache-Control": "no-store", **SECURITY_HEADERS}
        answer = web.StreamResponse(status=theirs.status, headers=headers)
        await answer.prepare(request)
        if name == _FEED and theirs.status == _OK:
            await answer.write(msgspec.json.encode({"local": self._local()}) + b"\n")
        with dropped_when_it_ends(request):
            try:
                # Nothing is read while a piece waits for the browser, so the operator's own bound on slow readers holds.
                async for piece in theirs.content.iter_any():
                    async with asyncio.timeout(WRITE_SECONDS):
                        await answer.write(piece)
            except aiohttp.ClientError:
                # A feed that broke off is asked for again. A page that broke off must not look whole.
                if name != _FEED and request.transport is not None:
                    request.transport.abort()
        return answer


@contextmanager
def dropped_when_it_ends(request: web.Request) -> Iterator[None]:
    """End an answer quietly when its browser has gone, and drop a browser that takes a piece too slowly.

    Args:
        request: request that is answered.

    Yields:
        Nothing: the block writes the answer.
    """
    try:
        yield
    except ConnectionError:
        pass
    except TimeoutError:
        if request.transport is not None:
            request.transport.abort()
