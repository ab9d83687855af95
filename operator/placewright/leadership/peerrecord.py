"""A replica's record in Kopf's peering object, written so that no clock of another machine can end it.

Kopf takes a record for dead when `lastseen` plus `lifetime` has passed **by the reader's wall clock**; it pauses by that, and deletes dead
records. If two clocks differ by more than the lifetime, the replica that is ahead deletes the other's record. It would do so after each
renewal, and the lead would change hands for ever. So Kopf only enrols us and says goodbye, with a lifetime that never ends
(`ENROLLED_SECONDS`, through Kopf's public setting). `recordkeeper` renews the record: it then holds the real lifetime, and a `lastseen` in
a year that no clock has reached (`LASTSEEN`). A field of our own, which Kopf ignores, changes with each renewal. Replicas judge by that
change alone (`peers`), and remove a record that did not change for its lifetime (docs/decisions/0033).

So every Kopf pauses by the content of the object, and that content follows from monotonic clocks.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

import msgspec

#: Seconds for Kopf's own setting: 100 years. A record written by a clock in 1970 is still alive for a reader that is decades ahead.
ENROLLED_SECONDS: Final = 100 * 365 * 86_400
#: A year that no clock has reached, and to which Python can still add a lifetime.
LASTSEEN: Final = "2999-01-01T00:00:00+00:00"
#: Kopf's default, for records without a lifetime.
DEFAULT_LIFETIME: Final = 60.0


class PeerRecord(msgspec.Struct, frozen=True):
    """One peer's record: a replica's, or that of another Kopf operator.

    Attributes:
        priority: the highest works, the others pause.
        lifetime: seconds.
        lastseen: the writer's wall clock; never read here.
    """

    priority: int = 0
    lifetime: float = DEFAULT_LIFETIME
    lastseen: str = ""

    @property
    def enrolled_only(self) -> bool:
        """True for a record as Kopf wrote it when it enrolled a replica, before the first renewal."""
        return self.lifetime == ENROLLED_SECONDS


_RECORD: Final = msgspec.json.Decoder(PeerRecord, strict=False)


def record_of(text: bytes) -> PeerRecord:
    """Decode a record.

    Raises:
        Exception: one of `DECODE_ERRORS`, for a text that is no record.
    """
    return _RECORD.decode(text)


def renewal(identity: str, priority: int, lifetime: int, renewals: int, renewed: datetime) -> dict[str, Any]:
    """Build a merge patch of the peering object that renews a record or writes it again.

    Args:
        identity: key of the record.
        priority: priority of the replica.
        lifetime: seconds.
        renewals: number of renewals so far; it makes each one differ, even if the clock stands still.
        renewed: the time, for people.
    """
    content: dict[str, Any] = {"priority": priority, "lifetime": lifetime, "lastseen": LASTSEEN}
    content |= {"renewals": renewals, "renewed": renewed.isoformat()}
    return {"status": {identity: content}}


def removal(identities: Iterable[str], version: str = "") -> dict[str, Any]:
    """Build a merge patch of the peering object that removes records.

    Args:
        identities: keys of the records.
        version: resourceVersion that the object must have, else the answer is 409; empty for any.
    """
    patch: dict[str, Any] = {"status": dict.fromkeys(identities)}
    return {"metadata": {"resourceVersion": version}, **patch} if version else patch
