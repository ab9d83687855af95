"""A page of the documentation as a reader would work through it: its blocks of commands, and what it shows they print.

- A block `sh` is run in the reader's shell, and every command in it must succeed.
- A block `sh refused` must fail.
- A block `sh WHERE-terminal` is run in a terminal of its own, where its last command stays.
- A block `sh beforehand` is not run: it installs what the tests run with.
- A block `text` directly below is what the block above it prints; a line `…` in it stands for any number of lines.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_FENCE: Final = re.compile(r"^```(\w*)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LEFT_OUT: Final = "…"
#: What differs from run to run, and what stands for it.
_VARIES: Final = (
    (re.compile(r"\b(?:\d+h)?(?:\d+m)?\d+m?s\b"), "AGE"),
    (re.compile(r"127\.0\.0\.1:\d+"), "ADDRESS"),
    (re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "UID"),
    (re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?Z?"), "TIME"),
    (re.compile(r" {2,}"), "  "),
    (re.compile(r"[ \t]+$", re.MULTILINE), ""),
)


@dataclass(frozen=True)
class Block:
    """Commands, and what the page says they print; None where it does not say."""

    line: int
    commands: str
    kind: str
    shown: str | None

    def __str__(self) -> str:
        return f"line {self.line}: {self.commands.splitlines()[-1]}"


def blocks_of(page: Path) -> list[Block]:
    """The commands of a page in their order."""
    text = page.read_text()
    fences = list(_FENCE.finditer(text))
    found: list[Block] = []
    for fence, after in zip(fences, [*fences[1:], None], strict=True):
        if fence[1] != "sh":
            continue
        shown = after[3] if after and after[1] == "text" and after.start() == fence.end() + 1 else None
        found.append(Block(text.count("\n", 0, fence.start()) + 2, fence[3], fence[2].strip(), shown))
    return found


def shows(expected: str, printed: str) -> bool:
    """Whether that was printed, but for times, addresses and the width of columns."""
    wanted = "".join(r"(?:.*\n)*" if line == _LEFT_OUT else re.escape(line) + "\n" for line in same(expected).splitlines())
    return re.fullmatch(wanted, "".join(f"{line}\n" for line in same(printed).splitlines())) is not None


def same(text: str) -> str:
    """The text with a name in place of everything that differs from run to run."""
    for varies, name in _VARIES:
        text = varies.sub(name, text)
    return text
