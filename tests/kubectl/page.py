"""A page of the documentation as a reader would work through it: its blocks of commands, and what it shows they print.

- A block `sh` is run in the reader's shell, and every command in it must succeed.
- A block `sh refused` must fail.
- A block `sh WHERE-terminal` is run in a terminal of its own, where its last command stays.
- A block `text` directly below is what the block above it prints. A line `…` in it stands for any number of lines, and `…` within a
  line for any text.
- A block `console` holds commands behind `$ `, each with what it prints below it.
- A block below `<!-- not run: REASON -->` is not run.
- A block `yaml title="NAME"` is a file that the reader writes before the first command.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Final

FENCE: Final = re.compile(r"^(?:<!-- not run: ([^\n]+) -->\n+)?```(\w*)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PROMPT: Final = re.compile(r"^\$ ", re.MULTILINE)
_TITLE: Final = re.compile(r' title="([^"]+)"')
_LEFT_OUT: Final = "…"
#: What differs from run to run, and what stands for it.
_VARIES: Final = (
    (re.compile(r"\b(?:\d+h)?(?:\d+m)?\d+m?s\b|\b\d+(?:\.\d+)? [mµ]?s\b"), "AGE"),
    (re.compile(r"127\.0\.0\.1:\d+"), "ADDRESS"),
    (re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "UID"),
    (re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?Z?"), "TIME"),
    (re.compile(r" {2,}"), "  "),
    (re.compile(r"[ \t]+$", re.MULTILINE), ""),
)


@dataclass(frozen=True)
class Block:
    """Commands, and what the page says they print; None where it does not say. `reason` says why no test runs them."""

    line: int
    commands: str
    kind: str
    shown: str | None
    reason: str | None = None

    def __str__(self) -> str:
        return f"line {self.line}: {self.commands.splitlines()[-1]}"


def blocks_of(page: Path) -> list[Block]:
    """The commands of a page in their order."""
    return list(_blocks(page.read_text()))


def _blocks(text: str) -> Iterator[Block]:
    fences = list(FENCE.finditer(text))
    for fence, after in zip_longest(fences, fences[1:]):
        reason, language, kind, content = fence.groups()
        line = text.count("\n", 0, fence.start(2)) + 2
        if language == "console":
            for prompt in _PROMPT.split(content)[1:]:
                command, shown = re.fullmatch(r"((?:[^\n]*\\\n)*[^\n]*\n)(.*)", prompt, re.DOTALL).groups()  # type: ignore[union-attr] # a line
                yield Block(line, command, kind.strip(), shown or None, reason)
        elif language == "sh":
            shown = after[4] if after and after[2] == "text" and after.start() == fence.end() + 1 else None
            yield Block(line, content, kind.strip(), shown, reason)


def files_of(page: Path) -> dict[str, str]:
    """The files that a page shows whole, by the names that it gives them."""
    return {title[1]: fence[4] for fence in FENCE.finditer(page.read_text()) if (title := _TITLE.search(fence[3]))}


def shows(expected: str, printed: str) -> bool:
    """Whether that was printed, but for times, addresses and the width of columns."""
    lines = same(expected).splitlines()
    wanted = "".join(r"(?:.*\n)*" if line == _LEFT_OUT else re.escape(line).replace(_LEFT_OUT, ".*") + "\n" for line in lines)
    return re.fullmatch(wanted, "".join(f"{line}\n" for line in same(printed).splitlines())) is not None


def same(text: str) -> str:
    """The text with a name in place of everything that differs from run to run."""
    for varies, name in _VARIES:
        text = varies.sub(name, text)
    return text
