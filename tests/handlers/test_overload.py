"""More pods than can be bound: they wait, and the important ones do not wait behind them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from kubesandbox.faults import Rule
from placewright.kube.writers.binder import CONCURRENCY

from .stage import FAST, HELD, Object, Stage, new_stage, operator

FLOOD = 400


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with new_stage() as made:
        classes = made.sandbox.resource("scheduling.k8s.io", "v1", "priorityclasses")
        made.sandbox.writes.create(classes, "", {"metadata": {"name": "urgent"}, "value": 1000})
        for number in range(20):
            made.node(f"node-{number}", cpu="64")
        yield made.profile()


def urgent_pods(stage: Stage, count: int) -> list[str]:
    names = [f"urgent-{number}" for number in range(count)]
    for name in names:
        container: Object = {"name": "main", "image": "example.test/main", "resources": {"requests": {"cpu": "100m"}}}
        spec = {"schedulerName": "placewright", "priorityClassName": "urgent", "containers": [container]}
        stage._create(stage._pods, {"metadata": {"name": name}, "spec": spec})
    return names


async def test_urgent_pods_are_bound_among_the_next_few_however_many_others_wait(stage: Stage) -> None:
    """No Binding is answered before all that go at once are under way; no lead is lost meanwhile, as there is none."""
    faults = stage.sandbox.faults
    sent = faults.add(Rule(method="POST", path="/binding", latency=HELD))
    async with operator(stage, replace(FAST, leader_elect=False)) as running:
        await stage.until(lambda: running.engine.leading.takeover.active)
        stage.pods(FLOOD)
        await stage.until(lambda: sent.met == CONCURRENCY, "binding has begun")
        urgent = {stage.show(name)["metadata"]["uid"] for name in urgent_pods(stage, 5)}
        await stage.until(lambda: urgent <= set(running.engine.deciding.queue.uids()), "the watch told of them")
        rounds = 0
        while not urgent <= {uid for uid, _ in stage.bindings}:
            rounds += 1
            assert rounds <= 4, "those that were on their way, those that were decided on already, and their own"
            faults.release()
            await stage.until(lambda met=sent.met: sent.met == met + CONCURRENCY, "the next ones are under way")  # type: ignore[misc]
        assert len(stage.bindings) < FLOOD, "others still wait"
        faults.clear()
        faults.release()
    assert stage.bound_twice() == []


async def test_with_a_limit_on_requests_bindings_are_not_starved_by_what_is_said_about_others(stage: Stage) -> None:
    """300 pods that fit nowhere want 300 statuses and 300 events written, at 40 requests a second."""
    for number in range(300):
        stage.pod(f"big-{number}", cpu="900")
    async with operator(stage, replace(FAST, qps=40.0, burst=40)) as running:
        await stage.until(lambda: running.engine.deciding.queue.sizes().unschedulable == 300, "all were tried")
        names = stage.pods(20)
        said = sum(1 for number in range(300) if stage.condition(f"big-{number}"))
        await stage.until(lambda: stage.placed(*names), "bound")
        meanwhile = sum(1 for number in range(300) if stage.condition(f"big-{number}")) - said
        assert meanwhile <= len(names), "Bindings took nearly all tokens"
        assert said + meanwhile < 300, "there were statuses to be written"
        running.unlimited()
