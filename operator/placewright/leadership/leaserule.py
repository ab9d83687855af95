"""Whose the Lease is and until when: the rule, which is told the time and has no network.

It is client-go's, with three things made stricter. A record holds for as long as it says **from when we last saw it change**, on our
monotonic clock; the times that its writer put into it are never read, so clocks may differ by minutes. Whoever holds it may act until the
renew deadline after the **sending** of the last renewal that was confirmed, which is before anybody else's patience ends. Stricter:

- Nobody waits less than for his own duration, whatever the record says.
- Only a record that says that it was released (no holder, one second) may be taken at once. One that was emptied, deleted or garbled by
  hand may still be somebody's who has not noticed: it is waited for.
- A record that names us, but that we did not write, is not ours either.
- A record that claims to hold for more than `LONGEST` is taken to hold for that: it must not lock everybody out for good.

The clock that both it and peering are given counts the time in which the machine was suspended, too (`real_seconds`). Linux' monotonic
clock does not: a leader that wakes up would believe that no time has passed, and act until its renewals are missed once more.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

#: Seconds on our monotonic clock.
Moment = float
#: Linux has it; elsewhere the monotonic clock has to do.
_BOOT_CLOCK: Final[int] = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def real_seconds() -> float:
    """Seconds that only grow, and that pass while the machine is suspended, too."""
    return time.clock_gettime(_BOOT_CLOCK)


#: No record is believed to hold for longer, in seconds.
LONGEST: Final = 3600
_NEVER: Final = float("-inf")
_RELEASED_SECONDS: Final = 1
#: Whoever holds a Lease that was spoiled may be that much more patient than we are.
_MORE_PATIENT: Final = 4
#: Claims remembered of which nobody knows whether they came to be.
_REMEMBERED: Final = 8
_LARGEST_INT32: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Timing:
    """How patient everybody is, in seconds.

    Attributes:
        lease: how long others wait after the last change that they saw; whole seconds, as the API has it.
        renew: how long the holder acts after sending a renewal that was confirmed; less than `lease`.
        retry: between two attempts.
    """

    lease: int = 15
    renew: float = 10.0
    retry: float = 2.0

    def __post_init__(self) -> None:
        """Raises `ValueError` for what would let two in, or would not be believed."""
        if not (0 < self.retry < self.renew < self.lease <= LONGEST):
            raise ValueError(f"found {self}; allowed 0 < retry < renew < lease <= {LONGEST}")

    @property
    def gap(self) -> float:
        """Between the holder's last moment and the first of whoever comes next, at least; what was sent in time must be over by then."""
        return self.lease - self.renew

    @classmethod
    def of(cls, lifetime: int) -> Timing:
        """For a leader that keeps its lead for `lifetime` seconds after it vanished, in kube-scheduler's proportions (15, 10, 2)."""
        return cls(lifetime, lifetime * 2 / 3, lifetime * 2 / 15)


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """What a Lease says.

    Attributes:
        holder: identity; empty for nobody.
        duration: seconds; 0 where it does not say.
        acquired, renewed: RFC 3339 with microseconds; only ever compared for being the same.
        transitions: how often the holder changed.
        garbled: what the record looks like, where it cannot be read.
    """

    holder: str = ""
    duration: int = 0
    acquired: str = ""
    renewed: str = ""
    transitions: int = 0
    garbled: bytes = b""

    @property
    def released(self) -> bool:
        """Whether its holder gave it back, in order."""
        return not self.holder and self.duration == _RELEASED_SECONDS and not self.garbled


@dataclass(frozen=True, slots=True)
class Sight:
    """A Lease as it was seen: which object, which version of it, and what it says."""

    uid: str
    version: str
    record: LeaseRecord


