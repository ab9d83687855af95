"""Several things that are open beside an engine, as one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from placewright.engine.engine import Engine
from placewright.handlers.operator import Beside


def together(*each: Beside) -> Beside:
    """Opened in order, closed in the opposite one; what one of them raises closes those before it."""

    @asynccontextmanager
    async def beside(engine: Engine) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for one in each:
                await stack.enter_async_context(one(engine))
            yield

    return beside
