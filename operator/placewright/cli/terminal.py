"""Text of other people on its way to a terminal: names, labels and messages come from whoever may write a pod, a node or a profile.

No markup is read in it, and no character of it moves the cursor, changes colours, turns the direction of writing or begins a line.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

import msgspec
from rich.text import Text

from placewright.api.bad_input import printable


def plain(text: object, style: str = "") -> Text:
    """One line, whatever the text holds."""
    return Text(printable(str(text)), style=style)


def lines(texts: Iterable[object]) -> Text:
    """Several lines, one for each text."""
    return Text("\n".join(printable(str(text)) for text in texts))


def print_json(data: object) -> None:
    """`-o json` of what msgspec can encode, structs and data classes included."""
    sys.stdout.write(printable_json(msgspec.json.format(msgspec.json.encode(data)).decode()) + "\n")


def printable_json(text: str) -> str:
    """The same JSON with every character that a terminal might obey as an escape, which all readers of JSON know.

    Outside strings JSON has none but line ends, and these stay.
    """
    return text if text.replace("\n", "").isprintable() else "".join(map(_escaped, text))


def _escaped(char: str) -> str:
    if char == "\n" or char.isprintable():
        return char
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))
