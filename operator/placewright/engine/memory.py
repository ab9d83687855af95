"""The memory that this process may use: its container's limit, or the machine's memory.

A container sees its own limit at the root of its cgroup file system, in any tree of the node; a process may have limits of its
own besides (`ulimit -d`, `ulimit -v`). Limits are read once, when the engine is built: a container that is resized in place keeps its
columns within its first limit until it is restarted. A pod without a limit may take all memory of its machine, and is evicted for it. So
give the scheduler a limit.
"""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path
from typing import Final

#: One part in so many is for kept columns. Without columns a decision is slower; without memory for nodes, pods and requests there is none.
COLUMNS_SHARE: Final = 4
#: One part in so many is for constraints and terms of pods that plugins keep. `MOST_FOR_PLUGINS` bytes suffice for a cluster of any size.
PLUGINS_SHARE: Final = 16
MOST_FOR_PLUGINS: Final = 64 * 2**20
#: Limits of a container as cgroups of version 2 and 1 show them; "max", or a number beyond any memory, where there is none.
_LIMITS: Final = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def memory_limit(limits: tuple[Path, ...] = _LIMITS, physical: int | None = None) -> int:
    """Find the least of all limits.

    Args:
        limits: files of the cgroup file system, each with one limit.
        physical: bytes of the machine that this process may take; None to ask the system.

    Returns:
        Bytes.
    """
    most = min(_physical(), *_of_this_process()) if physical is None else physical
    return min([most, *[limit for path in limits if (limit := _limit(path)) is not None]])


def column_bytes() -> int:
    """Bytes that kept columns may take."""
    return memory_limit() // COLUMNS_SHARE


def plugin_bytes() -> int:
    """Bytes that plugins may keep of pods' constraints and terms."""
    return min(MOST_FOR_PLUGINS, memory_limit() // PLUGINS_SHARE)


def _of_this_process() -> list[int]:
    limits = [resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_DATA, resource.RLIMIT_AS)]
    return [sys.maxsize if limit == resource.RLIM_INFINITY else limit for limit in limits]


def _physical() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _limit(path: Path) -> int | None:
    """Return the limit in a file, bytes; None if there is no such file, or it says `max`."""
    try:
        text = path.read_text().strip()
    except OSError:
        return None
    return int(text) if text.isdecimal() else None
