"""What is left out is counted: written lines and the numbers of those that were not add up to all."""

from __future__ import annotations

import gc
import itertools
import logging
import weakref

import pytest
from hypothesis import given
from hypothesis import strategies as st

from observability.logging_makers import raised, record
from placewright.api.extenders import ExtenderError
from placewright.kube.errors import AwayNotice, Unreachable
from placewright.observability.logs import FEW, SECONDS, Repeats
from placewright.testing import FakeExtender, VirtualTime
from scheduler.makers import World, node, pod


class Listener:
    """A filter, and what came through it."""

    def __init__(self, most: int = 100) -> None:
        self.clock = VirtualTime(1000.0)
        self.repeats = Repeats(self.clock, most)
        self.written: list[logging.LogRecord] = []

    def say(self, made: logging.LogRecord) -> bool:
        passed = bool(self.repeats.filter(made))
        if passed:
            self.written.append(made)
        return passed

    def tell(self, *, everything: bool = False) -> list[logging.LogRecord]:
        summaries = self.repeats.summaries(everything=everything)
        self.written += summaries
        return summaries

    def accounted(self) -> int:
        """Written as they came, and told to be left out."""
        own = sum(not made.getMessage().startswith(("again: ", "lines of many kinds")) for made in self.written)
        return own + sum(getattr(made, "left_out", 0) for made in self.written)


def test_a_few_are_written_then_one_a_minute_that_says_how_many_were_not() -> None:
    heard = Listener()
    assert [heard.say(record("API server is away")) for _ in range(FEW + 7)] == [True] * FEW + [False] * 7
    heard.clock.now += SECONDS
    assert heard.say(record("API server is away"))
    assert heard.written[-1].__dict__["left_out"] == 7
    assert not heard.say(record("API server is away"))


def test_a_kind_that_was_quiet_is_new_again() -> None:
    heard = Listener()
    for _ in range(FEW):
        heard.say(record("away"))
    heard.clock.now += SECONDS
    assert [heard.say(record("away")) for _ in range(FEW + 1)] == [True] * FEW + [False]


def test_other_texts_levels_and_loggers_are_other_kinds() -> None:
    heard = Listener()
    for _ in range(FEW + 1):
        heard.say(record("pod %s was ignored", "a"))
    assert heard.say(record("pod %s was ignored", "b"))
    assert heard.say(record("pod %s was ignored", "a", level=logging.ERROR))
    assert heard.say(record("pod %s was ignored", "a", name="other"))


def test_lines_about_the_same_thing_are_one_kind_whatever_else_they_say() -> None:
    heard = Listener()
    passed = [heard.say(record("pod %s: extender %s is passed over", f"pod-{i}", "slow", about="slow")) for i in range(FEW + 2)]
    assert passed == [True] * FEW + [False] * 2
    assert heard.say(record("pod %s: extender %s is passed over", "pod", "other", about="other"))


def test_a_line_that_repeats_nothing_is_always_written() -> None:
    heard = Listener()
    assert all(heard.say(record("pod placed", about=None)) for _ in range(1000))
    assert len(heard.repeats) == 0


def test_an_exception_of_a_new_kind_or_from_a_new_place_is_written() -> None:
    heard = Listener()
    for _ in range(FEW + 1):
        with raised(ValueError("x")) as info:
            last = heard.say(record("a plugin broke", level=logging.ERROR, exc_info=info))
    assert not last
    with raised(KeyError("x")) as info:
        assert heard.say(record("a plugin broke", level=logging.ERROR, exc_info=info))
    with pytest.raises(ValueError, match="could not convert") as elsewhere:
        float("x")
    assert heard.say(record("a plugin broke", level=logging.ERROR, exc_info=(ValueError, elsewhere.value, elsewhere.tb)))


def test_what_was_left_out_is_told_when_nothing_follows() -> None:
    heard = Listener()
    for _ in range(FEW + 4):
        heard.say(record("pod %s", "web", level=logging.WARNING, name="a"))
    assert heard.tell() == []
    heard.clock.now += SECONDS
    (summary,) = heard.tell()
    assert (summary.getMessage(), summary.levelname, summary.name, summary.__dict__["left_out"]) == ("again: pod web", "WARNING", "a", 4)
    assert len(heard.repeats) == 0


