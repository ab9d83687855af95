"""Where log lines go: every logger of the process, Kopf's, aiohttp's and Python's warnings too, through one handler to standard error."""

from __future__ import annotations

import contextlib
import enum
import logging
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from placewright.observability.logformat import JsonFormatter, TextFormatter
from placewright.observability.logrepeats import Repeats
from placewright.observability.logwriter import BackgroundHandler

_STDERR: Final = 2


class LogFormat(enum.StrEnum):
    """kube-scheduler's names for its own."""

    TEXT = "text"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class LogOptions:
    """How to log.

    Attributes:
        level: of Python's logging.
    """

    format: LogFormat = LogFormat.TEXT
    level: int = logging.INFO


@contextlib.contextmanager
def logging_to_stderr(options: LogOptions = LogOptions(), descriptor: int | None = None) -> Iterator[None]:
    """While open, everything that is logged is written to standard error, or to another file descriptor; all of it, when it ends."""
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


def _formatter(form: LogFormat, descriptor: int) -> logging.Formatter:
    if form is LogFormat.JSON:
        return JsonFormatter()
    return TextFormatter(colours=os.isatty(descriptor) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb")


def _stderr() -> int:
    """Its descriptor, also where something else stands in for it."""
    try:
        return sys.stderr.fileno()
    except (AttributeError, OSError, ValueError):
        return _STDERR
