"""docs/contributing.md and docs/walks.md are true: their files exist, and each walk in a copy of the tree ends with passing tests."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from packaging.checkout import Checkout
from programs import needs

ROOT = Path(__file__).parents[2]
TEXT = "".join((ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("contributing.md", "walks.md"))
DIFF = re.compile(r"^```diff\n(.*?)^```$", re.MULTILINE | re.DOTALL)
HUNK = re.compile(r"^@@ (\S+) @@\n(.*?)(?=^@@ |\Z)", re.MULTILINE | re.DOTALL)
COMMANDS = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Hunk(NamedTuple):
    """A change of one file: lines that begin with a blank, a plus or a minus."""

    file: str
    lines: str

    @property
    def of_tests(self) -> bool:
        return self.file.startswith("tests/") or Path(self.file).name.startswith("test_")

    def apply(self, root: Path) -> None:
        """Change the file; a file that is not there is made of added lines alone, and these alone go to the end of one that is there."""
        path = root / self.file
        before, after = self._side("-"), self._side("+")
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        if not before:
            changed = text + after
        else:
            assert text.count(before) == 1, f"{self.file} has this {text.count(before)} times:\n{before}"
            changed = text.replace(before, after)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(changed, encoding="utf-8")

    def _side(self, sign: str) -> str:
        """The lines as they are before (`-`) or after (`+`)."""
        lines = self.lines.splitlines(keepends=True)
        assert all(line[0] in " +-\n" for line in lines), self
        return "".join(line[1:] if line != "\n" else line for line in lines if line[0] in f" {sign}\n")


def walks() -> Iterator[tuple[str, str]]:
    """(title, text) of each section in which something is changed."""
    for section in re.split(r"^## ", TEXT, flags=re.MULTILINE)[1:]:
        title, _, text = section.partition("\n")
        if DIFF.search(text):
            yield title, text


def hunks(text: str) -> list[Hunk]:
    return [Hunk(*found) for block in DIFF.findall(text) for found in HUNK.findall(block)]


def test_there_are_three_walks_or_more() -> None:
    assert len(list(walks())) >= 3


@needs("bash")
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("title", "text"), [pytest.param(*walk, id=walk[0]) for walk in walks()])
def test_a_walk_as_it_is_written_ends_with_tests_that_failed_before_and_pass(title: str, text: str, tmp_path: Path) -> None:
    checkout, changes = Checkout(tmp_path / "checkout"), hunks(text)
    first, *later = "".join(COMMANDS.findall(text)).splitlines()
    for hunk in changes:
        if hunk.of_tests:
            hunk.apply(checkout.root)
    failed = checkout.run(first)
    assert failed.returncode == 1, failed.stdout + failed.stderr
    written = re.findall(r"^\+(?:async )?def (test_\w+)", text, re.MULTILINE)
    assert written, title
    for test in written:
        assert re.search(rf"^FAILED .*::{test}\b", failed.stdout, re.MULTILINE), f"{test} did not fail before the change:\n{failed.stdout}"
    for hunk in changes:
        if not hunk.of_tests:
            hunk.apply(checkout.root)
    assert later, title
    for command in later:
        passed = checkout.run(command)
        assert passed.returncode == 0, f"{command}\n{passed.stdout}{passed.stderr}"
    style = checkout.run(".venv/bin/ruff check --no-cache --quiet operator console lab tests manifests")
    assert style.returncode == 0, style.stdout


def test_the_files_that_it_names_are_there() -> None:
    made = {hunk.file for _, text in walks() for hunk in hunks(text) if not hunk.lines.startswith(" ")}
    made |= {str(folder) for file in made for folder in Path(file).parents}
    named = set(re.findall(r"(?<![\w/.])((?:operator|console|lab|tests|docs|manifests|crds|examples)/[\w./-]*\w)", TEXT))
    assert len(named) > 20
    assert {name for name in named if not (ROOT / name).exists()} <= made


def test_every_word_after_make_is_a_target() -> None:
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    said = [words.partition(" ARGS=")[0].split() for words in re.findall(r"(?:^|`)make ([a-z][^`\n]*)", TEXT, re.MULTILINE)]
    assert len(said) > 10
    assert {word for words in said for word in words} <= targets


def test_a_hunk_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("one\ntwo\n")
    with pytest.raises(AssertionError, match=r"a\.py has this 0 times"):
        Hunk("a.py", " three\n+four\n").apply(tmp_path)
    Hunk("a.py", "-two\n+2\n").apply(tmp_path)
    Hunk("a.py", "+three\n").apply(tmp_path)
    Hunk("new/b.py", "+four\n").apply(tmp_path)
    assert ((tmp_path / "a.py").read_text(), (tmp_path / "new" / "b.py").read_text()) == ("one\n2\nthree\n", "four\n")
