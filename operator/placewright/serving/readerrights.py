"""The rights of the console's readers. The API server decides, as about every request of its own.

Who may `get` the nonResourceURL `/console` may enter: they see all nodes, and sums. Who besides may list pods in all namespaces sees all
pods; others see the pods of namespaces in which they may list pods. Names of namespaces that they may not see do not reach them.

The API server is asked namespace by namespace, because it has no question about all of them. What it allows holds for `KEPT_SECONDS`, and
what it refuses for a namespace for longer: of a thousand namespaces most readers see few, and a refusal that is old shows nothing.
A person who was given a right loads the page anew, so refusals are asked for again then.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Hashable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, TypeVar

from placewright.api.decode import DecodeError
from placewright.http.routes import Question, RequestRefused
from placewright.kube.errors import RequestError
from placewright.kube.tasks import cancelled
from placewright.serving.reviewlanes import Judge, Judgments, ReviewLanes
from placewright.serving.reviews import ANONYMOUS, AskedRight, User
from placewright.serving.rights import ALL_NAMESPACES, Rights

_log = logging.getLogger(__name__)
V = TypeVar("V")

ENTER: Final = AskedRight("get", path="/console")
EVERYWHERE: Final = AskedRight("list", resource="pods")
#: Seconds for which a right holds without being asked for again, and for which the refusal of one namespace does.
KEPT_SECONDS: Final = 30.0
REFUSED_SECONDS: Final = 300.0
#: Seconds between two times that refusals are asked for again because a reader loads the page anew.
ANEW_SECONDS: Final = 5.0
#: Namespaces that are asked about for one user, and answers about namespaces that are kept for all users together.
MOST_NAMESPACES: Final = 1000
_MOST_ANSWERS: Final = 100_000
#: Seconds that a reader waits for answers about namespaces. What is not answered by then counts as refused, and is asked for next time.
ASKING_SECONDS: Final = 5.0
#: Questions that one user asks at once.
_AT_ONCE: Final = 8

_UNAUTHORIZED: Final = 401
_FORBIDDEN: Final = 403
_NOBODY_SAYS: Final = 503


@dataclass(frozen=True, slots=True)
class Visitor:
    """A person, or a program, who may enter.

    Attributes:
        party: party with which they share a bounded number of places.
        rights: namespaces of the pods that they see.
        again: asks again who they are and what they may see; raises `RequestRefused` as `ConsoleRights.of` does.
    """

    party: str
    rights: Rights
    again: Callable[[], Awaitable[Visitor]] = field(compare=False, repr=False)


@dataclass(slots=True)
class _Answers:
    """The API server's answers about one user's rights in namespaces."""

    #: Whether a namespace is allowed, and until when that holds.
    kept: dict[str, tuple[bool, float]] = field(default_factory=dict)
    #: When the answers were last asked for because a page was loaded.
    anew_at: float = -ANEW_SECONDS
    #: Several readers of one user wait for the same answers.
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    def __len__(self) -> int:
        return len(self.kept)

    def at(self, now: float) -> dict[str, bool]:
        """Return the answers that hold at a time, by namespace."""
        return {name: allowed for name, (allowed, until) in self.kept.items() if until > now}


@dataclass(eq=False)
class ConsoleRights:
    """Finds out who a reader is and what they may see.

    Attributes:
        judge: judge of users and rights.
        namespaces: the names of the cluster's namespaces.
        clock: seconds, monotonic.
        lanes: the lanes, as for `Judgments`.
    """

    judge: Judge
    namespaces: Callable[[], Collection[str]]
    clock: Callable[[], float] = time.monotonic
    lanes: ReviewLanes | None = None

    def __post_init__(self) -> None:
        self._judgments = Judgments(self.judge, self.lanes, self.clock, KEPT_SECONDS)
        self._answers: OrderedDict[Hashable, _Answers] = OrderedDict()

    async def of(self, question: Question, *, anew: bool = False) -> Visitor:
        """Find who asks, and what they may see.

        Args:
            question: question with the token.
            anew: ask again about namespaces that were refused, at most once in `ANEW_SECONDS` for one user.

        Returns:
            The visitor.

        Raises:
            RequestRefused: the token is missing or not valid (401), the user may not enter (403), or there is no answer (503).
        """
        user = await self._user(question)
        if not await self._may(user, ENTER, question):
            if user is ANONYMOUS:
                raise RequestRefused(_UNAUTHORIZED, "no token came with the request")
            raise RequestRefused(_FORBIDDEN, f'forbidden: User "{user.username}" cannot get path "{ENTER.path}"')
        if await self._may(user, EVERYWHERE, question):
            return Visitor(user.party, ALL_NAMESPACES, lambda: self.of(question))
        return Visitor(user.party, Rights.of(await self._seen_by(user, question, anew=anew)), lambda: self.of(question))

    async def _user(self, question: Question) -> User:
        user = await self._answered(self._judgments.user_of(question))
        if user is None:
            raise RequestRefused(_UNAUTHORIZED, "the API server does not know this token: it may have run out")
        return user

    async def _may(self, user: User, wanted: AskedRight, question: Question) -> bool:
        return await self._answered(self._judgments.may(user, wanted, question))

    async def _seen_by(self, user: User, question: Question, *, anew: bool) -> frozenset[str]:
        answers = self._answers.setdefault(user.known_by, _Answers())
        self._answers.move_to_end(user.known_by)
        async with answers.turn:
            there = self.namespaces()
            for gone in answers.kept.keys() - there:
                del answers.kept[gone]
            wanted = list(islice(_likely_first(user, answers, there), MOST_NAMESPACES))
            now = self.clock()
            known = answers.at(now)
            due = [each for each in wanted if each not in known]
            if anew and now - answers.anew_at >= ANEW_SECONDS:
                answers.anew_at = now
                due += [each for each in wanted if known.get(each) is False]
            if due:
                await self._answered(self._ask(user, answers, iter(due), question))
            seen = frozenset(name for name, allowed in answers.at(self.clock()).items() if allowed)
        while len(self._answers) > 1 and sum(map(len, self._answers.values())) > _MOST_ANSWERS:
            self._answers.popitem(last=False)
        return seen

    async def _ask(self, user: User, answers: _Answers, due: Iterator[str], question: Question) -> None:
        """Ask about namespaces until all are answered or the time is over."""

        async def ask_one_by_one() -> None:
            for name in due:  # shared: each takes the next
                async with self._judgments.lanes.for_user(user, question):
                    allowed = await self.judge.allows(user, AskedRight("list", resource="pods", namespace=name))
                answers.kept[name] = allowed, self.clock() + (KEPT_SECONDS if allowed else REFUSED_SECONDS)

        asking = [asyncio.create_task(ask_one_by_one()) for _ in range(_AT_ONCE)]
        try:
            done, _ = await asyncio.wait(asking, timeout=ASKING_SECONDS, return_when=asyncio.FIRST_EXCEPTION)
            for each in done:
                each.result()
        finally:
            await cancelled(*asking)

    async def _answered(self, asking: Awaitable[V]) -> V:
        try:
            return await asking
        except (RequestError, DecodeError) as problem:
            _log.warning("the API server does not say what readers of the console may see, so no new reader is let in: %s", problem)
            raise RequestRefused(_NOBODY_SAYS, "the API server does not say what you may see here") from None


def _likely_first(user: User, answers: _Answers, namespaces: Collection[str]) -> Iterator[str]:
    """Namespaces in the order in which they are asked about: what was allowed before, a service account's own, and all others by name."""
    first = [name for name, (allowed, _) in answers.kept.items() if allowed and name in namespaces]
    own = user.account_namespace
    if own in namespaces and own not in first:
        first.append(own)
    told = frozenset(first)
    yield from first
    yield from (name for name in sorted(namespaces) if name not in told)
