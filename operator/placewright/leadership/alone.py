"""The answer for a scheduler that was told that it runs alone (`--leader-elect=false`): active, always.

Nothing keeps a second one away then; whoever says it vouches for it.
"""

from __future__ import annotations

import asyncio
import logging

from placewright.leadership.peering import Listener

_log = logging.getLogger(__name__)


class Alone:
    """Stands where `Leadership` stands, and watches nothing."""

    active = True
    term = 1
    tasks: tuple[asyncio.Task[None], ...] = ()

    def on_change(self, listener: Listener) -> None:
        """The answer never changes, so nobody is called."""

    async def wait_active(self) -> None:
        """Return at once."""

    async def require(self) -> None:
        """Nothing has to be there."""

    def start(self) -> None:
        """Nothing to watch; said once, for the day when there are two."""
        _log.warning("active without an election: a second replica would decide beside this one")

    async def resign(self) -> None:
        """There is nobody else."""

    async def stop(self) -> None:
        """Nothing was watched."""

    async def close(self) -> None:
        """Nothing is open."""

    def review(self) -> None:
        """Nothing to tell."""
