from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from framework.scripts import Call
from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.framework.interface import CycleState, PermitPlugin, PermitResult, PreBindPlugin
from placewright.framework.status import SKIP, SUCCESS, Code, Status, error, unschedulable
from placewright.queue.check import check_invariants
from placewright.queue.inflight import RoomPlace
from placewright.queue.queued import SubQueue
from placewright.scheduler.attempts import Attempt
from placewright.scheduler.binding import decision_annotations
from placewright.scheduler.ports import EventType

from .makers import CONFLICT, DEADLINE, REFUSED, UNKNOWN, World, node, pod
from .scripted import late

WAIT = Status(Code.WAIT)


def waiting(seconds: float) -> PermitResult:
    return PermitResult(WAIT, seconds)


async def settled() -> None:
    """Let everything that can run now run."""
    for _ in range(5):
        await asyncio.sleep(0)


def one_pod(*told: Mapping[str, Any], calls: list[Call] | None = None) -> World:
    """A node, a pod that fits on it, and late plugins that do as they are told, all noting into one list."""
    plugins = [late(f"P{number}", calls, **each) for number, each in enumerate(told)]
    return World(*(each.kind for each in plugins)).nodes(node("a")).pods(pod("web").requests(cpu="1"))


# --- bound -----------------------------------------------------------------------------------------------------------------------


async def test_a_bound_pod_has_left_the_queue_and_keeps_its_place_on_the_node() -> None:
    world = one_pod()
    assert await world.attempt() is True
    assert world.place("web") is None
    assert world.node_of("web") == "a"
    assert world.requested("a") == 1000
    assert [(name, node) for name, _, node, _ in world.binder.bound] == [("web", "a")]


async def test_the_scheduled_event_says_where() -> None:
    world = one_pod()
    await world.attempt()
    assert world.events.recorded == [
        ("web", EventType.NORMAL, "Scheduled", "Binding", "Successfully assigned default/web to a"),
    ]
    assert world.status.written == []


async def test_the_binding_carries_the_decision() -> None:
    world = one_pod().nodes(node("b").cordoned(), node("c").offers(cpu="8"))
    world.use_profile(name="fast", generation=4)
    await world.attempt()
    ((_, _, chosen, decision),) = world.binder.bound
    assert decision is not None
    assert (chosen, decision.profile, decision.generation) == ("c", "fast", 4)
    assert decision.score == sum(decision.plugins.values()) > 0
    assert decision.runner_up is not None
    assert decision.runner_up < decision.score


def test_the_annotation_is_json_with_the_names_that_people_read() -> None:
    world = World().nodes(node("a"), node("b").offers(cpu="1500m"))
    result = world.cycle.place(world.evaluator, pod("web").requests(cpu="1").build())
    (text,) = decision_annotations(result).values()
    assert msgspec.json.decode(text).keys() == {"profile", "generation", "score", "runnerUp", "plugins"}
    assert decision_annotations(result).keys() == {"placewright.dev/decision"}


def test_what_plugins_want_on_the_pod_stands_beside_the_decision_and_never_in_its_place() -> None:
    world = World().nodes(node("a"))
    result = world.cycle.place(world.evaluator, pod("web").build())
    result.state.annotations |= {"example.com/choice": "7", "placewright.dev/decision": "mine"}
    annotations = decision_annotations(result)
    assert annotations["example.com/choice"] == "7"
    assert msgspec.json.decode(annotations["placewright.dev/decision"])["profile"] == world.evaluator.runtime.profile.name


def test_devices_that_a_pod_brought_do_not_survive_its_binding() -> None:
    """A tenant may write the annotation; what nobody chose is overwritten in the same request that places the pod."""
    world = World().nodes(node("a"))
    result = world.cycle.place(world.evaluator, pod("web").annotations(**{"placewright.dev/devices": '{"example.com/gpu":[0]}'}).build())
    assert decision_annotations(result)["placewright.dev/devices"] == "{}"
    result.state.annotations["placewright.dev/devices"] = '{"example.com/gpu":[3]}'
    assert decision_annotations(result)["placewright.dev/devices"] == '{"example.com/gpu":[3]}'


async def test_the_late_steps_run_in_order() -> None:
    calls: list[Call] = []
    await one_pod({}, {}, calls=calls).attempt()
    steps = ["reserve", "permit", "pre_bind", "post_bind"]
    assert calls == [(f"P{number}", step, ("a",)) for step in steps for number in (0, 1)]


