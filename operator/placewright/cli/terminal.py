"""Prints text of other people on a terminal: a writer of pods, nodes or profiles chooses names, labels and messages.

No markup in it is read. No character of it moves the cursor, changes colours, reverses the direction of writing or begins a line.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

import msgspec
from rich.text import Text

from placewright.api.bad_input import printable


def plain(text: object, style: str = "") -> Text:
    """Make one printable line of a text."""
    return Text(printable(str(text)), style=style)


def lines(texts: Iterable[object]) -> Text:
    """Make printable lines of texts, one for each."""
    return Text("\n".join(printable(str(text)) for text in texts))


def print_json(data: object) -> None:
    """Print `-o json`.

    Args:
        data: any value that msgspec can encode, structs and data classes included.
    """
    sys.stdout.write(printable_json(msgspec.json.format(msgspec.json.encode(data)).decode()) + "\n")


def printable_json(text: str) -> str:
    """Escape every character that could control a terminal; all readers of JSON know these escapes.

    Args:
        text: JSON. Outside of strings it has no such characters but line ends, which stay.
    """
    return text if text.replace("\n", "").isprintable() else "".join(map(_escaped, text))


def _escaped(char: str) -> str:
    if char == "\n" or char.isprintable():
        return char
    # JSON's escapes are units of UTF-16: two for a character beyond the first 65,536.
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))
