"""The answer for a scheduler that was told that it runs alone (`--leader-elect=false`): active, always.

Nothing keeps a second one away then; whoever says it vouches for it.
"""

from __future__ import annotations

import asyncio

from placewright.leadership.peering import Listener


class Alone:
    """Stands where `Leadership` stands, and watches nothing."""

    active = True
    tasks: tuple[asyncio.Task[None], ...] = ()

    def on_change(self, listener: Listener) -> None:
        """The answer never changes, so nobody is called."""

    async def wait_active(self) -> None:
        """Return at once."""

    def start(self) -> None:
        """Nothing to watch."""

    async def stop(self) -> None:
        """Nothing was watched."""

    def review(self) -> None:
        """Nothing to tell."""
