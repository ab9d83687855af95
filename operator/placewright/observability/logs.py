"""Sends the lines of all loggers, and Python's warnings, through one handler to standard error.

A thread of the standard library's `QueueListener` writes, so that a slow reader delays no caller of a logger. The queue is bounded. Lines
beyond are dropped and counted. Once there is room, a line says how many.

Repeats of a log line are left out: a few are written as they come, then one a minute, with the number of lines left out.

No line is left out silently: the written lines, and the numbers in them, add up to all.
"""

from __future__ import annotations

import contextlib
import copy
import enum
import logging
import os
import queue
import select
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from logging.handlers import QueueHandler, QueueListener
from typing import Any, Final

import aiohttp

from placewright.kube.errors import AWAY, Unreachable
from placewright.observability.logformat import JsonFormatter, TextFormatter, cut, exception_of, message_of

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


#: Most records that wait to be written.
MOST_WAITING: Final = 10_000
#: Seconds for which the end waits for queued lines, and for which a critical line waits to be written.
END_SECONDS: Final = 2.0
LAST_WORDS_SECONDS: Final = 1.0
#: Seconds between two looks at the lines that were left out.
_BEAT_SECONDS: Final = 5.0
#: Seconds for which lines gather after a write. A thread that wakes for each line takes the interpreter from the event loop each time.
_GATHER_SECONDS: Final = 0.05
#: Most records in one write.
_BATCH: Final = 256
_STDERR: Final = 2
#: A mark in the queue: write the summaries of all lines that were left out.
_END: Final = object()


class LogFormat(enum.StrEnum):
    """kube-scheduler's names for its own."""

    TEXT = "text"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class LogOptions:
    """The options of the log.

    Attributes:
        format: format of a line.
        level: level of Python's logging.
    """

    format: LogFormat = LogFormat.TEXT
    level: int = logging.INFO


@contextlib.contextmanager
def logging_to_stderr(options: LogOptions = LogOptions(), descriptor: int | None = None) -> Iterator[None]:
    """Write all log lines to a file descriptor while the block runs, and the queued ones at its end.

    Args:
        options: options of the log.
        descriptor: None for standard error.
    """
    target = _stderr() if descriptor is None else descriptor
    handler = BackgroundHandler(target, _formatter(options.format, target), Repeats())
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(options.level)
    logging.captureWarnings(True)
    try:
        yield
    finally:
        logging.captureWarnings(False)
        root.setLevel(level)
        root.removeHandler(handler)
        handler.close()


class BackgroundHandler(QueueHandler):
    """Puts records on a bounded queue that a thread writes to a file descriptor.

    Args:
        descriptor: written to, and not closed.
        formatter: makes a record's text, in the thread.
        repeats: leaves out repeats and makes their summaries.
        most: records that may wait.
    """

    def __init__(self, descriptor: int, formatter: logging.Formatter, repeats: Repeats, most: int = MOST_WAITING) -> None:
        # Not `queue.Queue`: the event loop's thread would wait for a lock that the writing thread holds.
        waiting: queue.SimpleQueue[Any] = queue.SimpleQueue()
        super().__init__(waiting)
        self._waiting = waiting
        self.addFilter(_lower_known_absence)
        self.addFilter(repeats)
        self._most = most
        self._closed = False
        self._writer = _Writer(waiting, descriptor, formatter, repeats)
        self._writer.start()

    def handle(self, record: logging.LogRecord) -> bool:
        """Queue a record. A critical one may be the last, so this waits for a moment until it is written."""
        taken = bool(super().handle(record))
        if record.levelno >= logging.CRITICAL:
            self.flush(LAST_WORDS_SECONDS)
        return taken

    def emit(self, record: logging.LogRecord) -> None:
        """Put the record on the queue, or count it as dropped."""
        if self._closed or self._waiting.qsize() >= self._most:
            self._writer.dropped += _stands_for(record)
        else:
            super().emit(record)

    def prepare(self, record: logging.LogRecord) -> logging.LogRecord:
        """Format the record now: the objects of its arguments and its traceback may change, or be large."""
        if not record.args and not record.exc_info and not record.stack_info:
            return record
        settled = copy.copy(record)
        settled.msg, settled.args = message_of(record), None
        settled.exc_text, settled.exc_info, settled.stack_info = exception_of(record), None, None
        return settled

    def flush(self, seconds: float = END_SECONDS) -> None:
        """Wait until all lines logged so far are written, at most so many seconds."""
        if self._writer.thread.is_alive() and threading.current_thread() is not self._writer.thread:
            written = threading.Event()
            self._waiting.put(written)
            with self._writer.hurrying():
                written.wait(seconds)

    def close(self) -> None:
        """Write the queued lines and end the thread. A reader that reads nothing is given up after `END_SECONDS`."""
        self.acquire()
        try:
            first, self._closed = not self._closed, True
        finally:
            self.release()
        if first:
            self._waiting.put(_END)  # behind all queued records
            self._writer.enqueue_sentinel()
            with self._writer.hurrying():
                self._writer.thread.join(END_SECONDS)
        super().close()


