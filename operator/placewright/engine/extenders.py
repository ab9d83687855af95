"""The extenders of the profiles: made with a profile, opened when it takes effect, closed when the attempts under it have ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Final

from placewright.framework.interface import Extender
from placewright.framework.runtime.evaluation import Evaluator
from placewright.framework.runtime.resolvedprofile import ResolvedProfile
from placewright.kube.client import ApiClient
from placewright.kube.extenders.httpextender import HttpExtender
from placewright.kube.fullobjects import FullObjects
from placewright.kube.tasks import cancelled
from placewright.profiles.live import Swap

#: Seconds for which an attempt may go on after its profile was replaced. Then its next request fails, and the pod is tried again.
GRACE_SECONDS: Final = 60.0


class Extenders:
    """Opens and closes the extenders of all profiles, and owns the cache of whole pods and nodes for them."""

    def __init__(self, client: ApiClient, nodes: Callable[[], int], grace: float = GRACE_SECONDS) -> None:
        """Open nothing yet.

        Args:
            client: reads whole objects.
            nodes: the number of nodes, which bounds the answers of extenders.
            grace: see `GRACE_SECONDS`.
        """
        self._objects = FullObjects(client)
        self._nodes = nodes
        self._grace = grace
        self._open: set[Extender] = set()
        self._in_effect: set[Extender] = set()
        self._retiring: set[asyncio.Task[None]] = set()

    def make(self, profile: ResolvedProfile) -> tuple[HttpExtender, ...]:
        """Make the extenders of a profile, not opened yet.

        Raises:
            InputError: a file that the profile names cannot be used.
        """
        return tuple([HttpExtender(settings, self._objects, nodes=self._nodes) for settings in profile.extenders])

    def swapped(self, swap: Swap[Evaluator]) -> None:
        """Open the extenders of a profile that took effect. Close those of the profile before after the grace."""
        before = swap.before.evaluator.runtime.extenders if swap.before else ()
        after = swap.after.evaluator.runtime.extenders if swap.after else ()
        self._in_effect.difference_update(before)
        self._in_effect.update(after)
        for extender in set(after) - self._open:
            extender.open()
        self._open.update(after)
        if before:
            task = asyncio.get_running_loop().create_task(self._retire(before))
            self._retiring.add(task)
            task.add_done_callback(self._retiring.discard)

    async def close(self) -> None:
        """Close all extenders. Requests under way fail."""
        await cancelled(*self._retiring)
        await self._close(tuple(self._open))
        await self._objects.close()

    async def _retire(self, extenders: tuple[Extender, ...]) -> None:
        await asyncio.sleep(self._grace)
        await self._close([extender for extender in extenders if extender not in self._in_effect])

    async def _close(self, extenders: Iterable[Extender]) -> None:
        for extender in extenders:
            self._open.discard(extender)
            await extender.close()
