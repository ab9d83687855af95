"""A wait for a condition that others bring about."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any


class News(asyncio.Event):
    """An event: something changed that the condition may depend on."""

    async def until(self, condition: Callable[[], Any], what: Callable[[], object], seconds: float, look: float = 0.02) -> None:
        """Wait until the condition holds. Fail after so many seconds with the text that `what` returns then.

        Logs and processes set no event when they change. So the condition is also checked every `look` seconds.
        """
        try:
            async with asyncio.timeout(seconds):
                while not condition():
                    self.clear()
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(look):
                            await self.wait()
        except TimeoutError:
            raise AssertionError(f"not within {seconds:g} s: {what()}") from None