async def test_pods_that_a_plugin_wants_activated_are_tried_once_the_pod_is_placed_and_bound() -> None:
    world = World().nodes(node("a")).pods(pod("big").requests(cpu="9"))
    await world.attempt()
    assert world.place("big") is SubQueue.UNSCHEDULABLE
    world.pods(pod("web"))
    result = world.cycle.place(world.evaluator, pod("web").build())
    result.state.activate["uid-big"] = pod("big").build()
    queued = world.pop()
    world.cluster.assume(result.pod, result.node)
    assert await world.binding.run(Attempt(queued, result.runtime.profile, lambda: world.now), result)
    assert world.place("big") is SubQueue.ACTIVE


async def test_a_postbind_that_breaks_does_not_unbind_the_pod(caplog: pytest.LogCaptureFixture) -> None:
    world = one_pod({"post_bind": RuntimeError("oh")})
    assert await world.attempt() is True
    assert world.node_of("web") == "a"
    assert world.place("web") is None
    assert "PostBind of pod default/web broke" in caplog.text


# --- rolled back -----------------------------------------------------------------------------------------------------------------


def taken_back(world: World) -> bool:
    """Nothing of the attempt is left, and the queue is whole."""
    check_invariants(world.queue)
    return world.node_of("web") is None and world.requested("a") == 0 and not len(world.queue.in_flight)


@pytest.mark.parametrize("answer", [REFUSED, CONFLICT])
async def test_a_refused_binding_is_taken_back_and_the_pod_backs_off(answer: Exception) -> None:
    world = one_pod({})
    world.binder.answers["uid-web"] = answer
    assert await world.attempt() is False
    assert taken_back(world)
    assert world.place("web") is SubQueue.BACKOFF
    told = f'running Bind plugin "DefaultBinder": {answer}'
    assert world.status.written == [("web", "SchedulerError", told, "")]
    assert world.events.recorded == [("web", EventType.WARNING, "FailedScheduling", "Scheduling", told)]


async def test_everything_is_unreserved_in_reverse_order() -> None:
    calls: list[Call] = []
    world = one_pod({}, {}, {}, calls=calls)
    world.binder.answers["uid-web"] = REFUSED
    await world.attempt()
    assert calls[-3:] == [(name, "unreserve", ("a",)) for name in ("P2", "P1", "P0")]


async def test_an_unreserve_that_breaks_does_not_lose_the_pod() -> None:
    world = one_pod({"unreserve": RuntimeError("oh")})
    world.binder.answers["uid-web"] = REFUSED
    assert await world.attempt() is False
    assert taken_back(world)
    assert world.place("web") is SubQueue.BACKOFF


async def test_a_plugin_without_anything_to_do_before_the_binding_is_not_called() -> None:
    calls: list[Call] = []
    world = one_pod({"pre_flight": SKIP}, {}, calls=calls)
    assert await world.attempt() is True
    assert [name for name, step, _ in calls if step == "pre_bind"] == ["P1"]


