"""The rule of the Lease: its holder, and until when. The rule is told the time and has no network.

It is client-go's rule, made stricter. A record holds for its duration **from when we last saw it change**, on our monotonic clock; its
times are never read, so clocks may differ by minutes. The holder may act until the renew deadline, counted from the **sending** of the last
confirmed renewal. That is before the patience of any other replica ends. It is stricter than client-go:

- A replica waits at least for its own duration, however short the record's is.
- Only a record that looks released (no holder, one second) may be taken at once. One that was emptied, deleted or garbled by hand may
  belong to a holder that has not noticed yet: it is waited for.
- A record that names us, but that we did not write, is not ours.
- A record that claims to hold for more than `LONGEST` is believed for that long only: it must not lock all replicas out for ever.

The clock of Lease and peering counts the time in which the machine was suspended (`real_seconds`). Linux' monotonic clock does not: a
leader that wakes up would believe that no time has passed, and act until its renewals fail.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

#: Seconds on our monotonic clock.
Moment = float
#: Only Linux has CLOCK_BOOTTIME; other systems use the monotonic clock.
_BOOT_CLOCK: Final[int] = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def real_seconds() -> float:
    """Read a clock that never goes back, and that goes on while the machine is suspended.

    Returns:
        Seconds; only differences mean anything.
    """
    return time.clock_gettime(_BOOT_CLOCK)


#: Longest duration that a record is believed to hold, in seconds.
LONGEST: Final = 3600
_NEVER: Final = float("-inf")
_RELEASED_SECONDS: Final = 1
#: The holder of a Lease that was spoiled may have a duration that is so many times ours.
_MORE_PATIENT: Final = 4
#: Claims of unknown outcome that are remembered.
_REMEMBERED: Final = 8
_LARGEST_INT32: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Timing:
    """The durations of the Lease, in seconds.

    Attributes:
        lease: seconds that others wait after the last change that they saw; whole ones, as in the API.
        renew: seconds that the holder acts after it sent a renewal that was confirmed; less than `lease`.
        retry: between two attempts.
    """

    lease: int = 15
    renew: float = 10.0
    retry: float = 2.0

    def __post_init__(self) -> None:
        """Raise `ValueError` for durations that would admit two holders, or that others would not believe."""
        if not (0 < self.retry < self.renew < self.lease <= LONGEST):
            raise ValueError(f"found {self}; allowed 0 < retry < renew < lease <= {LONGEST}")

    @property
    def gap(self) -> float:
        """Seconds between the holder's last moment and the next holder's first; requests that were sent in time must end within them."""
        return self.lease - self.renew

    @classmethod
    def of(cls, lifetime: int) -> Timing:
        """Build the durations from one, in kube-scheduler's proportions (15, 10, 2).

        Args:
            lifetime: seconds that a leader keeps its lead after it vanished.

        Raises:
            ValueError: the lifetime is too short or too long.
        """
        return cls(lifetime, lifetime * 2 / 3, lifetime * 2 / 15)


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """The content of a Lease.

    Attributes:
        holder: identity; empty for none.
        duration: seconds; 0 if it is not set.
        acquired, renewed: RFC 3339 with microseconds; only compared for equality.
        transitions: number of changes of the holder.
        garbled: the record's bytes, if it cannot be read.
    """

    holder: str = ""
    duration: int = 0
    acquired: str = ""
    renewed: str = ""
    transitions: int = 0
    garbled: bytes = b""

    @property
    def released(self) -> bool:
        """True when its holder gave it back properly."""
        return not self.holder and self.duration == _RELEASED_SECONDS and not self.garbled


@dataclass(frozen=True, slots=True)
class Sight:
    """A Lease as it was seen: the object, its version, and its record."""

    uid: str
    version: str
    record: LeaseRecord


class Tenure:
    """One replica's knowledge about the Lease, and its right to act.

    Attributes:
        sight: the Lease as last seen; None when there is none.
        known: whether the Lease was looked for at all.
        term: number of times that we took it.
        until: when we must stop acting without another renewal; None when we may not act.
        free_at: when we may try to take a Lease that is not ours.
        renounced: True when we gave the Lease up, or never claimed it.
    """

    def __init__(self, identity: str, timing: Timing) -> None:
        self.sight: Sight | None = None
        self.known = False
        self.term = 0
        self._identity = identity
        self._timing = timing
        self.free_at: Moment = _NEVER
        #: Records that we wrote since the last confirmed one, and when each was sent.
        self._written: dict[LeaseRecord, Moment] = {}
        self._confirmed: LeaseRecord | None = None
        self.renounced = True
        self.until: Moment | None = None
        self._acquired = ""
        self._stamped = ""

    # --- answers ---

    @property
    def ours(self) -> bool:
        """True when the Lease, as last seen, names us."""
        return self.sight is not None and self.sight.record.holder == self._identity

    def may_claim(self, now: Moment) -> bool:
        """Whether we may try to take or renew the Lease: we wrote it ourselves, or no replica can be acting on it any more.

        Returns:
            True when we may.
        """
        genuine = self.sight is not None and self.sight.record == self._confirmed
        return genuine or self.held(now) or self.free_at <= now

    @property
    def doubtful(self) -> bool:
        """True when a record was written whose outcome is unknown."""
        return bool(self._written)

    def held(self, now: Moment) -> bool:
        """Whether we may act. Cheap, because it is asked before every request.

        Returns:
            True until the renew deadline after the last confirmed renewal.
        """
        return self.until is not None and now < self.until

    # --- observations ---

    def observe(self, sight: Sight | None, now: Moment) -> None:
        """Take in the Lease as it is.

        Args:
            sight: the Lease; None when there is none.
            now: monotonic seconds.
        """
        before, self.sight = self.sight, sight
        record = None if sight is None else sight.record
        if not self.known or record != (None if before is None else before.record):
            self._changed(before, record, now)
        self.known = True
        if record is not None and record in self._written:
            self._take(record)
        elif not self.ours:
            self.until = None

    def _changed(self, before: Sight | None, record: LeaseRecord | None, now: Moment) -> None:
        named = record is not None and record.holder != ""
        if record is not None and record.released:
            self.free_at = now
        elif record is None and not self.known:
            self.free_at = _NEVER  # no replica can have held a Lease that never existed
        elif self.held(now) and not named:
            self.free_at = now  # spoiled while we held it: no other replica can have taken it since
        else:
            said = 0 if record is None else min(record.duration, LONGEST)
            earlier = 0 if before is None else min(before.record.duration, _MORE_PATIENT * self._timing.lease)
            self.free_at = now + max(self._timing.lease, said, earlier)

    # --- writes ---

    def claim(self, stamp: str, now: Moment) -> LeaseRecord:
        """Build the record that takes or renews the Lease. Send it now.

        Args:
            stamp: wall clock time, RFC 3339 with microseconds.
            now: monotonic seconds.
        """
        if self.until is None:
            self._acquired = stamp
        # Two claims must differ, even after the wall clock was set back: other replicas judge by the change alone.
        self._stamped = stamp if stamp > self._stamped else _later(self._stamped)
        record = LeaseRecord(self._identity, self._timing.lease, self._acquired, self._stamped, self._transitions())
        if len(self._written) >= _REMEMBERED:
            del self._written[next(iter(self._written))]
        self._written[record] = now
        self.renounced = False
        return record

    def _transitions(self) -> int:
        if self.sight is None:
            return 0
        seen = self.sight.record.transitions
        after = seen if self.ours else seen + 1
        return after if 0 <= after <= _LARGEST_INT32 else 0

    def confirmed(self, sight: Sight, claim: LeaseRecord, now: Moment) -> None:
        """Take in the answer to a claim: it was carried out."""
        self.observe(Sight(sight.uid, sight.version, claim), now)

    def refused(self, claim: LeaseRecord) -> None:
        """Take in a refusal of a claim: it was not carried out."""
        self._written.pop(claim, None)

    def _take(self, record: LeaseRecord) -> None:
        sent = self._written[record]
        self._written.clear()
        self._confirmed = record
        if self.renounced:
            return
        if self.until is None:
            self.term += 1
        self.until = sent + self._timing.renew

    def renounce(self, stamp: str) -> LeaseRecord:
        """Stop acting, and build the record that gives the Lease back.

        Args:
            stamp: wall clock time, RFC 3339 with microseconds.
        """
        self.until = None
        self.renounced = True
        transitions = 0 if self.sight is None else self.sight.record.transitions
        return LeaseRecord("", _RELEASED_SECONDS, stamp, stamp, max(0, min(transitions, _LARGEST_INT32)))


def _later(stamp: str) -> str:
    """Return the stamp a microsecond later."""
    moment = datetime.fromisoformat(stamp) + timedelta(microseconds=1)
    return f"{moment:%Y-%m-%dT%H:%M:%S.%f}Z"
