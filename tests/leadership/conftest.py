from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import pytest


def pytest_asyncio_loop_factories(config: pytest.Config, item: pytest.Item) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """A module that names a `LOOP` runs in one of these."""
    module = item.getparent(pytest.Module)
    return {"loop": getattr(module.obj, "LOOP", asyncio.new_event_loop) if module is not None else asyncio.new_event_loop}
