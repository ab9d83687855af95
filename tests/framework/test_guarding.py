"""The guard between the framework and plugins that are not ours: who is watched, what is counted, what nobody can spoil for others."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import numpy as np
import pytest

from framework.scripts import Script, bare
from placewright.api.bad_input import InputError
from placewright.api.errors import BindError
from placewright.api.objects import NodeName
from placewright.framework.errors import CycleError, PluginBuildError, PluginError, raised
from placewright.framework.events import Action, EventResource, QueueingHint, always, event_with_hint
from placewright.framework.interface import CycleState, Plugin, PreFilterResult, Reads, Rejection
from placewright.framework.registry import Registry
from placewright.framework.runtime.evaluation import Evaluator
from placewright.framework.runtime.guard import Call, Guarding, PluginFailures, is_ours, why
from placewright.framework.runtime.handle import ProfileHandle
from placewright.framework.status import SUCCESS, Status, error, unschedulable
from placewright.plugins.nodename import NodeName as NodeNamePlugin
from placewright.testing import node, pod

A = NodeName("a")


def failures_of(script: Script) -> PluginFailures:
    """What it has done wrong once a pod was evaluated and scored."""
    evaluator = bare(script).evaluator()
    with pytest.raises(CycleError):
        evaluator.score(evaluator.evaluate(pod("p").build()))
    return evaluator.runtime.failures


# --- who is watched -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("module", "ours"),
    [("placewright.plugins.x", True), ("placewright", True), ("placewrighter.x", False), ("somebodys.placewright", False), ("", False)],
)
def test_ours_is_what_comes_with_the_package(module: str, ours: bool) -> None:
    assert is_ours(type("P", (Plugin,), {"__module__": module})) is ours
    assert is_ours(NodeNamePlugin)


def test_what_ours_raise_passes_as_it_is_and_is_told_by_the_traceback() -> None:
    script = Script("A").filters().writing(__module__="placewright.plugins.a")
    script.told["filter"] = problem = ValueError("eh")
    evaluator = bare(script).evaluator()
    with pytest.raises(ValueError, match="eh") as broken:
        evaluator.evaluate(pod("p").build())
    assert broken.value is problem
    assert evaluator.runtime.failures.total == 0


# --- what nobody can spoil for others -------------------------------------------------------------------------------------------------


def decide(evaluator: Evaluator) -> None:
    evaluation = evaluator.evaluate(pod("p").build())
    evaluator.diagnose(evaluation)
    evaluator.score(evaluation)


def spoiling(*asked: Any) -> Any:
    """Writes into the last array that it was given."""
    asked[-1][:] = 0


@pytest.mark.parametrize("reads", list(Reads))
@pytest.mark.parametrize(("method", "point"), [("filter", "Filter"), ("explain", "Filter"), ("score", "Score"), ("pre_score", "PreScore")])
def test_rows_are_not_a_plugins_to_write_into(reads: Reads, method: str, point: str) -> None:
    """The next plugin is asked about the same rows, and columns are mended by them."""
    rude = Script("A", reads=reads).filters({"b": unschedulable("no")}).pre_scores().scores()
    polite = Script("B").filters().scores({"b": 7})
    scene = bare(rude, polite, nodes="a b c")
    right = rude.told[method]
    rude.told[method] = spoiling
    evaluator = scene.evaluator()
    with pytest.raises(PluginError, match=f'running {point} plugin "A": ValueError: assignment destination is read-only'):
        decide(evaluator)
    rude.told |= {method: right, "verdict": {}}
    scene.with_nodes(node("b"))
    assert scene.evaluator().score(scene.evaluator().evaluate(pod("q").build())).tolist() == [0, 7, 0]


def test_raw_scores_are_not_a_plugins_to_sort_while_it_sums_them_up() -> None:
    def summarise(_self: Any, _state: Any, raw: Any) -> int:
        raw.sort()
        return int(raw[-1])

    script = Script("A", reads=Reads.CLUSTER).scores({"a": 4, "b": 2}, scaled=True).writing(summarise=summarise)
    assert failures_of(script).last == {("A", "NormalizeScore"): "ValueError: sort array is read-only"}


def test_an_array_that_a_plugin_keeps_is_not_the_column() -> None:
    kept = np.array([1, 2], np.int64)
    script = Script("A").scores()
    script.told["score"] = lambda *_: kept
    evaluator = bare(script).evaluator()
    assert evaluator.score(evaluator.evaluate(pod("p").build())).tolist() == [1, 2]
    kept[:] = 99
    assert evaluator.score(evaluator.evaluate(pod("q").build())).tolist() == [1, 2]


# --- a filter's word that its attempt fails -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (ValueError("eh"), "ValueError: eh"),
        (None, "found None; allowed a Status: Success, Error"),
        (unschedulable("no"), "found the status Unschedulable; allowed a Status: Success, Error"),
    ],
)
def test_who_says_that_an_attempt_fails_is_watched_as_well(answer: Any, problem: str) -> None:
    script = Script("A", reads=Reads.CLUSTER).filters({"b": unschedulable("no")}).says("failure", answer)
    evaluator = bare(script).evaluator()
    with pytest.raises(PluginError) as broken:
        evaluator.evaluate(pod("p").build())
    assert str(broken.value) == f'running Filter plugin "A": {problem}'
    assert evaluator.runtime.failures.last == {("A", "Filter"): problem}


def test_an_attempt_that_a_filter_ends_is_its_failure() -> None:
    script = Script("A", reads=Reads.CLUSTER).filters({"b": unschedulable("no")}).says("failure", error("lost"))
    assert failures_of(script).last == {("A", "Filter"): "lost"}


# --- what is counted ------------------------------------------------------------------------------------------------------------------


def test_failures_are_counted_by_plugin_and_point_and_heard_of() -> None:
    failures, heard = PluginFailures(), list[Call]()
    failures.heard = heard.append
    assert [failures.note("A", "Filter", "one"), failures.note("A", "Filter", "two"), failures.note("A", "Score", "three")] == [
        True, False, True
    ]  # fmt: skip
    assert (failures.total, failures.counts) == (3, {("A", "Filter"): 2, ("A", "Score"): 1})
    assert failures.last == {("A", "Filter"): "two", ("A", "Score"): "three"}
    assert heard == [Call("A", "Filter"), Call("A", "Filter"), Call("A", "Score")]


def test_a_thousand_pods_that_are_kept_out_are_remembered_until_they_are_told() -> None:
    failures = PluginFailures()
    for number in range(1003):
        failures.kept_out(pod(f"p{number}").build(), "no")
    failures.kept_out(pod("p0").build(), "no")
    assert [told.name for told, _ in failures.to_tell()] == [f"p{number}" for number in range(1000)]
    failures.kept_out(pod("again").build(), "yes")
    failures.kept_out(pod("again").build(), "no")
    assert [(told.name, message) for told, message in failures.to_tell()] == [("again", "no")]


def test_the_first_failure_of_a_call_is_logged_with_its_traceback_and_the_others_for_who_looks_closer(
    caplog: pytest.LogCaptureFixture,
) -> None:
    script = Script("A").pre_filters(ValueError("eh"))
    evaluator = bare(script).evaluator()
    with caplog.at_level(logging.DEBUG, "placewright.framework.runtime.guard"):
        for _ in range(2):
            with pytest.raises(PluginError):
                evaluator.evaluate(pod("p").build())
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("ERROR", 'profile p: running PreFilter plugin "A": ValueError: eh'),
        ("DEBUG", 'profile p: running PreFilter plugin "A": ValueError: eh'),
    ]
    assert all(record.exc_info and record.exc_info[1] is script.told["pre_filter"] for record in caplog.records)


@pytest.mark.parametrize(
    ("script", "call"),
    [
        (Script("A").pre_filters(error("x")), ("A", "PreFilter")),
        (Script("A").pre_scores(error("x")).scores(), ("A", "PreScore")),
        (Script("A").scores({"a": 101}), ("A", "Score")),
    ],
)
def test_what_ends_an_attempt_is_counted_once(script: Script, call: Any) -> None:
    failures = failures_of(script)
    assert (failures.counts, failures.total) == ({call: 1}, 1)


async def test_an_error_before_the_binding_is_counted_by_its_own_account() -> None:
    runtime = bare(Script("A").pre_binds(error("no disk")).binds(error("no api"))).evaluator().runtime
    assert not (await runtime.run_pre_bind(CycleState(), pod("p").build(), A)).ok
    assert not (await runtime.run_bind(CycleState(), pod("p").build(), A, {})).ok
    assert runtime.failures.last == {("A", "PreBind"): "no disk", ("A", "Bind"): "no api"}


def test_a_pod_that_a_failing_gate_keeps_out_is_counted_once() -> None:
    runtime = bare(Script("A").pre_enqueues(error("no idea"))).evaluator().runtime
    with pytest.raises(PluginError) as broken:
        runtime.run_pre_enqueue(pod("p").build())
    assert str(broken.value) == 'running PreEnqueue plugin "A": no idea'
    assert (broken.value.counted, runtime.failures.total) == (True, 1)


@pytest.mark.parametrize("status", [SUCCESS, unschedulable("closed")])
def test_a_gate_that_is_closed_is_no_failure(status: Status) -> None:
    runtime = bare(Script("A").pre_enqueues(status)).evaluator().runtime
    assert runtime.run_pre_enqueue(pod("p").build()).ok is status.ok
    assert runtime.failures.total == 0


@pytest.mark.parametrize("problem", [KeyboardInterrupt(), MemoryError("none left")])
def test_what_is_no_plugins_business_ends_more_than_it(problem: BaseException) -> None:
    """A person's interrupt passes, and a lack of memory, which ends the process."""
    evaluator = bare(Script("A").pre_filters(problem)).evaluator()
    with pytest.raises(type(problem)):
        evaluator.evaluate(pod("p").build())


