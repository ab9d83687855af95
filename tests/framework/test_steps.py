"""How long each part of an attempt took, on a clock that a test moves."""

from __future__ import annotations

import pytest

from placewright.framework.status import Code
from placewright.framework.steps import PluginStep, Step, Steps
from placewright.testing import VirtualTime


def test_steps_follow_each_other_and_a_step_begins_where_the_last_ended() -> None:
    clock = VirtualTime()
    steps = Steps(clock)
    clock.now += 1
    steps.end("PreFilter")
    clock.now += 2
    steps.end("Filter", Code.UNSCHEDULABLE)
    assert steps.taken == [Step("PreFilter", 100, 1, Code.SUCCESS), Step("Filter", 101, 2, Code.UNSCHEDULABLE)]


def test_time_between_an_end_and_a_new_beginning_is_nobodys() -> None:
    clock = VirtualTime()
    steps = Steps(clock)
    clock.now += 5
    steps.begin()
    clock.now += 1
    steps.end("Score")
    assert steps.taken == [Step("Score", 105, 1, Code.SUCCESS)]


@pytest.mark.parametrize("outcome", [Code.SUCCESS, Code.UNSCHEDULABLE])
def test_what_is_done_inside_is_a_step_with_the_outcome_that_is_set(outcome: Code) -> None:
    clock = VirtualTime()
    steps = Steps(clock)
    clock.now += 3
    with steps.step("Bind") as step:
        clock.now += 1
        step.outcome = outcome
    assert steps.taken == [Step("Bind", 103, 1, outcome)]


def test_a_step_that_raises_ends_with_an_error_whatever_was_set() -> None:
    clock = VirtualTime()
    steps = Steps(clock)

    def fail() -> None:
        with steps.step("Bind") as step:
            step.outcome = Code.SKIP
            clock.now += 1
            raise ValueError("eh")

    with pytest.raises(ValueError, match="eh"):
        fail()
    assert steps.taken == [Step("Bind", 100, 1, Code.ERROR)]


def test_a_step_without_a_word_is_a_success() -> None:
    steps = Steps(VirtualTime())
    with steps.step("Bind"):
        pass
    assert [step.outcome for step in steps.taken] == [Code.SUCCESS]


def test_plugins_are_timed_one_after_the_other_on_a_mark_of_their_own() -> None:
    clock = VirtualTime()
    steps = Steps(clock, plugins=True)
    clock.now += 1
    steps.plugin_begins()
    clock.now += 2
    steps.plugin_ended("A", "Filter")
    clock.now += 3
    steps.plugin_ended("B", "Filter", Code.SKIP)
    steps.end("Filter")
    assert steps.plugins == [PluginStep("A", "Filter", 2, Code.SUCCESS), PluginStep("B", "Filter", 3, Code.SKIP)]
    assert steps.taken == [Step("Filter", 100, 6, Code.SUCCESS)]


@pytest.mark.parametrize(("clock", "plugins"), [(None, False), (None, True), (VirtualTime(), False)])
def test_nothing_is_noted_of_plugins_where_nobody_wants_to_know(clock: VirtualTime | None, plugins: bool) -> None:
    steps = Steps(clock, plugins=plugins)
    steps.plugin_begins()
    steps.plugin_ended("A", "Filter")
    assert steps.plugins is None


def test_without_a_clock_nothing_is_noted() -> None:
    steps = Steps()
    steps.begin()
    steps.end("Filter")
    with steps.step("Bind"):
        pass
    assert steps.taken == []
    assert (steps.skip_filter, steps.skip_score) == (frozenset(), frozenset())


def test_who_wants_no_plugins_times_does_not_look_at_the_clock_for_them() -> None:
    looks: list[int] = []
    steps = Steps(lambda: float(looks.append(1) or len(looks)))
    steps.plugin_begins()
    steps.plugin_ended("A", "Filter")
    assert len(looks) == 1
