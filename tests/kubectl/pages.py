"""The rule about commands in documents: a test runs each one, or the page says why no test does.

    cd tests && ../.venv/bin/python -m kubectl.pages    prints the commands that no test runs, with the reasons, and broken rules

Commands stand in fenced blocks (`page.py` has their kinds). A page is followed by a test of its own (`FOLLOWED`), or by
`test_pages.py`, which runs what the others have in common: a sandbox, an operator, nodes, pods and a profile.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from textwrap import indent
from typing import Final

from kubectl.page import FENCE, blocks_of
from placewright.api.bad_input import InputError
from placewright.cli.main import make_parser

ROOT: Final = Path(__file__).parents[2]
#: By page, the test that runs its commands in a scene of its own.
FOLLOWED: Final = {
    "docs/beside-default-scheduler.md": "kubectl/test_operating_pages.py",
    "docs/contributing.md": "packaging/test_contributing.py",
    "docs/walks.md": "packaging/test_contributing.py",
    "docs/tutorial.md": "kubectl/test_tutorial.py",
    "docs/tutorial-git.md": "kubectl/test_tutorial.py",
    "docs/uninstall.md": "kubectl/test_uninstalling.py",
    "docs/upgrade.md": "kubectl/test_operating_pages.py",
}
_KINDS: Final = re.compile(r"|refused|[a-z]+-terminal")
_INDENTED: Final = re.compile(r"^(?:(?<=\n\n)(?: {4}|\t)[ \t]*| +(?=```))(\S.*)", re.MULTILINE)
#: Words before a program: `KEY=value`, `exec`, `$` of a prompt.
_BEFORE: Final = re.compile(r"\w+=.*|exec|sudo|time|\$")
_TARGETS: Final = frozenset(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def pages() -> list[str]:
    """Documents that may show commands; decisions tell of the past."""
    found = (ROOT / "README.md", *ROOT.glob("docs/*.md"), *ROOT.glob("examples/*/README.md"), *ROOT.glob("manifests/*/*/README.md"))
    return sorted(file.relative_to(ROOT).as_posix() for file in found)


def run_together() -> list[str]:
    """Pages that `test_pages.py` runs."""
    return [page for page in pages() if page not in FOLLOWED and any(not each.reason for each in blocks_of(ROOT / page))]


def not_run() -> Iterator[tuple[str, str, str]]:
    """Each block that no test runs: the reason, where it is, its commands."""
    for page in pages():
        for block in blocks_of(ROOT / page):
            if block.reason:
                yield block.reason, f"{page}:{block.line}", block.commands


def lines_not_run() -> Iterator[str]:
    """A line for each reason, with the places, as the last lines of a run have it."""
    for reason, found in groupby(sorted(not_run()), key=lambda each: each[0]):
        yield f"commands that no test runs: {reason}: {', '.join(place for _, place, _ in found)}"


def problems(page: Path) -> Iterator[str]:
    """What keeps the commands of a page from being in one of the states."""
    text = page.read_text()
    for fence in FENCE.finditer(text):
        if not fence[2] or fence[2] in ("bash", "shell", "zsh"):
            yield f"a block ```{fence[2]} begins with {fence[4][:60]!r}: commands are in ```sh, and what they print is in ```text"
    for indented in _INDENTED.findall(FENCE.sub("", text)):
        yield f"not in a fence at the line's begin: {indented!r}"
    for block in blocks_of(page):
        if not _KINDS.fullmatch(block.kind):
            yield f"{block}: no test knows the kind {block.kind!r}"
        yield from (f"{block}: {problem}" for problem in _unreal(block.commands))


def _unreal(commands: str) -> Iterator[str]:
    """Commands of ours that do not exist: options and subcommands of `placewright`, targets of `make`."""
    for command in _split(commands):
        program, *words = command[1:] if command[:2] == ["kubectl", "placewright"] else command
        if program == "make":
            yield from (f"no target {word!r}" for word in words if not re.search("^-|[=/]", word) and word not in _TARGETS)
        if program.endswith("placewright"):
            try:
                make_parser(words).parse_args(words)
            except InputError as wrong:
                yield str(wrong)
            except SystemExit:  # `--help`
                pass


def _split(commands: str) -> Iterator[list[str]]:
    """The words of each command, without redirections and here-documents."""
    text = re.sub(r"<<-?\s*'?(\w+)'?(.*)\n(?:.*\n)*?\1\n", r"\2\n", commands).replace("\\\n", " ")
    for line in text.splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        words: list[str] = []
        for word in (*lexer, ";"):
            if words and words[-1] in (">", ">>", "<", ">&"):
                words.pop()
            elif re.fullmatch(r"[;&|()]+", word):
                while words and _BEFORE.fullmatch(words[0]):
                    words.pop(0)
                if words:
                    yield words
                words = []
            else:
                words.append(word)


if __name__ == "__main__":
    for why, where, typed in not_run():
        sys.stdout.write(f"{where}: {why}\n{indent(typed, '    ')}")