@pytest.mark.parametrize("problem", [asyncio.CancelledError(), GeneratorExit(), SystemExit(1)])
def test_a_call_that_is_not_awaited_cannot_cancel_anything(problem: BaseException) -> None:
    evaluator = bare(Script("A").pre_filters(problem)).evaluator()
    with pytest.raises(PluginError, match=type(problem).__name__):
        evaluator.evaluate(pod("p").build())


async def test_who_awaits_may_be_cancelled_and_may_pass_on_what_the_api_server_said() -> None:
    for problem in (asyncio.CancelledError(), BindError("gone", unknown=True)):
        runtime = bare(Script("A").pre_binds(problem).binds(problem)).evaluator().runtime
        for run in (runtime.run_pre_bind(CycleState(), pod("p").build(), A), runtime.run_bind(CycleState(), pod("p").build(), A, {})):
            with pytest.raises(type(problem)) as seen:
                await run
            assert seen.value is problem
        assert runtime.failures.total == 0


def test_an_error_that_names_another_plugin_is_told_as_it_is() -> None:
    """A plugin may call others; who broke first is known."""
    evaluator = bare(Script("A").pre_filters(PluginError("B", "Filter", "eh"))).evaluator()
    with pytest.raises(PluginError, match='running Filter plugin "B": eh'):
        evaluator.evaluate(pod("p").build())
    assert evaluator.runtime.failures.counts == {("B", "Filter"): 1}


