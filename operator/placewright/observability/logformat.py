"""Formats a log record as a line for a person, or as a JSON object. No content of a record can make it look like two records.

Pods' names, labels and messages are text of any user. Huge text is cut. A character is escaped if it could begin a line, move a cursor or
turn the direction of reading.
"""

from __future__ import annotations

import json
import logging
import math
import re
import traceback
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final

from placewright.api.bad_input import printable

#: Most characters of a message, a field, and an exception's traceback. The traceback's end is kept, because it has the error.
LONGEST_MESSAGE: Final = 8192
LONGEST_FIELD: Final = 2048
LONGEST_EXCEPTION: Final = 16384
#: Most entries of a field that is a list or a mapping.
MOST_ENTRIES: Final = 64

_TRACEBACK: Final = "Traceback (most recent call last):"
#: A value that needs no quotes after `key=`.
_BARE: Final = re.compile(r"[!#-\[\]-~]+")
#: Digits of a second.
_MILLIS: Final = 3
_MICROS: Final = 6
_RESERVED: Final = frozenset({"ts", "level", "logger", "msg", "exception"})
_COLOURS: Final[Mapping[str, str]] = {
    "DEBUG": "\x1b[2m", "WARNING": "\x1b[33m", "ERROR": "\x1b[31m", "CRITICAL": "\x1b[1;31m",
}  # fmt: skip
_PLAIN: Final = "\x1b[0m"
#: Bits up to which an integer is written whole: Python refuses to spell a huge one.
_SHORT_INTEGER: Final = 64
_encode: Final = json.JSONEncoder(allow_nan=False).encode


def cut(text: str, longest: int) -> str:
    """Cut a text.

    Args:
        text: text of any length.
        longest: characters that are kept.

    Returns:
        The text, or its beginning with the number of its characters.
    """
    return text if len(text) <= longest else f"{text[:longest]}... ({len(text)} characters)"


def message_of(record: logging.LogRecord) -> str:
    """Return the record's message, cut. Arguments that do not fit its text are written beside it."""
    try:
        return cut(record.getMessage(), LONGEST_MESSAGE)
    except Exception:  # noqa: BLE001 - a wrong call of a logger must not lose its line
        return cut(f"{_spelled(record.msg)} (arguments that do not fit: {_spelled(record.args)})", LONGEST_MESSAGE)


def exception_of(record: logging.LogRecord) -> str:
    """Return the record's traceback and stack, cut; empty if it has neither."""
    said = record.exc_text or ""
    if not said and record.exc_info and record.exc_info[1] is not None:
        said = _traceback_of(record.exc_info[1])
    said = "\n".join(str(each) for each in (said, record.stack_info) if each)
    if len(said) > LONGEST_EXCEPTION:
        said = f"{_TRACEBACK}\n  ... ({len(said)} characters in all)\n{said[-LONGEST_EXCEPTION:]}"
    return said.rstrip()


def fields_of(record: logging.LogRecord) -> dict[str, Any]:
    """Return the fields of a record beside its message.

    They are those of `extra={"fields": {...}}`, the number of equal lines that were left out before it, and, of Kopf's lines, their object.
    """
    fields = dict(getattr(record, "fields", ()))
    reference = getattr(record, "k8s_ref", None)
    if reference is not None and isinstance(reference, Mapping):
        name, namespace = reference.get("name"), reference.get("namespace")
        fields |= {"kind": reference.get("kind"), "object": f"{namespace}/{name}" if namespace else name}
    if left_out := getattr(record, "left_out", 0):
        fields["left_out"] = left_out
    return fields


