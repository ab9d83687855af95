"""docs/tutorial.md and then docs/tutorial-git.md, command by command with a real kubectl; what is printed beside what the pages show."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from kubectl.page import blocks_of, shows
from kubectl.terminal import Desk, shell, terminal, until_serving, work_through
from programs import program

DOCS = Path(__file__).parents[2] / "docs"
BLOCKS = [block for page in ("tutorial.md", "tutorial-git.md") for block in blocks_of(DOCS / page)]
READING = ("kubectl get ", "placewright profiles history ", "placewright profiles list")
"""Commands that a reader gives again when they came too early."""

A_SECOND_LATER = "now=$(date +%N); sleep 0.$(printf %09d $((999999999 - 10#$now)))"
"""An API server notes by the second who changed what; a reader is never so quick that two patches look like one."""

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def desk(binary: str, tmp_path: Path) -> Desk:
    for name in ("bash", "git"):
        program(name)
    found = Desk(tmp_path, binary)
    found.prepare()
    return found


async def test_every_command_of_the_tutorial_does_what_the_page_shows(desk: Desk) -> None:
    async with AsyncExitStack() as opened:
        typed = await opened.enter_async_context(shell(desk))
        for block in BLOCKS:
            if block.reason:
                continue
            if block.kind.endswith("-terminal"):
                await opened.enter_async_context(terminal(desk, block.commands))
                await until_serving(typed)
                continue
            if "patch schedprof" in block.commands:
                await typed.run(A_SECOND_LATER)
            printed = await work_through(typed, block, READING)
            assert block.shown is None or shows(block.shown, printed)


def test_the_pages_leave_out_no_more_than_the_installation_and_its_end() -> None:
    assert len([block for block in BLOCKS if block.reason]) == 2
    assert sum(block.shown is not None for block in BLOCKS) > len(BLOCKS) // 2


@pytest.mark.parametrize(
    ("page", "printed", "right"),
    [
        ("a   5s\n", "a  12m3s  \n", True),
        ("on 127.0.0.1:1 at 2026-01-01T00:00:00Z\n", "on 127.0.0.1:443 at 2025-12-31T23:59:59Z\n", True),
        ("first\n…\nlast\n", "first\nmore\nand more\nlast\n", True),
        ("first\n…\n", "first\nmore\n", True),
        ("…\nlast\n", "first\nlast\n", True),
        ("first\n…\nlast\n", "first\nmore\n", False),
        ("score 5\n", "score 6\n", False),
        ("first\n", "first\nmore\n", False),
        ("echo '{…}' | tee\n", "echo '{\"a\": 1}' | tee\n", True),
        ("echo '{…}' | tee\n", "echo '{'\n'}' | tee\n", False),
    ],
)
def test_what_is_shown_is_compared_but_for_what_varies(page: str, printed: str, right: bool) -> None:
    assert shows(page, printed) is right
