"""A replica's record in Kopf's peering object, such that no clock can end it but those of who watches it.

Kopf takes a record for dead when `lastseen` plus `lifetime` has passed **by the reader's clock on the wall**, pauses by that, and deletes
what it takes for dead. Between machines whose clocks are further apart than the lifetime, the one that is ahead would delete the other's
record after each renewal, and the lead would change hands for ever. So Kopf only enrols us and says goodbye, with a lifetime that is over
for nobody (`ENROLLED_SECONDS`, all it needs is the public setting). Renewing is ours (`recordkeeper`): the record then says how long it
really holds, and was last seen in a year that no clock has reached (`LASTSEEN`). What changes with each renewal is a field of its own,
which Kopf lets be. Replicas go by that change alone (`peers`), and whoever has not seen one for the lifetime takes the record out.

Then every Kopf pauses by what is in the object, and what is in the object follows from monotonic clocks.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

import msgspec

#: For Kopf's own setting, seconds: 100 years. Written by a clock that begins in 1970 and read by one that is decades ahead, it is not over.
ENROLLED_SECONDS: Final = 100 * 365 * 86_400
#: The year is far from any clock's, and as far from the last one that Python can add a lifetime to.
LASTSEEN: Final = "2999-01-01T00:00:00+00:00"
#: Kopf's default, for records that do not say.
DEFAULT_LIFETIME: Final = 60.0


class PeerRecord(msgspec.Struct, frozen=True):
    """One peer's record: a replica's, or that of another operator of Kopf's."""

    priority: int = 0
    lifetime: float = DEFAULT_LIFETIME
    lastseen: str = ""

    @property
    def enrolled_only(self) -> bool:
        """Whether it is as Kopf wrote it when it enrolled a replica, which has not renewed it yet."""
        return self.lifetime == ENROLLED_SECONDS


_RECORD: Final = msgspec.json.Decoder(PeerRecord, strict=False)


def record_of(text: bytes) -> PeerRecord:
    """What a record says; raises what decoders raise (`DECODE_ERRORS`) where it is none."""
    return _RECORD.decode(text)


def renewal(identity: str, priority: int, lifetime: int, renewals: int, renewed: datetime) -> dict[str, Any]:
    """A merge patch of the peering object that renews a record, or puts it back.

    `renewals`: how many there were, so that no two look the same, whatever the clock does. `renewed`: for people.
    """
    content: dict[str, Any] = {"priority": priority, "lifetime": lifetime, "lastseen": LASTSEEN}
    content |= {"renewals": renewals, "renewed": renewed.isoformat()}
    return {"status": {identity: content}}


def removal(identities: Iterable[str], version: str = "") -> dict[str, Any]:
    """A merge patch that takes records out; with a `version` only if the object is still that one, else the answer is 409."""
    patch: dict[str, Any] = {"status": dict.fromkeys(identities)}
    return {"metadata": {"resourceVersion": version}, **patch} if version else patch
