"""Log records made by hand, and what was written to a pipe."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import strategies as st

#: Any text, halves of surrogate pairs and control characters included.
hostile = st.text(st.characters(), max_size=40) | st.sampled_from(
    ["a\nb", "\r\x1b[2J", "\u202egnp.exe", "\x9b31m", "\x7f", "\ud800", "\u2028", "\x00", '"', "\\n", "a b=c", "", "名前"]
)


def record(message: object = "said", *args: object, level: int = logging.INFO, name: str = "test", **extra: Any) -> logging.LogRecord:
    made = logging.LogRecord(name, level, "", 0, message, args or None, None)
    made.created = 1_700_000_000.123456
    for key, value in extra.items():
        setattr(made, key, value)
    return made


class Pipe:
    """A pipe whose other end reads when it is told to."""

    def __init__(self) -> None:
        self.reading, self.writing = os.pipe()
        self._read = bytearray()
        self._reader: threading.Thread | None = None

    def read_on(self) -> None:
        """From now on, until the writing end is closed."""
        self._reader = threading.Thread(target=self._all)
        self._reader.start()

    def _all(self) -> None:
        while data := os.read(self.reading, 65536):
            self._read += data

    def lines(self) -> list[str]:
        """All that was written; the writing end is closed by this."""
        if self._reader is None:
            self.read_on()
        os.close(self.writing)
        assert self._reader is not None
        self._reader.join()
        return self._read.decode().splitlines()


@contextmanager
def raised(problem: Exception) -> Iterator[Any]:
    """The `exc_info` of an exception that was raised just here."""
    with pytest.raises(type(problem)) as caught:
        raise problem
    yield (caught.type, caught.value, caught.tb)
