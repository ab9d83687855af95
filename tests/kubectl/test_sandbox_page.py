"""docs/sandbox.md, from its first command to its last, with a real kubectl."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from kubectl.page import blocks_of
from kubectl.terminal import Desk, shell, terminal, until_serving, work_through
from kubesandbox.devices.layouts import DeviceKind

PAGE = Path(__file__).parents[2] / "docs" / "sandbox.md"
pytestmark = pytest.mark.timeout(180)


async def test_every_command_of_the_page_does_what_it_shows(binary: str, tmp_path: Path) -> None:
    desk = Desk(tmp_path, binary)
    desk.prepare()
    async with AsyncExitStack() as opened:
        typed = await opened.enter_async_context(shell(desk))
        shown = 0
        for block in blocks_of(PAGE):
            if block.kind:
                await opened.enter_async_context(terminal(desk, block.commands))
                await until_serving(typed)
                continue
            await work_through(typed, block, ("kubectl get ",))
            shown += block.shown is not None
    assert shown == 5, "all but the deletion show what they print"


def test_the_page_has_every_kind_of_device() -> None:
    _, table = PAGE.read_text().split("| `--device-kind` |")
    rows = [line.split("|")[1].strip(" `") for line in table.splitlines() if line.startswith("| `")]
    assert rows == [*DeviceKind]
