"""`check_plugin` goes red for each broken promise with a sentence that names it, and says what it could not look at."""

from __future__ import annotations

import random
from collections.abc import Collection
from typing import Any

import pytest

from placewright.api.objects import Node
from placewright.api.pods import PodInfo
from placewright.framework.interface import Plugin
from placewright.framework.scalar import ScalarFilter
from placewright.framework.status import SUCCESS, Status, unschedulable
from placewright.plugins.imagelocality import ImageLocality
from placewright.plugins.schedulinggates import SchedulingGates
from placewright.profiles.problem import ProfileError
from placewright.testing import BrokenPromiseError, PluginCase, Promise, World, bindingpoints, check_plugin, node, pod, random_pod
from randomcases import some
from seeds import seeds
from testing import brokenplugins as broken


def broken_by(plugin: type[Plugin], **given: Any) -> BrokenPromiseError:
    with pytest.raises(BrokenPromiseError) as red:
        check_plugin(plugin, **given)
    return red.value


@pytest.mark.parametrize(
    ("plugin", "promise", "point", "says"),
    some(
        [
            (broken.AnswersNumbers, Promise.ANSWERS, "Filter", "found an array of int64, shape"),
            (broken.DrawsLots, Promise.REPEATS, "Filter", ": filter gives two answers when it is asked twice: ["),
            (broken.DrawsScores, Promise.REPEATS, "Score", ": score gives two answers when it is asked twice: ["),
            (broken.ClosesAtNight, Promise.REPEATS, "Filter", "days later, so it reads a clock; self.handle.now() is the time of day: ["),
            (broken.ClosesOnWeekends, Promise.REPEATS, "Filter", ": filter gives another answer "),
            (broken.AgesInPreFilter, Promise.REPEATS, "Filter", ": filter gives another answer "),
            (broken.ScoresTooHigh, Promise.RANGE, "Score", " gets 1"),
            (broken.RanksRows, Promise.ROWS, "Score", "among all nodes and 0 alone"),
            (broken.ExplainsOne, Promise.EXPLAIN, "Filter", "allowed each of the 2 rows in exactly one Rejection from explain"),
            (broken.ReadsTooLittle, Promise.READS, "Score", "because it says reads = Reads.NODE"),
            (broken.StaleFingerprint, Promise.FINGERPRINT, "Score", "because its fingerprint is the same"),
            (broken.Remembers, Promise.MEMORY, "Filter", "because the plugin remembers something of its own"),
            (broken.SignsNothing, Promise.SIGN, "Sign", "have the same signature and differ in spec.priority, and"),
            (broken.SleepsOn, Promise.HINTS, "QueueingHint", "goes on waiting although pod "),
            (broken.LabelsNodes, Promise.UNTOUCHED, "Score", "metadata.labels.example.com/seen was absent and is"),
            (
                broken.WritesColumns,
                Promise.UNTOUCHED,
                "Score",
                "it wrote into the column cluster.pod_count: row 0 (node n0) was 0 and is 1",
            ),
            (broken.Raises, Promise.ANSWERS, "Filter", "KeyError: 'example.com/rack'"),
            (broken.HintRaises, Promise.ANSWERS, "QueueingHint", "AssertionError"),
            (broken.GatesForGood, Promise.HINTS, "QueueingHint", "is there and PreEnqueue accepts it now"),
            (broken.JudgesOtherwise, Promise.ROWS, "Filter", "and an earlier judge says False"),
            (broken.SortsByText, Promise.ANSWERS, "QueueSort", "allowed a tuple that compares with those of other pods"),
            (broken.BindsInVain, Promise.ANSWERS, "Bind", "found None; allowed a Status: Success, Skip, "),
            (broken.KeepsWhatItTook, Promise.UNRESERVE, "Unreserve", "after Reserve and Unreserve of pod default/w0 on node n0, "),
        ]
    ),
)
def test_each_broken_promise_is_named_with_its_point_and_what_was_found(
    plugin: type[Plugin], promise: Promise, point: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bindingpoints, "_PATIENCE_SECONDS", 0.01)  # what BindsInVain waits for never happens
    monkeypatch.setattr(broken, "random", random.Random(0))  # each run draws the same lots
    red = broken_by(plugin)
    assert (red.promise, red.point, red.plugin) == (promise, point, plugin.name)
    first, second, *_ = str(red).splitlines()
    assert first == f"{plugin.name} breaks a promise at {point}: {promise.value}."
    assert second.startswith("Found with seed 0: ")
    assert says in second


