"""A sink that remembers what it heard, and lets a test wait for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any


class RecordingSink:
    """`heard` holds (what, name, old version, new version); `synced` once per complete list."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, ...]] = []
        self._news = asyncio.Event()

    def changed(self, old: Any, new: Any) -> None:
        self._hear("added", new.metadata.name) if old is None else self._hear("updated", new.metadata.name)

    def deleted(self, old: Any) -> None:
        self._hear("deleted", old.metadata.name)

    def synced(self) -> None:
        self._hear("synced")

    def _hear(self, *what: str) -> None:
        self.heard.append(what)
        self._news.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until something heard makes the condition true; fails after five seconds."""
        async with asyncio.timeout(5):
            while not condition():
                self._news.clear()
                await self._news.wait()

    async def until_heard(self, *what: str) -> None:
        await self.until(lambda: what in self.heard)

    async def until_synced(self, times: int = 1) -> None:
        await self.until(lambda: self.heard.count(("synced",)) >= times)
