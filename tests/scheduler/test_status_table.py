"""The contract's table of statuses: a plugin gives each line's answer at its point, in a scheduler whose clock stands."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest

from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.framework import interface
from placewright.framework.events import Action, ClusterEventWithHint, EventResource, event_with_hint
from placewright.framework.interface import (
    SUCCESS,
    BindPlugin,
    Code,
    FilterPlugin,
    PermitPlugin,
    PermitResult,
    Plugin,
    PostFilterPlugin,
    PostFilterResult,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    Reads,
    Rejection,
    ReservePlugin,
    Status,
)
from placewright.queue.check import check_invariants
from placewright.queue.queued import SubQueue

from .makers import World, node, pod


class Line(NamedTuple):
    """One line of the table."""

    point: str
    code: Code
    place: str
    told: str
    after_its_event: str

    def __str__(self) -> str:
        return f"{self.point} {self.code.name}"


def lines() -> list[Line]:
    rows = re.findall(r"^ *\|(.*)\|$", interface.__doc__ or "", re.MULTILINE)
    cells = [[cell.strip() for cell in row.split("|")] for row in rows]
    return [Line(point, Code[code], place, told, after) for point, code, place, told, after in cells[2:]]


LINES = lines()
#: Points that answer with a status; the others are in no line.
BASES: dict[str, type[Plugin]] = {
    base.__name__.removesuffix("Plugin"): base
    for base in (
        PreEnqueuePlugin, PreFilterPlugin, FilterPlugin, PostFilterPlugin, PreScorePlugin, ReservePlugin, PermitPlugin, PreBindPlugin,
        BindPlugin,
    )
}  # fmt: skip


class AnswersAlike:
    """Gives `status` at whatever point it has, and hears of nodes' labels."""

    name = "Asked"
    reads = Reads.CLUSTER
    status: ClassVar[Status]

    def events(self) -> Sequence[ClusterEventWithHint]:
        return [event_with_hint(EventResource.NODE, Action.UPDATE_NODE_LABEL)]

    def pre_enqueue(self, _pod: PodInfo) -> Status:
        return self.status

    def pre_filter(self, *_: Any) -> PreFilterResult:
        return PreFilterResult(self.status)

    def filter(self, *about: Any) -> Any:
        return np.zeros(len(about[-1]), np.bool_)

    def explain(self, *about: Any) -> list[Rejection]:
        return [Rejection(self.status, about[-1])]

    def failure(self, *_: Any) -> Status:
        return self.status if self.status.code is Code.ERROR else SUCCESS

    def post_filter(self, *_: Any) -> PostFilterResult:
        return PostFilterResult(self.status)

    def pre_score(self, *_: Any) -> Status:
        return self.status

    def reserve(self, *_: Any) -> Status:
        return self.status

    def unreserve(self, *_: Any) -> None:
        """Nothing was taken."""

    def permit(self, *_: Any) -> PermitResult:
        return PermitResult(self.status, 60.0)

    async def pre_bind(self, *_: Any) -> Status:
        return self.status

    async def bind(self, *_: Any) -> Status:
        return self.status


def asked(point: str, code: Code) -> type[Plugin]:
    """A plugin of this point that gives this answer."""
    return type("Asked", (AnswersAlike, BASES[point]), {"status": Status(code, ("because",))})


def world_of(plugin: type[Plugin], point: str) -> World:
    """Two nodes and a pod that fits on both, but for PostFilter."""
    plugins: dict[str, Any] = {}
    if point in ("Bind", "PostFilter"):
        plugins[point[0].lower() + point[1:]] = {"enabled": [{"name": "Asked"}], "disabled": [{"name": "*"}]}
    large = {"cpu": "9"} if point == "PostFilter" else {"cpu": "1"}
    return World(plugin, plugins=plugins).nodes(node("a"), node("b")).pods(pod("web").requests(**large))


def labelled(world: World) -> None:
    """The event that the plugin registered, which it always takes for helpful."""
    world.nodes(node("a").labels(rack="7"))


