"""Prints tables and text that fit a terminal of any width, and plain lines if there is no terminal.

Text of other people is printed, too: a writer of pods, nodes or profiles chooses names, labels and messages. No markup in it is read. No
character of it moves the cursor, changes colours, reverses the direction of writing or begins a line.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
import yaml
from rich.console import Console
from rich.table import Table
from rich.text import Text

from placewright.api.bad_input import printable
from placewright.profiles.kubescheduler.documents import yaml_text

#: Columns of an output that is no terminal: no line is folded for a program.
_NO_TERMINAL: Final = 10_000
_NONE: Final = "none"
BAD: Final = "red"
_UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "m"), (1, "s"))


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
    text = json.dumps(msgspec.to_builtins(data, str_keys=True), indent=2, ensure_ascii=False)
    sys.stdout.write(printable_json(text) + "\n")


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


def console(*, unfolded: bool = False) -> Console:
    """Open standard output. Colours are for terminals without NO_COLOR.

    Args:
        unfolded: do not fold lines, however narrow the terminal is.
    """
    narrow = not unfolded and (sys.stdout.isatty() or os.environ.get("COLUMNS"))
    return Console(width=None if narrow else _NO_TERMINAL, highlight=False)


def table(*columns: str, numbers: Sequence[str] = (), rows: Iterable[Iterable[object]] = ()) -> Table:
    """Make a table as kubectl prints it. A long cell goes on in the next line, because a name that is cut is no name.

    Args:
        columns: titles.
        numbers: titles of columns that are aligned on the right.
        rows: cells of each row; each that is no `Text` becomes one printable line.
    """
    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in columns:
        made.add_column(plain(column), overflow="fold", justify="right" if column in numbers else "left")
    for row in rows:
        made.add_row(*(cell if isinstance(cell, Text) else plain(cell) for cell in row))
    return made


def say(to: Console, *lines: str) -> None:
    """Print lines of text as they are."""
    for line in lines:
        to.print(plain(line), soft_wrap=True)


def print_table(to: Console, made: Table) -> None:
    """Print a table without the blanks that fill its last column: a narrow terminal would make lines of them."""
    with to.capture() as captured:
        to.print(made)
    sys.stdout.writelines(f"{line.rstrip()}\n" for line in captured.get().splitlines())


def print_data(data: object, output: str) -> None:
    """Print `-o json` or `-o yaml`.

    Args:
        data: plain data.
        output: `json` or `yaml`.
    """
    if output == "json":
        print_json(data)
    else:
        sys.stdout.write(yaml_text(data))


def compact(value: Any) -> str:
    """Write a value in one line of YAML.

    Returns:
        The line; `none` for None.
    """
    if value is None:
        return _NONE
    if isinstance(value, str):
        return value
    text: str = yaml.safe_dump(value, default_flow_style=True, width=_NO_TERMINAL, allow_unicode=True, sort_keys=False)
    return text.removesuffix("\n").removesuffix("\n...")


def age(timestamp: str | None, now: datetime | None = None) -> str:
    """Write the age of a time as kubectl does: in the largest unit that gives 2 or more.

    Args:
        timestamp: RFC 3339.
        now: None for the current time.

    Returns:
        Such as `5m`; `unknown` for no time.
    """
    try:
        then = datetime.fromisoformat(str(timestamp))
    except ValueError:
        return "unknown"
    seconds = max(0, int(((now or datetime.now(UTC)) - then).total_seconds()))
    size, unit = next(((size, unit) for size, unit in _UNITS if seconds >= size * (2 if size > 1 else 1)), (1, "s"))
    return f"{seconds // size}{unit}"
