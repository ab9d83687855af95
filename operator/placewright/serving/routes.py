"""What is served: a table of paths, who may ask for each, and what answers. The table is for all of this room to add to."""

from __future__ import annotations

import enum
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

JSON: Final = "application/json"
TEXT: Final = "text/plain; charset=utf-8"


class Audience(enum.Enum):
    """Who may ask.

    EVERYBODY: without a token; only health is so, as with kube-scheduler.
    AUTHORIZED: whom the API server knows and lets `get` the path as a nonResourceURL.
    LOOPBACK: the same, and only from this machine or pod, where `kubectl port-forward` arrives.
    """

    EVERYBODY = "everybody"
    AUTHORIZED = "authorized"
    LOOPBACK = "loopback"


@dataclass(frozen=True, slots=True)
class Question:
    """A GET request.

    Attributes:
        path: without the query.
        query: parameters as sent, each name with all of its values.
        accept: the Accept header.
        peer: address of who asks; empty where it is not known.
        authorization: the Authorization header.
    """

    path: str
    query: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    accept: str = ""
    peer: str = ""
    authorization: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Answer:
    """What goes back; `body` in pieces for what is too large to be made in one go of the event loop."""

    body: bytes | AsyncIterator[bytes]
    content_type: str = TEXT
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


#: Answers a question; must not block the event loop. Raises `RequestRefused`.
Answering = Callable[[Question], Awaitable[Answer]]


class RequestRefused(Exception):
    """The question is not answered; the message is all that who asked is told, and the status says why."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One path.

    Attributes:
        path: such as `/metrics`.
        answer: what answers.
        audience: who may ask.
        below: paths below this one are its own, too.
    """

    path: str
    answer: Answering
    audience: Audience = Audience.AUTHORIZED
    below: bool = False


class Routes:
    """Endpoints by path. Raises `ValueError` for two of one path."""

    def __init__(self, endpoints: Iterable[Endpoint] = ()) -> None:
        self._by_path: dict[str, Endpoint] = {}
        for endpoint in endpoints:
            self.add(endpoint)

    def add(self, endpoint: Endpoint) -> None:
        """Serve one more path."""
        if endpoint.path in self._by_path:
            raise ValueError(f"{endpoint.path} is served already")
        self._by_path[endpoint.path] = endpoint

    def find(self, path: str) -> Endpoint | None:
        """What serves a path, or None."""
        found = self._by_path.get(path)
        if found is not None:
            return found
        above = self._by_path.get(path[: path.find("/", 1)]) if path.count("/") > 1 else None
        return above if above is not None and above.below else None

    def open_to_everybody(self) -> Routes:
        """Those that need no token: what may be served without TLS, on loopback."""
        return Routes(each for each in self._by_path.values() if each.audience is Audience.EVERYBODY)

    @property
    def paths(self) -> tuple[str, ...]:
        """Every path, in order."""
        return tuple(self._by_path)


class Metrics(Protocol):
    """Whoever keeps the metrics."""

    def exposition(self, accept: str) -> tuple[bytes, str]:
        """All metrics as text in the format that the Accept header asks for: body and content type. Must not block."""


def metrics_endpoint(metrics: Metrics, path: str = "/metrics") -> Endpoint:
    """`/metrics`, for whom the API server lets read it."""

    async def answer(question: Question) -> Answer:
        body, content_type = metrics.exposition(question.accept)
        return Answer(body, content_type)

    return Endpoint(path, answer)
