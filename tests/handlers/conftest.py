from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from inputs.real import pytest_configure

from .stage import Stage, new_stage

__all__ = ["pytest_configure", "stage"]


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    """An embedded cluster with a profile and three nodes."""
    async with new_stage() as made:
        yield made.profile().nodes(3)
