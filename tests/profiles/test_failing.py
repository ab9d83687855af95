"""The condition PluginFailing: when it is True, when it ceases, and how often it is written anew."""

from __future__ import annotations

import pytest

from placewright.api.objects import Condition
from placewright.framework.runtime.guard import PluginFailures
from placewright.profiles.profilestate import QUIET_SECONDS, TELL_SECONDS, PluginFailing, ProfileStanding, Reason, status_of


class Case:
    """One profile with a clock that stands still; each answer is taken for written."""

    def __init__(self, *shown: Condition) -> None:
        self.now = 1000.0
        self.failures = PluginFailures()
        self.shown: tuple[Condition, ...] = shown
        self._condition = PluginFailing(lambda: self.now)

    def look(self, generation: int = 4) -> Condition | None:
        found = self._condition.condition(generation, self.failures, self.shown)
        self.shown = () if found is None else (found,)
        return found

    def fail(self, plugin: str = "Boom", point: str = "Filter", problem: str = "ValueError: eh") -> None:
        self.failures.note(plugin, point, problem)


def test_a_profile_whose_plugins_never_failed_has_no_such_condition() -> None:
    assert Case().look() is None


def test_a_failure_is_told_with_plugin_point_count_and_the_last_message() -> None:
    case = Case()
    case.fail(problem="ValueError: first")
    case.fail(problem="ValueError: second")
    case.fail("Slow", "Score", "KeyError: 'x'")
    told = case.look()
    assert told is not None
    assert (told.type, told.status, told.reason, told.observed_generation) == ("PluginFailing", "True", "PluginFailed", 4)
    assert told.message == (
        'Filter plugin "Boom" failed 2 times, last: ValueError: second; Score plugin "Slow" failed 1 time, last: KeyError: \'x\''
    )


def test_many_failing_calls_are_summed_up() -> None:
    case = Case()
    for number in range(9):
        case.fail(f"P{number}")
    told = case.look()
    assert told is not None
    assert told.message.endswith("; and 6 more")


def test_while_it_stays_true_it_is_not_made_anew_at_every_look() -> None:
    case = Case()
    case.fail()
    first = case.look()
    different = set()
    for _ in range(100):
        case.now += TELL_SECONDS / 10
        case.fail()
        told = case.look()
        assert told is not None
        different.add(told.message)
    assert first is not None
    assert len(different) <= 11


def test_it_ends_when_nothing_has_failed_for_a_while_and_comes_back() -> None:
    case = Case()
    case.fail()
    case.look()
    case.now += QUIET_SECONDS - 1
    assert (case.look() or Condition()).status == "True"
    case.now += 1
    assert case.look() == Condition(
        "PluginFailing", "False", "NoFailures", "no plugin has failed for 5 minutes under generation 4", observed_generation=4
    )
    case.fail()
    assert (case.look() or Condition()).status == "True"


def test_another_generation_begins_without_failures() -> None:
    case = Case()
    case.fail()
    case.look(4)
    case.failures = PluginFailures()
    told = case.look(5)
    assert told is not None
    assert (told.status, told.message) == ("False", "no plugin has failed under generation 5")
    case.fail()
    assert (case.look(5) or Condition()).status == "True"


@pytest.mark.parametrize(("generation", "status"), [(4, "True"), (5, "False")])
def test_what_the_replica_before_said_of_this_generation_stands_until_it_has_been_quiet(generation: int, status: str) -> None:
    before = Condition("PluginFailing", "True", "PluginFailed", "it said so", observed_generation=4)
    case = Case(before)
    told = case.look(generation)
    assert told is not None
    assert told.status == status
    case.now += QUIET_SECONDS
    assert (case.look(generation) or Condition()).status == "False"


@pytest.mark.parametrize(("failed", "passed", "every"), [(2, 0, False), (3, 0, True), (99, 0, True), (99, 1, False)])
def test_every_pod_fails_only_where_several_were_tried_and_none_passed(failed: int, passed: int, every: bool) -> None:
    case = Case()
    case.fail()
    for number in range(failed):
        for _ in range(5):  # tried again and again
            case.failures.attempted(f"uid-{number}", failed=True)
    for number in range(passed):
        case.failures.attempted(f"fine-{number}", failed=False)
    told = case.look()
    assert told is not None
    assert told.reason == ("EveryPodFails" if every else "PluginFailed")
    standing = ProfileStanding("p", "x", 4, 4, Reason.ACTIVE, "generation 4 places the pods of schedulerName 'x'")
    ready = next(each for each in status_of(standing, (), "now", failing=told)["conditions"] if each["type"] == "Ready")
    assert (ready["status"], ready["reason"]) == (("False", "EveryPodFails") if every else ("True", "Active"))
    assert every == (ready["message"] == told.message)


def test_attempts_that_fail_without_a_plugin_fail_no_generation() -> None:
    case = Case()
    for number in range(9):
        case.failures.attempted(f"uid-{number}", failed=True)
    assert not case.failures.every_pod
    assert case.look() is None
