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
from typing import Any, Final, Generic, Protocol, TypeVar

import msgspec

from placewright.api.decode import DecodeError, decode
from placewright.kube.client import ApiClient
from placewright.kube.errors import RequestError
from placewright.serving.routes import Audience, Endpoint, Question, RequestRefused

_log = logging.getLogger(__name__)
V = TypeVar("V")

TOKEN_REVIEWS: Final = "/apis/authentication.k8s.io/v1/tokenreviews"  # noqa: S105 - a path
ACCESS_REVIEWS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
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


class User(msgspec.Struct, frozen=True):
    """A user as the API server knows them: the `user` of a TokenReview."""

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = {}

    @property
    def known_by(self) -> tuple[Hashable, ...]:
        """A key that is equal for users whom an authorizer cannot tell apart."""
        return self.username, self.uid, self.groups, tuple(sorted(self.extra.items()))


#: The user of a request without a token. A cluster may grant it rights; few do.
ANONYMOUS: Final = User("system:anonymous", groups=("system:unauthenticated",))


class _TokenStatus(msgspec.Struct):
    authenticated: bool = False
    user: User = User()


class _TokenReview(msgspec.Struct):
    status: _TokenStatus = msgspec.field(default_factory=_TokenStatus)


class _AccessStatus(msgspec.Struct):
    allowed: bool = False
    denied: bool = False


class _AccessReview(msgspec.Struct):
    status: _AccessStatus = msgspec.field(default_factory=_AccessStatus)


class Remembered(Generic[V]):
    """A cache of answers by key, each kept for `REMEMBERED_SECONDS`, and of them the latest `_MOST_REMEMBERED`."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
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
        self._kept[key] = (self._clock() + REMEMBERED_SECONDS, answer)
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
        self._client = client
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
        if endpoint.audience is Audience.EVERYBODY:
            return
        if endpoint.audience is Audience.LOOPBACK and not is_loopback(question.peer):
            why = f'forbidden: path "{question.path}" is for this machine alone, such as through kubectl port-forward'
            raise RequestRefused(_FORBIDDEN, why)
        user = await self._user(question)
        if not await self._may(user, question.path):
            raise RequestRefused(_FORBIDDEN, f'forbidden: User "{user.username}" cannot get path "{question.path}"')

    async def _user(self, question: Question) -> User:
        scheme, _, token = question.authorization.partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token:
            return ANONYMOUS
        key = hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()  # so that a dump of memory shows no token
        try:
            user = await self._users.or_ask(key, lambda: self._review_token(token), self._turn)
        except (RequestError, DecodeError) as problem:
            self._say("whose a token is", problem)
            raise RequestRefused(_UNAUTHORIZED, "Unauthorized") from None
        if user is None:
            raise RequestRefused(_UNAUTHORIZED, "Unauthorized")
        return user

    async def _may(self, user: User, path: str) -> bool:
        try:
            return await self._allowed.or_ask((user.known_by, path), lambda: self._review_access(user, path), self._turn)
        except (RequestError, DecodeError) as problem:
            self._say("what a user may do", problem)
            raise RequestRefused(_INTERNAL_ERROR, f'Internal Server Error: "{path}"') from None

    async def _review_token(self, token: str) -> User | None:
        asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
        status = decode(await self._client.post(TOKEN_REVIEWS, asked), _TokenReview).status
        return status.user if status.authenticated and status.user.username else None

    async def _review_access(self, user: User, path: str) -> bool:
        who: dict[str, Any] = {"user": user.username, "uid": user.uid, "groups": user.groups, "extra": user.extra}
        spec = {**{name: value for name, value in who.items() if value}, "nonResourceAttributes": {"path": path, "verb": "get"}}
        asked = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
        status = decode(await self._client.post(ACCESS_REVIEWS, asked), _AccessReview).status
        return status.allowed and not status.denied

    def _say(self, what: str, problem: Exception) -> None:
        now = self._clock()
        if now - self._said.get(what, -_SAID_EVERY) >= _SAID_EVERY:
            self._said[what] = now
            _log.warning("the API server does not say %s, so requests for metrics and debug pages are refused: %s", what, problem)


def is_loopback(address: str) -> bool:
    """Whether an IP address is this machine's own; also as an IPv6 socket spells an IPv4 one."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return (mapped or found).is_loopback
