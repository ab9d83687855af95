"""What waits to be written: the latest under each key, never two of one key at once, and an item wakes one worker and not all."""

from __future__ import annotations

import asyncio

import pytest

from placewright.kube.writers import writequeue as module
from placewright.kube.writers.writequeue import WriteQueue


class Desk:
    """Notes what is written, and lets a write end when it is told."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.broken: list[str] = []
        self.gates: dict[str, asyncio.Event] = {}
        self.now = 0.0
        self.paused_until: dict[str, float] = {}
        self.queue: WriteQueue[str, str] = WriteQueue(
            self.write, self.broken.append, lambda key: self.paused_until.get(key, 0.0), lambda: self.now
        )

    async def write(self, item: str) -> None:
        self.begun.append(item)
        if item == "broken":
            raise RuntimeError(item)
        if item in self.gates:
            await self.gates[item].wait()


@pytest.fixture
def desk() -> Desk:
    return Desk()


async def settled() -> None:
    """As many turns of the event loop as a few workers need."""
    for _ in range(20):
        await asyncio.sleep(0)


async def test_the_latest_item_of_a_key_is_written_and_only_once_the_one_before_it_is(desk: Desk) -> None:
    desk.gates["a1"] = asyncio.Event()
    desk.queue.start(2, "test")
    desk.queue.put("a", "a1")
    await settled()
    for item in ("a2", "a3"):
        desk.queue.put("a", item)
    desk.queue.put("b", "b1")
    await settled()
    assert desk.begun == ["a1", "b1"]
    desk.gates["a1"].set()
    await desk.queue.idle.wait()
    assert desk.begun == ["a1", "b1", "a3"]
    assert await desk.queue.close(1.0) == 0


@pytest.mark.parametrize("workers", [1, 2, 16])
async def test_all_workers_are_at_work_where_there_is_enough_for_them(desk: Desk, workers: int) -> None:
    desk.queue.start(workers, "test")
    await settled()
    for number in range(workers + 1):
        desk.gates[f"item {number}"] = asyncio.Event()
        desk.queue.put(f"key {number}", f"item {number}")
    await settled()
    assert desk.begun == [f"item {number}" for number in range(workers)]
    for gate in desk.gates.values():
        gate.set()
    await desk.queue.idle.wait()
    assert len(desk.begun) == workers + 1
    await desk.queue.close(1.0)


async def test_an_item_wakes_one_worker(desk: Desk) -> None:
    desk.queue.start(16, "test")
    await settled()
    resting = len(desk.queue._resting)
    desk.queue.put("a", "a1")
    assert (resting, len(desk.queue._resting)) == (16, 15)
    await desk.queue.idle.wait()
    await desk.queue.close(1.0)


async def test_a_key_that_pauses_holds_up_no_other_and_the_end_does_not_wait_for_its_pause(desk: Desk) -> None:
    desk.paused_until["a"] = 1000.0
    desk.queue.start(1, "test")
    desk.queue.put("a", "a1")
    await settled()
    desk.queue.put("b", "b1")
    await settled()
    assert desk.begun == ["b1"]
    assert await desk.queue.close(5.0) == 0
    assert desk.begun == ["b1", "a1"]


async def test_a_write_that_breaks_ends_no_worker(desk: Desk) -> None:
    desk.queue.start(1, "test")
    desk.queue.put("a", "broken")
    desk.queue.put("b", "b1")
    await desk.queue.idle.wait()
    assert (desk.begun, desk.broken) == (["broken", "b1"], ["a"])
    await desk.queue.close(1.0)


@pytest.mark.parametrize("workers", [1, 3])
async def test_a_worker_that_breaks_outside_of_a_write_begins_anew_and_says_so(
    desk: Desk, workers: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "RESTART_SECONDS", 0.0)

    def cannot_give_up(key: str) -> None:
        raise ValueError(f"a defect in giving {key} up")

    queue: WriteQueue[str, str] = WriteQueue(desk.write, cannot_give_up)
    queue.start(workers, "test")
    for number in range(4):
        queue.put(f"key {number}", "broken")
    queue.put("b", "b1")
    await queue.idle.wait()
    assert queue.restarts == 4
    assert desk.begun == [*["broken"] * 4, "b1"]
    assert not any(task.done() for task in queue.tasks)
    assert "a defect in giving key 3 up" in caplog.text
    assert await queue.close(1.0) == 0


async def test_a_worker_that_cannot_choose_is_no_burden_on_the_event_loop(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """What raises for good is asked again after a pause, and not in each turn."""
    asked = 0

    def cannot_tell(_key: str) -> float:
        nonlocal asked
        asked += 1
        raise ValueError("a defect")

    queue: WriteQueue[str, str] = WriteQueue(desk.write, desk.broken.append, cannot_tell)
    queue.start(2, "test")
    queue.put("a", "a1")
    for _ in range(10):
        await settled()
    assert 1 <= asked <= 2
    await queue.close(0.0)


async def test_closing_counts_what_waits_and_what_was_not_written_to_its_end(desk: Desk) -> None:
    desk.gates["a1"] = asyncio.Event()
    desk.queue.start(1, "test")
    desk.queue.put("a", "a1")
    desk.queue.put("b", "b1")
    await settled()
    assert await desk.queue.close(0.0) == 2
