"""Answers questions about verdicts one at a time, and not often: an evaluation of all nodes takes time from the loop that it runs on.

Readers who ask about one pod within a short time get the same bytes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

import msgspec

from placewright.http.routes import RequestRefused
from placewright_console.pages.nodeverdicts import Judging

#: Seconds for which an answer is given again.
FRESH_SECONDS: Final = 5.0
#: Answers that are kept, and questions that may wait for their turn.
MOST_KEPT: Final = 8
MOST_WAITING: Final = 20
#: Share of the time that evaluations may take in an operator; a long one is followed by a rest.
SHARE: Final = 0.05
_LONGEST_REST: Final = 10.0
BUSY: Final = 503
TOO_MANY: Final = "too many people ask at once; try again"


class VerdictDesk:
    """Evaluates for one question at a time.

    Example:
        answer = await desk.answer("shop/web-1", lambda: node_verdicts(evaluator, cluster, pod))
    """

    def __init__(self, clock: Callable[[], float], share: float = SHARE) -> None:
        """Keep no answer yet.

        Args:
            clock: seconds, monotonic.
            share: share of the time that evaluations may take.
        """
        self._clock = clock
        self._share = share
        self._turn = asyncio.Lock()
        self._waiting = 0
        self._free_at = clock()
        self._kept: dict[str, tuple[float, bytes]] = {}

    async def answer(self, who: str, judging: Callable[[], Judging | None]) -> bytes | None:
        """Answer a question, by a kept answer where one is fresh.

        Args:
            who: the pod, and all else on which the answer depends.
            judging: begins the evaluation when its turn comes; None for a pod that is not there any more.

        Returns:
            JSON; None for a pod that is not there.

        Raises:
            RequestRefused: `MOST_WAITING` questions wait already (503).
        """
        if self._waiting >= MOST_WAITING:
            raise RequestRefused(BUSY, TOO_MANY)
        self._waiting += 1
        try:
            async with self._turn:
                return await self._answered(who, judging)
        finally:
            self._waiting -= 1

    async def _answered(self, who: str, judging: Callable[[], Judging | None]) -> bytes | None:
        kept = self._kept.get(who)
        if kept is not None and self._clock() - kept[0] < FRESH_SECONDS:
            return kept[1]
        await asyncio.sleep(max(self._free_at - self._clock(), 0.0))
        work = judging()
        if work is None:
            return None
        made, took = await self._driven(work)
        body = msgspec.json.encode(made)
        now = self._clock()
        self._free_at = now + min(took / self._share, _LONGEST_REST)
        self._kept.pop(who, None)
        self._kept[who] = now, body
        while len(self._kept) > MOST_KEPT:
            del self._kept[next(iter(self._kept))]
        return body

    async def _driven(self, work: Judging) -> tuple[dict[str, Any], float]:
        """Return the answer, and the seconds that its slices took; the loop has its turn between them."""
        took = 0.0
        while True:
            began = self._clock()
            try:
                next(work)
            except StopIteration as ended:
                return ended.value, took + self._clock() - began
            took += self._clock() - began
            await asyncio.sleep(0)
