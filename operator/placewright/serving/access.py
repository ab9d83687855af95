"""Access to the endpoints, judged by the API server: TokenReview names a token's user, SubjectAccessReview their rights, as upstream.

Any error refuses the request. Answers are kept for a few seconds, so that not every scrape costs two requests, and no longer while the API
server is away.
"""

from __future__ import annotations

import asyncio
import hashlib
import ipaddress
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Final, Generic, Protocol, TypeVar

from placewright.api.decode import DecodeError
from placewright.kube.client import ApiClient
from placewright.kube.errors import RequestError
from placewright.serving.reviews import ANONYMOUS, AskedRight, Reviews, User
from placewright.serving.routes import Audience, Endpoint, Question, RequestRefused

_log = logging.getLogger(__name__)
V = TypeVar("V")

#: Seconds for which an answer is kept, as in kube-scheduler.
REMEMBERED_SECONDS: Final = 10.0
_MOST_REMEMBERED: Final = 1024
#: Reviews under way at once; a client that tries many tokens waits for its turn.
_AT_ONCE: Final = 8
#: Seconds between two log lines about the same kind of error.
_SAID_EVERY: Final = 60.0

_UNAUTHORIZED: Final = 401
_FORBIDDEN: Final = 403
_INTERNAL_ERROR: Final = 500


class Gate(Protocol):
    """Judges whether a request may be answered."""

    async def admit(self, endpoint: Endpoint, question: Question) -> None:
        """Return where the endpoint may answer.

        Args:
            endpoint: that serves the path.
            question: the request.

        Raises:
            RequestRefused: it may not; the status says why.
        """


class OnlyEverybody:
    """Admits requests for endpoints that need no token, and refuses all others."""

    async def admit(self, endpoint: Endpoint, question: Question) -> None:
        """Return where the endpoint needs no token.

        Args:
            endpoint: that serves the path.
            question: the request.

        Raises:
            RequestRefused: the endpoint needs a token (403).
        """
        if endpoint.audience is not Audience.EVERYBODY:
            raise RequestRefused(_FORBIDDEN, f'forbidden: cannot get path "{question.path}"')


class Remembered(Generic[V]):
    """A cache of answers by key, each kept for some seconds, and of them the latest `_MOST_REMEMBERED`."""

    def __init__(self, clock: Callable[[], float], seconds: float = REMEMBERED_SECONDS) -> None:
        self._clock = clock
        self._seconds = seconds
        self._kept: OrderedDict[Hashable, tuple[float, V]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    async def or_ask(self, key: Hashable, ask: Callable[[], Awaitable[V]], turn: asyncio.Semaphore) -> V:
        """Get a kept answer, or ask for it.

        Args:
            key: of the answer.
            ask: called where no fresh answer is kept. Its error is raised and not kept.
            turn: bounds the questions under way.

        Returns:
            The answer.
        """
        if (known := self._fresh(key)) is not None:
            return known[1]
        async with turn:
            if (known := self._fresh(key)) is not None:
                return known[1]
            answer = await ask()
        self._kept.pop(key, None)
        self._kept[key] = (self._clock() + self._seconds, answer)
        while len(self._kept) > _MOST_REMEMBERED:
            self._kept.popitem(last=False)
        return answer

    def _fresh(self, key: Hashable) -> tuple[float, V] | None:
        known = self._kept.get(key)
        return known if known is not None and known[0] > self._clock() else None


class AskingTheApiServer:
    """The gate that has the API server judge."""

    def __init__(self, client: ApiClient, clock: Callable[[], float] = time.monotonic) -> None:
        """Keep no answers yet.

        Args:
            client: its own, with a rate of its own, so that unknown clients cannot use up the scheduler's requests.
            clock: seconds, monotonic.
        """
        self._reviews = Reviews(client)
        self._clock = clock
        self._turn = asyncio.Semaphore(_AT_ONCE)
        self._users: Remembered[User | None] = Remembered(clock)
        self._allowed: Remembered[bool] = Remembered(clock)
        self._said: dict[str, float] = {}

    async def admit(self, endpoint: Endpoint, question: Question) -> None:
        """Return where the user of the request's token may `get` the path.

        Args:
            endpoint: that serves the path.
            question: the request.

        Raises:
            RequestRefused: the token is not valid (401), the user may not (403), or the API server does not say (500).
        """
        if endpoint.audience in (Audience.EVERYBODY, Audience.ITS_OWN):
            return
        if endpoint.audience is Audience.LOOPBACK and not is_loopback(question.peer):
            why = f'forbidden: path "{question.path}" is for this machine alone, such as through kubectl port-forward'
            raise RequestRefused(_FORBIDDEN, why)
        user = await self._user(question)
        if not await self._may(user, question.path):
            raise RequestRefused(_FORBIDDEN, f'forbidden: User "{user.username}" cannot get path "{question.path}"')

    async def _user(self, question: Question) -> User:
        token = bearer_token(question)
        if not token:
            return ANONYMOUS
        try:
            user = await self._users.or_ask(digest(token), lambda: self._reviews.user_of(token), self._turn)
        except (RequestError, DecodeError) as problem:
            self._say("whose a token is", problem)
            raise RequestRefused(_UNAUTHORIZED, "Unauthorized") from None
        if user is None:
            raise RequestRefused(_UNAUTHORIZED, "Unauthorized")
        return user

    async def _may(self, user: User, path: str) -> bool:
        try:
            wanted = AskedRight("get", path=path)
            return await self._allowed.or_ask((user.known_by, path), lambda: self._reviews.allows(user, wanted), self._turn)
        except (RequestError, DecodeError) as problem:
            self._say("what a user may do", problem)
            raise RequestRefused(_INTERNAL_ERROR, f'Internal Server Error: "{path}"') from None

    def _say(self, what: str, problem: Exception) -> None:
        now = self._clock()
        if now - self._said.get(what, -_SAID_EVERY) >= _SAID_EVERY:
            self._said[what] = now
            _log.warning("the API server does not say %s, so requests for metrics and debug pages are refused: %s", what, problem)


def bearer_token(question: Question) -> str:
    """The request's bearer token; empty where it has none."""
    scheme, _, token = question.authorization.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def digest(token: str) -> bytes:
    """Make a key that stands for a token, so that a dump of memory shows no token."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()


def is_loopback(address: str) -> bool:
    """Whether an IP address is this machine's own; also as an IPv6 socket spells an IPv4 one."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return (mapped or found).is_loopback
