"""The replicas in Kopf's peering object: our own place, and the live replicas that outrank us.

Kopf's peering lets the highest priority work, and pauses all replicas of equal priority. So priorities must never be equal, and a newcomer
must not take over from a working replica: the older one outranks the younger. All our priorities are negative. So a person's `kopf freeze`
(100) or `kopf run --dev` (666) outranks every replica, as Kopf's users expect.

A peer is alive while its record keeps changing. What counts is when **we last saw it change**, on our monotonic clock. The time in the
record is never read: clocks of two machines differ, and Kopf's own rule trusts them. This module has no clock and no
network.

For the same reason a newcomer takes a priority below every replica that it finds (`junior_to`). By its start time alone, a replica whose
clock is behind would take the lead at each start.

A replica's record in Kopf's peering object, written so that no clock of another machine can end it.

Kopf takes a record for dead when `lastseen` plus `lifetime` has passed **by the reader's wall clock**; it pauses by that, and deletes dead
records. If two clocks differ by more than the lifetime, the replica that is ahead deletes the other's record. It would do so after each
renewal, and the lead would change hands for ever. So Kopf only enrols us and says goodbye, with a lifetime that never ends
(`ENROLLED_SECONDS`, through Kopf's public setting). `RecordKeeper` renews the record: it then holds the real lifetime, and a `lastseen` in
a year that no clock has reached (`LASTSEEN`). A field of our own, which Kopf ignores, changes with each renewal. Replicas judge by that
change alone, and remove a record that did not change for its lifetime (docs/decisions/0033).

So every Kopf pauses by the content of the object, and that content follows from monotonic clocks.
"""

from __future__ import annotations

import contextlib
import math
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from random import Random
from typing import Any, Final

import msgspec

from placewright.api.decode import DECODE_ERRORS
from placewright.leadership.leaserule import Moment

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


#: Random bits below the start time in milliseconds. Two replicas of the same millisecond then almost surely differ.
TAIL_BITS: Final = 20
_LARGEST: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Replica:
    """This process among the replicas.

    Attributes:
        identity: key of our record in the peering object; for `kopf.operator(identity=...)`.
        priority: value of `settings.peering.priority`; negative, an int64.
    """

    identity: str
    priority: int


def make_replica(started_ms: int, random: Random, environ: Mapping[str, str]) -> Replica:
    """Make the identity and priority of this process. Call it once: Kopf, restarted inside the process, must find its own record again.

    Args:
        started_ms: start of the process, milliseconds since 1970.
        random: gives the tail of identity and priority.
        environ: `POD_ID` or `POD_NAME` names the pod; else the host name counts.

    Raises:
        ValueError: the start time does not fit a priority.
    """
    tail = random.getrandbits(TAIL_BITS)
    name = environ.get("POD_ID") or environ.get("POD_NAME") or socket.gethostname()
    return Replica(f"{name}/{started_ms}/{tail:05x}", priority_of(started_ms, tail))


def priority_of(started_ms: int, tail: int) -> int:
    """Compute a priority: smaller for the younger, and distinct for distinct arguments.

    Args:
        started_ms: milliseconds since 1970.
        tail: random bits.

    Returns:
        A negative int64.

    Raises:
        ValueError: the start time does not fit (after the year 2248).
    """
    value = (started_ms << TAIL_BITS) | tail
    if not 0 <= value <= _LARGEST or tail >> TAIL_BITS:
        raise ValueError(f"start time {started_ms} ms with tail {tail} does not fit a priority; is the clock right?")
    return -value


def junior_to(replica: Replica, priorities: Iterable[int]) -> Replica:
    """Move a replica behind others.

    Args:
        replica: this one.
        priorities: priorities of all records; the ones that no replica can have do not count.

    Returns:
        The replica with a priority below all of them; unchanged if its own is below them already.
    """
    started, tail = divmod(-replica.priority, 1 << TAIL_BITS)
    others = [-priority >> TAIL_BITS for priority in priorities if -_LARGEST <= priority < 0]
    youngest = max(others, default=-1)
    if youngest < started:
        return replica
    try:
        return replace(replica, priority=priority_of(youngest + 1, tail))
    except ValueError:  # a record holds the smallest number that there is
        return replica


def priorities_in(status: Mapping[str, msgspec.Raw]) -> list[int]:
    """Read the priorities of all records.

    Returns:
        The priorities; unreadable records are left out.
    """
    found = []
    for raw in status.values():
        with contextlib.suppress(*DECODE_ERRORS):
            found.append(record_of(bytes(raw)).priority)
    return found