class TextFormatter(logging.Formatter):
    """Writes `TIME LEVEL LOGGER: MESSAGE key=value ...`, and below it the traceback, indented so that no line of it looks like a record.

    Times are UTC with milliseconds.
    """

    def __init__(self, *, colours: bool = False) -> None:
        super().__init__()
        self._colours = colours

    def format(self, record: logging.LogRecord) -> str:
        """Format a record as lines, without the last line end."""
        when = _timestamp(record.created, _MILLIS)
        level = record.levelname
        if self._colours and level in _COLOURS:
            level = f"{_COLOURS[level]}{level}{_PLAIN}"
        line = f"{when} {level} {printable(record.name)}: {printable(message_of(record))}"
        for key, value in fields_of(record).items():
            name = key if isinstance(key, str) else str(key)
            line += f" {printable(name)}={_text(value)}"
        exception = exception_of(record)
        return f"{line}\n{_indented(exception)}" if exception else line


class JsonFormatter(logging.Formatter):
    """Writes an object a line: `ts` (RFC 3339, UTC, microseconds), `level`, `logger`, `msg`, fields, `exception`.

    The line is ASCII, and so valid UTF-8 with any content.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Format a record as one line, without its end."""
        entry: dict[str, Any] = {
            "ts": _timestamp(record.created, _MICROS),
            "level": record.levelname.lower(),
            "logger": _clean(record.name),
            "msg": _clean(message_of(record)),
        }
        for key, value in fields_of(record).items():
            name = _clean(str(key))
            entry[f"field_{name}" if name in _RESERVED else name] = _plain(value)
        exception = exception_of(record)
        if exception:
            entry["exception"] = _clean(exception)
        return _encode(entry)


def _timestamp(seconds: float, digits: int) -> str:
    fraction, whole = math.modf(seconds)
    more, micros = divmod(round(fraction * 1_000_000), 1_000_000)
    return f"{_to_the_second(int(whole) + more)}.{f'{micros:06d}'[:digits]}Z"


@lru_cache(maxsize=4)
def _to_the_second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None).isoformat()


def _traceback_of(problem: BaseException) -> str:
    try:
        return "".join(traceback.format_exception(problem))
    except Exception as worse:  # noqa: BLE001 - an exception whose text breaks is no reason to lose the line
        return f"{type(problem).__name__}: its traceback cannot be written ({type(worse).__name__})"


def _indented(exception: str) -> str:
    """Indent a traceback but for its constant first line, so that no exception's message can be taken for a record."""
    return "\n".join(line if line == _TRACEBACK else f"  {printable(line)}" for line in exception.split("\n"))


def _spelled(value: object) -> str:
    try:
        return repr(value)
    except Exception:  # noqa: BLE001 - an object of any library
        return f"a {type(value).__name__}"


def _text(value: object) -> str:
    """Write a field's value for a person: bare if it has plain characters only, otherwise in quotes."""
    if isinstance(value, str):
        return _quoted(value)
    if type(value) is int and value.bit_length() <= _SHORT_INTEGER:
        return repr(value)
    if value is None:
        return "none"
    if isinstance(value, float):
        return f"{value:.3f}".rstrip("0").rstrip(".") if math.isfinite(value) else str(value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        value = ", ".join(f"{key} {_text(each)}" for key, each in list(value.items())[:MOST_ENTRIES])
    elif isinstance(value, list | tuple | set | frozenset):
        value = ",".join(map(str, list(value)[:MOST_ENTRIES]))
    return _quoted(value if isinstance(value, str) else _spelled(value))


def _quoted(text: str) -> str:
    text = cut(text, LONGEST_FIELD)
    if _BARE.fullmatch(text):
        return text
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{printable(quoted)}"'


def _plain(value: object) -> Any:
    """Convert a field's value for JSON: cut, with numbers that JSON has not as texts."""
    if isinstance(value, str):
        return _clean(cut(value, LONGEST_FIELD))
    if value is None or isinstance(value, int):  # True and False are
        return value
    if isinstance(value, float):
        return round(value, 3) if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {_clean(str(key)): _plain(each) for key, each in list(value.items())[:MOST_ENTRIES]}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(each) for each in list(value)[:MOST_ENTRIES]]
    return _clean(cut(_spelled(value), LONGEST_FIELD))


def _clean(text: str) -> str:
    """Write halves of surrogate pairs as visible escapes, because strict readers of JSON refuse them."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")
