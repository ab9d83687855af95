"""Whose the Lease is and until when: the rule, without clocks or network of its own.

It is client-go's, with three things made stricter. A record holds for as long as it says **from when we last saw it change**, on our
monotonic clock; the times that its writer put into it are never read, so clocks may differ by minutes. Whoever holds it may act until the
renew deadline after the **sending** of the last renewal that was confirmed, which is before anybody else's patience ends. Stricter:

- Nobody waits less than for his own duration, whatever the record says.
- Only a record that says that it was released (no holder, one second) may be taken at once. One that was emptied, deleted or garbled by
  hand may still be somebody's who has not noticed: it is waited for.
- A record that claims to hold for more than `LONGEST` is taken to hold for that: it must not lock everybody out for good.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

#: Seconds on our monotonic clock.
Moment = float

#: No record is believed to hold for longer, in seconds.
LONGEST: Final = 3600
_NEVER: Final = float("-inf")
_RELEASED_SECONDS: Final = 1
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

    @classmethod
    def of(cls, lifetime: int) -> Timing:
        """For a leader that keeps its lead for `lifetime` seconds after it vanished, in kube-scheduler's proportions (15, 10, 2)."""
        return cls(lifetime, lifetime * 2 / 3, lifetime * 2 / 15)


@dataclass(frozen=True, slots=True)
class Record:
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
    record: Record


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
        #: What we wrote without knowing yet whether it came to be, and when that was sent.
        self._pending: tuple[Record, Moment] | None = None
        self._until: Moment | None = None
        self._acquired = ""
        self._renewed = ""

    # --- what follows from it ---

    @property
    def ours(self) -> bool:
        """Whether the Lease, as last seen, names us."""
        return self.sight is not None and self.sight.record.holder == self._identity

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
        return self._pending is not None

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
        if self._pending is not None and record == self._pending[0]:
            self._take(self._pending[1])
        elif not self.ours:
            self._until = None

    def _changed(self, before: Sight | None, record: Record | None, now: Moment) -> None:
        named = record is not None and record.holder != ""
        if record is not None and record.released:
            self._free_at = now
        elif record is None and not self.known:
            self._free_at = _NEVER  # there never was one, as far as anybody can tell
        elif self.held(now) and not named:
            self._free_at = now  # spoiled under our hands: nobody else can have held it since
        else:
            said = 0 if record is None else record.duration
            earlier = 0 if before is None or named else before.record.duration
            self._free_at = now + max(self._timing.lease, min(max(said, earlier), LONGEST))

    # --- what is written ---

    def claim(self, stamp: str) -> Record:
        """The record that takes or renews the Lease at wall clock time `stamp`."""
        if not (self.ours and self._acquired):
            self._acquired = stamp
        if stamp == self._renewed:
            stamp = _another(stamp)
        self._renewed = stamp
        return Record(self._identity, self._timing.lease, self._acquired, stamp, self._transitions())

    def _transitions(self) -> int:
        if self.sight is None:
            return 0
        seen = self.sight.record.transitions
        after = seen if self.ours else seen + 1
        return after if 0 <= after <= _LARGEST_INT32 else 0

    def sending(self, record: Record, now: Moment) -> None:
        """A claim is being sent, from now on."""
        self._pending = record, now

    def confirmed(self, sight: Sight, sent: Moment, now: Moment) -> None:
        """A claim that was sent then was answered: the Lease is this."""
        self._pending = sight.record, sent
        self.observe(sight, now)

    def refused(self) -> None:
        """The claim was answered with an error: it did not come to be."""
        self._pending = None

    def _take(self, sent: Moment) -> None:
        if self._until is None:
            self.term += 1
        self._until = sent + self._timing.renew
        self._pending = None

    def renounce(self, stamp: str) -> Record:
        """Act no more; the record that gives the Lease back."""
        self._until = self._pending = None
        self._acquired = ""
        transitions = 0 if self.sight is None else self.sight.record.transitions
        return Record("", _RELEASED_SECONDS, stamp, stamp, max(0, min(transitions, _LARGEST_INT32)))


def _another(stamp: str) -> str:
    """A stamp that differs in its last microsecond: two claims must never look the same."""
    last = stamp[-2]
    return f"{stamp[:-2]}{'1' if last == '0' else '0'}Z"
