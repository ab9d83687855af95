from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from .stage import Stage, new_stage


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    """An embedded cluster with a profile and three nodes."""
    async with new_stage() as made:
        yield made.profile().nodes(3)
