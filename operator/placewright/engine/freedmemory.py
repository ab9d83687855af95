"""Memory that is not used any more goes back to the system, so that a process that runs for months does not creep up to its limit.

Two things keep it. Reference cycles (a replaced profile's plugins, a closed connection, a traceback) go only when Python's collector looks
at the oldest generation, which it does by how much was allocated: hardly ever. And the C library gives back the end of its heap alone,
where something small lies behind all the large buffers that were freed, such as those of TLS connections, of 256 KiB each.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import time
from collections.abc import Awaitable, Callable
from typing import Final

#: Seconds between two times, at least; and of all time it may take one part in so many.
BEAT_SECONDS: Final = 60.0
_PART: Final = 500


def trim_heap() -> bool:
    """Have the C library give back what is free, wherever it lies; False where it is none that can."""
    try:
        return bool(ctypes.CDLL(None).malloc_trim(0))
    except (AttributeError, OSError):
        return False


def give_back() -> None:
    """Do both, now."""
    gc.collect()
    trim_heap()


async def give_back_memory(
    act: Callable[[], object] = give_back,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    clock: Callable[[], float] = time.perf_counter,
) -> None:
    """Do it at a slow beat, the slower the longer it takes; until cancelled."""
    pause = BEAT_SECONDS
    while True:
        await sleep(pause)
        began = clock()
        act()
        pause = max(BEAT_SECONDS, _PART * (clock() - began))
