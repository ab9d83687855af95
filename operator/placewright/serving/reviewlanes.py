"""The API server's judgments about clients, for `/metrics`, `/debug` and `/console`: kept for some seconds, and asked for in two lanes.

A client that cannot name itself costs nothing. If the API server has named a token's user, the request waits in the lane `known` of users.
Any other request waits in the lane `strangers` of addresses. So made-up tokens never delay a scrape.

In each lane few requests are under way, few wait, and parties share both (`serving.fairroom`): the next place is for the party with the
fewest requests under way. A newcomer to a full lane takes the place of the oldest request of the party with the most. A request whose
client is gone leaves its lane before the API server is asked (`http.accept`).
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final, Generic, Protocol, TypeVar

from placewright.http.routes import Question, RequestRefused
from placewright.kube.ratelimit import TokenBucket
from placewright.serving.fairroom import FairRoom, peer_of
from placewright.serving.reviews import ANONYMOUS, AskedRight, User

V = TypeVar("V")

#: Seconds for which an answer is kept, as in kube-scheduler.
REMEMBERED_SECONDS: Final = 10.0
_MOST_REMEMBERED: Final = 1024
#: Reviews under way at once in each lane.
_AT_ONCE: Final = 8
#: Requests that wait in each lane. A reader of the console waits with several requests, one for each of several namespaces.
MOST_STRANGERS: Final = 64
MOST_KNOWN: Final = 512
#: Tokens that are remembered as good.
_MOST_TOKENS: Final = 1024
_BUSY: Final = 503


class Judge(Protocol):
    """Asks the API server; `Reviews` in service."""

    async def user_of(self, token: str) -> User | None:
        """Ask whose a token is; None for a token that is not valid."""

    async def allows(self, user: User, wanted: AskedRight) -> bool:
        """Ask whether a user has a right.

        Args:
            user: the user, as a TokenReview named them.
            wanted: the right.

        Returns:
            Whether the API server allows it.
        """


class _Turn:
    """A request in a lane; `granted` is done when the API server may be asked."""

    __slots__ = ("granted", "party")

    def __init__(self, party: str) -> None:
        self.party = party
        self.granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class ReviewLane:
    """Bounds the reviews of one lane, and shares them out between parties."""

    def __init__(self, most_waiting: int, limit: TokenBucket | None = None) -> None:
        """Make an empty lane.

        Args:
            most_waiting: requests that may wait.
            limit: reviews a second; None for no limit.
        """
        self._most_waiting = most_waiting
        self._limit = limit
        self._waiting: FairRoom[_Turn] = FairRoom()
        self._under_way: FairRoom[_Turn] = FairRoom()

    def __len__(self) -> int:
        """Return the number of requests that wait."""
        return len(self._waiting)

    @asynccontextmanager
    async def taken(self, party: str) -> AsyncIterator[None]:
        """Wait until the API server may be asked; ask it inside the block.

        Args:
            party: shares the lane with other parties.

        Raises:
            RequestRefused: newer requests have taken the place (503).
        """
        turn = _Turn(party)
        self._waiting.enter(turn, party)
        try:
            self._make_room()
            self._go_on()
            await turn.granted
            if self._limit is not None:
                await self._limit.take()
            yield
        finally:
            self._waiting.leave(turn)
            self._under_way.leave(turn)
            self._go_on()

    def _make_room(self) -> None:
        if len(self._waiting) > self._most_waiting and (loser := self._waiting.who_makes_room()) is not None:
            self._waiting.leave(loser)
            loser.granted.set_exception(RequestRefused(_BUSY, "too many requests wait for the API server to judge them; try again"))

    def _go_on(self) -> None:
        while len(self._under_way) < _AT_ONCE and (turn := self._waiting.next_into(self._under_way)) is not None:
            self._waiting.leave(turn)
            if not turn.granted.done():
                self._under_way.enter(turn, turn.party)
                turn.granted.set_result(None)


class ReviewLanes:
    """Both lanes, and the tokens that are known as good.

    Attributes:
        strangers: the lane of addresses.
        known: the lane of users.
    """

    def __init__(self, strangers: TokenBucket | None = None, known: TokenBucket | None = None) -> None:
        """Know no token yet.

        Args:
            strangers: limits the reviews a second for strangers; None for no limit.
            known: the same for users.
        """
        self.strangers = ReviewLane(MOST_STRANGERS, strangers)
        self.known = ReviewLane(MOST_KNOWN, known)
        #: Good tokens with the parties of their users.
        self._tokens: FairRoom[bytes] = FairRoom()

    def for_token(self, token: bytes, question: Question) -> AbstractAsyncContextManager[None]:
        """Choose the place of a review of a token.

        Args:
            token: its digest.
            question: that brings the token.

        Returns:
            A context in which the API server may be asked.
        """
        party = self._tokens.peer(token)
        return self.strangers.taken(peer_of(question.peer)) if party is None else self.known.taken(party)

    def for_user(self, user: User, question: Question) -> AbstractAsyncContextManager[None]:
        """Choose the place of a review of a user's right.

        Args:
            user: the owner of the right.
            question: question of the user.

        Returns:
            A context in which the API server may be asked.
        """
        return self.strangers.taken(peer_of(question.peer)) if user is ANONYMOUS else self.known.taken(user.party)

    def note(self, token: bytes, user: User | None) -> None:
        """Remember whether a token is good.

        Args:
            token: its digest.
            user: that the API server named; None for a token that is not valid.
        """
        self._tokens.leave(token)
        if user is None:
            return
        self._tokens.enter(token, user.party)
        if len(self._tokens) > _MOST_TOKENS and (loser := self._tokens.who_makes_room()) is not None:
            self._tokens.leave(loser)


class Remembered(Generic[V]):
    """A cache of answers by key, each kept for some seconds, and of them the latest `_MOST_REMEMBERED`."""

    def __init__(self, clock: Callable[[], float], seconds: float) -> None:
        self._clock = clock
        self._seconds = seconds
        self._kept: OrderedDict[Hashable, tuple[float, V]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    async def or_ask(self, key: Hashable, ask: Callable[[], Awaitable[V]], turn: Callable[[], AbstractAsyncContextManager[None]]) -> V:
        """Get a kept answer, or ask for it.

        Args:
            key: key of the answer.
            ask: called where no fresh answer is kept. Its error is raised and not kept.
            turn: makes the context in which it may be asked.

        Returns:
            The answer.
        """
        if (known := self._fresh(key)) is not None:
            return known[1]
        async with turn():
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


class Judgments:
    """The judgments that one part of the endpoints needs, each kept for some seconds."""

    def __init__(
        self,
        judge: Judge,
        lanes: ReviewLanes | None = None,
        clock: Callable[[], float] = time.monotonic,
        seconds: float = REMEMBERED_SECONDS,
    ) -> None:
        """Keep no answers yet.

        Args:
            judge: judge of users and rights.
            lanes: shared by all parts; None for lanes of its own, without a limit a second.
            clock: seconds, monotonic.
            seconds: time in seconds for which an answer is kept.
        """
        self.lanes = ReviewLanes() if lanes is None else lanes
        self._judge = judge
        self._users: Remembered[User | None] = Remembered(clock, seconds)
        self._allowed: Remembered[bool] = Remembered(clock, seconds)

    async def user_of(self, question: Question) -> User | None:
        """Find the user of a request.

        Args:
            question: question with the token.

        Returns:
            `ANONYMOUS` without a token; None for a token that is not valid.

        Raises:
            RequestRefused: too many requests wait (503).
            RequestError: the API server does not answer.
            DecodeError: its answer is none.
        """
        token = bearer_token(question)
        if not token:
            return ANONYMOUS
        key = digest(token)

        async def ask() -> User | None:
            user = await self._judge.user_of(token)
            self.lanes.note(key, user)
            return user

        return await self._users.or_ask(key, ask, lambda: self.lanes.for_token(key, question))

    async def may(self, user: User, wanted: AskedRight, question: Question) -> bool:
        """Find whether a user has a right.

        Args:
            user: user of the request.
            wanted: the right.
            question: the request.

        Returns:
            Whether the API server allows it.

        Raises:
            RequestRefused: too many requests wait (503).
            RequestError: the API server does not answer.
            DecodeError: its answer is none.
        """
        key = (user.known_by, wanted)
        return await self._allowed.or_ask(key, lambda: self._judge.allows(user, wanted), lambda: self.lanes.for_user(user, question))


def bearer_token(question: Question) -> str:
    """Return the request's bearer token; empty if it has none."""
    scheme, _, token = question.authorization.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def digest(token: str) -> bytes:
    """Make a key that stands for a token, so that a dump of memory shows no token."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