def test_a_plugin_that_breaks_while_it_asks_itself_is_counted_once() -> None:
    def ask(_state: Any, asked: Any, cluster: Any) -> Any:
        return evaluator.runtime.filter[0].filter(CycleState(), asked, cluster, np.arange(2))

    script = Script("A").pre_filters(ask).filters()
    script.told["filter"] = ValueError("eh")
    evaluator = bare(script).evaluator()
    with pytest.raises(PluginError, match='running Filter plugin "A": ValueError: eh'):
        evaluator.evaluate(pod("p").build())
    assert evaluator.runtime.failures.counts == {("A", "Filter"): 1}


def test_a_plugin_that_asks_itself_by_name_is_nobodys_business() -> None:
    def explain(self: Any, state: Any, pod: Any, cluster: Any, rows: Any) -> Any:
        assert not self.summarise(state=state, raw=rows)
        return [Rejection(unschedulable("no"), rows)]

    script = Script("A").filters({"a": unschedulable("no")}).scores().writing(explain=explain)
    evaluator = bare(script).evaluator()
    diagnosis = evaluator.diagnose(evaluator.evaluate(pod("p").build()))
    assert [(status, rows.tolist()) for status, rows in diagnosis.rejections] == [(unschedulable("no").by("A"), [0])]


# --- being asked about events ---------------------------------------------------------------------------------------------------------


