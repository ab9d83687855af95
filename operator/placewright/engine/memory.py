"""How much memory this process may use: what its container is allowed, or what the machine has.

A container sees its own limit at the root of its cgroup file system, whatever the node's tree looks like; a process may have limits of its
own besides (`ulimit -d`, `ulimit -v`). They are read once, when the engine is built: a container that is resized in place keeps its columns
within the limit that it began with until it is restarted. Pods without a limit may take what the machine has, and are evicted for it, so
give the scheduler one.
"""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path
from typing import Final

#: Of that, so much is for kept columns: a decision may do without them, and nodes, pods and requests under way may not do without memory.
COLUMNS_SHARE: Final = 4
#: And so much for what plugins remember of pods' constraints and terms, and never more than a cluster of any size needs.
PLUGINS_SHARE: Final = 16
MOST_FOR_PLUGINS: Final = 64 * 2**20
#: Limits of a container as cgroups of version 2 and 1 show them; "max", or a number beyond any memory, where there is none.
_LIMITS: Final = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def memory_limit(limits: tuple[Path, ...] = _LIMITS, physical: int | None = None) -> int:
    """Bytes. `physical`: what the machine has, and this process may take of it; asked where it is None."""
    most = min(_physical(), *_of_this_process()) if physical is None else physical
    return min([most, *[limit for path in limits if (limit := _limit(path)) is not None]])


def column_bytes() -> int:
    """Bytes for kept columns."""
    return memory_limit() // COLUMNS_SHARE


def plugin_bytes() -> int:
    """Bytes for what plugins remember."""
    return min(MOST_FOR_PLUGINS, memory_limit() // PLUGINS_SHARE)


def _of_this_process() -> list[int]:
    limits = [resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_DATA, resource.RLIMIT_AS)]
    return [sys.maxsize if limit == resource.RLIM_INFINITY else limit for limit in limits]


def _physical() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _limit(path: Path) -> int | None:
    """What the file says; None where there is no such file, or no limit."""
    try:
        text = path.read_text().strip()
    except OSError:
        return None
    return int(text) if text.isdecimal() else None
