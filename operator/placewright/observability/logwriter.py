"""Writes log lines from a thread of its own, so that whoever reads them slowly, or not at all, holds up nobody who logs.

What waits to be written is bounded; lines beyond are dropped, counted, and told as soon as there is room again.
"""

from __future__ import annotations

import copy
import logging
import os
import queue
import select
import threading
import time
from typing import Final

from placewright.observability.logformat import exception_of, message_of
from placewright.observability.logrepeats import Repeats

#: Records that may wait.
MOST_WAITING: Final = 10_000
#: How long the end waits for what has not been written yet, seconds; and how long a line does that may be the last one.
END_SECONDS: Final = 2.0
LAST_WORDS_SECONDS: Final = 1.0
#: How often what was left out is looked through, seconds.
_BEAT_SECONDS: Final = 5.0
#: Records written at once, at most.
_BATCH: Final = 256

_Waiting = logging.LogRecord | threading.Event | None


class BackgroundHandler(logging.Handler):
    """Puts records on a bounded queue that a thread writes to a file descriptor.

    Args:
        descriptor: where to; it is not closed.
        formatter: makes a record's text, in the thread.
        repeats: what is left out, and told later.
        most: records that may wait.
    """

    def __init__(self, descriptor: int, formatter: logging.Formatter, repeats: Repeats, most: int = MOST_WAITING) -> None:
        super().__init__()
        self.setFormatter(formatter)
        self.addFilter(repeats)
        self._descriptor = descriptor
        self._repeats = repeats
        self._most = most
        # Not `queue.Queue`: the loop's thread would take part in a lock that the other one waits with.
        self._waiting: queue.SimpleQueue[_Waiting] = queue.SimpleQueue()
        self._dropped = 0
        self._told_dropped = 0
        self._unwritten = 0
        self._closed = False
        self._thread = threading.Thread(target=self._write_all, name="log", daemon=True)
        self._thread.start()

    # --- in the thread of whoever logs ------------------------------------------------------------------------------------------

    def handle(self, record: logging.LogRecord) -> bool:
        """As every handler; a critical record may be the last one, and is waited for, for a moment."""
        taken = bool(super().handle(record))
        if record.levelno >= logging.CRITICAL:
            self.flush(LAST_WORDS_SECONDS)
        return taken

    def emit(self, record: logging.LogRecord) -> None:
        """Put the record on the queue, or count it as dropped."""
        if self._closed or self._waiting.qsize() >= self._most:
            self._dropped += _stands_for(record)
        else:
            self._waiting.put(_settled(record))

    def flush(self, seconds: float = END_SECONDS) -> None:
        """Wait until what was logged so far is written, for so many seconds at most."""
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            written = threading.Event()
            self._waiting.put(written)
            written.wait(seconds)

    def close(self) -> None:
        """Write what waits, and end; a reader that reads nothing is given up on after `END_SECONDS`."""
        self.acquire()
        try:
            first, self._closed = not self._closed, True
        finally:
            self.release()
        if first:
            self._waiting.put(None)  # behind all that was taken
            self._thread.join(END_SECONDS)
        super().close()

    # --- in the thread that writes ----------------------------------------------------------------------------------------------

    def _write_all(self) -> None:
        next_beat = time.monotonic() + _BEAT_SECONDS
        while True:
            try:
                first = self._waiting.get(timeout=max(0.0, next_beat - time.monotonic()))
            except queue.Empty:
                next_beat = time.monotonic() + _BEAT_SECONDS
                self._write(self._repeats.summaries())
                continue
            if self._write_batch(first):
                self._write(self._repeats.summaries(everything=True))
                return

    def _write_batch(self, first: _Waiting) -> bool:
        """Write what waits, up to a limit, in one go; True when the end has come."""
        records: list[logging.LogRecord] = []
        waited_for: list[threading.Event] = []
        each = first
        while True:
            if isinstance(each, logging.LogRecord):
                records.append(each)
            elif each is not None:
                waited_for.append(each)
            if each is None or len(records) >= _BATCH or self._waiting.empty():
                break
            each = self._waiting.get()
        self._write(records)
        for event in waited_for:
            event.set()
        return each is None

    def _write(self, records: list[logging.LogRecord]) -> None:
        """Write the records, and what is to be said about those that were not."""
        dropped, notices = self._dropped, []
        if dropped > self._told_dropped:
            notices.append(_own(logging.WARNING, "%d log lines were dropped: whoever reads them is too slow", dropped - self._told_dropped))
        if self._unwritten:
            notices.append(_own(logging.WARNING, "%d log lines could not be written", self._unwritten))
        if not records and not notices:
            return
        lines = "".join(map(self._line, (*records, *notices)))
        try:
            _write_bytes(self._descriptor, lines.encode("utf-8", "backslashreplace"))
        except OSError:
            self._unwritten += sum(map(_stands_for, records))
        else:
            self._told_dropped, self._unwritten = dropped, 0

    def _line(self, record: logging.LogRecord) -> str:
        try:
            return f"{self.format(record)}\n"
        except Exception as problem:  # noqa: BLE001 - the thread must live
            why = type(problem).__name__
            return f"{self.format(_own(logging.ERROR, 'a record of logger %s cannot be written: %s', record.name, why))}\n"


def _settled(record: logging.LogRecord) -> logging.LogRecord:
    """The record as it reads now; what its arguments and its traceback hold may change, or be large."""
    if not record.args and not record.exc_info and not record.stack_info:
        return record
    settled = copy.copy(record)
    settled.msg, settled.args = message_of(record), None
    settled.exc_text, settled.exc_info, settled.stack_info = exception_of(record), None, None
    return settled


def _own(level: int, message: str, *args: object) -> logging.LogRecord:
    return logging.LogRecord(__name__, level, "", 0, message, args, None)


def _stands_for(record: logging.LogRecord) -> int:
    """How many lines: the record's own, and those that it tells were left out."""
    return 1 + int(getattr(record, "left_out", 0))


def _write_bytes(descriptor: int, data: bytes) -> None:
    """All of it, also to a pipe that takes little at a time, or that somebody made non-blocking."""
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(descriptor, rest) :]
        except BlockingIOError:
            select.select([], [descriptor], [])