class _Writer(QueueListener):
    """Writes queued records, as many in one write as there are.

    Attributes:
        dropped: lines that found no room in the queue.
        unwritten: lines whose write failed, until a line has said so.
    """

    def __init__(self, waiting: queue.SimpleQueue[Any], descriptor: int, formatter: logging.Formatter, repeats: Repeats) -> None:
        super().__init__(waiting)
        self._waiting = waiting
        self.dropped = 0
        self.unwritten = 0
        self._told_dropped = 0
        self._descriptor = descriptor
        self._formatter = formatter
        self._repeats = repeats
        self._batch: list[logging.LogRecord] = []
        #: Set while a caller waits for its lines to be written.
        self._hurry = threading.Event()
        self._next_beat = time.monotonic() + _BEAT_SECONDS

    @property
    def thread(self) -> threading.Thread:
        """The thread that writes. It is not joined by `stop`, which would wait for ever for a reader that reads nothing."""
        assert self._thread is not None, "started"
        return self._thread

    @contextlib.contextmanager
    def hurrying(self) -> Iterator[None]:
        """Write lines as they come for as long as the block runs."""
        self._hurry.set()
        try:
            yield
        finally:
            self._hurry.clear()

    def dequeue(self, block: bool) -> Any:
        """Get the next item of the queue, and write the summaries of repeats at every beat meanwhile."""
        while True:
            try:
                return self._waiting.get(block, max(0.0, self._next_beat - time.monotonic()))
            except queue.Empty:
                self._next_beat = time.monotonic() + _BEAT_SECONDS
                self._write(self._repeats.summaries())

    def handle(self, item: Any) -> None:
        """Write a record with the gathered ones before it. An `Event` in the queue is set once all records before it are written."""
        if isinstance(item, logging.LogRecord):
            self._batch.append(item)
            if len(self._batch) < _BATCH and not self._waiting.empty():
                return
        batch, self._batch = self._batch, []
        self._write(batch)
        if item is _END:
            self._write(self._repeats.summaries(everything=True))
        elif isinstance(item, threading.Event):
            item.set()
        elif len(batch) < _BATCH:
            self._hurry.wait(_GATHER_SECONDS)

    def _write(self, records: list[logging.LogRecord]) -> None:
        """Write records, and the notices about lines that were dropped or could not be written."""
        dropped, notices = self.dropped, []
        if dropped > self._told_dropped:
            notices.append(_own(logging.WARNING, "%d log lines were dropped: their reader is too slow", dropped - self._told_dropped))
        if self.unwritten:
            notices.append(_own(logging.WARNING, "%d log lines could not be written", self.unwritten))
        if not records and not notices:
            return
        lines = "".join(map(self._line, (*records, *notices)))
        try:
            _write_bytes(self._descriptor, lines.encode("utf-8", "backslashreplace"))
        except OSError:
            self.unwritten += sum(map(_stands_for, records))
        else:
            self._told_dropped, self.unwritten = dropped, 0

    def _line(self, record: logging.LogRecord) -> str:
        try:
            return f"{self._formatter.format(record)}\n"
        except Exception as problem:  # noqa: BLE001 - the thread must live
            why = type(problem).__name__
            return f"{self._formatter.format(_own(logging.ERROR, 'a record of logger %s cannot be written: %s', record.name, why))}\n"


def _lower_known_absence(record: logging.LogRecord) -> bool:
    """Lower a record to `DEBUG` if it says only that the API server did not answer, which `kube.errors.AwayNotice` logs once.

    These are informative lines about a request of ours, and Kopf's lines about each attempt of a request. Kopf logs an attempt while it
    handles the error, and writes only the text of the error into the record.

    Returns:
        Whether the record is written.
    """
    if record.name.startswith("kopf."):
        lowered = not record.exc_info and _unanswered(sys.exception())
    else:
        lowered = (
            record.levelno == logging.INFO and isinstance(record.args, tuple) and any(isinstance(each, Unreachable) for each in record.args)
        )
    if lowered:
        record.levelno, record.levelname = logging.DEBUG, logging.getLevelName(logging.DEBUG)
    return not lowered or logging.getLogger().isEnabledFor(logging.DEBUG)


def _unanswered(problem: BaseException | None) -> bool:
    """Whether a request of Kopf met no API server; a refusal is none of that."""
    return isinstance(problem, (aiohttp.ClientConnectionError, TimeoutError)) or getattr(problem, "status", None) in AWAY


def _formatter(form: LogFormat, descriptor: int) -> logging.Formatter:
    if form is LogFormat.JSON:
        return JsonFormatter()
    return TextFormatter(colours=os.isatty(descriptor) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb")


def _stderr() -> int:
    """Return the file descriptor of standard error, also if `sys.stderr` is another object."""
    try:
        return sys.stderr.fileno()
    except (AttributeError, OSError, ValueError):
        return _STDERR


def _own(level: int, message: str, *args: object) -> logging.LogRecord:
    return logging.LogRecord(__name__, level, "", 0, message, args, None)


def _stands_for(record: logging.LogRecord) -> int:
    """Return the number of lines that a record stands for: its own, and the ones it says were left out."""
    return 1 + int(getattr(record, "left_out", 0))


def _write_bytes(descriptor: int, data: bytes) -> None:
    """Write all bytes, also to a pipe that takes little at a time, or that another process made non-blocking."""
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(descriptor, rest) :]
        except BlockingIOError:
            select.select([], [descriptor], [])
