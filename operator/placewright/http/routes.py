"""The table of served paths with their audiences and functions, and the gate that judges the clients of a port."""

from __future__ import annotations

import enum
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

_FORBIDDEN: Final = 403
JSON: Final = "application/json"
TEXT: Final = "text/plain; charset=utf-8"
#: They forbid inline scripts, frames around the pages, forms that leave them, and anything from another origin.
SECURITY_HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class Audience(enum.Enum):
    """The users that an endpoint answers.

    `EVERYBODY`: no token is needed; only for health, as with kube-scheduler.
    `AUTHORIZED`: users that the API server knows and allows to `get` the path as a nonResourceURL.
    `LOOPBACK`: authorized users on this machine or pod, where `kubectl port-forward` arrives.
    `ITS_OWN`: the endpoint judges each request itself, because some of its paths need no token. Served over TLS alone.
    """

    EVERYBODY = "everybody"
    AUTHORIZED = "authorized"
    LOOPBACK = "loopback"
    ITS_OWN = "its own"


@dataclass(frozen=True, slots=True)
class Question:
    """A GET request.

    Attributes:
        path: the path without the query.
        query: parameters as sent, each name with all of its values.
        accept: the Accept header.
        peer: the client's address; empty if it is not known.
        authorization: the Authorization header.
        packed: whether the client takes gzip.
        site: the Sec-Fetch-Site header: how far the page is away that a browser asks for; empty if the client is no browser.
    """

    path: str
    query: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    accept: str = ""
    peer: str = ""
    authorization: str = field(default="", repr=False)
    packed: bool = False
    site: str = ""


@dataclass(frozen=True, slots=True)
class Following:
    """An answer that goes on for as long as its client stays.

    Attributes:
        pieces: pieces of the answer.
        end: lets go of what the pieces need. Called once, when the answer has ended or its client has gone.
    """

    pieces: AsyncGenerator[bytes, None]
    end: Callable[[], None]


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer to a request.

    Attributes:
        body: the whole body, or its pieces if it is too large for one turn of the loop or goes on.
        content_type: the media type.
        status: HTTP status.
        headers: beside those of every answer.
    """

    body: bytes | AsyncIterator[bytes] | Following
    content_type: str = TEXT
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


#: Answers a request without blocking the event loop, or raises `RequestRefused`.
Answering = Callable[[Question], Awaitable[Answer]]


class RequestRefused(Exception):
    """A request is refused. The client gets the message and the status, and nothing else."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One path.

    Attributes:
        path: such as `/metrics`.
        answer: answers requests.
        audience: the users that it answers.
        below: it serves the paths below this one, too.
    """

    path: str
    answer: Answering
    audience: Audience = Audience.AUTHORIZED
    below: bool = False


class Gate(Protocol):
    """Judges whether a request may be answered."""

    async def admit(self, endpoint: Endpoint, question: Question) -> None:
        """Return if the endpoint may answer.

        Raises:
            RequestRefused: it may not; the status says why.
        """


class PublicOnly:
    """Admits requests for endpoints that need no token, and refuses all others."""

    async def admit(self, endpoint: Endpoint, question: Question) -> None:
        """Return if the endpoint needs no token.

        Raises:
            RequestRefused: the endpoint needs a token (403).
        """
        if endpoint.audience is not Audience.EVERYBODY:
            raise RequestRefused(_FORBIDDEN, f'forbidden: cannot get path "{question.path}"')


class Routes:
    """The endpoints by path."""

    def __init__(self, endpoints: Iterable[Endpoint] = ()) -> None:
        self._by_path: dict[str, Endpoint] = {}
        for endpoint in endpoints:
            self.add(endpoint)

    def add(self, endpoint: Endpoint) -> None:
        """Add an endpoint.

        Raises:
            ValueError: its path is served already.
        """
        if endpoint.path in self._by_path:
            raise ValueError(f"{endpoint.path} is served already")
        self._by_path[endpoint.path] = endpoint

    def find(self, path: str) -> Endpoint | None:
        """Return the endpoint that serves a path, or None."""
        found = self._by_path.get(path)
        if found is not None:
            return found
        above = self._by_path.get(path[: path.find("/", 1)]) if path.count("/") > 1 else None
        return above if above is not None and above.below else None

    def open_to_everybody(self) -> Routes:
        """Return the endpoints that need no token, which may be served without TLS on loopback."""
        return Routes(each for each in self._by_path.values() if each.audience is Audience.EVERYBODY)

    @property
    def paths(self) -> tuple[str, ...]:
        """Every path, in the order in which they were added."""
        return tuple(self._by_path)


class Metrics(Protocol):
    """The source of the metrics."""

    async def refresh(self) -> None:
        """Bring up to date what takes several turns of the loop to count."""

    def exposition(self, accept: str) -> tuple[bytes, str]:
        """Return all metrics as text in the format that the Accept header asks for: body and content type. Must not block."""


def metrics_endpoint(metrics: Metrics) -> Endpoint:
    """Make `/metrics`."""

    async def answer(question: Question) -> Answer:
        await metrics.refresh()
        body, content_type = metrics.exposition(question.accept)
        return Answer(body, content_type)

    return Endpoint("/metrics", answer)
