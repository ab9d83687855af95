"""Prints docs/messages.md: `python -m tools.generated.messages > docs/messages.md`.

The messages come from the code, cause and remedy from `messages.yaml` beside this module. A key there is the text of a message with `…` for
values. One row may have several keys, and a key with more gaps stands for a family, as `…: found …; allowed …` does. A message without a
key, and a key without a message, fail.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

from tools.generated.messagetexts import Message, Sources
from tools.generated.sourcetexts import GAP

EXPLANATIONS: Final = Path(__file__).with_name("messages.yaml")
#: Most places in a cell; more of them are "commands".
_MOST_PLACES: Final = 3
_HEAD: Final = "| message | where | what it means | what to do |\n|---|---|---|---|\n"


class Row(NamedTuple):
    """Messages with one cause and one remedy.

    Attributes:
        kinds: kinds of message, as `Message.kind`.
        keys: texts with gaps; a key stands for each message that it fits.
        means: the cause.
        remedy: the action of the reader.
    """

    kinds: frozenset[str]
    keys: tuple[str, ...]
    means: str
    remedy: str


class Section(NamedTuple):
    """A heading, an optional paragraph, and rows."""

    title: str
    about: str
    rows: tuple[Row, ...]


def read_explanations(text: str) -> tuple[str, tuple[Section, ...]]:
    """Read the paragraphs before the first heading, and the sections."""
    data = yaml.safe_load(text)
    return data["introduction"], tuple(map(_section, data["sections"]))


def _section(data: Mapping[str, Any]) -> Section:
    kinds = frozenset(data["kinds"])
    rows = tuple(Row(kinds, tuple(map(str, row["messages"])), row["means"], row["do"]) for row in data["rows"])
    return Section(data["title"], data.get("about", ""), rows)


def messages_by_key(rows: Sequence[Row], messages: Sequence[Message]) -> dict[tuple[Row, str], list[Message]]:
    """Give each message to the key that is its text, or to the longest family that it fits.

    A key that is the text of a message is no family: a new message must not pass for an old one.

    Raises:
        ValueError: a message fits no key, or a key is the best one of no message.
    """
    texts = {_text(message) for message in messages}
    keys = sorted(((row, key) for row in rows for key in row.keys), key=lambda each: -len(each[1].replace(GAP, "")))
    found: dict[tuple[Row, str], list[Message]] = {each: [] for each in keys}
    unexplained = set()
    for message in messages:
        text, fitting = _text(message), [each for each in keys if message.kind in each[0].kinds]
        best = next((each for each in fitting if each[1] == text), None) or next(
            (each for each in fitting if each[1] not in texts and _pattern(each[1]).fullmatch(text)), None
        )
        if best is None:
            unexplained.add(f"{message.file}:{message.line}: no key of tools/generated/messages.yaml fits {message.kind}: {text}")
        else:
            found[best].append(message)
    unused = {f"tools/generated/messages.yaml: no message of the code fits {key}" for (_, key), taken in found.items() if not taken}
    if unexplained or unused:
        raise ValueError("\n".join(sorted(unexplained | unused)))
    return found


@cache
def _pattern(key: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, key.split(GAP))))


def _text(message: Message) -> str:
    """Return the text that keys are compared with: a condition's reason with its type, because another type may have the same reason."""
    return f"{message.where}: {message.text}" if message.kind == "condition" else message.text


def page(explanations: str, messages: Sequence[Message]) -> str:
    """Write the page."""
    introduction, sections = read_explanations(explanations)
    found = messages_by_key([row for section in sections for row in section.rows], messages)
    parts = [introduction.strip()]
    for section in sections:
        parts += [f"## {section.title}", section.about.strip()] if section.about else [f"## {section.title}"]
        parts.append(_HEAD + "".join(_line(row, found) for row in section.rows))
    return "\n\n".join(each.strip() for each in parts) + "\n\nNext: [logs](logs.md), [troubleshooting](troubleshooting.md).\n"


def _line(row: Row, found: Mapping[tuple[Row, str], list[Message]]) -> str:
    taken = [message for key in row.keys for message in found[row, key]]
    # A reader of a condition looks for its reason, and finds the types beside it.
    keys = "<br>".join(dict.fromkeys(_in_code(key.rpartition(": ")[2] if row.kinds == {"condition"} else key) for key in row.keys))
    places = sorted({_place(message) for message in taken}, key=str.lower)
    where = ", ".join(places) if len(places) <= _MOST_PLACES else "commands"
    return f"| {keys} | {where} | {_in_cell(row.means)} | {_in_cell(row.remedy)} |\n"


def _in_cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _in_code(text: str) -> str:
    return f"`` {_in_cell(text)} ``" if "`" in text else f"`{_in_cell(text)}`"


def _place(message: Message) -> str:
    """Return the place of a message: level of a log line, status of an answer, type of a condition, or command."""
    if message.kind in ("log", "page"):
        return message.where
    if message.kind == "condition":
        return f"`{message.where}`"
    if message.kind == "event":
        return message.kind
    return "`run`" if message.kind == "run" else f"`{message.where}`" if message.where else "commands"


if __name__ == "__main__":
    sys.stdout.write(page(EXPLANATIONS.read_text(encoding="utf-8"), tuple(Sources().messages())))
