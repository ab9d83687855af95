from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from handlers.stage import Stage, new_stage


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    """An embedded cluster with three nodes of 4 CPUs, and no profile: a story applies its sample."""
    async with new_stage() as made:
        yield made.nodes(3)