def hearing(hint: Any) -> Any:
    """The hint of a plugin that hears of new nodes, as the queue asks it."""
    script = Script("A").filters().writing(events=lambda _self: [event_with_hint(EventResource.NODE, Action.ADD, hint)])
    (first, *_) = bare(script).evaluator().runtime.interests["A"] or ()
    return first.hint


def test_a_hint_is_asked_with_the_pod_and_the_object_before_and_after() -> None:
    asked = pod("p").build()
    assert hearing(lambda *about: QueueingHint.SKIP if about == (asked, "old", "new") else None)(asked, "old", "new") is QueueingHint.SKIP


def test_the_hint_that_is_always_worth_a_try_is_not_watched() -> None:
    assert hearing(always) is always


def test_a_plugin_of_ours_whose_events_raise_is_not_built_either() -> None:
    def events(_self: Any) -> Any:
        raise KeyError("ours")

    with pytest.raises(PluginBuildError, match="initializing plugin \"A\": events: KeyError: 'ours'"):
        bare(Script("A").filters().writing(events=events, __module__="placewright.plugins.a")).evaluator()


# --- being built ----------------------------------------------------------------------------------------------------------------------


def test_a_constructor_that_forgets_its_base_gets_its_arguments_and_its_handle_all_the_same() -> None:
    script = Script("A").filters().writing(__init__=lambda *_: None)
    evaluator = bare(script).evaluator()
    plugin = evaluator.runtime.plugin("A")
    assert plugin.handle is evaluator.runtime.queue_sort.handle
    assert plugin.args is evaluator.runtime.profile.args["A"]


def test_a_constructor_that_keeps_its_own_keeps_it() -> None:
    def keep(self: Any, *_: Any) -> None:
        self.handle, self.args = "mine", "mine, too"

    plugin = bare(Script("A").filters().writing(__init__=keep)).evaluator().runtime.plugin("A")
    assert (plugin.handle, plugin.args) == ("mine", "mine, too")


def test_what_a_constructor_says_of_its_arguments_passes_as_it_is() -> None:
    def complain(*_: Any) -> None:
        raise InputError("most: found 0; allowed 1 or more")

    with pytest.raises(InputError, match=r"^most: found 0"):
        bare(Script("A").filters().writing(__init__=complain)).evaluator()


@pytest.mark.parametrize("problem", [SystemExit(2), RecursionError("deep"), CycleError("not today")])
def test_whatever_else_a_constructor_raises_names_the_plugin(problem: BaseException) -> None:
    def complain(*_: Any) -> None:
        raise problem

    with pytest.raises(PluginBuildError) as broken:
        bare(Script("A").filters().writing(__init__=complain)).evaluator()
    assert str(broken.value) == f'initializing plugin "A": {raised(problem)}'
    assert (broken.value.plugin, broken.value.point, broken.value.__cause__) == ("A", "New", problem)


