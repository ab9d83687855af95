"""Sends the lines of all loggers, and Python's warnings, through one handler to standard error.

A thread of the standard library's `QueueListener` writes, so that a slow reader delays no caller of a logger. The queue is bounded. Lines
beyond are dropped and counted. Once there is room, a line says how many.
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
from collections.abc import Iterator
from dataclasses import dataclass
from logging.handlers import QueueHandler, QueueListener
from typing import Any, Final

import aiohttp

from placewright.kube.errors import AWAY, Unreachable
from placewright.observability.logformat import JsonFormatter, TextFormatter, exception_of, message_of
from placewright.observability.logrepeats import Repeats

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
    """Lower a record to `DEBUG` if it says only that the API server did not answer, which `kube.retry.AwayNotice` logs once.

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