@pytest.mark.parametrize(("answers", "stood_aside"), [((SKIP, SKIP), 0), ((SKIP, SUCCESS), 1), ((), 0)])
async def test_a_pod_that_waits_for_nothing_keeps_its_place_in_the_room(
    answers: tuple[Status, ...], stood_aside: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    stepped: list[RoomPlace] = []
    stand_aside = RoomPlace.stand_aside
    monkeypatch.setattr(RoomPlace, "stand_aside", lambda place: (stepped.append(place), stand_aside(place))[1])
    world = one_pod(*({"pre_flight": told} for told in answers))
    assert await world.attempt() is True
    assert len(stepped) == stood_aside


@pytest.mark.parametrize(
    ("spec", "told", "nominated"),
    [
        ({}, {"pre_flight": SUCCESS}, True),
        ({}, {"pre_flight": SKIP, "permit": waiting(60)}, True),
        ({}, {"pre_flight": SKIP}, False),
        ({"compatibility": "1.35"}, {}, True),
        ({"compatibility": "1.34"}, {}, False),
        ({"compatibility": "1.34"}, {"permit": waiting(60)}, False),
        ({"compatibility": "1.34", "featureGates": {"NominatedNodeNameForExpectation": True}}, {}, True),
        ({"featureGates": {"NominatedNodeNameForExpectation": False}}, {}, False),
    ],
)
async def test_a_pod_with_anything_to_wait_for_before_its_binding_is_nominated(
    spec: dict[str, Any], told: dict[str, Any], nominated: bool
) -> None:
    world = one_pod(told)
    world.use_profile(**spec)
    binding = world.decide()
    assert binding is not None
    for held in world.scheduler.waiting:
        held.allow("P0")
    assert await binding is True
    assert world.status.nominated == ([("web", "a")] if nominated else [])


async def test_a_nomination_before_the_binding_takes_no_room_beside_the_pod_itself() -> None:
    """The pod's own news comes back from the API server, or another controller nominates it while it waits."""
    world = one_pod({"permit": waiting(60)}).nodes(node("b"))
    binding = world.decide()
    assert binding is not None
    for name in ("a", "b"):
        world.event_handlers.unscheduled_pod(pod("web").requests(cpu="1").nominated(name).version(name).build())
        assert world.queue.nominator.nodes() == set()
    held = world.scheduler.waiting.get("uid-web")
    assert held is not None
    held.reject("P0", "no")
    assert await binding is False
    assert world.status.written[-1].nominated_node == ""
    assert world.queue.nominator.nodes() == set()


async def test_a_pre_flight_that_answers_neither_way_is_an_error() -> None:
    world = one_pod({"pre_flight": unschedulable("perhaps")})
    assert await world.attempt() is False
    assert taken_back(world)
    assert 'running PreBind plugin "P0": ' in world.status.written[0][2]


async def test_a_prebind_that_breaks_is_an_error() -> None:
    world = one_pod({"pre_bind": RuntimeError("no volume")})
    assert await world.attempt() is False
    assert taken_back(world)
    assert world.binder.bound == []
    assert world.status.written == [("web", "SchedulerError", 'running PreBind plugin "P0": RuntimeError: no volume', "")]


async def test_a_prebind_that_fails_is_an_error() -> None:
    world = one_pod({"pre_bind": error("no volume")})
    await world.attempt()
    assert taken_back(world)
    assert world.status.written == [("web", "SchedulerError", 'running PreBind plugin "P0": no volume', "")]


async def test_a_prebind_that_rejects_is_unschedulable_and_waits_for_that_plugin() -> None:
    world = one_pod({"pre_bind": unschedulable("volume is elsewhere")})
    await world.attempt()
    assert taken_back(world)
    assert world.place("web") is SubQueue.UNSCHEDULABLE
    assert world.status.written == [("web", "Unschedulable", "0/1 nodes are available: 1 volume is elsewhere.", "")]
    assert world.queue.rejections("default-scheduler") == {"P0": 1}


async def test_a_rejected_pod_is_not_woken_by_its_own_leaving_but_others_are() -> None:
    """The plugin waits for pods to leave nodes; this pod's leaving is no news to itself."""
    world = one_pod({"pre_bind": unschedulable("no")})
    await world.attempt()
    assert world.place("web") is SubQueue.UNSCHEDULABLE
    world.now += 100
    world.pods(pod("other").requests(cpu="1"))
    await world.attempt()
    assert world.place("web") is SubQueue.ACTIVE


@pytest.mark.parametrize(
    ("step", "answer", "reason"),
    [
        ("reserve", unschedulable("no quota"), "Unschedulable"),
        ("reserve", error("no quota"), "SchedulerError"),
        ("reserve", RuntimeError("no quota"), "SchedulerError"),
        ("permit", PermitResult(unschedulable("no quota")), "Unschedulable"),
        ("permit", PermitResult(error("no quota")), "SchedulerError"),
        ("permit", RuntimeError("no quota"), "SchedulerError"),
    ],
)
def test_a_failed_reserve_or_permit_is_taken_back_before_anything_is_bound(step: str, answer: Any, reason: str) -> None:
    calls: list[Call] = []
    world = one_pod({}, {step: answer}, calls=calls)
    assert world.decide() is None
    assert taken_back(world)
    assert calls[-2:] == [("P1", "unreserve", ("a",)), ("P0", "unreserve", ("a",))]
    assert calls.count(("P0", "unreserve", ("a",))) == 1
    ((_, told, message, _),) = world.status.written
    assert told == reason
    assert "no quota" in message


def test_a_pending_plugins_event_brings_the_pod_back_at_once() -> None:
    world = one_pod({"permit": PermitResult(Status(Code.PENDING, ("claim is being made",)))})
    world.decide()
    queued = world.queue.get("uid-web")
    assert queued is not None
    assert queued.pending_plugins == {"P0"}


# --- waiting for permission --------------------------------------------------------------------------------------------------------


async def test_a_pod_can_be_allowed_before_its_binding_has_begun() -> None:
    """The next pod of a gang is decided in the same slice, and must find those that wait for it."""
    world = one_pod({"permit": waiting(60)})
    binding = world.decide()
    assert binding is not None
    (found,) = world.scheduler.waiting
    assert (found.pod.name, found.pending_plugins) == ("web", ("P0",))
    found.allow("P0")
    assert await binding is True
    assert not list(world.scheduler.waiting)


async def test_a_plugin_finds_the_pods_that_wait_and_lets_them_go_together() -> None:
    """Two pods are a gang: the second one's Permit allows the first."""

    class Gang(PermitPlugin):
        name = "Gang"

        def permit(self, state: CycleState, pod: PodInfo, node: NodeName) -> PermitResult:
            others = list(self.handle.waiting_pods())
            for other in others:
                other.allow(self.name)
            return PermitResult(SUCCESS) if others else waiting(60)

    world = World(Gang).nodes(node("a")).pods(pod("one"), pod("two"))
    bindings = [world.decide(), world.decide()]
    assert [await binding for binding in bindings if binding is not None] == [True, True]


async def test_every_plugin_that_waits_must_allow() -> None:
    world = one_pod({"permit": waiting(60)}, {"permit": waiting(30)})
    task = asyncio.ensure_future(world.attempt())
    await settled()
    held = world.scheduler.waiting.get("uid-web")
    assert held is not None
    held.allow("P0")
    await settled()
    assert not task.done()
    assert world.node_of("web") == "a", "it keeps its place while it waits"
    assert world.place("web") is SubQueue.IN_FLIGHT
    held.allow("P1")
    assert await task is True


async def test_a_rejected_waiting_pod_is_rolled_back_in_the_plugins_name() -> None:
    world = one_pod({"permit": waiting(60)})
    task = asyncio.ensure_future(world.attempt())
    await settled()
    held = world.scheduler.waiting.get("uid-web")
    assert held is not None
    held.reject("P0", "the gang broke up")
    held.allow("P0")
    assert await task is False
    assert taken_back(world)
    assert world.place("web") is SubQueue.UNSCHEDULABLE
    assert world.status.written == [("web", "Unschedulable", "0/1 nodes are available: 1 the gang broke up.", "")]


async def test_a_pod_that_waited_too_long_is_rejected_by_the_most_impatient_plugin() -> None:
    world = one_pod({"permit": waiting(90)}, {"permit": waiting(120)})
    binding = world.decide()
    assert binding is not None
    world.now += 90
    assert await binding is False
    assert world.status.written[0][2] == ("0/1 nodes are available: 1 rejected due to timeout after waiting 1m30s at plugin P0.")
    assert world.queue.rejections("default-scheduler") == {"P0": 1}


async def test_a_deleted_waiting_pod_lets_go_of_everything() -> None:
    world = one_pod({"permit": waiting(60)})
    task = asyncio.ensure_future(world.attempt())
    await settled()
    world.event_handlers.unscheduled_pod_gone(pod("web").build())
    assert await task is False
    assert taken_back(world)
    assert len(world.queue) == 0
    assert world.events.recorded == [], "nobody reads about a pod that is gone"


class Patient(PreBindPlugin):
    """Waits for something that does not come, for as long as the pod is there."""

    name = "Patient"

    async def pre_bind(self, state: CycleState, pod: PodInfo, node: NodeName) -> Status:
        while not state.abandoned:  # noqa: ASYNC110 - a flag is all that a plugin is told by
            await asyncio.sleep(0)
        return error("gone")


async def test_a_pod_deleted_while_it_is_prepared_lets_go_of_everything() -> None:
    world = World(Patient).nodes(node("a")).pods(pod("web").requests(cpu="1"))
    binding = asyncio.ensure_future(world.attempt())
    await settled()
    assert world.node_of("web") == "a"
    world.event_handlers.unscheduled_pod_gone(pod("web").build())
    async with asyncio.timeout(DEADLINE):
        assert await binding is False
    assert (world.node_of("web"), world.place("web"), world.requested("a")) == (None, None, 0)
    check_invariants(world.queue)
    world.event_handlers.unscheduled_pod_gone(pod("web").build())  # nobody is under way any more


# --- nobody knows ------------------------------------------------------------------------------------------------------------------


async def unknown_outcome() -> World:
    world = one_pod({})
    world.binder.answers["uid-web"] = UNKNOWN
    assert await world.attempt() is False
    return world


async def test_a_pod_whose_binding_may_exist_keeps_its_place_on_the_node_and_in_flight() -> None:
    world = await unknown_outcome()
    assert world.node_of("web") == "a"
    assert world.place("web") is SubQueue.IN_FLIGHT
    assert world.events.recorded == []
    check_invariants(world.queue)


async def test_the_watch_that_shows_it_bound_ends_the_doubt() -> None:
    world = await unknown_outcome()
    world.pods(pod("web").requests(cpu="1").on("a"))
    assert world.place("web") is None
    assert world.events.reasons("web") == ["Scheduled"]
    assert world.requested("a") == 1000
    assert not world.binding.unresolved


async def test_news_that_there_is_no_binding_rolls_back() -> None:
    world = await unknown_outcome()
    world.binding.resolve("uid-web", None)
    assert taken_back(world)
    assert world.place("web") is SubQueue.BACKOFF
    assert world.status.written[0][1] == "SchedulerError"


async def test_the_watch_that_shows_it_on_another_node_frees_ours() -> None:
    world = (await unknown_outcome()).nodes(node("b"))
    world.pods(pod("web").requests(cpu="1").on("b"))
    assert world.place("web") is None
    assert (world.requested("a"), world.requested("b")) == (0, 1000)
    assert world.events.recorded == [], "we did not assign it"


async def test_a_pod_that_left_the_watch_while_nobody_knows_may_be_bound_and_keeps_its_room() -> None:
    world = await unknown_outcome()
    world.event_handlers.unscheduled_pod_gone(pod("web").build())  # shown as it was before, without a node
    assert world.node_of("web") == "a"
    assert world.requested("a") == 1000
    world.pods(pod("web").requests(cpu="1").on("a"))
    assert world.requested("a") == 1000
    assert world.events.reasons("web") == ["Scheduled"]
    assert not world.binding.unresolved


async def test_a_pod_deleted_while_nobody_knows_lets_go_of_everything() -> None:
    world = await unknown_outcome()
    world.event_handlers.unscheduled_pod_gone(pod("web").build())
    world.event_handlers.pod_gone("uid-web")
    assert taken_back(world)
    assert len(world.queue) == 0
    assert not world.binding.unresolved


async def test_a_watch_that_was_faster_than_the_lost_answer_counts() -> None:
    world = one_pod({})
    world.binder.answers["uid-web"] = answer = asyncio.get_running_loop().create_future()
    task = asyncio.ensure_future(world.attempt())
    await settled()
    world.pods(pod("web").requests(cpu="1").on("a"))
    answer.set_exception(UNKNOWN)
    assert await task is True
    assert not world.binding.unresolved
    assert world.place("web") is None
    assert world.events.reasons("web") == ["Scheduled"]


async def test_a_pod_that_came_and_went_on_a_node_while_its_answer_got_lost_is_in_doubt_for_nobody() -> None:
    world = one_pod({})
    world.binder.answers["uid-web"] = answer = asyncio.get_running_loop().create_future()
    task = asyncio.ensure_future(world.attempt())
    await settled()
    world.pods(pod("web").requests(cpu="1").on("a"))
    world.event_handlers.assigned_pod_gone("uid-web")
    answer.set_exception(UNKNOWN)
    assert await task is False
    assert taken_back(world)
    assert not world.binding.unresolved
    assert len(world.queue) == 0


@pytest.mark.parametrize("answer", [CONFLICT, UNKNOWN])
async def test_a_pod_that_somebody_else_bound_meanwhile_is_left_alone(answer: Exception, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    calls: list[Call] = []
    world = one_pod({}, calls=calls).nodes(node("b").cordoned())
    world.binder.answers["uid-web"] = lost = asyncio.get_running_loop().create_future()
    task = asyncio.ensure_future(world.attempt())
    await settled()
    world.pods(pod("web").requests(cpu="1").on("b"))
    lost.set_exception(answer)
    assert await task is False
    assert (world.requested("a"), world.requested("b")) == (0, 1000)
    assert len(world.queue) == 0
    assert world.events.recorded == []
    assert ("P0", "unreserve", ("a",)) in calls
    assert "bound by another scheduler" in caplog.text
    check_invariants(world.queue)
