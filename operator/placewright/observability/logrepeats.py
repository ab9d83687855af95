"""Leaves out repeats of a log line: a few are written as they come, then one a minute, with the number of lines left out.

No line is left out silently: the written lines, and the numbers in them, add up to all.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Final

from placewright.observability.logformat import cut, message_of

#: Lines of a kind that are written as they come: enough to see that it repeats.
FEW: Final = 3
#: Seconds between two written lines of a kind from then on. A kind that was quiet for as long is new again.
SECONDS: Final = 60.0
#: Most kinds that are remembered; beyond it the kind with the oldest last line is forgotten.
MOST_KINDS: Final = 4096
#: Most summaries of forgotten kinds that wait to be written; beyond it they are only counted.
_MOST_FORGOTTEN: Final = 64
_LONGEST_KEY: Final = 512
_ANY: Final = object()


@dataclass(slots=True)
class _Kind:
    """The lines that count as equal.

    Attributes:
        told: lines written since the kind was new.
        last_told: time of the last written line, seconds of the clock.
        last_seen: time of the last line, seconds of the clock.
        left_out: lines left out since `last_told`.
        summary: the record that says so once it is due.
    """

    told: int
    last_told: float
    last_seen: float
    left_out: int = 0
    summary: logging.LogRecord | None = None


class Repeats(logging.Filter):
    """Lets the first few lines of a kind pass, then one a minute.

    Lines are of one kind when logger, level and text are the same. A line may say what it is about instead, with `extra={"about": ...}`.
    Then its text is compared without its arguments. With `None` it is no repeat of any line. Two exceptions that were raised in different
    places are of different kinds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, most: int = MOST_KINDS) -> None:
        """Remember no kinds yet.

        Args:
            clock: seconds, monotonic.
            most: kinds to remember.
        """
        super().__init__()
        self._clock = clock
        self._most = most
        self._kinds: OrderedDict[Hashable, _Kind] = OrderedDict()
        self._forgotten: list[logging.LogRecord] = []
        self._uncounted = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        """Return the number of remembered kinds."""
        return len(self._kinds)

    def filter(self, record: logging.LogRecord) -> bool:
        """Judge whether a record is written. A written one gets `left_out`, the number of equal records before it that were not."""
        if getattr(record, "about", _ANY) is None:
            return True
        key = _key(record)
        with self._lock:
            return self._passes(key, record, self._clock())

    def summaries(self, *, everything: bool = False) -> list[logging.LogRecord]:
        """Make the records that say how many lines were left out, of kinds without a written line for a minute.

        Returns:
            Records to be written.
        """
        with self._lock:
            now = self._clock()
            due = [key for key, kind in self._kinds.items() if everything or now - kind.last_told >= SECONDS]
            told = [record for key in due if (record := self._settle(key, now)) is not None]
            told += self._forgotten
            self._forgotten = []
            if self._uncounted:
                told.append(_made(__name__, logging.WARNING, "lines of many kinds were left out as repeats"))
                told[-1].left_out, self._uncounted = self._uncounted, 0
        return told

    def _passes(self, key: Hashable, record: logging.LogRecord, now: float) -> bool:
        kind = self._kinds.get(key)
        if kind is None or (now - kind.last_seen >= SECONDS and not kind.left_out):
            self._kinds[key] = _Kind(1, now, now)
            self._kinds.move_to_end(key)
            self._forget()
            return True
        self._kinds.move_to_end(key)
        kind.last_seen = now
        if kind.told >= FEW and now - kind.last_told < SECONDS:
            kind.left_out += 1
            kind.summary = kind.summary or _again(record)
            return False
        kind.told += 1
        kind.last_told = now
        record.left_out, kind.left_out, kind.summary = kind.left_out, 0, None
        return True

    def _settle(self, key: Hashable, now: float) -> logging.LogRecord | None:
        """Make the summary of a kind, and forget the kind if it was quiet."""
        kind = self._kinds[key]
        summary = _summary(kind)
        kind.left_out, kind.summary = 0, None
        if summary is not None:
            kind.last_told = now
        if now - kind.last_seen >= SECONDS:
            del self._kinds[key]
        return summary

    def _forget(self) -> None:
        while len(self._kinds) > self._most:
            _, kind = self._kinds.popitem(last=False)
            summary = _summary(kind)
            if summary is None:
                continue
            if len(self._forgotten) < _MOST_FORGOTTEN:
                self._forgotten.append(summary)
            else:
                self._uncounted += kind.left_out


def _key(record: logging.LogRecord) -> Hashable:
    about = getattr(record, "about", _ANY)
    said = _short(message_of(record)) if about is _ANY else (str(record.msg), about)
    return record.name, record.levelno, said, _raised(record)


def _short(text: str) -> Hashable:
    return text if len(text) <= _LONGEST_KEY else (text[:_LONGEST_KEY], hash(text))


def _raised(record: logging.LogRecord) -> Hashable:
    """Return the type of the exception and the line that raised it; None without an exception."""
    if not record.exc_info or record.exc_info[0] is None:
        return None
    kind, _, frames = record.exc_info
    while frames is not None and frames.tb_next is not None:
        frames = frames.tb_next
    where = None if frames is None else (frames.tb_frame.f_code.co_filename, frames.tb_lineno)
    return kind.__module__, kind.__qualname__, where


def _again(record: logging.LogRecord) -> logging.LogRecord:
    """Make the record of a summary. It holds text only, so that it keeps no argument of the original alive."""
    return _made(record.name, record.levelno, f"again: {cut(message_of(record), _LONGEST_KEY)}")


def _summary(kind: _Kind) -> logging.LogRecord | None:
    summary = kind.summary
    if summary is not None:
        summary.created, summary.left_out = time.time(), kind.left_out
    return summary


def _made(name: str, level: int, message: str) -> logging.LogRecord:
    return logging.LogRecord(name, level, "", 0, message, None, None)
