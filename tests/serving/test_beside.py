"""What is open beside an engine: from before its first request until after its last."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from handlers.stage import DEADLINE, FAST, Stage
from placewright.engine.engine import Engine
from placewright.handlers.operator import run_engine
from placewright.kube.auth.login import load_config
from placewright.serving.beside import together


class Heard:
    """What happened, in order."""

    def __init__(self, stage: Stage) -> None:
        self.said: list[str] = []
        self.engine = Engine(load_config(str(stage.sandbox.kubeconfig)), FAST)
        self.opened = asyncio.Event()

    def one(self, name: str) -> object:
        @asynccontextmanager
        async def beside(engine: Engine) -> AsyncIterator[None]:
            self.said.append(f"{name} opens, started={engine.started}")
            self.opened.set()
            try:
                yield
            finally:
                self.said.append(f"{name} closes, ending={engine.ending}, started={engine.started}")

        return beside


async def test_it_is_open_before_the_engine_starts_and_until_it_has_ended(stage: Stage) -> None:
    heard, stop = Heard(stage), asyncio.Event()
    running = asyncio.create_task(run_engine(heard.engine, stop, beside=heard.one("it")))  # type: ignore[arg-type]
    await stage.until(lambda: heard.engine.leadership.active)
    assert heard.said == ["it opens, started=False"]
    stop.set()
    async with asyncio.timeout(DEADLINE):
        await running
    assert heard.said[1:] == ["it closes, ending=True, started=False"]


async def test_it_is_closed_for_an_engine_that_never_got_to_start(stage: Stage) -> None:
    stage.sandbox.faults.refuse_connections(3600.0)
    heard, stop = Heard(stage), asyncio.Event()
    running = asyncio.create_task(run_engine(heard.engine, stop, beside=heard.one("it")))  # type: ignore[arg-type]
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

    both = together(heard.one("first"), broken)  # type: ignore[arg-type]
    before = asyncio.all_tasks()
    with pytest.raises(OSError, match="no"):
        await run_engine(heard.engine, asyncio.Event(), beside=both)
    assert heard.said == ["first opens, started=False", "first closes, ending=False, started=False"]
    assert heard.engine.client._session.closed
    assert asyncio.all_tasks() == before