class Tenure:
    """What one replica knows about the Lease.

    Attributes:
        sight: the Lease as last seen, None when there is none.
        known: whether it was looked for at all.
        term: how often we took it.
    """

    def __init__(self, identity: str, timing: Timing) -> None:
        self.sight: Sight | None = None
        self.known = False
        self.term = 0
        self._identity = identity
        self._timing = timing
        self._free_at: Moment = _NEVER
        #: What we wrote since the last that was confirmed, and when each was sent.
        self._written: dict[LeaseRecord, Moment] = {}
        self._confirmed: LeaseRecord | None = None
        self._renounced = True
        self._until: Moment | None = None
        self._acquired = ""
        self._stamped = ""

    # --- what follows from it ---

    @property
    def ours(self) -> bool:
        """Whether the Lease, as last seen, names us."""
        return self.sight is not None and self.sight.record.holder == self._identity

    def may_claim(self, now: Moment) -> bool:
        """Whether we may try to take or to renew it: it is ours by our own doing, or nobody can be acting on it any more."""
        genuine = self.sight is not None and self.sight.record == self._confirmed
        return genuine or self.held(now) or self._free_at <= now

    @property
    def until(self) -> Moment | None:
        """Until when we may act without another renewal; None when the Lease is not ours to act on."""
        return self._until

    @property
    def free_at(self) -> Moment:
        """From when on we may try to take what is not ours."""
        return self._free_at

    @property
    def doubtful(self) -> bool:
        """Whether something was written of which nobody knows whether it came to be."""
        return bool(self._written)

    @property
    def renounced(self) -> bool:
        """Whether we gave it up, or never claimed it."""
        return self._renounced

    def held(self, now: Moment) -> bool:
        """May we act. Cheap: asked before every request."""
        return self._until is not None and now < self._until

    # --- what is seen ---

    def observe(self, sight: Sight | None, now: Moment) -> None:
        """The Lease as it is; None: there is none."""
        before, self.sight = self.sight, sight
        record = None if sight is None else sight.record
        if not self.known or record != (None if before is None else before.record):
            self._changed(before, record, now)
        self.known = True
        if record is not None and record in self._written:
            self._take(record)
        elif not self.ours:
            self._until = None

    def _changed(self, before: Sight | None, record: LeaseRecord | None, now: Moment) -> None:
        named = record is not None and record.holder != ""
        if record is not None and record.released:
            self._free_at = now
        elif record is None and not self.known:
            self._free_at = _NEVER  # there never was one, as far as anybody can tell
        elif self.held(now) and not named:
            self._free_at = now  # spoiled under our hands: nobody else can have held it since
        else:
            said = 0 if record is None else min(record.duration, LONGEST)
            earlier = 0 if before is None else min(before.record.duration, _MORE_PATIENT * self._timing.lease)
            self._free_at = now + max(self._timing.lease, said, earlier)

    # --- what is written ---

    def claim(self, stamp: str, now: Moment) -> LeaseRecord:
        """The record that takes or renews the Lease at wall clock time `stamp`; to be sent now."""
        if self._until is None:
            self._acquired = stamp
        # Two claims never look the same, also when the clock on the wall is set back: others go by the change.
        self._stamped = stamp if stamp > self._stamped else _later(self._stamped)
        record = LeaseRecord(self._identity, self._timing.lease, self._acquired, self._stamped, self._transitions())
        if len(self._written) >= _REMEMBERED:
            del self._written[next(iter(self._written))]
        self._written[record] = now
        self._renounced = False
        return record

    def _transitions(self) -> int:
        if self.sight is None:
            return 0
        seen = self.sight.record.transitions
        after = seen if self.ours else seen + 1
        return after if 0 <= after <= _LARGEST_INT32 else 0

    def confirmed(self, sight: Sight, claim: LeaseRecord, now: Moment) -> None:
        """A claim was answered: it came to be, and the Lease is this."""
        self.observe(Sight(sight.uid, sight.version, claim), now)

    def refused(self, claim: LeaseRecord) -> None:
        """A claim was answered with an error: it did not come to be."""
        self._written.pop(claim, None)

    def _take(self, record: LeaseRecord) -> None:
        sent = self._written[record]
        self._written.clear()
        self._confirmed = record
        if self._renounced:
            return
        if self._until is None:
            self.term += 1
        self._until = sent + self._timing.renew

    def renounce(self, stamp: str) -> LeaseRecord:
        """Act no more; the record that gives the Lease back."""
        self._until = None
        self._renounced = True
        transitions = 0 if self.sight is None else self.sight.record.transitions
        return LeaseRecord("", _RELEASED_SECONDS, stamp, stamp, max(0, min(transitions, _LARGEST_INT32)))


def _later(stamp: str) -> str:
    """A microsecond later."""
    moment = datetime.fromisoformat(stamp) + timedelta(microseconds=1)
    return f"{moment:%Y-%m-%dT%H:%M:%S.%f}Z"
