"""The operator on the sandbox: whatever one namespace's webhooks do to requests, pods of other namespaces are placed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from kubesandbox.faults import Rule

from .stage import FAST, HELD, Object, Stage, new_stage, operator

CROWD = 300


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with new_stage() as made:
        made.sandbox.writes.create(made.sandbox.resource("", "v1", "namespaces"), "", {"metadata": {"name": "stuck"}})
        for number in range(10):
            made.node(f"node-{number}", cpu="64")
        yield made.profile()


def crowd(stage: Stage, cpu: str = "100m") -> None:
    """Pods of the namespace `stuck`."""
    container: Object = {"name": "main", "image": "example.test/main", "resources": {"requests": {"cpu": cpu}}}
    for number in range(CROWD):
        content = {"metadata": {"name": f"crowd-{number}"}, "spec": {"schedulerName": "placewright", "containers": [container]}}
        stage.sandbox.writes.create(stage._pods, "stuck", content)


async def test_a_webhook_on_one_namespaces_bindings_that_hangs_holds_up_that_namespace_alone(stage: Stage) -> None:
    faults = stage.sandbox.faults
    hung = faults.add(Rule(method="POST", path="/namespaces/stuck/pods/", latency=HELD))
    async with operator(stage, replace(FAST, leader_elect=False)) as running:
        await stage.until(lambda: running.engine.leading.takeover.active)
        crowd(stage)
        await stage.until(lambda: hung.met > 0, "Bindings hang")
        names = stage.pods(50)
        await stage.until(lambda: stage.placed(*names), "the others are placed")
        assert len(stage.bindings) == len(names)
        faults.clear()
        faults.release()
        await stage.until(lambda: len(stage.bindings) == len(names) + CROWD, "and in the end all are")
    assert stage.bound_twice() == []


async def test_bindings_of_one_namespace_that_are_told_to_come_back_in_five_minutes_hold_up_nobody_else(stage: Stage) -> None:
    faults = stage.sandbox.faults
    told = faults.add(Rule(method="POST", path="/namespaces/stuck/pods/", code=429, retry_after=300))
    async with operator(stage, replace(FAST, leader_elect=False)) as running:
        await stage.until(lambda: running.engine.leading.takeover.active)
        crowd(stage)
        await stage.until(lambda: told.met == CROWD, "each was refused: who waits holds no place")
        names = stage.pods(50)
        await stage.until(lambda: stage.placed(*names), "the others are placed")
        assert len(stage.bindings) == len(names)


async def test_a_webhook_on_one_namespaces_events_that_hangs_leaves_events_about_other_pods_alone(stage: Stage) -> None:
    faults = stage.sandbox.faults
    hung = faults.add(Rule(method="POST", path="/namespaces/stuck/events", latency=HELD))
    async with operator(stage, replace(FAST, leader_elect=False)) as running:
        await stage.until(lambda: running.engine.leading.takeover.active)
        crowd(stage, cpu="900")
        await stage.until(lambda: hung.met > 0, "events hang")
        names = stage.pods(20)
        await stage.until(lambda: all(stage.events(name) for name in names), "the others' events are written")
        faults.clear()
        faults.release()
