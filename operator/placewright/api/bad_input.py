"""What is raised when something that a person wrote cannot be used: one line, fit for a terminal.

The command line turns an `InputError` into `placewright: error: ...` and exit code 2; nothing else about it is shown.
"""

from __future__ import annotations

from typing import Final

_LONGEST_SHOWN: Final = 80


class InputError(Exception):
    """A file, an option or an object is wrong; the message says where, what was found and what is allowed."""


def bad_field(where: str, found: object, allowed: str) -> InputError:
    """The error for one field: `where: found X; allowed Y`."""
    return InputError(f"{where}: found {shown(found)}; allowed {allowed}")


def shown(value: object) -> str:
    """A value as one short, printable piece of text: quoted, control characters escaped, cut when long."""
    if value is None:
        return "nothing"
    if isinstance(value, tuple):
        value = list(value)  # people write lists
    text = repr(value) if isinstance(value, str) else ascii(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}... ({len(text)} characters)"


def printable(text: str) -> str:
    """The text with every character that could move a terminal's cursor or change its colours written as an escape."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