# --- who wrote into what it was shown -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("untouched", [True, False])
def test_writes_into_objects_are_looked_for_where_that_is_wanted(untouched: bool) -> None:
    def scribble(_state: Any, asked: Any, _cluster: Any) -> PreFilterResult:
        asked.pod.metadata.labels["seen"] = "yes"
        return PreFilterResult()

    scene = bare(Script("A").pre_filters(scribble))
    profile = scene.evaluator().runtime.profile
    registry = Registry(scene.registry.values())
    guarding = Guarding(untouched=untouched)
    handle = ProfileHandle(scene.cluster, guarding=guarding)
    evaluator = handle.evaluator(profile, registry)
    if not untouched:
        assert evaluator.evaluate(pod("p", labels={"a": "b"}).build()).count == 2
        return
    with pytest.raises(PluginError, match=r'it wrote into pod default/p: metadata\.labels\.seen was absent and is "yes"'):
        evaluator.evaluate(pod("p", labels={"a": "b"}).build())
    assert guarding.failures.total == 1


async def test_writes_are_looked_for_in_what_is_awaited_as_well() -> None:
    def scribble(_state: Any, asked: Any, _node: Any) -> Status:
        asked.pod.metadata.labels["seen"] = "yes"
        return SUCCESS

    scene = bare(Script("A").pre_binds(scribble))
    handle: Any = ProfileHandle(scene.cluster, guarding=Guarding(untouched=True))
    runtime = handle.evaluator(scene.evaluator().runtime.profile, scene.registry).runtime
    with pytest.raises(PluginError, match='running PreBind plugin "A": it wrote into pod default/p'):
        await runtime.run_pre_bind(CycleState(), pod("p", labels={"a": "b"}).build(), A)


# --- who is to blame ------------------------------------------------------------------------------------------------------------------


def test_what_no_plugin_raised_is_told_as_what_it_is() -> None:
    with pytest.raises(ZeroDivisionError) as broken:
        _ = 1 // 0
    assert why(broken.value) == "ZeroDivisionError: integer division or modulo by zero"
    assert why(ValueError("never raised")) == "ValueError: never raised"


def test_an_error_of_a_cycle_is_told_as_it_stands_also_as_the_cause_of_another() -> None:
    problem = RuntimeError("outer")
    problem.__cause__ = CycleError("inner")
    assert (why(CycleError("itself")), why(problem)) == ("itself", "inner")


class Ours(Plugin):
    """Breaks where the test says."""

    name = "Ours"

    def filter(self) -> None:
        self.reserve()

    def reserve(self) -> None:
        raise KeyError("x")

    def tidy(self) -> None:
        raise KeyError("y")


def test_the_innermost_call_of_a_plugin_is_to_blame() -> None:
    with pytest.raises(KeyError) as broken:
        Ours(None, None).filter()  # type: ignore[arg-type]
    assert why(broken.value) == "running Reserve plugin \"Ours\": KeyError: 'x'"


def test_a_method_that_the_framework_does_not_call_is_no_point() -> None:
    with pytest.raises(KeyError) as broken:
        Ours(None, None).tidy()  # type: ignore[arg-type]
    assert why(broken.value) == "KeyError: 'y'"


def test_a_function_that_is_named_like_a_point_is_no_plugin() -> None:
    def reserve(self: Any) -> None:
        raise KeyError(self)

    with pytest.raises(KeyError) as broken:
        reserve("z")
    assert why(broken.value) == "KeyError: 'z'"


# --- in one line ----------------------------------------------------------------------------------------------------------------------


class Mute(Exception):
    """Cannot say what it is."""

    def __str__(self) -> str:
        raise ValueError


@pytest.mark.parametrize(
    ("problem", "line"),
    [
        (ValueError("one\n  two"), "ValueError: one two"),
        (ValueError(), "ValueError"),
        (ValueError("  "), "ValueError"),
        (Mute(), "Mute"),
        (ValueError("x" * 488), "ValueError: " + "x" * 488),
        (ValueError("x" * 489), "ValueError: " + "x" * 487 + "…"),
    ],
)
def test_what_was_raised_is_told_in_one_line_that_fits_an_event(problem: BaseException, line: str) -> None:
    assert raised(problem) == line
    assert len(line) <= 500
