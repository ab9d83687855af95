"""Places for requests under way at once, shared so that whoever answers slowly holds up nobody but those who ask it.

A namespace whose admission webhook hangs, or a profile all of whose pods go through one, gets a share of the places (`FairShares`), and the
rest is there for others. A place is held for one request, never while a repetition is waited for.
"""

from __future__ import annotations

import asyncio
import itertools
from bisect import bisect_left, insort
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Final, NamedTuple

from placewright.api.fairshares import FairShares

#: Of so many places that become free, one goes to whoever has waited longest: important ones may come without end.
OUT_OF_ORDER: Final = 8
#: Of what is not kept for newcomers, a profile that is alone gets six of seven places, and of those a namespace that is alone two of three.
_OF_A_PROFILE: Final = 6
_OF_A_NAMESPACE: Final = 2

_Turn = asyncio.Future[None]


class Whose(NamedTuple):
    """For whom a request is.

    Attributes:
        namespace: of what is written.
        profile: the schedulerName for whose sake it is.
        importance: more important ones get their places first, equal ones as they came.
    """

    namespace: str
    profile: str = ""
    importance: int = 0


#: Who waits, in the order in which places are given: (importance negated, arrival number, whose, turn).
_Waiting = tuple[int, int, Whose, _Turn]


class RequestPlaces:
    """So many places. After every step, nobody waits who might have one.

    To be used inside one event loop. As many wait as the rooms of the profiles let (`queue.room`); when a place is given, those whose
    namespace or profile has its share are passed over.
    """

    def __init__(self, count: int) -> None:
        self._profiles: FairShares[str] = FairShares(count, _OF_A_PROFILE)
        #: By profile that holds any, how its namespaces share what it may have.
        self._namespaces: dict[str, FairShares[str]] = {}
        self._arrivals = itertools.count()
        self._given = 0
        self._by_importance: list[_Waiting] = []
        self._by_arrival: dict[int, _Waiting] = {}

    @asynccontextmanager
    async def one(self, whose: Whose) -> AsyncIterator[None]:
        """Hold a place for as long as this is open."""
        await self.take(whose)
        try:
            yield
        finally:
            self.give_back(whose)

    async def take(self, whose: Whose) -> None:
        """Hold a place, to be given back."""
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

    def give_back(self, whose: Whose) -> None:
        """Whoever held a place is done."""
        self._profiles.give_back(whose.profile)
        namespaces = self._namespaces[whose.profile]
        namespaces.give_back(whose.namespace)
        if not namespaces.held:
            del self._namespaces[whose.profile]
        while self._by_importance and (waiting := self._next()) is not None:
            self._forget(waiting)
            self._give(waiting[2])
            waiting[3].set_result(None)

    def _may_have(self, whose: Whose) -> bool:
        namespaces = self._namespaces.get(whose.profile)
        return self._profiles.may_take(whose.profile) and (namespaces is None or namespaces.may_take(whose.namespace))

    def _give(self, whose: Whose) -> None:
        self._profiles.take(whose.profile)
        namespaces = self._namespaces.get(whose.profile)
        if namespaces is None:
            namespaces = self._namespaces[whose.profile] = FairShares(self._profiles.most, _OF_A_NAMESPACE)
        namespaces.take(whose.namespace)

    def _next(self) -> _Waiting | None:
        """Who gets the next place, if anybody may have it."""
        in_order: Iterable[_Waiting] = self._by_importance
        if (self._given + 1) % OUT_OF_ORDER == 0:
            in_order = self._by_arrival.values()
        passed_over: set[tuple[str, str]] = set()
        for waiting in in_order:
            whose = waiting[2]
            if whose[:2] in passed_over or waiting[3].cancelled():  # who gave up takes itself out
                continue
            if self._may_have(whose):
                self._given += 1
                return waiting
            passed_over.add(whose[:2])
        return None

    def _forget(self, waiting: _Waiting) -> None:
        del self._by_arrival[waiting[1]]
        del self._by_importance[bisect_left(self._by_importance, waiting)]
