"""Admits to the console on this machine the browser of the person who started it, and nothing else.

Other users of the machine can reach loopback. So a request for data needs the session's token in its `Authorization` header. The page gets
the token once, for the one-time secret. No cookie is used: a browser sends a cookie of 127.0.0.1 to every port, also to servers of other
users. Pages of other sites can reach loopback through the browser. So the Host must be ours: DNS may point a foreign name to 127.0.0.1. The
Origin must be ours, too, if one is sent.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from typing import Final

from placewright.http.routes import RequestRefused

_BYTES: Final = 32
#: The path below which a request needs the session's token.
DATA: Final = "/api/"
#: The path at which the secret is exchanged.
SESSION: Final = "/api/session"
_UNAUTHORIZED: Final = 401
_FORBIDDEN: Final = 403
_MISDIRECTED: Final = 421


class Doorkeeper:
    """Judges requests to the console on this machine.

    Attributes:
        fragment: fragment of the URL that is printed. Browsers do not send it, so it is in no log and in no Referer.
    """

    def __init__(self, port: int) -> None:
        """Draw the secret and the session's token."""
        self._hosts = frozenset((f"127.0.0.1:{port}", f"localhost:{port}"))
        self._secret: str | None = secrets.token_urlsafe(_BYTES)
        self._session = secrets.token_urlsafe(_BYTES)
        self.fragment = f"secret={self._secret}"

    def admit(self, method: str, path: str, headers: Mapping[str, str]) -> None:
        """Judge a request.

        Args:
            method: HTTP method.
            path: path without the query.
            headers: headers with names in any case.

        Raises:
            RequestRefused: it may not be answered.
        """
        if headers.get("Host", "") not in self._hosts:
            raise RequestRefused(_MISDIRECTED, "this is the console of 127.0.0.1 and localhost, and of no other host")
        origin = headers.get("Origin")
        if origin is None and method not in ("GET", "HEAD"):
            raise RequestRefused(_FORBIDDEN, "a request that changes something names its Origin")
        if origin is not None and origin.removeprefix("http://") not in self._hosts:
            raise RequestRefused(_FORBIDDEN, "this page may not read the console")
        if path.startswith(DATA) and path != SESSION and not _equal(headers.get("Authorization", ""), f"Bearer {self._session}"):
            raise RequestRefused(_UNAUTHORIZED, "no session: open the URL that `placewright console` printed")

    def exchange(self, secret: str) -> str | None:
        """Exchange the secret for the session's token. The secret is used up.

        Returns:
            The token; None for another secret, and for one that was exchanged before.
        """
        if self._secret is None or not _equal(secret, self._secret):
            return None
        self._secret = None
        return self._session


def _equal(told: str, known: str) -> bool:
    """Compare in a time that does not tell how much is right. What a client tells may be text that UTF-8 does not have."""
    return hmac.compare_digest(told.encode(errors="surrogatepass"), known.encode())