@pytest.mark.parametrize("line", LINES, ids=str)
async def test_after_each_status_the_pod_is_where_the_contract_says_and_comes_back_as_it_says(line: Line) -> None:
    plugin = asked(line.point, line.code)
    world, binding = world_of(plugin, line.point), None
    if line.point != "PreEnqueue":
        coming = world.decide()
        binding = None if coming is None else asyncio.ensure_future(coming)
        await asyncio.sleep(0)
    if binding is not None and line.code is not Code.WAIT:
        assert await binding is False
    assert world.place("web") == line.place
    assert [reason for _, reason, _, _ in world.status.written] == ([] if line.told == "-" else [line.told])
    if line.point == "PreEnqueue":
        plugin.status = SUCCESS  # type: ignore[attr-defined]
    labelled(world)
    assert world.place("web") == (line.place if line.after_its_event == "stays" else line.after_its_event)
    check_invariants(world.queue)
    if line.code is Code.WAIT:
        assert binding is not None
        world.scheduler.end_term()
        assert await binding is False


def test_the_table_has_a_line_for_each_status_that_is_no_success_at_each_point() -> None:
    in_table = {(line.point, line.code) for line in LINES}
    rejections = {Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING}
    expected = {(point, code) for point in BASES for code in (*rejections, Code.ERROR)}
    expected -= {("PostFilter", Code.PENDING)}
    assert in_table == expected | {("Permit", Code.WAIT), ("Bind", Code.SKIP)}
    assert len(LINES) == len(in_table)


@pytest.mark.parametrize("code", [Code.SUCCESS, Code.SKIP], ids=lambda code: code.name)
@pytest.mark.parametrize("point", ["PreFilter", "PreScore", "PreBind"])
async def test_a_point_that_has_nothing_to_say_lets_the_pod_go_on(point: str, code: Code) -> None:
    world = world_of(asked(point, code), point)
    assert await world.attempt() is True
    assert world.place("web") is None


# --- the sentences under the table --------------------------------------------------------------------------------------------------


def failed(point: str, code: Code) -> World:
    world = world_of(asked(point, code), point)
    assert world.decide() is None
    return world


def test_a_rejected_pod_that_backs_off_is_tried_early_where_nothing_else_is_to_be_done() -> None:
    world = failed("PreFilter", Code.UNSCHEDULABLE)
    labelled(world)
    assert world.place("web") is SubQueue.BACKOFF
    assert world.pop().key == "default/web"


def test_a_pod_that_failed_with_an_error_is_never_tried_early() -> None:
    world = failed("PreFilter", Code.ERROR)
    assert world.queue.pop() is None
    world.now += 2.0
    world.queue.flush_backoff()
    assert world.pop().key == "default/web"


def test_backoff_doubles_from_a_second_to_ten_with_each_error_in_a_row() -> None:
    world = world_of(asked("PreFilter", Code.ERROR), "PreFilter")
    waited = []
    for _ in range(6):
        world.decide()
        expiry = world.queue.next_backoff_expiry
        assert expiry is not None
        waited.append(expiry - 1 - world.now)  # it ends with the whole second after
        world.now = expiry
        world.queue.flush_backoff()
    assert waited == [1, 2, 4, 8, 10, 10]


@pytest.mark.parametrize(("point", "there"), [("PreFilter", SubQueue.ACTIVE), ("PreEnqueue", SubQueue.GATED)])
def test_five_minutes_end_a_wait_in_the_unschedulable_set_and_no_gate(point: str, there: SubQueue) -> None:
    world = world_of(asked(point, Code.UNSCHEDULABLE), point)
    if point == "PreFilter":
        world.decide()
    world.now += 301.0
    world.queue.flush_unschedulable()
    assert world.place("web") is there


def test_an_event_during_the_attempt_counts_as_if_it_came_afterwards() -> None:
    world = world_of(asked("PreFilter", Code.PENDING), "PreFilter")
    queued = world.pop()
    labelled(world)
    world.schedule(queued)
    assert world.place("web") is SubQueue.ACTIVE


