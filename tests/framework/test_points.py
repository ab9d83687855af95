"""The points that are not columns, code by code: who is asked after it, what the attempt hears, who is named, and what was timed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from framework.scripts import Call, Script, bare
from placewright.api.errors import BindError
from placewright.api.extenders import ExtenderSettings, ManagedResource, NodeVictims
from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.framework.errors import PluginError
from placewright.framework.events import QueueingHint
from placewright.framework.interface import Alternatives, CycleState, Diagnosis, PermitResult, PostFilterResult
from placewright.framework.runtime.evaluation import Evaluator
from placewright.framework.runtime.handle import ProfileHandle
from placewright.framework.runtime.profileruntime import EXTENDER, MAX_PERMIT_TIMEOUT, ProfileRuntime
from placewright.framework.status import SKIP, SUCCESS, Code, Status, error, unresolvable, unschedulable
from placewright.framework.steps import Steps
from placewright.testing import pod

N = NodeName("a")
WAIT = Status(Code.WAIT)
PENDING = Status(Code.PENDING, ("later",))
REJECTIONS = [unschedulable("no"), unresolvable("never"), PENDING]


class Trio:
    """A, B and C, which go on at every point, and B as the test has it.

    Attributes:
        calls: methods called, as `A.reserve`.
    """

    def __init__(self, b: Callable[[Script], Script]) -> None:
        self.noted: list[Call] = []
        a, c = (self._willing(Script(name, self.noted)) for name in "AC")
        self.runtime: ProfileRuntime = bare(a, b(self._willing(Script("B", self.noted))), c).evaluator().runtime
        clock = _ticking()
        self.state = CycleState(steps=Steps(clock, plugins=True))
        clock()  # what passes before the first plugin is asked is not its time
        self.about = (self.state, pod("p").build(), N)

    @staticmethod
    def _willing(script: Script) -> Script:
        return script.pre_enqueues().reserves().permits().pre_binds().binds(SKIP).post_binds().post_filters(unschedulable(script.name))

    @property
    def calls(self) -> str:
        """Plugins in the order of their calls; of `unreserve` in small letters."""
        return "".join(plugin.lower() if method == "unreserve" else plugin for plugin, method, _ in self.noted)

    @property
    def timed(self) -> list[tuple[str, str, Code]]:
        """Plugin, point and outcome of each call that was timed."""
        assert all(each.seconds == 1.0 for each in self.state.steps.plugins or ())
        return [(each.plugin, each.point, each.outcome) for each in self.state.steps.plugins or ()]


def _ticking() -> Callable[[], float]:
    seconds = count()
    return lambda: float(next(seconds))


def made(method: str, *answer: Any) -> Callable[[Script], Script]:
    return lambda script: getattr(script, method)(*answer)


# --- PreEnqueue -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("answer", "asked"), [(SUCCESS, "ABC"), *((rejection, "AB") for rejection in REJECTIONS)])
def test_a_gate_that_is_closed_is_the_last_that_is_tried(answer: Status, asked: str) -> None:
    trio = Trio(made("pre_enqueues", answer))
    assert trio.runtime.run_pre_enqueue(pod("p").build()) == (SUCCESS if answer.ok else answer.by("B"))
    assert trio.calls == asked


# --- Reserve and Unreserve ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "told", "calls"),
    [
        (SUCCESS, SUCCESS, "ABC"),
        *((rejection, rejection.by("B"), "ABcba") for rejection in REJECTIONS),
        (error("broke"), error('running Reserve plugin "B": broke').by("B"), "ABcba"),
    ],
)
def test_a_reserve_that_fails_has_all_give_back_in_reverse(answer: Status, told: Status, calls: str) -> None:
    trio = Trio(made("reserves", answer))
    assert trio.runtime.run_reserve(*trio.about) == told
    assert trio.calls == calls
    assert trio.timed == [("A", "Reserve", Code.SUCCESS), ("B", "Reserve", answer.code), ("C", "Reserve", Code.SUCCESS)][: len(trio.timed)]
    assert len(trio.timed) == (3 if answer.ok else 2)


def test_of_those_that_break_while_they_give_back_the_first_is_told_after_all_have() -> None:
    noted: list[Call] = []
    told = {"A": ValueError("a"), "B": KeyError("b"), "C": None}
    runtime = bare(*(Script(name, noted).reserves(SUCCESS, problem) for name, problem in told.items())).evaluator().runtime
    with pytest.raises(PluginError, match="running Unreserve plugin \"B\": KeyError: 'b'"):
        runtime.run_unreserve(CycleState(), pod("p").build(), N)
    assert [plugin for plugin, _, _ in noted] == ["C", "B", "A"]


# --- Permit ---------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "told", "asked"),
    [
        (SUCCESS, SUCCESS, "ABC"),
        *((rejection, rejection.by("B"), "AB") for rejection in REJECTIONS),
        (error("broke"), error('running Permit plugin "B": broke').by("B"), "AB"),
    ],
)
def test_a_permit_that_is_refused_is_asked_for_no_further(answer: Status, told: Status, asked: str) -> None:
    trio = Trio(made("permits", answer))
    assert trio.runtime.run_permit(*trio.about) == (told, {})
    assert trio.calls == asked
    assert trio.timed[1] == ("B", "Permit", answer.code)


@pytest.mark.parametrize(
    ("timeout", "at_most"),
    [(0, 0), (1.5, 1.5), (MAX_PERMIT_TIMEOUT, 900), (MAX_PERMIT_TIMEOUT + 1, 900), (float("inf"), 900)],
)
def test_a_pod_waits_for_a_quarter_of_an_hour_at_most_and_the_others_are_asked(timeout: float, at_most: float) -> None:
    trio = Trio(made("permits", WAIT, timeout))
    assert trio.runtime.run_permit(*trio.about) == (SUCCESS, {"B": at_most})
    assert trio.calls == "ABC"


def test_who_refuses_after_others_wanted_to_wait_ends_the_waiting() -> None:
    first, second = Script("A").permits(WAIT, 5), Script("B").permits(WAIT, 7)
    about = (CycleState(), pod("p").build(), N)
    assert bare(first, second).evaluator().runtime.run_permit(*about) == (SUCCESS, {"A": 5, "B": 7})
    second.told["permit"] = PermitResult(unschedulable("no"))
    assert bare(first, second).evaluator().runtime.run_permit(*about) == (unschedulable("no").by("B"), {})


# --- PreBind and Bind -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "told", "asked"),
    [
        (SUCCESS, SUCCESS, "ABC"),
        (SKIP, SUCCESS, "ABC"),
        *((rejection, rejection.by("B"), "AB") for rejection in REJECTIONS),
        (error("broke"), error('running PreBind plugin "B": broke').by("B"), "AB"),
    ],
)
async def test_what_comes_before_the_binding_ends_at_the_first_failure(answer: Status, told: Status, asked: str) -> None:
    trio = Trio(made("pre_binds", answer))
    assert await trio.runtime.run_pre_bind(*trio.about) == told
    assert trio.calls == asked
    assert trio.timed[:2] == [("A", "PreBind", Code.SUCCESS), ("B", "PreBind", answer.code)]


@pytest.mark.parametrize(
    ("answer", "told", "asked"),
    [
        (SUCCESS, SUCCESS.by("B"), "AB"),
        (SKIP, error("every Bind plugin skipped the pod"), "ABC"),
        *((rejection, rejection.by("B"), "AB") for rejection in REJECTIONS),
        (error("broke"), error('running Bind plugin "B": broke').by("B"), "AB"),
    ],
)
async def test_the_first_that_does_not_skip_decides_about_the_binding(answer: Status, told: Status, asked: str) -> None:
    trio = Trio(made("binds", answer))
    assert await trio.runtime.run_bind(*trio.about, {}) == told
    assert trio.calls == asked
    assert trio.timed[:2] == [("A", "Bind", Code.SKIP), ("B", "Bind", answer.code)]


async def test_a_binding_carries_the_annotations_that_it_was_given() -> None:
    given: list[Any] = []
    trio = Trio(lambda script: script.binds(lambda *asked: given.append(asked) or SUCCESS))
    notes = {"example.com/choice": "7"}
    await trio.runtime.run_bind(*trio.about, notes)
    assert given == [(*trio.about, notes)]


# --- PostBind -------------------------------------------------------------------------------------------------------------------------


def test_everybody_hears_of_a_binding_although_one_breaks() -> None:
    trio = Trio(made("post_binds", ValueError("eh")))
    with pytest.raises(PluginError, match='running PostBind plugin "B": ValueError: eh'):
        trio.runtime.run_post_bind(*trio.about)
    assert trio.calls == "ABC"
    assert trio.timed == [("A", "PostBind", Code.SUCCESS), ("C", "PostBind", Code.SUCCESS)]


# --- PostFilter -----------------------------------------------------------------------------------------------------------------------


def room(trio: Trio) -> PostFilterResult:
    return trio.runtime.run_post_filter(trio.state, pod("p").build(), Diagnosis(1))


@pytest.mark.parametrize(
    ("answer", "told", "asked"),
    [
        (SUCCESS, SUCCESS, "AB"),
        (unschedulable("b", "b2"), unschedulable("A", "b", "b2", "C"), "ABC"),
        (unresolvable("never"), unresolvable("never"), "AB"),
        (error("broke"), error("broke"), "AB"),
    ],
)
def test_room_is_sought_until_one_is_sure(answer: Status, told: Status, asked: str) -> None:
    trio = Trio(made("post_filters", answer))
    assert room(trio).status == told
    assert trio.calls == asked
    assert [point for _, point, _ in trio.timed] == ["PostFilter"] * len(asked)
    assert trio.timed[1][2] is answer.code


def test_without_anybody_who_could_make_room_there_is_nothing_to_say() -> None:
    assert bare().evaluator().runtime.run_post_filter(CycleState(), pod("p").build(), Diagnosis(1)) == PostFilterResult(unschedulable())


@pytest.mark.parametrize(
    ("nominated", "left"), [((None, None), None), (("", None), ""), ((None, ""), ""), (("", "x"), "x"), (("x", None), "x")]
)
def test_the_last_word_about_a_nomination_counts(nominated: Any, left: str | None) -> None:
    scripts = [Script(name).post_filters(PostFilterResult(unschedulable("no"), node)) for name, node in zip("AB", nominated, strict=True)]
    assert bare(*scripts).evaluator().runtime.run_post_filter(CycleState(), pod("p").build(), Diagnosis(1)).nominated_node == left


def test_a_pod_on_whose_behalf_room_is_sought_is_shown_with_the_diagnosis() -> None:
    shown: list[Any] = []
    evaluator = bare(Script("A").post_filters(lambda *asked: shown.append(asked) or PostFilterResult(SUCCESS))).evaluator()
    state, asked, diagnosis = CycleState(), pod("p").build(), Diagnosis(3)
    evaluator.runtime.run_post_filter(state, asked, diagnosis)
    assert shown == [(state, asked, evaluator.runtime.queue_sort.handle.cluster, diagnosis)]


@pytest.mark.parametrize("chosen", [PostFilterResult(SUCCESS, N), PostFilterResult(unschedulable("all spared"))])
@pytest.mark.parametrize("first", [SUCCESS, unschedulable()])
def test_if_extenders_leave_no_alternative_what_others_said_before_is_told_too(first: Status, chosen: PostFilterResult) -> None:
    asked: list[Any] = []
    alternatives = Alternatives({N: NodeVictims((), 0)}, lambda victims: asked.append(victims) or chosen)
    choice = PostFilterResult(SUCCESS, N, (), alternatives)
    said = unschedulable("A had no idea") if first.ok else first
    runtime = bare(Script("A").post_filters(said), Script("B").post_filters(choice)).evaluator().runtime
    result = runtime.run_post_filter(CycleState(), pod("p").build(), Diagnosis(1))
    assert result.alternatives is not None
    assert (result.alternatives.victims, result.nominated_node) == (alternatives.victims, N)
    told = result.alternatives.choose({})
    assert asked == [{}]
    if chosen.status.ok:
        assert told is chosen
    else:
        assert told == replace(chosen, status=unschedulable(*said.reasons, "all spared"))


# --- extenders that bind --------------------------------------------------------------------------------------------------------------


class Binder:
    """Has others bind, and remembers for whom.

    Attributes:
        problem: what it raises once the other was asked.
    """

    def __init__(self, problem: BindError | None) -> None:
        self.problem = problem
        self.bound: list[str] = []

    async def bind(self, pod: PodInfo, node: NodeName, annotations: dict[str, str]) -> None:
        self.bound.append(f"ourselves {pod.name} {node}")

    async def bind_by(self, pod: PodInfo, node: NodeName, send: Callable[[], Awaitable[None]]) -> None:
        assert (pod.name, node) == ("p", N)
        await send()
        if self.problem is not None:
            raise self.problem


class Extender:
    """Binds, if its settings say so."""

    def __init__(self, binder: Binder, name: str, **settings: Any) -> None:
        self.settings = ExtenderSettings(url_prefix=f"http://{name}", **settings)
        self._binder = binder

    async def bind(self, pod: PodInfo, node: NodeName) -> None:
        self._binder.bound.append(f"{self.settings.url_prefix} {pod.name} {node}")


def extended(binder: Binder, *extenders: Any) -> Evaluator:
    scene = bare(nodes="a")
    profile = scene.evaluator().runtime.profile
    handle = ProfileHandle(scene.cluster, binder)
    return handle.evaluator(profile, scene.registry, extenders)


def bind(evaluator: Evaluator) -> Status:
    return asyncio.run(evaluator.runtime.run_bind(CycleState(), pod("p").build(), N, {}))


def test_the_first_extender_that_binds_does_it_and_no_plugin_is_asked() -> None:
    binder = Binder(None)
    evaluator = extended(binder, Extender(binder, "x"), Extender(binder, "y", bind_verb="b"), Extender(binder, "z", bind_verb="b"))
    assert bind(evaluator) == SUCCESS
    assert binder.bound == ["http://y p a"]


def test_where_no_extender_binds_such_pods_a_plugin_does() -> None:
    binder = Binder(None)
    gpu = Extender(binder, "gpu", bind_verb="b", managed_resources=frozenset({ManagedResource(name="example.com/gpu")}))
    evaluator = extended(binder, Extender(binder, "x"), gpu)
    assert [each.settings.url_prefix for each in evaluator.runtime.extenders_for(pod("p").build())] == ["http://x"]
    assert bind(evaluator) == SUCCESS.by("DefaultBinder")
    assert binder.bound == ["ourselves p a"]


@pytest.mark.parametrize(
    ("ignorable", "problem", "passed_over"),
    [
        (True, BindError("500"), True),
        (False, BindError("500"), False),
        (True, BindError("409", conflict=True), False),
        (True, BindError("lost", unknown=True), False),
    ],
)
def test_an_extender_that_may_be_ignored_is_passed_over_while_the_pod_is_still_to_be_bound(
    caplog: pytest.LogCaptureFixture, ignorable: bool, problem: BindError, passed_over: bool
) -> None:
    binder = Binder(problem)
    evaluator = extended(binder, Extender(binder, "x", bind_verb="b", ignorable=ignorable))
    if not passed_over:
        with pytest.raises(BindError) as seen:
            bind(evaluator)
        assert seen.value is problem
        assert binder.bound == ["http://x p a"]
        return
    with caplog.at_level(logging.WARNING, "placewright.framework.runtime.profileruntime"):
        assert bind(evaluator) == SUCCESS.by("DefaultBinder")
    assert binder.bound == ["http://x p a", "ourselves p a"]
    assert [record.getMessage() for record in caplog.records] == ["pod default/p: extender http://x is passed over: 500"]


def test_any_event_may_help_a_pod_that_an_extender_rejected() -> None:
    binder = Binder(None)
    (any_event,) = extended(binder, Extender(binder, "x")).runtime.interests[EXTENDER] or ()
    assert any_event.event.wildcard
    assert any_event.hint(pod("p").build(), None, None) is QueueingHint.QUEUE
    assert EXTENDER not in extended(binder).runtime.interests


# --- the plugins of a profile ---------------------------------------------------------------------------------------------------------


def test_a_plugin_is_built_once_for_all_its_points_and_found_by_name() -> None:
    evaluator = bare(Script("A").pre_filters().filters().scores().reserves(), weights={"A": 7}).evaluator()
    runtime = evaluator.runtime
    (plugin,) = runtime.filter
    assert runtime.plugin("A") is plugin is runtime.pre_filter[0] is runtime.score[0] is runtime.reserve[0]
    assert runtime.weight(plugin) == 7
    with pytest.raises(KeyError):
        runtime.plugin("B")


def test_a_pod_is_signed_by_those_that_have_columns_and_by_nobody_else() -> None:
    scripts = [Script("F").filters().signs("f"), Script("S").scores().signs("s"), Script("R").reserves().signs(None)]
    assert bare(*scripts).evaluator().runtime.sign(pod("p").build()) == ("f", "s")
    scripts[1].told["sign"] = None
    assert bare(*scripts).evaluator().runtime.sign(pod("p").build()) is None
