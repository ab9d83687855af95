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


# --- several namespaces ------------------------------------------------------------------------------------------------------------------


class SharedDesk(Desk):
    """Items are called `NAMESPACE/NUMBER`, and those of `stuck` are written when their gate opens."""

    def __init__(self) -> None:
        super().__init__()
        self.stuck = asyncio.Event()
        self.queue = WriteQueue(self.write, self.broken.append, clock=lambda: self.now, namespace_of=lambda item: item.partition("/")[0])

    async def write(self, item: str) -> None:
        await super().write(item)
        if item.startswith("stuck"):
            await self.stuck.wait()

    def put(self, namespace: str, count: int) -> None:
        for number in range(count):
            self.queue.put(f"{namespace}/{number}", f"{namespace}/{number}")

    def begun_of(self, namespace: str) -> list[str]:
        return [item for item in self.begun if item.startswith(f"{namespace}/")]


async def test_a_namespace_that_is_answered_slowly_leaves_workers_to_others() -> None:
    desk = SharedDesk()
    desk.put("stuck", 500)
    desk.queue.start(4, "test")
    await settled()
    assert len(desk.begun_of("stuck")) == 4, "as many as it would have alone"
    desk.put("healthy", 100)
    for _ in range(20):
        await settled()
    assert desk.begun_of("healthy") == [f"healthy/{number}" for number in range(100)]
    desk.stuck.set()
    await desk.queue.idle.wait()
    assert desk.begun_of("stuck") == [f"stuck/{number}" for number in range(500)]
    await desk.queue.close(1.0)


async def test_namespaces_take_turns_however_much_one_of_them_wants_written() -> None:
    desk = SharedDesk()
    desk.put("flood", 1000)
    desk.put("other", 3)
    desk.queue.start(1, "test")
    await desk.queue.idle.wait()
    assert [desk.begun.index(f"other/{number}") for number in range(3)] == [1, 3, 5]
    await desk.queue.close(1.0)


async def test_what_owners_take_out_is_forgotten_though_its_namespace_is_stuck() -> None:
    """A flood of a stuck namespace's notes, of which the oldest are dropped, must not pile up anywhere."""
    desk = SharedDesk()
    desk.queue.start(4, "test")
    for number in range(5000):
        desk.queue.put(f"stuck/{number}", f"stuck/{number}")
        if len(desk.queue.waiting) > 50:
            desk.queue.waiting.popitem(last=False)
        if number % 500 == 0:
            await settled()
    assert sum(map(len, desk.queue._lines.values())) <= 2 * 51 + 65
    desk.stuck.set()
    await desk.queue.idle.wait()
    assert desk.begun[-50:] == [f"stuck/{number}" for number in range(4950, 5000)]
    await desk.queue.close(1.0)