@seeds(range(20))
def test_a_filter_that_draws_lots_is_told_so_whatever_it_draws_first(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broken, "random", random.Random(seed))
    red = broken_by(broken.DrawsLots)
    assert red.promise is Promise.REPEATS
    assert "Found with seed 0: filter gives two answers when it is asked twice: [" in str(red)


def test_what_a_plugin_raised_is_the_cause_of_the_error() -> None:
    cause = broken_by(broken.Raises).__cause__
    assert cause is not None
    assert isinstance(cause.__cause__, KeyError)


def test_a_plugin_that_keeps_its_promises_passes_and_the_report_says_what_was_looked_at() -> None:
    report = check_plugin(broken.TwoPods, clusters=5)
    assert report.unreached == ()
    assert report.rejected > 100
    assert report.told_apart > 50
    looked_at = set(Promise) - {Promise.RETURNS, Promise.FINGERPRINT, Promise.MEMORY, Promise.UNRESERVE}
    assert {promise for promise, cases in report.cases.items() if cases >= 5} == looked_at
    assert report.times["Filter"].mean_on_many is not None
    assert "TwoPods: 5 random clusters, seed 0\n  it rejected " in str(report)


def test_the_example_is_small_and_an_equal_seed_finds_it_again() -> None:
    red, again = broken_by(broken.SleepsOn, seed=3), broken_by(broken.SleepsOn, seed=3)
    assert str(red) == str(again)
    assert red.example.splitlines() == [
        "  pod default/w0 waits: {}",
        "  node n0 is there: {}",
        "  pod default/s1 stands on node n0: {}",
        "  pod default/s4 stands on node n0: {}",
        "  then pod default/s4 is deleted",
    ]
    assert broken_by(broken.SleepsOn, seed=4).seed == 4


class QuietPods(ScalarFilter):
    """Keeps pods that ask for quiet away from nodes that are loud."""

    name = "QuietPods"

    def filter_node(self, pod: PodInfo, node: Node, pods: Collection[PodInfo]) -> Status:
        quiet = (pod.pod.metadata.annotations or {}).get("example.com/quiet")
        return unschedulable("node(s) were loud") if quiet and "loud" in (node.metadata.labels or {}) else SUCCESS


def test_a_filter_that_never_rejected_anything_is_said_so_and_makers_reach_it() -> None:
    [unreached] = check_plugin(QuietPods, clusters=3).unreached
    assert unreached.startswith("filter never rejected any of ")
    assert unreached.endswith("so its reasons and events were not looked at: hand in `pods`, `nodes` or `objects` that it rejects")

    def quiet(dice: random.Random) -> PodInfo:
        return random_pod(dice).annotated({"example.com/quiet": dice.choice(("yes", None))})

    def loud(dice: random.Random) -> Any:
        return node("n").labels(loud="yes") if dice.random() < 0.5 else node("n")

    report = check_plugin(QuietPods, clusters=6, pods=quiet, nodes=loud)
    assert (report.unreached, report.rejected > 50) == ((), True)


def test_makers_that_are_not_built_are_built() -> None:
    report = check_plugin(broken.TwoPods, clusters=1, pods=lambda dice: pod("p").priority(dice.randrange(2)))
    assert report.cases[Promise.SIGN]


def test_a_change_of_a_pod_that_a_maker_made_is_news_to_the_queue() -> None:
    report = check_plugin(SchedulingGates, clusters=4, pods=lambda dice: pod("p").gates(*dice.sample("gh", dice.randrange(3))))
    assert report.gated > 30
    assert report.cases[Promise.HINTS]


def test_a_score_that_tells_no_nodes_apart_is_said_so() -> None:
    report = check_plugin(ImageLocality, clusters=1, nodes=lambda _dice: node("n"))
    assert [each.partition(" ")[0] for each in report.unreached] == ["score"]


def test_arguments_are_checked_as_a_profile_s_are() -> None:
    with pytest.raises(ProfileError, match=r"args\.most: found an unknown field; allowed no fields"):
        check_plugin(broken.TwoPods, args={"most": 2})


async def test_it_may_be_called_where_an_event_loop_runs() -> None:
    assert check_plugin(broken.TwoPods, clusters=1).clusters == 1


class NotAPlugin:
    name = "NotAPlugin"


@pytest.mark.parametrize("made", [PluginCase, World, check_plugin])
@pytest.mark.parametrize(("given", "found"), [(NotAPlugin, "found the class NotAPlugin;"), ("Fit", "found 'Fit';")])
def test_what_is_no_plugin_is_a_sentence(made: Any, given: Any, found: str) -> None:
    with pytest.raises(TypeError, match=f"^plugin: {found} allowed a class that extends an extension point"):
        made(given)
