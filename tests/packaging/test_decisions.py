"""The index of decisions names every page, and names in the backticks of a page exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DECISIONS = ROOT / "docs" / "decisions"
PAGES = sorted(DECISIONS.glob("[0-9]*.md"))
#: Folders whose files and names a page may speak of. Those that are not there yet, or any more, are passed over.
SOURCES = ("operator", "console", "lab", "benchmarks", "tools", "tests", "examples", "docs", "crds", "manifests", ".ci")
SUFFIXES = {".py", ".md", ".js", ".yaml", ".toml", ".json", ".html", ".css"}
#: `Name.part`, `room/module` or `module.name` that belong to others, although they begin as a name of ours does.
FOREIGN = {
    "process.ultimate_exiting_timeout": "a setting of Kopf; the sandbox has a module `process`",
}
#: One name in backticks, perhaps with the arguments of a call, or with options of a command, behind it.
_NAME = re.compile(r"`((?:[A-Za-z_][\w.-]*/)*[A-Za-z_][\w.-]*)/?(?:\([^`]*\)|::[^`]*| -[^`]*)?`")
_DEFINED = re.compile(r"\b(?:def|class)\s+(\w+)|^\s*(?:self\.|cls\.)?(\w+)\s*[:=]", re.MULTILINE)
_CLASS = re.compile(r"^class (\w+)", re.MULTILINE)


@cache
def files() -> tuple[Path, ...]:
    found = (file for folder in SOURCES for file in (ROOT / folder).rglob("*") if file.suffix in SUFFIXES)
    return tuple(file.relative_to(ROOT) for file in found if "node_modules" not in file.parts)


@cache
def folders() -> frozenset[str]:
    return frozenset(part for file in files() for part in file.parts[:-1])


@cache
def modules() -> frozenset[str]:
    """Names of folders, and of files with and without their suffix."""
    return folders() | {name for file in files() for name in (file.name, file.stem)}


@cache
def python_modules() -> frozenset[str]:
    return frozenset(name for file in files() if file.suffix == ".py" for name in (*file.parts[:-1], file.stem))


@cache
def sources() -> str:
    return "\n".join((ROOT / file).read_text() for file in files() if file.suffix == ".py")


@cache
def defined() -> frozenset[str]:
    return frozenset(name for pair in _DEFINED.findall(sources()) for name in pair if name)


@cache
def classes() -> frozenset[str]:
    return frozenset(_CLASS.findall(sources()))


def exists(name: str) -> bool:
    """Return whether a name exists, by its last component. Names that do not begin as a name of ours does are not judged."""
    return name in FOREIGN or exists_here(name)


def exists_here(name: str) -> bool:
    *path, last = name.split("/")
    if last in modules():
        return True
    first, *rest = last.split(".")
    if path:
        return path[0] not in folders() or (first in modules() and bool(rest) and set(rest) <= defined())
    if "." not in last:
        return True
    if Path(last).suffix in SUFFIXES:
        return False
    if first[0].isupper():
        return first in classes() and set(rest) <= defined()
    return first not in python_modules() or set(rest) <= defined() | modules()


def names(text: str) -> Iterator[str]:
    yield from (match[1] for match in _NAME.finditer(re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)))


def lines() -> list[str]:
    """Return the numbered lines of the index."""
    return [line for line in (DECISIONS / "README.md").read_text().splitlines() if re.match(r"\d", line)]


def test_the_index_has_every_page_with_its_title_and_status() -> None:
    pages = []
    for page in PAGES:
        title, _, status, *_ = page.read_text().splitlines()
        number, _, said = title.removeprefix("# ").partition(". ")
        assert int(number) == int(page.name[:4]), page.name
        accepted, _, amended = status.partition(", ")
        assert accepted == "Status: accepted", page.name
        pages.append(f"{number}. [{said}]({page.name})" + (f": {amended}" if amended else ""))
    assert [line for line in lines() if "](" in line] == pages


def test_a_number_is_given_once_and_a_page_that_is_gone_names_its_heir() -> None:
    assert [int(line.partition(".")[0]) for line in lines()] == list(range(1, len(lines()) + 1))
    gone = {line: line.partition(": superseded by ")[2] for line in lines() if "](" not in line}
    numbers = {page.name[:4].lstrip("0") for page in PAGES}
    assert {line: heir for line, heir in gone.items() if heir not in numbers} == {}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name[:4])
def test_a_name_in_backticks_exists(page: Path) -> None:
    assert [name for name in names(page.read_text()) if not exists(name)] == []


def test_an_exception_is_named_by_a_page_and_would_be_found() -> None:
    named = {name for page in PAGES for name in names(page.read_text())}
    assert {name for name in named if not exists_here(name)} == set(FOREIGN)


@pytest.mark.parametrize(
    "name", ["queue/nosuch", "tests/nosuch.py", "engine/engine.nosuch", "SchedulingQueue.nosuch", "Nosuch.add", "nosuch.py"]
)
def test_a_name_that_does_not_exist_is_found(name: str) -> None:
    assert list(names(f"The name `{name}`.")) == [name]
    assert not exists(name)


@pytest.mark.parametrize(
    "name", ["SchedulingQueue.add", "queue", "queue/queue", "engine/engine.py", "placewright.api.profile", "pods/binding"]
)
def test_a_name_of_ours_by_any_path_and_a_name_of_others_pass(name: str) -> None:
    assert exists(name)
