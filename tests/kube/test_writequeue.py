"""What waits to be written: the latest under each key, never two of one key at once, and an item wakes one worker and not all."""

from __future__ import annotations

import asyncio
from collections import Counter
from types import SimpleNamespace
from typing import cast

import pytest

from placewright.kube.client import ApiClient
from placewright.kube.ratelimit import Traffic
from placewright.kube.writers import writequeue as module
from placewright.kube.writers.writequeue import QueueingWriter, WriteCounts


class Desk(QueueingWriter[str, str]):
    """Notes what is written, and lets a write end when it is told. Items are called `NAMESPACE/NUMBER`, or are of no namespace."""

    NAME, TRAFFIC = "test", Traffic.EVENTS

    def __init__(self, workers: int) -> None:
        super().__init__(cast(ApiClient, SimpleNamespace(sending=lambda _: None)), workers=workers, clock=lambda: 0.0)
        self.counts = WriteCounts()
        self.begun: list[str] = []
        self.gates: dict[str, asyncio.Event] = {}
        self.paused_until: dict[str, float] = {}
        self.stuck = asyncio.Event()

    def _namespace_of(self, item: str) -> str:
        return item.rpartition("/")[0]

    def _not_before(self, key: str) -> float:
        return self.paused_until.get(key, 0.0)

    async def _write(self, item: str) -> None:
        self.begun.append(item)
        if item == "broken":
            raise RuntimeError(item)
        if item in self.gates:
            await self.gates[item].wait()
        if item.startswith("stuck/"):
            await self.stuck.wait()

    def put(self, *items: str) -> None:
        """Queue items under keys of their own."""
        for item in items:
            self._put(item, item)

    def begun_of(self, namespace: str) -> list[str]:
        return [item for item in self.begun if item.startswith(f"{namespace}/")]


def numbered(namespace: str, count: int) -> list[str]:
    return [f"{namespace}/{number}" for number in range(count)]


async def settled() -> None:
    """As many turns of the event loop as a few workers need."""
    for _ in range(20):
        await asyncio.sleep(0)


async def test_the_latest_item_of_a_key_is_written_and_only_once_the_one_before_it_is() -> None:
    desk = Desk(2)
    desk.gates["a1"] = asyncio.Event()
    desk.start()
    desk._put("a", "a1")
    await settled()
    for item in ("a2", "a3"):
        desk._put("a", item)
    desk._put("b", "b1")
    await settled()
    assert desk.begun == ["a1", "b1"]
    desk.gates["a1"].set()
    await desk.idle.wait()
    assert desk.begun == ["a1", "b1", "a3"]
    assert await desk.close(1.0) == 0


@pytest.mark.parametrize("workers", [1, 2, 16])
async def test_all_workers_are_at_work_where_there_is_enough_for_them(workers: int) -> None:
    desk = Desk(workers)
    desk.start()
    await settled()
    for number in range(workers + 1):
        desk.gates[f"item {number}"] = asyncio.Event()
        desk.put(f"item {number}")
    await settled()
    assert desk.begun == [f"item {number}" for number in range(workers)]
    for gate in desk.gates.values():
        gate.set()
    await desk.idle.wait()
    assert len(desk.begun) == workers + 1
    await desk.close(1.0)


async def test_an_item_wakes_one_worker() -> None:
    desk = Desk(16)
    desk.start()
    await settled()
    resting = len(desk._resting)
    desk.put("a1")
    assert (resting, len(desk._resting)) == (len(desk.tasks), resting - 1)
    await desk.idle.wait()
    await desk.close(1.0)


async def test_a_key_that_pauses_holds_up_no_other_and_the_end_does_not_wait_for_its_pause() -> None:
    desk = Desk(1)
    desk.paused_until["a"] = 1000.0
    desk.start()
    desk.put("a")
    await settled()
    desk.put("b")
    await settled()
    assert desk.begun == ["b"]
    assert await desk.close(5.0) == 0
    assert desk.begun == ["b", "a"]


