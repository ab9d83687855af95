"""A file that is opened while its pages are open: how far it is, what is there in the end, and what a damaged file says."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from placewright.api.bad_input import InputError
from placewright.cli.main import main
from placewright.framework.registry import installed_plugins
from placewright.plugins.catalog import in_tree
from placewright.serving.rights import ALL_NAMESPACES, Rights
from placewright_console.pages.feed import MOST_BYTES_BEHIND, Feed
from placewright_console.pages.statedelta import Sections
from placewright_lab.consolefiles.additions import open_file
from placewright_lab.consolefiles.openedfile import OpenedFile

from .makers import a_node, a_pod, claim_profile, file_of, shop

LARGEST = 2**28


def beginning(path: Path) -> OpenedFile:
    return OpenedFile(path, LARGEST, in_tree().with_installed(installed_plugins()), time.monotonic)


def test_pages_say_how_far_a_file_is_read_until_it_is_there(tmp_path: Path) -> None:
    objects = [*(a_node(f"n{i}") for i in range(3000)), *(a_pod(f"p{i}", f"n{i}") for i in range(3000)), claim_profile()]
    source = beginning(file_of(tmp_path / "s", objects))
    seen = [source.sections(ALL_NAMESPACES)["about"]["opening"]]
    assert source.node("n0") is None, "it is not read yet"
    while source.advance() and source.opening:
        seen.append(source.sections(ALL_NAMESPACES)["about"]["opening"])
    assert seen[0] == [0, 6001]
    assert seen == sorted(seen)
    assert seen[-1][0] <= 6001
    state = source.sections(ALL_NAMESPACES)
    assert len(state["nodes"]) == 3000
    assert "opening" not in state["about"]
    assert source.node("n0") is not None


def test_a_file_that_is_opened_piece_by_piece_has_the_state_of_one_that_is_opened_whole(tmp_path: Path) -> None:
    path = shop(tmp_path / "shop.snapshot")
    pieces, whole = beginning(path), open_file(path, LARGEST)
    for source in (pieces, whole):
        while source.advance():
            pass
    assert pieces.sections(ALL_NAMESPACES) == whole.sections(ALL_NAMESPACES)


def test_a_damaged_file_is_told_on_the_pages_before_the_console_ends(tmp_path: Path) -> None:
    path = shop(tmp_path / "shop.snapshot")
    path.write_text(path.read_text() + '{"kind": "Node", "metadata": {"name": 1}}\n')
    source = beginning(path)
    said: list[str] = []
    with pytest.raises(InputError, match="line 17") as told:
        _until_it_ends(source, said)
    assert said[-1] == str(told.value)


def _until_it_ends(source: OpenedFile, said: list[str]) -> None:
    while source.opening:
        source.advance()
        said.append(source.sections(ALL_NAMESPACES)["about"].get("failed"))


def test_the_command_ends_with_the_line_of_the_fault(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = shop(tmp_path / "shop.snapshot")
    path.write_text(path.read_text() + "{\n")
    assert main(["console", str(path)]) == 2
    assert "line 17" in capsys.readouterr().err


async def test_readers_get_a_state_that_is_nearly_all_new_whole_however_large_it_is() -> None:
    state: dict[str, dict[str, str]] = {"about": {"opening": "now"}, "nodes": {}}

    class Source:
        def sections(self, rights: Rights) -> Sections:
            return state

        def release(self) -> None:
            pass

    feed = Feed(Source())
    reader = feed.join(ALL_NAMESPACES)
    lines = reader.lines(1.0)
    assert b"opening" in await anext(lines)
    state = {"about": {}, "nodes": {f"n{i}": "x" * 1000 for i in range(5000)}}
    feed.publish()
    line = await anext(lines)
    assert len(line) > MOST_BYTES_BEHIND
    assert line.startswith(b'{"version":2,"state":')
    assert not reader.dropped
    state = {**state, "about": {"now": "1"}}
    feed.publish()
    assert (await anext(lines)).startswith(b'{"from":2,"version":3')
