"""Returns unused memory to the system at a slow beat. Otherwise a process that runs for months creeps up to its limit.

Values that were worked out from objects which are gone are dropped at the same beat (`boundedcache.forget_unasked`).

Three things keep unused memory. Reference cycles (a replaced profile's plugins, a closed connection, a traceback) wait for Python's
collector to walk the oldest generation. With this operator's thresholds it hardly ever does. The C library returns only the end of its
heap: one small live object there keeps all freed memory before it. And each TLS connection has a buffer of 256 KiB and uses a few of its
pages. A buffer cut out of the heap holds pages that others used before, and they stay resident with it.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import time
from collections.abc import Awaitable, Callable
from typing import Final

from placewright.api.boundedcache import forget_unasked

#: Least seconds between two collections.
BEAT_SECONDS: Final = 60.0
#: Pieces of so many bytes are mapped by themselves: the buffer of a TLS connection (`SSL_READ_MAX_SIZE` of uvloop and asyncio), and larger.
_MAPPED_FROM: Final = 256 * 1024
#: `M_MMAP_THRESHOLD` of glibc's malloc.h.
_MMAP_THRESHOLD: Final = -3
#: The pause is at least this many times as long as a collection took: the event loop stands still meanwhile, for 0.2 % of the time at most.
_PAUSE_FACTOR: Final = 500


def map_large_pieces() -> bool:
    """Have the C library map every large piece by itself (`mallopt`). Then only its pages in use are resident, until it is freed.

    By default it does so until the first mapped piece is freed. From then on it cuts such pieces out of the heap. Returns whether the C
    library took the setting; musl has no such function.
    """
    return _called("mallopt", _MMAP_THRESHOLD, _MAPPED_FROM)


def trim_heap() -> bool:
    """Have the C library return free pages anywhere in its heap (`malloc_trim`). Returns whether it did; musl has no such function."""
    return _called("malloc_trim", 0)


def _called(function: str, *numbers: int) -> bool:
    """Call a function of the C library. Returns whether it exists and has done something."""
    try:
        return bool(getattr(ctypes.CDLL(None), function)(*numbers))
    except (AttributeError, OSError):
        return False


def give_back() -> None:
    """Drop unasked values, collect reference cycles and return free memory, now. It blocks for milliseconds to tenths of a second."""
    forget_unasked()
    gc.collect()
    trim_heap()


async def give_back_memory(
    act: Callable[[], object] = give_back,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    clock: Callable[[], float] = time.perf_counter,
) -> None:
    """Return unused memory at a beat until cancelled; the longer it takes, the slower the beat.

    Args:
        act: returns memory.
        sleep: waits for so many seconds.
        clock: seconds, to measure `act`.
    """
    pause = BEAT_SECONDS
    while True:
        await sleep(pause)
        began = clock()
        act()
        pause = max(BEAT_SECONDS, _PAUSE_FACTOR * (clock() - began))
