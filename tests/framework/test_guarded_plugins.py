"""What a plugin that is not ours does wrong, at whatever point, is told with the plugin and the point, and counted."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from framework.makers import Scene
from placewright.api.errors import BindError
from placewright.api.objects import NodeName
from placewright.framework.errors import CycleError, PluginBuildError, PluginError
from placewright.framework.events import Action, EventResource, QueueingHint, event_with_hint
from placewright.framework.interface import (
    BindPlugin,
    CycleState,
    Diagnosis,
    FilterPlugin,
    PermitPlugin,
    PermitResult,
    Plugin,
    PostBindPlugin,
    PostFilterPlugin,
    PostFilterResult,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    QueueSortPlugin,
    Rejection,
    ReservePlugin,
    ScorePlugin,
)
from placewright.framework.runtime.evaluation import Evaluator
from placewright.framework.runtime.guard import running, why
from placewright.framework.scalar import ScalarFilter, ScalarScore
from placewright.framework.status import SKIP, SUCCESS, Code, Status, error, unschedulable
from placewright.plugins.tainttoleration import TaintToleration
from placewright.scheduler.policy import ProfilePolicy
from placewright.testing import node, pod

NODE = NodeName("a")
Answer = Callable[..., Any]
#: Methods that a plugin writes, by the base class that wants them, with an answer that is right.
RIGHT: dict[type[Plugin], dict[str, Answer]] = {
    PreEnqueuePlugin: {"pre_enqueue": lambda *_: SUCCESS},
    PreFilterPlugin: {"pre_filter": lambda *_: PreFilterResult()},
    FilterPlugin: {"filter": lambda *a: np.ones(len(a[-1]), np.bool_), "explain": lambda *a: [Rejection(unschedulable("no"), a[-1])]},
    PostFilterPlugin: dict.fromkeys(("post_filter", "make_room_in_place"), lambda *_: PostFilterResult(unschedulable("no"))),
    PreScorePlugin: {"pre_score": lambda *_: SUCCESS},
    ScorePlugin: {"score": lambda *a: np.zeros(len(a[-1]), np.int64)},
    ReservePlugin: {"reserve": lambda *_: SUCCESS, "unreserve": lambda *_: None},
    PermitPlugin: {"permit": lambda *_: PermitResult(SUCCESS)},
    PreBindPlugin: {"pre_bind": lambda *_: _awaited(SUCCESS)},
    BindPlugin: {"bind": lambda *_: _awaited(SUCCESS)},
    PostBindPlugin: {"post_bind": lambda *_: None},
    ScalarFilter: {"filter_node": lambda *_: SUCCESS},
    ScalarScore: {"score_node": lambda *_: 1},
}


class Stage(Scene):
    """No victims are being evicted."""

    making_room_for: frozenset[str] = frozenset()


async def _awaited(value: Any) -> Any:
    return value


async def _asynchronous(*_asked: Any) -> Any:
    return SUCCESS


def _generator(*_asked: Any) -> Any:
    yield SUCCESS


def raising(problem: BaseException) -> Answer:
    def answer(*_asked: Any) -> Any:
        raise problem

    return answer


def plugin_of(base: type[Plugin], **methods: Any) -> type[Plugin]:
    """A plugin called Boom whose methods answer so."""
    answers = RIGHT.get(base, {}) | methods
    written = {name: (lambda self, *asked, _answer=answer: _answer(*asked)) for name, answer in answers.items()}
    return type("Boom", (base,), {"name": "Boom", "__module__": "somebodys.plugins", **written})


def evaluator_of(plugin: type[Plugin], **spec: Any) -> Evaluator:
    plugins = {"multiPoint": {"enabled": [{"name": "Boom"}]}}
    for base, point in ((BindPlugin, "bind"), (PostFilterPlugin, "postFilter")):
        if issubclass(plugin, base):
            plugins[point] = {"enabled": [{"name": "Boom"}], "disabled": [{"name": "*"}]}  # type: ignore[dict-item]
    scene = Stage(extra=(plugin,), spec={"plugins": plugins, **spec})
    return scene.with_nodes(node("a"), node("b"), node("full", pods="0")).evaluator()


def decide(evaluator: Evaluator) -> None:
    """All points of the scheduling cycle, and of the binding cycle."""
    runtime = evaluator.runtime
    runtime.run_pre_enqueue(pod("p").build())
    evaluation = evaluator.evaluate(pod("p").build())
    diagnosis = evaluator.diagnose(evaluation)
    evaluator.score(evaluation)
    state, subject = evaluation.state, evaluation.pod
    runtime.run_post_filter(state, subject, diagnosis)
    runtime.run_make_room_in_place(subject)
    runtime.run_reserve(state, subject, NODE)
    runtime.run_unreserve(state, subject, NODE)
    runtime.run_permit(state, subject, NODE)
    asyncio.run(runtime.run_pre_bind(state, subject, NODE))
    asyncio.run(runtime.run_bind(state, subject, NODE, {}))
    runtime.run_post_bind(state, subject, NODE)


POINTS = [
    (PreEnqueuePlugin, "pre_enqueue", "PreEnqueue"),
    (PreFilterPlugin, "pre_filter", "PreFilter"),
    (FilterPlugin, "filter", "Filter"),
    (FilterPlugin, "sign", "Sign"),
    (ScalarFilter, "filter_node", "Filter"),
    (PostFilterPlugin, "post_filter", "PostFilter"),
    (PostFilterPlugin, "make_room_in_place", "PostFilter"),
    (PreScorePlugin, "pre_score", "PreScore"),
    (ScorePlugin, "score", "Score"),
    (ScorePlugin, "summarise", "NormalizeScore"),
    (ScalarScore, "score_node", "Score"),
    (ReservePlugin, "reserve", "Reserve"),
    (ReservePlugin, "unreserve", "Unreserve"),
    (PermitPlugin, "permit", "Permit"),
    (PreBindPlugin, "pre_bind", "PreBind"),
    (BindPlugin, "bind", "Bind"),
    (PostBindPlugin, "post_bind", "PostBind"),
]
#: These answer with what can be anything hashable, or are not asked for an answer.
ANYTHING_GOES = {"sign", "summarise", "unreserve", "post_bind"}


def broken_by(base: type[Plugin], method: str, answer: Answer) -> PluginError:
    evaluator = evaluator_of(plugin_of(base, **{method: answer}))
    with pytest.raises(PluginError) as broken:
        decide(evaluator)
    failures = evaluator.runtime.failures
    assert failures.total == 1, "counted once"
    assert list(failures.counts) == [(broken.value.plugin, broken.value.point)]
    assert failures.last[next(iter(failures.counts))] == broken.value.problem
    return broken.value


@pytest.mark.parametrize(("base", "method", "point"), POINTS)
@pytest.mark.parametrize(
    ("raised", "said"),
    [
        (ValueError("kaboom\n  at gpu-0"), "ValueError: kaboom at gpu-0"),
        (KeyError("x"), "KeyError: 'x'"),
        (RuntimeError(), "RuntimeError"),
        (SystemExit(3), "SystemExit: 3"),
        (RecursionError("too deep"), "RecursionError: too deep"),
        (CycleError("not today"), "CycleError: not today"),
    ],
)
def test_what_is_raised_is_told_with_plugin_and_point(
    base: type[Plugin], method: str, point: str, raised: BaseException, said: str
) -> None:
    assert str(broken_by(base, method, raising(raised))) == f'running {point} plugin "Boom": {said}'


@pytest.mark.parametrize(("base", "method", "point"), [each for each in POINTS if each[1] not in ANYTHING_GOES])
@pytest.mark.parametrize("answer", [False, True, None, "yes", [], 3.5, Status(Code.WAIT), (1, 2)])
def test_what_is_no_answer_is_told_with_plugin_and_point(base: type[Plugin], method: str, point: str, answer: Any) -> None:
    message = str(broken_by(base, method, lambda *_: answer))
    assert message.startswith(f'running {point} plugin "Boom": found ')
    assert "; allowed " in message


@pytest.mark.parametrize(("base", "method", "point"), [each for each in POINTS if each[1] not in {"pre_bind", "bind"}])
def test_an_async_method_where_none_belongs_is_told(base: type[Plugin], method: str, point: str) -> None:
    message = str(broken_by(base, method, _asynchronous))
    assert message.startswith(f'running {point} plugin "Boom": found a coroutine (is the method async?)')


@pytest.mark.parametrize(("base", "method", "point"), [each for each in POINTS if each[1] not in {"sign", "summarise"}])
def test_a_generator_is_told(base: type[Plugin], method: str, point: str) -> None:
    assert "found a generator" in str(broken_by(base, method, _generator))


@pytest.mark.parametrize(
    ("base", "method", "answer", "said"),
    [
        (FilterPlugin, "filter", np.ones(1, np.bool_), "an array of bool, shape (1,); allowed an array of bool"),
        (FilterPlugin, "filter", np.ones(3, np.int64), "an array of int64, shape (3,); allowed an array of bool"),
        (FilterPlugin, "filter", np.ones((3, 1), np.bool_), "shape (3, 1); allowed"),
        (FilterPlugin, "filter", [True, True, True], "a list of 3; allowed an array of bool"),
        (ScorePlugin, "score", np.zeros(7, np.int64), "an array of int64, shape (7,); allowed an array of int64"),
        (ScorePlugin, "score", np.full(3, np.nan), "an array of float64"),
        (ScorePlugin, "score", np.ones(3, np.bool_), "an array of bool"),
        (ScorePlugin, "score", np.array(["a", "b", "c"]), "an array of <U1"),
        (ScorePlugin, "score", np.array([1, 2, None]), "an array of object"),
        (ScorePlugin, "summarise", np.zeros(3), "an array of float64, shape (3,); allowed a hashable value, or None"),
        (ScalarScore, "score_node", float("nan"), "found nan for node a; allowed a whole number"),
        (ScalarFilter, "filter_node", False, "found False for node a; allowed SUCCESS or unschedulable"),
        (PreFilterPlugin, "pre_filter", PreFilterResult(SUCCESS, ["a"]), "a list of 1; allowed a frozenset of node names"),  # type: ignore[arg-type]
        (PreEnqueuePlugin, "pre_enqueue", SKIP, "the status Skip; allowed a Status: Success, Unschedulable"),
        (PreEnqueuePlugin, "pre_enqueue", Status(Code.UNSCHEDULABLE, "why"), "allowed a tuple of texts"),  # type: ignore[arg-type]
        (PermitPlugin, "permit", SUCCESS, "the status Success; allowed a PermitResult"),
        (PermitPlugin, "permit", PermitResult(Status(Code.WAIT), float("nan")), "allowed a number of seconds"),
        (ReservePlugin, "reserve", SKIP, "the status Skip; allowed"),
        (PostFilterPlugin, "post_filter", PostFilterResult(SUCCESS, 3), "allowed a node's name"),  # type: ignore[arg-type]
        (PostFilterPlugin, "post_filter", PostFilterResult(SUCCESS, NODE, [1]), "allowed a tuple of PodInfo"),  # type: ignore[arg-type]
        (BindPlugin, "bind", SUCCESS, "the status Success; allowed a coroutine: the method has to be async"),
    ],
)
def test_a_wrong_shape_is_told_in_words(base: type[Plugin], method: str, answer: Any, said: str) -> None:
    assert said in str(broken_by(base, method, lambda *_: answer))


def test_scores_of_another_length_after_normalising_are_told() -> None:
    boom = plugin_of(ScorePlugin, summarise=lambda *_: 1, normalise=lambda *_: np.zeros(9, np.int64))
    with pytest.raises(PluginError, match='running NormalizeScore plugin "Boom": found an array of int64, shape \\(9,\\)'):
        decide(evaluator_of(boom))


@pytest.mark.parametrize("groups", [[], [Rejection(SUCCESS, np.arange(3))], [Rejection(unschedulable("no"), np.arange(1))], None])
def test_an_explanation_that_leaves_out_rows_is_told(groups: Any) -> None:
    boom = plugin_of(FilterPlugin, filter=lambda *a: np.zeros(len(a[-1]), np.bool_), explain=lambda *_: groups)
    with pytest.raises(PluginError, match='running Filter plugin "Boom": found '):
        decide(evaluator_of(boom))


def test_a_score_out_of_range_is_counted_and_told_as_kube_scheduler_does() -> None:
    evaluator = evaluator_of(plugin_of(ScalarScore, score_node=lambda *_: 1000))
    with pytest.raises(CycleError, match=r'^plugin "Boom" returns an invalid score 1000, it should in the range of \[0, 100\]'):
        decide(evaluator)
    assert evaluator.runtime.failures.counts == {("Boom", "Score"): 1}


def test_an_error_by_its_own_account_is_counted_too() -> None:
    evaluator = evaluator_of(plugin_of(ReservePlugin, reserve=lambda *_: error("no quota"), unreserve=lambda *_: None))
    status = evaluator.runtime.run_reserve(CycleState(), pod("p").build(), NODE)
    assert status.message == 'running Reserve plugin "Boom": no quota'
    assert evaluator.runtime.failures.last == {("Boom", "Reserve"): "no quota"}


def test_an_error_of_post_filter_stands_as_it_is_said_and_is_counted() -> None:
    runtime = evaluator_of(plugin_of(PostFilterPlugin, post_filter=lambda *_: PostFilterResult(error("no idea")))).runtime
    (boom,) = (plugin for plugin in runtime.post_filter if plugin.name == "Boom")
    result = boom.post_filter(CycleState(), pod("p").build(), runtime.cluster, Diagnosis(1))
    assert result.status == error("no idea")
    assert runtime.failures.last == {("Boom", "PostFilter"): "no idea"}


async def test_what_the_api_server_said_of_a_binding_passes_as_it_is() -> None:
    refused = BindError("409: somebody else", conflict=True)
    runtime = evaluator_of(plugin_of(BindPlugin, bind=raising(refused))).runtime
    with pytest.raises(BindError) as seen:
        await runtime.run_bind(CycleState(), pod("p").build(), NODE, {})
    assert seen.value is refused
    assert runtime.failures.total == 0


async def test_a_preparation_that_is_cancelled_is_not_the_plugins_fault() -> None:
    async def for_ever(*_asked: Any) -> Status:
        await asyncio.Event().wait()
        return SUCCESS

    runtime = evaluator_of(plugin_of(PreBindPlugin, pre_bind=for_ever)).runtime
    task = asyncio.ensure_future(runtime.run_pre_bind(CycleState(), pod("p").build(), NODE))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert runtime.failures.total == 0


# --- being built, and what is asked outside of cycles -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ({"__init__": raising(ValueError("no licence"))}, 'initializing plugin "Boom": ValueError: no licence'),
        ({"events": raising(KeyError("k"))}, "initializing plugin \"Boom\": events: KeyError: 'k'"),
        ({"events": _generator}, 'initializing plugin "Boom": found a generator'),
        ({"events": lambda _self: [3]}, 'initializing plugin "Boom": found a list of 1; allowed a list of event_with_hint'),
        ({"events": _asynchronous}, 'initializing plugin "Boom": found a coroutine'),
        ({"reads": "node"}, "initializing plugin \"Boom\": found reads = 'node'; allowed a member of Reads"),
    ],
)
def test_a_plugin_that_cannot_be_built_is_named(written: dict[str, Any], said: str) -> None:
    boom = type("Boom", (plugin_of(ScalarFilter),), {"__module__": "somebodys.plugins", **written})
    with pytest.raises(PluginBuildError) as refused:
        evaluator_of(boom)
    assert str(refused.value).startswith(said)


@pytest.mark.parametrize("hint", [lambda *_: None, lambda *_: True, raising(ValueError("eh")), _asynchronous])
def test_a_hint_that_is_no_hint_is_told(hint: Answer) -> None:
    boom = plugin_of(ScalarFilter, events=lambda: [event_with_hint(EventResource.NODE, Action.ADD, hint)])
    runtime = evaluator_of(boom).runtime
    events = runtime.interests["Boom"]
    assert events is not None
    with pytest.raises(PluginError, match='running QueueingHint plugin "Boom": '):
        events[0].hint(pod("p").build(), None, None)
    assert runtime.failures.counts == {("Boom", "QueueingHint"): 1}


def test_a_right_hint_is_as_it_was() -> None:
    boom = plugin_of(ScalarFilter, events=lambda: [event_with_hint(EventResource.NODE, Action.ADD, lambda *_: QueueingHint.SKIP)])
    events = evaluator_of(boom).runtime.interests["Boom"]
    assert events is not None
    assert events[0].hint(pod("p").build(), None, None) is QueueingHint.SKIP


def sorted_by(sort_key: Answer) -> tuple[Evaluator, ProfilePolicy]:
    boom = plugin_of(QueueSortPlugin, sort_key=sort_key)
    scene = Stage(extra=(boom,), spec={"plugins": {"queueSort": {"enabled": [{"name": "Boom"}], "disabled": [{"name": "*"}]}}})
    evaluator = scene.with_nodes(node("a")).evaluator()
    return evaluator, ProfilePolicy(evaluator.runtime)


def test_the_next_generation_sorts_pods_anew_only_if_the_plugin_failed_before() -> None:
    (_, before), (_, after) = (sorted_by(lambda pod, _at: 3 if pod.name == "odd" else (-pod.priority,)) for _ in range(2))
    kept = before.order
    before.sort_key(pod("fine").build(), 1.0)
    assert (kept == after.order, hash(kept) == hash(after.order)) == (True, True)
    before.sort_key(pod("odd").build(), 1.0)
    assert (kept == after.order, kept == before.order) == (False, True)


@pytest.mark.parametrize("wrong", [raising(ValueError("eh")), lambda *_: 3, lambda *_: None, lambda *_: (float("nan"),), lambda *_: ("a",)])
def test_pods_without_a_place_in_the_order_come_last_in_the_order_they_came(wrong: Answer) -> None:
    evaluator, policy = sorted_by(lambda pod, at: wrong() if pod.name.startswith("odd") else (-pod.priority,))
    first = policy.sort_key(pod("fine", priority=3).build(), 9.0)
    keys = [
        policy.sort_key(pod("odd-2").build(), 5.0),
        policy.sort_key(pod("low", priority=1).build(), 1.0),
        policy.sort_key(pod("odd-1").build(), 2.0),
        first,
    ]
    assert sorted(keys) == [keys[3], keys[1], keys[2], keys[0]]
    assert evaluator.runtime.failures.counts == {("Boom", "QueueSort"): 2}


def test_a_pod_whose_preenqueue_fails_is_gated_with_the_plugins_name_and_to_be_told() -> None:
    evaluator = evaluator_of(plugin_of(PreEnqueuePlugin, pre_enqueue=raising(ValueError("eh"))))
    status = ProfilePolicy(evaluator.runtime).pre_enqueue(pod("p").build())
    said = 'running PreEnqueue plugin "Boom": ValueError: eh'
    assert (status.message, status.plugin) == (said, ""), "any event may help: nobody knows what ails the plugin"
    assert [(told.name, message) for told, message in evaluator.runtime.failures.to_tell()] == [("p", said)]
    assert evaluator.runtime.failures.to_tell() == []


# --- one that fails among others ------------------------------------------------------------------------------------------------------


def test_all_give_back_although_one_of_them_breaks() -> None:
    given: list[str] = []
    first = type("First", (plugin_of(ReservePlugin, unreserve=lambda *_: given.append("First")),), {"name": "First"})
    boom = plugin_of(ReservePlugin, unreserve=raising(ValueError("eh")))
    enabled = [{"name": "First"}, {"name": "Boom"}]
    evaluator = Stage(extra=(first, boom), spec={"plugins": {"multiPoint": {"enabled": enabled}}}).with_nodes(node("a")).evaluator()
    with pytest.raises(PluginError, match='running Unreserve plugin "Boom"'):
        evaluator.runtime.run_unreserve(CycleState(), pod("p").build(), NODE)
    assert given == ["First"]


def test_a_filter_that_fails_when_nodes_come_leaves_the_columns_usable() -> None:
    """Columns half of the new size would end in an index error that names nobody."""
    answers: list[Answer] = [RIGHT[FilterPlugin]["filter"]]
    boom = plugin_of(FilterPlugin, filter=lambda *a: answers[-1](*a))  # noqa: PLW0108 - the last one changes
    scene = Stage(extra=(boom,), spec={"plugins": {"multiPoint": {"enabled": [{"name": "Boom"}]}}}).with_nodes(node("a"))
    evaluator = scene.evaluator()
    assert evaluator.evaluate(pod("p").build()).count == 1
    scene.with_nodes(*(node(f"new-{number}") for number in range(80)))
    answers.append(raising(ValueError("eh")))
    with pytest.raises(PluginError, match="Boom"):
        evaluator.evaluate(pod("p").build())
    answers.pop()
    assert evaluator.evaluate(pod("p").build()).count == 81


def test_a_plugin_may_call_itself_by_name_and_keep_its_own_array() -> None:
    class Boom(FilterPlugin):
        name = "Boom"
        kept = np.ones(3, np.bool_)

        def filter(self, state: Any, pod: Any, cluster: Any, rows: Any) -> Any:
            self.kept.setflags(write=False)
            return self.kept[: len(rows)]

        def explain(self, state: Any, pod: Any, cluster: Any, rows: Any) -> Any:
            assert self.filter(state=state, pod=pod, cluster=cluster, rows=rows).all()
            return [Rejection(unschedulable("no"), rows)]

    scene = Stage(extra=(Boom,), spec={"plugins": {"multiPoint": {"enabled": [{"name": "Boom"}]}}})
    evaluator = scene.with_nodes(node("a"), node("b"), node("c")).evaluator()
    assert evaluator.evaluate(pod("p").build()).count == 3
    scene.with_nodes(node("a", labels={"x": "y"}))
    assert evaluator.evaluate(pod("p").build()).count == 3, "the row is mended in an array of our own"


def test_our_own_plugins_are_called_as_they_are() -> None:
    """The guard costs them nothing."""
    runtime = Scene().with_nodes(node("a")).evaluator().runtime
    assert all("filter" not in plugin.__dict__ and "sign" not in plugin.__dict__ for plugin in (*runtime.filter, *runtime.score))


def test_a_plugin_of_ours_that_breaks_is_named_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    def pre_filter(self: Any, *_asked: Any) -> Any:
        raise IndexError("out of bounds")

    evaluator = Scene().with_nodes(node("a")).evaluator()
    monkeypatch.setattr(TaintToleration, "filter", pre_filter)
    pre_filter.__code__ = pre_filter.__code__.replace(co_name="filter")
    with pytest.raises(IndexError) as broken:
        evaluator.evaluate(pod("p").build())
    assert why(broken.value) == 'running Filter plugin "TaintToleration": IndexError: out of bounds'
    assert why(broken.value) == 'running Filter plugin "TaintToleration": IndexError: out of bounds'
    assert evaluator.runtime.failures.counts == {("TaintToleration", "Filter"): 1}


# --- where a loop hangs ---------------------------------------------------------------------------------------------------------------


def seen_from_inside(base: type[Plugin], method: str, ask: Callable[[Evaluator], Any]) -> tuple[str, str, str, int]:
    """Who is said to run, by somebody who looks at the stack while the method does."""
    seen: list[tuple[str, str, str, int]] = []

    def look(*asked: Any) -> Any:
        found = running(sys._getframe())
        assert found is not None
        call, point = found
        seen.append((call.plugin, point, call.profile, call.generation))
        return RIGHT[base][method](*asked)

    ask(evaluator_of(plugin_of(base, **{method: look})))
    return seen[0]


@pytest.mark.parametrize(("base", "method", "point"), [each for each in POINTS if each[1] not in {"sign", "summarise"}])
def test_a_look_at_the_stack_tells_which_plugin_runs(base: type[Plugin], method: str, point: str) -> None:
    assert seen_from_inside(base, method, decide) == ("Boom", point, "p", 0)


def test_nobody_runs_where_no_plugin_does() -> None:
    assert running(sys._getframe()) is None
    assert running(None) is None
