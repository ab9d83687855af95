"""Collections that only a plugin of another package reads: polled or watched, bounded, let go of when stale, and in nobody's way."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from fake_api import FakeApi, Step, a_node, answer, listing, refuse, stream
from recording import RecordingSink

from placewright.api.objects import Node
from placewright.kube.errors import RetryBackoff
from placewright.kube.optionalterms import ObjectBytes, OptionalTerms
from placewright.kube.reflector import Reflector, Reflectors, Source

SAMPLES = "/apis/metrics.example/v1/nodes"
FORBIDDEN = refuse(403, "Forbidden")


class Polled:
    """A fake server, and one reflector of samples whose waits the test lets pass."""

    def __init__(self, api: FakeApi, terms: OptionalTerms) -> None:
        self.api = api
        self.now = 0.0
        self.sink = RecordingSink()
        self.waits: asyncio.Queue[float] = asyncio.Queue()
        self._go_on = asyncio.Semaphore(0)
        self.reflector = Reflector(
            api.client(), Source(SAMPLES, Node, optional=terms), self.sink,
            backoff=RetryBackoff(1.0, 1.0), sleep=self._sleep, clock=lambda: self.now,
        )  # fmt: skip
        self.group = Reflectors([self.reflector])

    async def _sleep(self, seconds: float) -> None:
        self.waits.put_nowait(seconds)
        await self._go_on.acquire()
        self.now += seconds

    async def waiting(self) -> float:
        """Return how long the reflector waits now."""
        async with asyncio.timeout(5):
            return await self.waits.get()

    def pass_the_wait(self) -> None:
        self._go_on.release()

    async def next_wait(self) -> None:
        """Let the present wait pass, and what follows it, until the reflector waits again."""
        self.pass_the_wait()
        await self.waiting()

    def lists(self, *steps: Step) -> None:
        self.api.on(f"GET {SAMPLES}", *steps)


@asynccontextmanager
async def polled(terms: OptionalTerms) -> AsyncIterator[Polled]:
    async with FakeApi() as api:
        made = Polled(api, terms)
        yield made
        await made.group.stop()
        await made.reflector.client.close()


def sample(name: str, version: str = "") -> dict[str, object]:
    """As metrics-server shows it: without resourceVersion and uid."""
    return {"metadata": {"name": name, "resourceVersion": version}}


async def test_a_polled_collection_is_listed_at_each_beat_and_never_watched() -> None:
    async with polled(OptionalTerms("LoadAware", poll_seconds=30.0)) as at:
        at.lists(answer(listing(sample("a"), version="")), answer(listing(sample("b"), version="")))
        at.group.start()
        assert await at.waiting() == 30.0
        at.pass_the_wait()
        assert await at.waiting() == 30.0
        assert at.sink.heard == [("added", "a"), ("synced",), ("added", "b"), ("deleted", "a"), ("synced",)]
        assert at.api.asked("WATCH") == []


async def test_a_list_that_is_asked_for_does_not_wait_for_the_beat() -> None:
    async with polled(OptionalTerms("LoadAware", poll_seconds=30.0)) as at:
        at.lists(answer(listing(sample("a"))))
        at.group.start()
        await at.waiting()
        async with asyncio.timeout(5):
            await at.reflector.list_anew()
        assert at.reflector.counts.lists == 2


async def test_nobody_waits_for_a_collection_that_may_not_be_read_and_one_line_says_who_does_without(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    async with polled(OptionalTerms("LoadAware", poll_seconds=30.0)) as at:
        at.lists(FORBIDDEN)
        at.group.start()
        async with asyncio.timeout(5):
            await at.group.wait_synced()
        for _ in range(3):
            await at.waiting()
            at.pass_the_wait()
        await at.waiting()
    said = [each for each in caplog.messages if each.startswith(SAMPLES)]
    assert len(said) == 1
    assert "403" in said[0] and said[0].endswith("it is read again, and LoadAware does without")


async def test_a_watched_optional_collection_is_waited_for_until_its_first_list() -> None:
    async with polled(OptionalTerms("Quota")) as at:
        forever = asyncio.Event()
        at.lists(answer(listing(a_node("a"))))
        at.api.on(f"WATCH {SAMPLES}", stream(forever))
        at.group.start()
        async with asyncio.timeout(5):
            await at.group.wait_synced()
        assert at.sink.heard[0] == ("added", "a")
        await at.api.until_asked("WATCH")
        forever.set()


async def test_objects_that_could_not_be_read_for_too_long_are_told_as_deleted_once_and_come_back(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    async with polled(OptionalTerms("LoadAware", poll_seconds=30.0, stale_after_seconds=2.0)) as at:
        at.lists(answer(listing(sample("a"))), *[FORBIDDEN] * 3, answer(listing(sample("a"))))
        at.group.start()
        await at.waiting()
        await at.next_wait()  # after the first refusal
        await at.next_wait()
        assert at.sink.heard[2:] == []
        at.now += 2.0
        await at.next_wait()
        assert at.sink.heard[2:] == [("deleted", "a"), ("synced",)]
        await at.next_wait()
        assert at.sink.heard[4:] == [("added", "a"), ("synced",)]
    assert sum("its objects are too old, so LoadAware does without" in each for each in caplog.messages) == 1


async def test_objects_without_a_limit_of_age_stay_as_they_were_read() -> None:
    async with polled(OptionalTerms("Quota", poll_seconds=30.0)) as at:
        at.lists(answer(listing(sample("a"))), FORBIDDEN)
        at.group.start()
        for _ in range(5):
            await at.waiting()
            at.now += 3600.0
            at.pass_the_wait()
        assert set(at.reflector.store) == {"a"}


async def test_objects_beyond_the_bytes_that_a_source_may_take_are_left_out_with_one_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    names = [f"node-{number}" for number in range(20)]
    async with polled(OptionalTerms("LoadAware", poll_seconds=30.0, most_bytes=4096)) as at:
        at.lists(answer(listing(*map(sample, names))))
        at.group.start()
        for _ in range(3):
            await at.waiting()
            at.pass_the_wait()
        await at.waiting()
        kept = set(at.reflector.store)
        assert kept < set(names) and kept
        assert at.reflector._bytes.total <= 4096
        assert {name for what, *name in at.sink.heard if what == "deleted"} == set()
    assert sum("more than 4096 bytes: LoadAware does without" in each for each in caplog.messages) == 1


def test_bytes_are_counted_for_the_latest_form_of_each_object_and_given_back() -> None:
    room = ObjectBytes()
    small, large = "x" * 10, "x" * 1000
    assert room.admits("a", large, 4000)
    taken = room.total
    assert room.admits("a", small, 4000)
    assert room.total < taken
    assert not room.admits("b", "x" * 4000, 4000)
    room.drop("a")
    room.drop("a")
    assert room.total == 0
