"""Repetition at a rate."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator


async def paced(a_second: float) -> AsyncIterator[int]:
    """Count from 0, so many numbers a second. After a number that took too long, the next ones follow at once."""
    began = time.monotonic()
    for number in itertools.count():
        await asyncio.sleep(max(began + number / a_second - time.monotonic(), 0.0))
        yield number
