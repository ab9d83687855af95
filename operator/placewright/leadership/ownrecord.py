"""Puts our record back into the peering object when somebody drops it, rather than to stand by until Kopf's next keepalive.

Kopf writes the record into `status`, where whoever applies the object may drop it: seen with the first server-side apply after a
client-side one. It is put back in Kopf's own form. Somebody may mean to drop it, such as a peer whose clock says that it ran out: so each
time that follows soon waits twice as long as the one before, and nobody writes against anybody at the speed of the network.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from placewright.leadership.peers import Lost, Moment

#: How long our turn goes on without the record that we are putting back, in seconds: an answer of a slow API server. The Lease excludes.
GRACE_SECONDS: Final = 2.0
_FIRST_PAUSE: Final = 1.0
_LONGEST_PAUSE: Final = 60.0


@dataclass(slots=True)
class RecordPace:
    """When the record may be put back again; at first at once."""

    _next: Moment = float("-inf")
    _pause: float = _FIRST_PAUSE

    def due(self, now: Moment) -> Moment:
        """The earliest moment for the next time."""
        return max(now, self._next)

    def sent(self, now: Moment) -> None:
        """It is put back now. Where it stood for long enough, the next time is a first one again."""
        stood = now - self._next
        self._pause = _FIRST_PAUSE if stood > _LONGEST_PAUSE else min(self._pause * 2, _LONGEST_PAUSE)
        self._next = now + self._pause


def body_of(lost: Lost) -> dict[str, Any]:
    """A merge patch of the peering object with the record, renewed."""
    content = {
        "priority": lost.record.priority,
        "lifetime": int(lost.record.lifetime),
        "lastseen": datetime.now(UTC).isoformat(),
    }
    return {"status": {lost.identity: content}}
