"""What is open beside an engine: from before its first request until after its last."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from handlers.stage import DEADLINE, FAST, Stage
from placewright.engine.companions import Companions, MakeCompanions, together
from placewright.engine.engine import Engine, build_engine
from placewright.handlers.operator import run_engine
from placewright.kube.auth.login import load_config


class Heard:
    """What happened, in order."""

    def __init__(self, stage: Stage) -> None:
        self.said: list[str] = []
        self.opened = asyncio.Event()
        self._access = load_config(str(stage.sandbox.kubeconfig))

    def engine(self, *companions: MakeCompanions) -> Engine:
        return build_engine(self._access, FAST, together(*companions))

    def one(self, name: str) -> MakeCompanions:
        @asynccontextmanager
        async def opening(engine: Engine) -> AsyncIterator[None]:
            self.said.append(f"{name} opens, started={engine.started}")
            self.opened.set()
            try:
                yield
            finally:
                self.said.append(f"{name} closes, ending={engine.ending}, started={engine.started}")

        return lambda _info: Companions(open=opening)


async def test_it_is_open_before_the_engine_starts_and_until_it_has_ended(stage: Stage) -> None:
    heard, stop = Heard(stage), asyncio.Event()
    engine = heard.engine(heard.one("it"))
    running = asyncio.create_task(run_engine(engine, stop))
    await stage.until(lambda: engine.leading.leadership.active)
    assert heard.said == ["it opens, started=False"]
    stop.set()
    async with asyncio.timeout(DEADLINE):
        await running
    assert heard.said[1:] == ["it closes, ending=True, started=False"]


async def test_it_is_closed_for_an_engine_that_never_got_to_start(stage: Stage) -> None:
    stage.sandbox.faults.refuse_connections(3600.0)
    heard, stop = Heard(stage), asyncio.Event()
    running = asyncio.create_task(run_engine(heard.engine(heard.one("it")), stop))
    await heard.opened.wait()
    stop.set()
    async with asyncio.timeout(DEADLINE):
        await running
    assert heard.said == ["it opens, started=False", "it closes, ending=True, started=False"]


async def test_what_cannot_be_opened_leaves_nothing_open(stage: Stage) -> None:
    heard = Heard(stage)

    @asynccontextmanager
    async def broken(_engine: Engine) -> AsyncIterator[None]:
        raise OSError("no")
        yield

    engine = heard.engine(heard.one("first"), lambda _info: Companions(open=broken))
    before = asyncio.all_tasks()
    with pytest.raises(OSError, match="no"):
        await run_engine(engine, asyncio.Event())
    assert heard.said == ["first opens, started=False", "first closes, ending=False, started=False"]
    assert engine.writing.client._session.closed
    assert asyncio.all_tasks() == before
