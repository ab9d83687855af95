"""Bytes of objects: estimated once in a while, in many turns of the loop, for all pods that there are."""

from __future__ import annotations

import asyncio

import pytest

from handlers.stage import Stage
from observability.metricsdesk import watched
from placewright.observability.metrics import objectbytes

BYTES = "placewright_object_bytes"


async def test_new_pods_count_when_the_estimate_is_old(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    names = stage.pods(30)
    async with watched(stage) as running:
        await stage.until(lambda: stage.placed(*names))
        await running.metrics.refresh()
        before = running.seen()
        assert 30 * 1024 < before.value(BYTES, resource="pods") < 30 * 16_384
        assert before.value(BYTES, resource="nodes") > 2 * 1024
        late = stage.pods(50, cpu="99")
        await stage.until(lambda: all(stage.condition(name).get("reason") == "Unschedulable" for name in late))
        await running.metrics.refresh()
        assert running.seen().value(BYTES, resource="waiting pods") == before.value(BYTES, resource="waiting pods"), "it lasts"
        monkeypatch.setattr(objectbytes, "LASTS_SECONDS", 0.0)
        await running.metrics.refresh()
        assert running.seen().value(BYTES, resource="waiting pods") > 50 * 1024


async def test_the_loop_has_turns_while_values_are_counted(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objectbytes, "TURN_SECONDS", 0.0)
    names = stage.pods(1)
    async with watched(stage) as running:
        await stage.until(lambda: stage.placed(*names))
        counting, turns = asyncio.ensure_future(running.metrics.refresh()), 0
        while not counting.done():
            await asyncio.sleep(0)
            turns += 1
        told = running.seen().families[BYTES].samples
        assert turns > len([sample for sample in told if sample.value]) > 2