async def test_a_key_that_pauses_is_written_when_its_pause_is_over() -> None:
    desk = Desk(1)
    desk.paused_until["a"] = 0.01
    desk.start()
    desk.put("a")
    await settled()
    assert desk.begun == []
    desk.clock = lambda: 0.02
    await desk.idle.wait()
    assert desk.begun == ["a"]
    await desk.close(1.0)


async def test_a_write_that_breaks_ends_no_worker(caplog: pytest.LogCaptureFixture) -> None:
    desk = Desk(1)
    desk.start()
    desk.put("broken", "b1")
    await desk.idle.wait()
    assert (desk.begun, desk.counts.failed) == (["broken", "b1"], 1)
    assert "status of broken not written" in caplog.messages
    await desk.close(1.0)


@pytest.mark.parametrize("workers", [1, 3])
async def test_a_worker_that_breaks_outside_of_a_write_begins_anew_and_says_so(
    workers: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "RESTART_SECONDS", 0.0)
    desk, asked = Desk(workers), Counter[str]()

    def cannot_tell_at_first(key: str) -> float:
        asked[key] += 1
        if asked[key] == 1:
            raise ValueError(f"a defect with {key}")
        return 0.0

    monkeypatch.setattr(desk, "_not_before", cannot_tell_at_first)
    desk.start()
    desk.put("a", "b", "c", "d")
    await desk.idle.wait()
    assert desk.restarts == 4
    assert sorted(desk.begun) == ["a", "b", "c", "d"]
    assert not any(task.done() for task in desk.tasks)
    assert "a defect with d" in caplog.text
    assert await desk.close(1.0) == 0


async def test_a_worker_that_cannot_choose_is_no_burden_on_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """What raises for good is asked again after a pause, and not in each turn."""
    desk, asked = Desk(2), 0

    def cannot_tell(_key: str) -> float:
        nonlocal asked
        asked += 1
        raise ValueError("a defect")

    monkeypatch.setattr(desk, "_not_before", cannot_tell)
    desk.start()
    desk.put("a")
    for _ in range(10):
        await settled()
    assert 1 <= asked <= len(desk.tasks)
    await desk.close(0.0)


async def test_closing_counts_what_waits_and_what_was_not_written_to_its_end() -> None:
    desk = Desk(1)
    desk.gates["a"] = asyncio.Event()
    desk.start()
    desk.put("a", "b")
    await settled()
    assert await desk.close(0.0) == 2


# --- several namespaces ------------------------------------------------------------------------------------------------------------------


async def test_a_namespace_that_is_answered_slowly_leaves_workers_to_others() -> None:
    desk = Desk(4)
    desk.put(*numbered("stuck", 500))
    desk.start()
    await settled()
    assert len(desk.begun_of("stuck")) == 4, "as many as it would have alone"
    desk.put(*numbered("healthy", 100))
    for _ in range(20):
        await settled()
    assert desk.begun_of("healthy") == numbered("healthy", 100)
    desk.stuck.set()
    await desk.idle.wait()
    assert desk.begun_of("stuck") == numbered("stuck", 500)
    await desk.close(1.0)


async def test_namespaces_take_turns_however_much_one_of_them_wants_written() -> None:
    desk = Desk(1)
    desk.put(*numbered("flood", 1000), *numbered("other", 3))
    desk.start()
    await desk.idle.wait()
    assert [desk.begun.index(f"other/{number}") for number in range(3)] == [1, 3, 5]
    await desk.close(1.0)


async def test_what_owners_take_out_is_forgotten_though_its_namespace_is_stuck() -> None:
    """A flood of a stuck namespace's notes, of which the oldest are dropped, must not pile up anywhere."""
    desk = Desk(4)
    desk.start()
    for number, item in enumerate(numbered("stuck", 5000)):
        desk.put(item)
        if len(desk.waiting) > 50:
            desk._take_out(next(iter(desk.waiting)))
        if number % 500 == 0:
            await settled()
    assert sum(map(len, desk._lines.values())) == len(desk.waiting) <= 50
    desk.stuck.set()
    await desk.idle.wait()
    assert desk.begun[-50:] == numbered("stuck", 5000)[-50:]
    assert not desk._lines, "a namespace without an item leaves nothing behind"
    await desk.close(1.0)