@pytest.mark.parametrize("code", [Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING], ids=lambda code: code.name)
@pytest.mark.parametrize("point", ["Reserve", "Permit"])
def test_a_rejection_after_a_node_was_chosen_ends_a_nomination_and_asks_no_postfilter(point: str, code: Code) -> None:
    class Roomy(PostFilterPlugin):
        name = "Roomy"

        def post_filter(self, *_: Any) -> PostFilterResult:
            raise AssertionError("nobody asks")

    world = World(asked(point, code), Roomy).nodes(node("a")).pods(pod("web").nominated("a"))
    assert world.queue.nominator.node_of("uid-web") == "a"
    assert world.decide() is None
    assert world.queue.nominator.node_of("uid-web") is None
    assert world.place("web") is SubQueue.UNSCHEDULABLE


@pytest.mark.parametrize(("code", "others"), [(Code.UNSCHEDULABLE, ["Second"]), (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, [])])
def test_after_a_prefilter_that_rejects_filters_are_not_asked_and_other_prefilters_only_where_eviction_may_help(
    code: Code, others: list[str]
) -> None:
    heard: list[str] = []

    class Second(PreFilterPlugin, FilterPlugin):
        name = "Second"

        def pre_filter(self, *_: Any) -> PreFilterResult:
            heard.append("Second")
            return PreFilterResult()

        def filter(self, *about: Any) -> Any:
            raise AssertionError("the pod is rejected already")

        def explain(self, *about: Any) -> list[Rejection]:
            raise AssertionError("no row was looked at")

    class Third(PostFilterPlugin):
        name = "Third"

        def post_filter(self, *_: Any) -> PostFilterResult:
            heard.append("Third")
            return PostFilterResult(Status(Code.UNSCHEDULABLE))

    world = World(asked("PreFilter", code), Second, Third).nodes(node("a")).pods(pod("web"))
    assert world.decide() is None
    assert heard == [*others, "Third"]


def test_a_nominated_pod_waits_for_the_filters_events_as_without_a_nomination() -> None:
    class Roomy(PostFilterPlugin):
        name = "Roomy"

        def post_filter(self, *_: Any) -> PostFilterResult:
            return PostFilterResult(SUCCESS, NodeName("b"))

    world = World(asked("Filter", Code.UNSCHEDULABLE), Roomy).nodes(node("a"), node("b")).pods(pod("web"))
    assert world.decide() is None
    assert (world.queue.nominator.node_of("uid-web"), world.place("web")) == ("b", SubQueue.UNSCHEDULABLE)
    labelled(world)
    assert (world.queue.nominator.node_of("uid-web"), world.place("web")) == ("b", SubQueue.BACKOFF)


def test_a_preenqueue_that_raises_gates_the_pod_until_any_event() -> None:
    class Unsure(PreEnqueuePlugin):
        name = "Unsure"
        broken = True

        def pre_enqueue(self, _pod: PodInfo) -> Status:
            if self.broken:
                raise RuntimeError("oh")
            return SUCCESS

        def events(self) -> Sequence[ClusterEventWithHint]:
            return ()

    world = World(Unsure).nodes(node("a")).pods(pod("web"))
    assert world.place("web") is SubQueue.GATED
    Unsure.broken = False
    labelled(world)
    assert world.place("web") is SubQueue.ACTIVE


def test_a_postfilter_that_raises_ends_the_attempt_as_an_error() -> None:
    class Breaks(PostFilterPlugin):
        name = "Breaks"

        def post_filter(self, *_: Any) -> PostFilterResult:
            raise RuntimeError("no room")

    world = World(Breaks, plugins={"postFilter": {"enabled": [{"name": "Breaks"}], "disabled": [{"name": "*"}]}})
    world.nodes(node("a")).pods(pod("web").requests(cpu="9"))
    assert world.decide() is None
    assert world.place("web") is SubQueue.BACKOFF
    assert [reason for _, reason, _, _ in world.status.written] == ["SchedulerError"]
