from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from handlers.stage import Stage, new_stage

from .desk import Desk, desk


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    """An embedded cluster with a profile and two nodes."""
    async with new_stage() as made:
        yield made.profile().nodes(2)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def module_desk() -> AsyncIterator[Desk]:
    """An operator that serves, for all tests of a module that ask for it: they leave it, and the cluster, as they were."""
    async with new_stage() as made, desk(made.profile().nodes(2)) as asked:
        await asked.until_ready()
        yield asked


@pytest_asyncio.fixture(loop_scope="module")
async def shared(module_desk: Desk) -> AsyncIterator[Desk]:
    """The module's desk, ready again where it stood still while tests had desks of their own. Ask for it under `loop_scope="module"`."""
    await module_desk.until_ready()
    yield module_desk
    module_desk.stage.sandbox.faults.clear()