#: Longest lifetime that is believed, seconds: a record with a larger one must not lock all replicas out for ever.
_LONGEST_LIFETIME: Final = 3600.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer to "may this replica act", by peering alone.

    Attributes:
        active: the answer.
        until: when the answer may change without any news; None for never.
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
    #: Seconds that a record holds which its replica has not renewed yet.
    at_first: float

    @property
    def expires(self) -> Moment:
        lifetime = self.at_first if self.record.enrolled_only else self.record.lifetime
        # "nan", which Kopf would read as a number, is no lifetime: such a record is dead.
        return self.changed + (min(max(lifetime, 0.0), _LONGEST_LIFETIME) if not math.isnan(lifetime) else 0.0)


class Peers:
    """The observed records of the peering object, and the verdict that follows.

        peers = Peers(replica.priority)
        peers.observe(peering.status or {}, clock())
        peers.verdict(clock()).active

    Attributes:
        unreadable: identities whose record cannot be read; they do not count, as with Kopf.
        lost_until: when our turn ends, if our own record was dropped while it was fresh; else None.
        own: the identity under which Kopf enrolled us, remembered for good; empty before.
    """

    def __init__(self, priority: int, grace: float = 0.0, lifetime: float = DEFAULT_LIFETIME) -> None:
        """Know no peer yet.

        Args:
            priority: ours.
            grace: seconds that our turn goes on after our record was dropped, for a replica that writes it again at once.
            lifetime: seconds that a record holds which Kopf has just written for a replica.
        """
        self.unreadable: frozenset[str] = frozenset()
        self.lost_until: Moment | None = None
        self.own = ""
        self._grace = grace
        self._lifetime = lifetime
        self._priority = priority
        self._seen: dict[str, _Sighting] = {}
        #: The last verdict; it holds until news come, or its time is over.
        self._kept: Verdict | None = None

    def observe(self, status: Mapping[str, msgspec.Raw], now: Moment) -> None:
        """Take in the object's status. A record that did not change keeps the time of its last change."""
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
                self.lost_until, self.own = None, identity
                return
        for one in self._seen.values():
            if self._is_ours(one) and one.expires > now:
                self.lost_until = min(one.expires, now + self._grace)

    def _is_ours(self, one: _Sighting) -> bool:
        """Return whether a record has our priority: no other replica has it, under any identity that Kopf gave the record."""
        return one.record.priority == self._priority

    @property
    def missing(self) -> bool:
        """True when Kopf enrolled us and our record is not in the object now."""
        return bool(self.own) and not any(map(self._is_ours, self._seen.values()))

    @property
    def enrolled_only(self) -> bool:
        """True when our record is still as Kopf wrote it when it enrolled us."""
        return any(one.record.enrolled_only for one in self._seen.values() if self._is_ours(one))

    def expired(self, now: Moment) -> list[str]:
        """List records of others that did not change for their lifetime: no process renews them any more."""
        return [identity for identity, one in self._seen.items() if one.expires <= now and not self._is_ours(one)]

    def next_expiry(self) -> Moment | None:
        """Find out when the first record of another replica expires, if it does not change before.

        Returns:
            Monotonic seconds; None without other records.
        """
        return min((one.expires for one in self._seen.values() if not self._is_ours(one)), default=None)

    def forget(self) -> None:
        """Forget all records: the object is gone."""
        self._seen, self._kept, self.lost_until = {}, None, None

    def verdict(self, now: Moment) -> Verdict:
        """Judge whether we may act: our own record is fresh, and no live peer has a priority above ours or equal to it.

        Cheap: the answer is kept until news come or its time is over, because it is asked before every request.
        """
        kept = self._kept
        if kept is None or (kept.until is not None and kept.until <= now):
            kept = self._kept = self._judge(now)
        return kept

    def _judge(self, now: Moment) -> Verdict:
        above = {identity: one for identity, one in self._seen.items() if one.record.priority > self._priority and one.expires > now}
        if above:
            return Verdict(False, min(one.expires for one in above.values()), f"{_first(above)} has precedence")
        own = [one.expires for one in self._seen.values() if self._is_ours(one)]
        confirmed = max(own, default=None)
        if confirmed is None and self.lost_until is not None and self.lost_until > now:
            return Verdict(True, self.lost_until, "no live peer has precedence, and our record is being written again")
        if confirmed is None:
            return Verdict(False, None, "our record is not in the peering object")
        if confirmed <= now:
            return Verdict(False, None, "our record was not seen to be renewed in time")
        return Verdict(True, confirmed, "no live peer has precedence")


def _first(above: Mapping[str, _Sighting]) -> str:
    return max(above, key=lambda identity: above[identity].record.priority)
