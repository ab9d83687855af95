"""The text of a request: its URL, its headers, and the bytes of requests that we write ourselves.

`ApiClient.write` sends bytes that are put together here. All other requests go through aiohttp, which takes a URL and headers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from yarl import URL

from placewright.api.bad_input import shown
from placewright.kube.auth.login import ClusterAccess
from placewright.kube.errors import BAD_REQUEST, ApiError

#: Encoding of the answers to requests that we write ourselves.
_JSON: Final = "application/json"


class RequestText:
    """Writes requests to one API server as text."""

    def __init__(self, access: ClusterAccess, user_agent: str) -> None:
        """Parse the server's address once.

        Args:
            access: address of the server; its credentials are read at each request, because tokens are replaced.
            user_agent: the User-Agent header.
        """
        self._access = access
        self._user_agent = user_agent
        self._base = URL(access.server)
        # Gateways to several clusters have a path in the server's URL; it precedes the path of every request.
        self._prefix = self._base.raw_path.rstrip("/")
        #: The headers that requests of our own making share, and the credentials that they carry.
        self._head = ("", "")

    def url(self, path: str, params: Mapping[str, str]) -> URL:
        """Build the URL of a request.

        Args:
            path: such as `/api/v1/nodes`.
            params: the query.

        Returns:
            The URL, with the path that the server's address begins with.

        Raises:
            ApiError: no request line may hold the path.
        """
        url = self._base.with_path(self._prefix + _checked(path), encoded=True)
        return url.with_query(params) if params else url

    def headers(self, content_type: str | None, accept: str) -> dict[str, str]:
        """Build the headers of a request.

        Args:
            content_type: encoding of the body; None for a request without one.
            accept: encodings that the caller reads.
        """
        headers = {"Accept": accept, "User-Agent": self._user_agent}
        if content_type is not None:
            headers["Content-Type"] = content_type
        authorization = self._access.authorization
        if authorization:
            headers["Authorization"] = authorization
        return headers

    def whole(self, method: str, path: str, body: bytes, content_type: str) -> bytes:
        """Build a whole request, to be written in one piece.

        Args:
            method: HTTP method.
            path: such as `/api/v1/namespaces/web/pods/web-0/binding`.
            body: the bytes of the body.
            content_type: its encoding.

        Returns:
            The bytes of an HTTP/1.1 request.

        Raises:
            ApiError: no request line may hold the path.
        """
        line = f"{method} {self._prefix}{_checked(path)} HTTP/1.1\r\n"
        about = f"Content-Type: {content_type}\r\nContent-Length: {len(body)}\r\n\r\n"
        return f"{line}{self._common_head()}{about}".encode() + body

    def _common_head(self) -> str:
        """Return the headers that all requests of our own making share. They are built again when the credentials change."""
        authorization = self._access.authorization
        if self._head[0] != authorization or not self._head[1]:
            headers = {"Host": self._base.host_port_subcomponent} | self.headers(None, _JSON)
            self._head = authorization, "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        return self._head[1]


def _checked(path: str) -> str:
    """Return the path if a request line may hold it. Names in it come from the server, and a line break would begin a second request."""
    if not (path.isascii() and path.isprintable()) or " " in path:
        raise ApiError(BAD_REQUEST, "BadRequest", f"not asked: {shown(path)} is no path")
    return path
