"""Places for requests under way at once, shared so that a slow party delays only its own requests.

If the admission webhook of a namespace hangs, the namespace gets a share of the places (`FairShares`). The rest is left for others. The
same holds for a profile whose pods all go through such a webhook. A place is held for one request, never while a repetition is waited for
(docs/decisions/0032).
"""

from __future__ import annotations

import asyncio
import itertools
from bisect import bisect_left, insort
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Final, NamedTuple

from placewright.api.fairshares import FairShares

#: One of so many free places goes to the request that has waited longest: important requests may come without end.
OUT_OF_ORDER: Final = 8
#: Factors of `FairShares`. A profile that is alone gets six of seven places; of these, a namespace that is alone gets two of three.
_OF_A_PROFILE: Final = 6
_OF_A_NAMESPACE: Final = 2

_Turn = asyncio.Future[None]


class RequestOwner(NamedTuple):
    """The party that a request is for.

    Attributes:
        namespace: namespace of the object that is written.
        profile: schedulerName of the pod that the request serves.
        importance: a more important request gets its place first; equal ones in the order in which they came.
    """

    namespace: str
    profile: str = ""
    importance: int = 0


#: A waiting request, comparable by the order in which places are given: (importance negated, arrival number, whose, turn).
_Waiting = tuple[int, int, RequestOwner, _Turn]


class RequestPlaces:
    """A number of places for requests. After every step no request waits that may have a place.

    Use it inside one event loop. The rooms of the profiles bound the waiting requests (`queue.inflight`). When a place is given, requests
    whose namespace or profile has its share are passed over.
    """

    def __init__(self, count: int) -> None:
        """Give no place yet."""
        self._profiles: FairShares[str] = FairShares(count, _OF_A_PROFILE)
        #: Shares of namespaces by profile that holds a place, in the places that the profile may have.
        self._namespaces: dict[str, FairShares[str]] = {}
        self._arrivals = itertools.count()
        self._given = 0
        self._by_importance: list[_Waiting] = []
        self._by_arrival: dict[int, _Waiting] = {}

    @asynccontextmanager
    async def one(self, whose: RequestOwner) -> AsyncIterator[None]:
        """Hold a place for the length of the block."""
        await self.take(whose)
        try:
            yield
        finally:
            self.give_back(whose)

    async def take(self, whose: RequestOwner) -> None:
        """Hold a place, or wait for one. Give it back with `give_back`."""
        if self._may_have(whose):
            self._give(whose)
            return
        waiting = (-whose.importance, next(self._arrivals), whose, asyncio.get_running_loop().create_future())
        insort(self._by_importance, waiting)
        self._by_arrival[waiting[1]] = waiting
        turn = waiting[3]
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.give_back(whose)
            else:
                self._forget(waiting)
            raise

    def give_back(self, whose: RequestOwner) -> None:
        """Give a place back, and hand free places to waiting requests."""
        self._profiles.give_back(whose.profile)
        namespaces = self._namespaces[whose.profile]
        namespaces.give_back(whose.namespace)
        if not namespaces.held:
            del self._namespaces[whose.profile]
        while self._by_importance and (waiting := self._next()) is not None:
            self._forget(waiting)
            self._give(waiting[2])
            waiting[3].set_result(None)

    def _may_have(self, whose: RequestOwner) -> bool:
        namespaces = self._namespaces.get(whose.profile)
        return self._profiles.may_take(whose.profile) and (namespaces is None or namespaces.may_take(whose.namespace))

    def _give(self, whose: RequestOwner) -> None:
        self._profiles.take(whose.profile)
        namespaces = self._namespaces.get(whose.profile)
        if namespaces is None:
            namespaces = self._namespaces[whose.profile] = FairShares(self._profiles.most, _OF_A_NAMESPACE)
        namespaces.take(whose.namespace)

    def _next(self) -> _Waiting | None:
        """Return the waiting request that gets the next place; None if none may have it."""
        in_order: Iterable[_Waiting] = self._by_importance
        # Strict priority alone would starve the least important request for as long as more important ones come.
        if (self._given + 1) % OUT_OF_ORDER == 0:
            in_order = self._by_arrival.values()
        passed_over: set[tuple[str, str]] = set()
        for waiting in in_order:
            whose = waiting[2]
            if whose[:2] in passed_over or waiting[3].cancelled():  # a cancelled `take` takes itself out
                continue
            if self._may_have(whose):
                self._given += 1
                return waiting
            passed_over.add(whose[:2])
        return None

    def _forget(self, waiting: _Waiting) -> None:
        del self._by_arrival[waiting[1]]
        del self._by_importance[bisect_left(self._by_importance, waiting)]
