"""Posts to an extender: connections, redirects, proxies, and a bound on the answer.

It follows Go's HTTP client, which kube-scheduler uses. Connections are kept, and redirects that keep the method are followed. Proxies of
the environment are used, but not for this machine. If the server has closed a kept connection meanwhile, that is no failure.
"""

from __future__ import annotations

import io
import ssl
from collections.abc import Mapping
from typing import Final

import aiohttp
from yarl import URL

from placewright.api.extenders import ExtenderError
from placewright.kube.auth.proxies import proxy_for
from placewright.kube.client import JSON, USER_AGENT
from placewright.kube.extenders.names import ExtenderNames

_OK: Final = 200
_SAME_METHOD: Final = frozenset({307, 308})
_MOST_REDIRECTS: Final = 10
#: Bytes of an answer beyond twice the request: it may repeat everything that was sent, in a longer spelling.
_ANSWER_BESIDES: Final = 16 * 2**20
_READ_BYTES: Final = 2**18
_NO_LIMITS: Final = aiohttp.ClientTimeout(total=None, sock_connect=None)


class ExtenderConnection:
    """Posts to one extender. Make it inside a running event loop, and close it.

    It has no deadline of its own: its caller's deadline covers more than the request.
    """

    def __init__(self, url_prefix: str, tls: ssl.SSLContext, server_name: str, environ: Mapping[str, str]) -> None:
        """Open no connection yet.

        Args:
            url_prefix: the extender's URL, without the verb.
            tls: context for HTTPS.
            server_name: expected in the server's certificate; empty for the URL's host.
            environ: names proxies.
        """
        self._prefix = url_prefix.rstrip("/")
        self._server_name = server_name or None
        self._proxy = proxy_for(URL(url_prefix), environ)
        self._names = ExtenderNames()
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=tls, resolver=self._names),
            headers={"User-Agent": USER_AGENT, "Content-Type": JSON},
            timeout=_NO_LIMITS,
        )

    def url(self, verb: str) -> str:
        """Build the URL of a verb."""
        return f"{self._prefix}/{verb}"

    async def close(self) -> None:
        """Close all connections. Requests under way fail."""
        await self._session.close()
        await self._names.close()

    async def post(self, verb: str, body: bytes, *, again: bool) -> bytes:
        """Send a question and read the answer.

        Args:
            verb: such as `filter`.
            body: JSON text.
            again: send it once more when a kept connection breaks before an answer begins; only for questions that may be asked twice.

        Raises:
            ExtenderError: no whole answer of status 200 came, in kube-scheduler's words.
        """
        url = self.url(verb)
        try:
            try:
                return await self._post(verb, URL(url, encoded=True), body)
            except (aiohttp.ServerDisconnectedError, ConnectionResetError):
                if not again or self._session.closed:
                    raise
                return await self._post(verb, URL(url, encoded=True), body)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise ExtenderError(f'Post "{url}": {_in_words(error)}') from error

    async def _post(self, verb: str, url: URL, body: bytes) -> bytes:
        if self._session.closed:
            raise aiohttp.ClientConnectionError("the connection to the extender has been closed")
        for _ in range(_MOST_REDIRECTS + 1):
            name = self._server_name if url.scheme == "https" else None
            # Given as a file, a large body is sent in pieces, and other tasks run in between.
            async with self._session.post(
                url, data=io.BytesIO(body), proxy=self._proxy, server_hostname=name, allow_redirects=False
            ) as answer:
                location = answer.headers.get("Location")
                if answer.status not in _SAME_METHOD or not location:
                    return await _read(answer, verb, self.url(verb), 2 * len(body) + _ANSWER_BESIDES)
                url = _redirected(url, location)
        raise ExtenderError(f'Post "{self.url(verb)}": stopped after {_MOST_REDIRECTS} redirects')


async def _read(answer: aiohttp.ClientResponse, verb: str, url: str, limit: int) -> bytes:
    if answer.status != _OK:
        raise ExtenderError(f"failed {verb} with extender at URL {url}, code {answer.status}")
    parts, length = list[bytes](), 0
    async for part in answer.content.iter_chunked(_READ_BYTES):
        parts.append(part)
        length += len(part)
        if length > limit:
            raise ExtenderError(f"failed {verb} with extender at URL {url}: an answer of more than {limit} bytes")
    return b"".join(parts)


def _redirected(url: URL, location: str) -> URL:
    target = url.join(URL(location))
    if target.scheme not in ("http", "https") or (url.scheme == "https" and target.scheme == "http"):
        raise aiohttp.InvalidURL(location, "a redirect to something that is less safe")
    return target


def _in_words(error: BaseException) -> str:
    return str(error) or type(error).__name__
