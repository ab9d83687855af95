"""Networks and servers as they are: whatever breaks, no pod is lost, none is bound twice, and the columns end up right."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kubesandbox.faults import Rule
from placewright.engine.reconcile import loop

from .stage import Stage, operator

BINDING = "/binding"
STORMS: dict[str, Callable[[Stage], object]] = {
    "answers get lost": lambda stage: stage.sandbox.faults.add(Rule(method="POST", path=BINDING, share=0.3, lose_answer=True)),
    "500": lambda stage: stage.sandbox.faults.add(Rule(method="POST", path=BINDING, share=0.3, code=500)),
    "503 for everything": lambda stage: stage.sandbox.faults.add(Rule(watch=False, share=0.2, code=503)),
    "429": lambda stage: stage.sandbox.faults.add(Rule(method="POST", path=BINDING, share=0.3, code=429)),
    "conflicts": lambda stage: stage.sandbox.faults.add(Rule(method="POST", path=BINDING, share=0.2, code=409)),
    "slow": lambda stage: stage.sandbox.faults.add(Rule(method="POST", path=BINDING, latency=0.2)),
    "watches break": lambda stage: stage.sandbox.faults.cut_watches_after(7),
    "history is forgotten": lambda stage: stage.sandbox.faults.cut_watches_after(7),
}


async def all_placed(stage: Stage, names: list[str]) -> None:
    await stage.until(lambda: stage.placed(*names))


@pytest.mark.parametrize("storm", STORMS)
async def test_no_pod_is_lost_or_bound_twice_when(stage: Stage, storm: str) -> None:
    stage.edit_profile(backoff={"maxSeconds": 0})
    async with operator(stage) as running:
        await stage.until(lambda: running.engine.leading.leadership.active)
        STORMS[storm](stage)
        names: list[str] = []
        for _ in range(6):
            names += stage.pods(8)
            if storm == "history is forgotten":
                stage.sandbox.faults.compact()
            await all_placed(stage, names[:-6])
            stage.delete_pod(names.pop(0))
        stage.sandbox.faults.clear()
        stage.sandbox.faults.cut_watches_after(0)
        await stage.until(lambda: stage.placed(*names), f"all pods placed after: {storm}")
        await stage.until(lambda: running.agrees_with(stage), f"columns and queue agree with the store after: {storm}")
        await stage.until(lambda: len(running.engine.deciding.queue.in_flight) == 0, f"every answer is known after: {storm}")
    assert stage.bound_twice() == []


@pytest.fixture
def soon_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """A comparison does not wait for long after a list."""
    monkeypatch.setattr(loop, "_QUIET_SECONDS", 0.2)


@pytest.mark.usefixtures("soon_quiet")
async def test_a_pod_that_vanished_unseen_leaves_the_queue(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    """Deleted while Kopf's watch was broken and its history forgotten: Kopf says nothing, the reconciler does."""
    stage.pod("big", cpu="8")
    async with operator(stage) as running:
        await stage.until(lambda: stage.condition("big"))
        running.impatient()
        stage.sandbox.faults.refuse_connections(0.2)
        stage.delete_pod("big")
        stage.sandbox.faults.compact()
        await stage.until(lambda: running.agrees_with(stage))
        assert running.engine.reading.reconcile_loop.comparer.reconciler.repairs.vanished == 1
    assert "reconciler: 0 pods were missed, 1 had vanished" in caplog.text


@pytest.mark.usefixtures("soon_quiet")
async def test_a_profile_that_vanished_unseen_places_no_more_pods(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    async with operator(stage) as running:
        await stage.until(lambda: stage.profile_condition("Ready").get("status") == "True")
        running.impatient()
        stage.sandbox.faults.refuse_connections(0.2)
        stage.delete_profile()
        stage.sandbox.faults.compact()
        await stage.until(lambda: running.engine.deciding.live.by_scheduler_name("placewright") is None)
        stage.profile()
        names = stage.pods(2)
        await stage.until(lambda: stage.placed(*names))
    assert "profile default was deleted: pods of schedulerName 'placewright' wait" in caplog.text


async def test_room_of_pods_that_vanished_unseen_is_free_again(stage: Stage) -> None:
    for number in range(3):
        stage.pod(f"fills-{number}", cpu="4")
    async with operator(stage) as running:
        await stage.until(lambda: stage.placed("fills-0", "fills-1", "fills-2") and running.agrees_with(stage))
        stage.pod("waits", cpu="4")
        await stage.until(lambda: stage.condition("waits"))
        stage.sandbox.faults.refuse_connections(0.2)
        stage.delete_pod("fills-1")
        stage.sandbox.faults.compact()
        await stage.until(lambda: stage.placed("waits"))
        await stage.until(lambda: running.agrees_with(stage))
    assert stage.bound_twice() == []


async def test_a_lost_answer_is_looked_after_and_not_repeated(stage: Stage) -> None:
    lost = stage.sandbox.faults.add(Rule(method="POST", path=BINDING, lose_answer=True, times=1))
    stage.pod("web")
    async with operator(stage) as running:
        await stage.until(lambda: stage.events("web"))
        assert running.engine.writing.binder.counts.lost_answer == lost.met == 1
        assert running.engine.writing.binder.counts.retry == 0
    assert [reason for reason, _ in stage.events("web")] == ["Scheduled"]


async def test_pods_that_make_no_sense_cost_no_others(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    """A server would not let such pods pass; one that does must not stop us."""
    stage.pod("odd")
    stage.sandbox.writes.modify(
        stage.sandbox.resource("", "v1", "pods"), "default", "odd",
        lambda pod: pod["spec"]["containers"][0].update(resources={"requests": {"cpu": "a lot"}}),
    )  # fmt: skip
    stage.sandbox.writes.modify(
        stage.sandbox.resource("", "v1", "nodes"), "", "node-1",
        lambda node: node["status"]["allocatable"].update(cpu="plenty"),
    )  # fmt: skip
    names = stage.pods(4)
    async with operator(stage):
        await stage.until(lambda: stage.placed(*names))
    assert "pod default/odd is ignored: resources: 'a lot' is not a quantity" in caplog.text
    assert "node node-1 keeps its last known state: status.allocatable: 'plenty' is not a quantity" in caplog.text
    assert {stage.node_of(name) for name in names} <= {"node-0", "node-2"}
