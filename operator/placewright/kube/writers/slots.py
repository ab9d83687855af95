"""So many at once, and who waits goes by importance: a pod of high priority must not stand behind hundreds that were decided before it."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

#: Of so many places that become free, one goes to whoever has waited longest: important ones may come without end.
OUT_OF_ORDER: Final = 8

_Turn = asyncio.Future[None]


class Slots:
    """`count` places. To be used inside one event loop."""

    def __init__(self, count: int) -> None:
        self._free = count
        self._arrivals = itertools.count()
        self._given = 0
        #: Both hold all who wait; who got a place, or gave up, is skipped where it is met again.
        self._by_importance: list[tuple[int, int, _Turn]] = []
        self._by_arrival: deque[_Turn] = deque()

    @asynccontextmanager
    async def place(self, importance: int) -> AsyncIterator[None]:
        """Hold a place; more important ones get theirs first, equal ones as they came."""
        await self._take(importance)
        try:
            yield
        finally:
            self._give_back()

    async def _take(self, importance: int) -> None:
        if self._free:
            self._free -= 1
            return
        turn: _Turn = asyncio.get_running_loop().create_future()
        heapq.heappush(self._by_importance, (-importance, next(self._arrivals), turn))
        self._by_arrival.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._give_back()
            raise

    def _give_back(self) -> None:
        turn = self._next()
        if turn is None:
            self._free += 1
        else:
            turn.set_result(None)

    def _next(self) -> _Turn | None:
        while self._by_arrival and self._by_arrival[0].done():
            self._by_arrival.popleft()
        while self._by_importance and self._by_importance[0][2].done():
            heapq.heappop(self._by_importance)
        if not self._by_arrival:
            self._by_importance.clear()
            return None
        self._given += 1
        if self._given % OUT_OF_ORDER == 0:
            return self._by_arrival.popleft()
        return heapq.heappop(self._by_importance)[2]
