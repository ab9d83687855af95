from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from handlers.stage import Stage, new_stage


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    """An embedded cluster with a profile and two nodes."""
    async with new_stage() as made:
        yield made.profile().nodes(2)
