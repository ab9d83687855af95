"""The replicas in Kopf's peering object: who we are among them, who is alive and outranks us, and how our record stays there.

Kopf's peering lets the highest priority work and pauses all whose priority is equal. So the priority must never be equal, and a newcomer
must not take over from a replica that works: the older outranks the younger. All our priorities are negative, so that a person's
`kopf freeze` (100) or `kopf run --dev` (666) outranks every replica, as Kopf's users expect.

A peer is alive while its record keeps changing: what counts is when **we last saw it change**, on our monotonic clock. The time that the
writer put into the record is never read; clocks of two machines differ, and Kopf's own rule trusts them. The rule has no clocks or network
of its own.

Kopf writes our record into `status`, where whoever applies the object may drop it: seen with the first server-side apply after a
client-side one. It is put back in Kopf's own form. Somebody may mean to drop it, such as a peer whose clock says that it ran out: so each
time that follows soon waits twice as long as the one before, and nobody writes against anybody at the speed of the network.
"""

from __future__ import annotations

import math
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random
from typing import Any, Final

import msgspec

from placewright.api.decode import DECODE_ERRORS

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


#: Seconds on our monotonic clock.
Moment = float

#: Kopf's default, for records that do not say.
_DEFAULT_LIFETIME: Final = 60.0
#: A record that claims to live longer than this is taken to live that long: it must not lock everybody out for good.
_LONGEST_LIFETIME: Final = 3600.0


class PeerRecord(msgspec.Struct, frozen=True):
    """One peer's record, as Kopf writes it."""

    priority: int = 0
    lifetime: float = _DEFAULT_LIFETIME
    lastseen: str = ""


_RECORD: Final = msgspec.json.Decoder(PeerRecord, strict=False)


@dataclass(frozen=True, slots=True)
class Verdict:
    """May we act.

    Attributes:
        active: the answer.
        until: when the answer may change without any news, None for never.
        why: half a sentence for log and health.
    """

    active: bool
    until: Moment | None
    why: str


@dataclass(frozen=True, slots=True)
class _Sighting:
    raw: bytes
    record: PeerRecord
    changed: Moment

    @property
    def expires(self) -> Moment:
        lifetime = self.record.lifetime
        # Of what is no number ("nan", which Kopf would read as one) nothing follows; such a record is dead.
        return self.changed + (min(max(lifetime, 0.0), _LONGEST_LIFETIME) if not math.isnan(lifetime) else 0.0)


@dataclass(frozen=True, slots=True)
class Lost:
    """Our record that somebody dropped while it was fresh.

    Attributes:
        identity, record: as it was.
        until: when our turn ends without it.
    """

    identity: str
    record: PeerRecord
    until: Moment


class Peers:
    """What we have seen of the peering object, and what follows from it.

    Attributes:
        unreadable: identities whose record is no record; they count for nothing, as with Kopf.
        lost: our own record, where it was there and is not any more; to be put back by whoever can write.
    """

    def __init__(self, priority: int, grace: float = 0.0) -> None:
        """`grace`: seconds for which our turn goes on when our record was dropped, for whoever puts it back at once."""
        self.unreadable: frozenset[str] = frozenset()
        self.lost: Lost | None = None
        self._grace = grace
        self._priority = priority
        self._seen: dict[str, _Sighting] = {}
        #: The last verdict; it holds until news come, or its time is over.
        self._kept: Verdict | None = None

    def observe(self, status: Mapping[str, msgspec.Raw], now: Moment) -> None:
        """Take in the object's status. Records that did not change keep the time at which they last did."""
        seen: dict[str, _Sighting] = {}
        unreadable: set[str] = set()
        for identity, raw in status.items():
            text = bytes(raw)
            known = self._seen.get(identity)
            if known is not None and known.raw == text:
                seen[identity] = known
                continue
            try:
                seen[identity] = _Sighting(text, _RECORD.decode(text), now)
            except DECODE_ERRORS:
                unreadable.add(identity)
        self._note_loss(seen, now)
        self._seen, self._kept = seen, None
        self.unreadable = frozenset(unreadable)

    def _note_loss(self, seen: Mapping[str, _Sighting], now: Moment) -> None:
        if any(one.record.priority == self._priority for one in seen.values()):
            self.lost = None
            return
        for identity, one in self._seen.items():
            if one.record.priority == self._priority and one.expires > now:
                self.lost = Lost(identity, one.record, min(one.expires, now + self._grace))

    def forget(self) -> None:
        """The object is gone."""
        self._seen, self._kept, self.lost = {}, None, None

    def verdict(self, now: Moment) -> Verdict:
        """Active while our own record is fresh and no live peer stands above us or beside us. Cheap: asked before every request."""
        kept = self._kept
        if kept is None or (kept.until is not None and kept.until <= now):
            kept = self._kept = self._judge(now)
        return kept

    def _judge(self, now: Moment) -> Verdict:
        above = {
            identity: one for identity, one in self._seen.items() if one.record.priority > self._priority and one.expires > now
        }
        if above:
            return Verdict(False, min(one.expires for one in above.values()), f"{_first(above)} has precedence")
        # Ours is whatever carries our priority: nobody else has it, whatever name Kopf gave the record.
        own = [one.expires for one in self._seen.values() if one.record.priority == self._priority]
        confirmed = max(own, default=None)
        if confirmed is None and self.lost is not None and self.lost.until > now:
            return Verdict(True, self.lost.until, "no live peer has precedence, and our record is being put back")
        if confirmed is None:
            return Verdict(False, None, "our record is not in the peering object")
        if confirmed <= now:
            return Verdict(False, None, "our record was not seen to be renewed in time")
        return Verdict(True, confirmed, "no live peer has precedence")


def _first(above: Mapping[str, _Sighting]) -> str:
    return max(above, key=lambda identity: above[identity].record.priority)


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


def record_patch(lost: Lost) -> dict[str, Any]:
    """A merge patch of the peering object with the record, renewed."""
    content = {
        "priority": lost.record.priority,
        "lifetime": int(lost.record.lifetime),
        "lastseen": datetime.now(UTC).isoformat(),
    }
    return {"status": {lost.identity: content}}
