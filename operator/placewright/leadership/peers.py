"""The replicas in Kopf's peering object: who we are among them, who is alive and outranks us, and how our record stays there.

Kopf's peering lets the highest priority work and pauses all whose priority is equal. So the priority must never be equal, and a newcomer
must not take over from a replica that works: the older outranks the younger. All our priorities are negative, so that a person's
`kopf freeze` (100) or `kopf run --dev` (666) outranks every replica, as Kopf's users expect.

A peer is alive while its record keeps changing: what counts is when **we last saw it change**, on our monotonic clock. The time that the
writer put into the record is never read; clocks of two machines differ, and Kopf's own rule trusts them (`peerrecord`). The rule has no
clocks or network of its own.

For the same reason a newcomer does not go by its own clock alone: it takes its place behind every replica that it finds (`junior_to`).
Otherwise a replica whose clock is behind would take the lead with each start.
"""

from __future__ import annotations

import contextlib
import math
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Final

import msgspec

from placewright.api.decode import DECODE_ERRORS
from placewright.leadership.peerrecord import DEFAULT_LIFETIME, PeerRecord, record_of

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


def junior_to(replica: Replica, priorities: Iterable[int]) -> Replica:
    """The replica with a priority below all of these that replicas can have; as it is where its own is below them already."""
    started, tail = divmod(-replica.priority, 1 << TAIL_BITS)
    others = [-priority >> TAIL_BITS for priority in priorities if -_LARGEST <= priority < 0]
    youngest = max(others, default=-1)
    if youngest < started:
        return replica
    try:
        return replace(replica, priority=priority_of(youngest + 1, tail))
    except ValueError:  # somebody wrote the smallest number there is
        return replica


def priorities_in(status: Mapping[str, msgspec.Raw]) -> list[int]:
    """Those of all records that can be read."""
    found = []
    for raw in status.values():
        with contextlib.suppress(*DECODE_ERRORS):
            found.append(record_of(bytes(raw)).priority)
    return found


#: Seconds on our monotonic clock.
Moment = float

#: A record that claims to live longer than this is taken to live that long: it must not lock everybody out for good.
_LONGEST_LIFETIME: Final = 3600.0


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
    #: How long a record holds that its replica has not renewed yet, seconds.
    at_first: float

    @property
    def expires(self) -> Moment:
        lifetime = self.at_first if self.record.enrolled_only else self.record.lifetime
        # Of what is no number ("nan", which Kopf would read as one) nothing follows; such a record is dead.
        return self.changed + (min(max(lifetime, 0.0), _LONGEST_LIFETIME) if not math.isnan(lifetime) else 0.0)


@dataclass(frozen=True, slots=True)
class Lost:
    """Our record that somebody dropped while it was fresh.

    Attributes:
        identity: under which it stood.
        until: when our turn ends without it.
    """

    identity: str
    until: Moment


class Peers:
    """What we have seen of the peering object, and what follows from it.

    Attributes:
        unreadable: identities whose record is no record; they count for nothing, as with Kopf.
        lost: our own record, where it was dropped while it was fresh; our turn goes on for a moment.
        own: under which name Kopf enrolled us; empty before it did. It is remembered for good.
    """

    def __init__(self, priority: int, grace: float = 0.0, lifetime: float = DEFAULT_LIFETIME) -> None:
        """Know nobody yet.

        Args:
            priority: ours.
            grace: seconds for which our turn goes on when our record was dropped, for whoever puts it back at once.
            lifetime: how long a record holds that Kopf has just written for a replica, in seconds.
        """
        self.unreadable: frozenset[str] = frozenset()
        self.lost: Lost | None = None
        self.own = ""
        self._grace = grace
        self._lifetime = lifetime
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
                seen[identity] = _Sighting(text, record_of(text), now, self._lifetime)
            except DECODE_ERRORS:
                unreadable.add(identity)
        self._note_loss(seen, now)
        self._seen, self._kept = seen, None
        self.unreadable = frozenset(unreadable)

    def _note_loss(self, seen: Mapping[str, _Sighting], now: Moment) -> None:
        for identity, one in seen.items():
            if self._is_ours(one):
                self.lost, self.own = None, identity
                return
        for identity, one in self._seen.items():
            if self._is_ours(one) and one.expires > now:
                self.lost = Lost(identity, min(one.expires, now + self._grace))

    def _is_ours(self, one: _Sighting) -> bool:
        """Ours is whatever carries our priority: nobody else has it, whatever name Kopf gave the record."""
        return one.record.priority == self._priority

    @property
    def missing(self) -> bool:
        """Whether Kopf enrolled us and our record is not there now."""
        return bool(self.own) and not any(map(self._is_ours, self._seen.values()))

    @property
    def enrolled_only(self) -> bool:
        """Whether our record is still as Kopf wrote it when it enrolled us."""
        return any(one.record.enrolled_only for one in self._seen.values() if self._is_ours(one))

    def expired(self, now: Moment) -> list[str]:
        """Records of others that were not seen to change for their lifetime: nobody keeps them any more."""
        return [identity for identity, one in self._seen.items() if one.expires <= now and not self._is_ours(one)]

    def next_expiry(self) -> Moment | None:
        """When the first record of another one expires, if it does not change before; None where there is none."""
        return min((one.expires for one in self._seen.values() if not self._is_ours(one)), default=None)

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
        own = [one.expires for one in self._seen.values() if self._is_ours(one)]
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