steps = st.lists(st.tuples(st.integers(0, 12), st.sampled_from([0.0, 0.1, 5.0, 30.0, 61.0]), st.booleans()), max_size=200)


@given(steps=steps)
def test_written_and_counted_lines_add_up_to_all_and_memory_is_bounded(steps: list[tuple[int, float, bool]]) -> None:
    heard = Listener(most=4)
    for kind, gap, beat in steps:
        heard.clock.now += gap
        heard.say(record(f"kind {kind}"))
        if beat:
            heard.tell()
        assert len(heard.repeats) <= 4
    heard.tell(everything=True)
    assert heard.accounted() == len(steps)


@given(gaps=st.lists(st.floats(0, 40), min_size=20, max_size=100))
def test_after_a_few_no_kind_is_written_more_often_than_once_a_minute(gaps: list[float]) -> None:
    heard = Listener()
    times = []
    for gap in gaps:
        heard.clock.now += gap
        times += [heard.clock.now] * len(heard.tell())
        if heard.say(record("away")):
            times.append(heard.clock.now)
    late = times[FEW - 1 :]
    assert all(after - before >= SECONDS for before, after in itertools.pairwise(late))


def test_what_is_remembered_of_a_line_keeps_nothing_else_alive() -> None:
    class Large:
        """Stands for what an argument, or a frame of a traceback, may hold."""

    heard = Listener()
    alive: weakref.WeakSet[Large] = weakref.WeakSet()
    for _ in range(FEW + 2):
        large = Large()
        alive.add(large)
        with raised(ValueError("x")) as info:
            heard.repeats.filter(record("broke %s", "web", exc_info=info, held=large))
        del large, info
    gc.collect()
    assert (len(heard.repeats), len(alive)) == (1, 0)


def test_a_summary_counts_as_the_line_of_its_minute() -> None:
    heard = Listener()
    for _ in range(FEW + 1):
        heard.say(record("away"))
    heard.clock.now += SECONDS - 1
    heard.say(record("away"))
    heard.clock.now += 1
    assert [made.__dict__["left_out"] for made in heard.tell()] == [2]
    assert not heard.say(record("away"))


async def test_an_extender_that_is_passed_over_for_every_pod_is_one_kind(caplog: pytest.LogCaptureFixture) -> None:
    world = World().nodes(node("a")).pods(*(pod(f"web-{i}") for i in range(FEW + 3)))
    away = FakeExtender("http://slow", ignorable=True)
    away.fail(ExtenderError("is away"), "filter", "prioritize", always=True)
    world.use_profile(asking=[away])
    for _ in range(FEW + 3):
        await world.attempt()
    heard = Listener()
    said = [heard.say(made) for made in caplog.records if made.name == "placewright.scheduler.extendedcycle"]
    assert len(said) == FEW + 3
    assert said == [True] * FEW + [False] * 3


def test_an_api_server_that_comes_and_goes_is_one_kind_each_way(caplog: pytest.LogCaptureFixture) -> None:
    clock = VirtualTime(1000.0)
    presence = AwayNotice("https://api:6443", clock)
    for number in range(FEW + 2):
        presence.failed(Unreachable(f"refused {number}"))
        clock.now += number
        presence.answered()
    heard = Listener()
    said = [heard.say(made) for made in caplog.records]
    assert said == [True] * 2 * FEW + [False] * 4, [made.getMessage() for made in caplog.records]


def test_even_kinds_without_end_are_counted_and_cost_bounded_memory() -> None:
    heard = Listener(most=8)
    for number in range(2000):
        for _ in range(FEW + 1):
            heard.say(record(f"kind {number}"))
    assert len(heard.repeats) == 8
    summaries = heard.tell(everything=True)
    assert len(summaries) < 100
    assert heard.accounted() == 2000 * (FEW + 1)
