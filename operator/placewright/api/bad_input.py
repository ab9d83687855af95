"""The error for input of a person that cannot be used: one line, fit for a terminal.

The command line turns an `InputError` into `placewright: error: ...` and exit code 2, and shows nothing else about it.
"""

from __future__ import annotations

import json
from typing import Final

_LONGEST_SHOWN: Final = 80
#: Bounds on the values inside a value, and on their levels, that are written out: aliases and nesting make endless text of a short value.
_MOST_WRITTEN: Final = 1000
_DEEPEST_WRITTEN: Final = 50
#: Bits; Python refuses to write longer numbers.
_LONGEST_NUMBER: Final = 10_000


class InputError(Exception):
    """A file, an option or an object is wrong. The message names the place, the value found and the values allowed."""


def bad_field(where: str, found: object, allowed: str) -> InputError:
    """Build the error about one field: `where: found X; allowed Y`."""
    return InputError(f"{where}: found {shown(found)}; allowed {allowed}")


def shown(value: object) -> str:
    """Write a value as one short, printable piece of text: quoted, control characters escaped, cut when long."""
    if value is None:
        return "nothing"
    if isinstance(value, tuple):
        value = list(value)  # a document has lists, and messages show the document's form
    if not _is_written_easily(value):
        return f"{type(value).__name__} with too much in it to be shown"
    return _cut(repr(value), value) if isinstance(value, str) else _cut(ascii(value))


def in_json(value: object) -> str:
    """Write a value as JSON, the form that a person wrote in a document: `"5"`, `true`, `10`.

    Returns:
        The text, printable and cut when long; `nothing` for None.
    """
    if value is None:
        return "nothing"
    if not _is_written_easily(value):
        return shown(value)
    return _cut(printable(json.dumps(_plain(value), ensure_ascii=False, default=str)), value)


def _cut(text: str, value: object = None) -> str:
    """Cut a long text. The number after it counts the characters of `value` if that is text, without quotes and escapes."""
    size = len(value if isinstance(value, str) else text)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}... ({size} characters)"


def _plain(value: object) -> object:
    """Write whole floats as integers and keys as text."""
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(item) for item in value]
    return value


def _is_written_easily(value: object) -> bool:
    """Return whether writing the value takes little time and cannot fail."""
    level: list[object] = [value]
    count = 0
    for _ in range(_DEEPEST_WRITTEN):
        if any(isinstance(one, int) and one.bit_length() > _LONGEST_NUMBER for one in level):
            return False
        inner: list[object] = []
        for one in level:
            if isinstance(one, (list, tuple, dict, set, frozenset)):
                count += len(one)
                if count > _MOST_WRITTEN:
                    return False
                inner.extend(one)
                inner.extend(one.values() if isinstance(one, dict) else ())
        if not inner:
            return True
        level = inner
    return False


def printable(text: str) -> str:
    """Escape every character that could move a terminal's cursor or change its colours."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
