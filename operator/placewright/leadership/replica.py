"""Who we are among the replicas: one identity and one priority for the life of the process.

Kopf's peering lets the highest priority work and pauses all whose priority is equal. So the priority must never be equal, and a newcomer
must not take over from a replica that works: the older outranks the younger. All our priorities are negative, so that a person's
`kopf freeze` (100) or `kopf run --dev` (666) outranks every replica, as Kopf's users expect.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Final

#: Random bits below the start time in milliseconds: two replicas that start in the same millisecond differ all but surely.
TAIL_BITS: Final = 20
_LARGEST: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Replica:
    """This process among the replicas.

    Attributes:
        identity: key of our record in the peering object; for `kopf.operator(identity=...)`.
        priority: for `settings.peering.priority`; negative, an int64.
    """

    identity: str
    priority: int


def make_replica(started_ms: int, random: Random, environ: Mapping[str, str]) -> Replica:
    """Identity and priority of a process that started at `started_ms` (milliseconds since 1970).

    `POD_ID` or `POD_NAME` in the environment names the pod we run in. To be called once a process: Kopf, restarted inside it, must find its
    own record again.
    """
    tail = random.getrandbits(TAIL_BITS)
    name = environ.get("POD_ID") or environ.get("POD_NAME") or socket.gethostname()
    return Replica(f"{name}/{started_ms}/{tail:05x}", priority_of(started_ms, tail))


def priority_of(started_ms: int, tail: int) -> int:
    """Smaller for the younger; distinct for distinct pairs. Raises `ValueError` outside int64 (after the year 2248)."""
    value = (started_ms << TAIL_BITS) | tail
    if not 0 <= value <= _LARGEST or tail >> TAIL_BITS:
        raise ValueError(f"start time {started_ms} ms with tail {tail} does not fit a priority; is the clock right?")
    return -value
