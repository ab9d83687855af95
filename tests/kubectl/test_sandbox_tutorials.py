"""Tutorials of docs/policy.md, docs/gangs.md and docs/devices.md, with a real kubectl: each command succeeds and prints what is shown."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from kubectl.page import blocks_of
from kubectl.terminal import Desk, shell, terminal, work_through

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.timeout(180)


@pytest.mark.parametrize("page", ["policy", "gangs", "devices"])
async def test_every_command_of_a_tutorial_does_what_the_page_shows(page: str, binary: str, tmp_path: Path) -> None:
    desk = Desk(tmp_path, binary)
    desk.prepare()
    (desk.folder / "manifests").symlink_to(ROOT / "manifests")
    async with AsyncExitStack() as opened:
        typed = await opened.enter_async_context(shell(desk))
        shown = 0
        for block in blocks_of(ROOT / "docs" / f"{page}.md"):
            if block.kind:
                await opened.enter_async_context(terminal(desk, block.commands))
                assert (await typed.run("until [ -s sandbox.yaml ]; do sleep 0.05; done"))[0]
                continue
            await work_through(typed, block, ("kubectl get ",))
            shown += block.shown is not None
    assert shown == 2
