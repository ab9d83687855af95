"""What is timed beside attempts: events taken in, hints asked, requests sent."""

from __future__ import annotations

import pytest

from handlers.stage import Stage
from kubesandbox.faults import Rule
from observability.metricsdesk import read, watched
from placewright.api.pods import PodInfo
from placewright.engine.options import EngineOptions
from placewright.framework.events import ASSIGNED_POD_DELETE, NODE_ADD, QueueingHint
from placewright.observability.metrics.timings import HINT_SAMPLE, EventTimes, HintTimes, RequestTimes
from placewright.scheduler.eventhandlers import ClusterEventHandlers
from scheduler.makers import World, node, pod

HINTS = "scheduler_queueing_hint_execution_duration_seconds_count"
EVENTS = "scheduler_event_handling_duration_seconds"


def test_events_are_timed_from_when_the_news_came_under_the_labels_of_kube_scheduler() -> None:
    world = World()
    world.pods(pod("old").on("a"))
    times = EventTimes(lambda: world.now)
    event_handlers = ClusterEventHandlers(world.cluster, world.queue, world.binding, times)
    event_handlers.node(node("a").build())
    event_handlers.node(node("a").build())  # a heartbeat
    event_handlers.node(node("a").labels(zone="z").taint("t").build())
    event_handlers.unscheduled_pod(pod("web").build())
    event_handlers.unscheduled_pod(pod("web").labels(app="web").build())
    event_handlers.unscheduled_pod_gone(pod("web").build())
    event_handlers.unscheduled_pod_gone(pod("web").build())
    event_handlers.assigned_pod(pod("db").on("a").build())
    event_handlers.assigned_pod(pod("db").on("a").labels(app="db").build())
    event_handlers.assigned_pod_gone("uid-db")
    event_handlers.node_gone(node("a").build().metadata.name)
    seen = read(times.series())
    counts = {event: seen.value(f"{EVENTS}_count", event=event) for event in seen.values(f"{EVENTS}_count", "event")}
    assert counts == {
        "NodeAdd": 1,
        "NodeUpdateLabel": 1,
        "NodeUpdateTaint": 1,
        "UnscheduledPodAdd": 1,
        "UnscheduledPodUpdate": 1,
        "UnscheduledPodDelete": 1,
        "AssignedPodAdd": 1,
        "AssignedPodUpdateLabel": 1,
        "AssignedPodDelete": 1,
        "NodeDelete": 1,
    }


def test_the_time_of_an_event_is_the_clocks() -> None:
    now = 5.0
    times = EventTimes(lambda: now)
    times.begin()
    now = 5.25
    times.handled("NodeAdd")
    now = 5.5
    times.handled("NodeUpdateTaint")
    seen = read(times.series())
    assert seen.value(f"{EVENTS}_sum", event="NodeAdd") == 0.25
    assert seen.value(f"{EVENTS}_sum", event="NodeUpdateTaint") == 0.5


def broken(_pod: PodInfo, _old: object, _new: object) -> QueueingHint:
    raise RuntimeError("no idea")


def test_one_question_of_ten_to_a_hint_is_timed_under_its_answer() -> None:
    times = HintTimes()
    web = pod("web").build()
    queue = times("Fit", NODE_ADD, lambda _pod, _old, _new: QueueingHint.QUEUE)
    skip = times("Taints", ASSIGNED_POD_DELETE, lambda _pod, _old, _new: QueueingHint.SKIP)
    answers = [queue(web, None, None) for _ in range(5 * HINT_SAMPLE)] + [skip(web, None, None) for _ in range(2 * HINT_SAMPLE)]
    wrong = times("Wrong", NODE_ADD, broken)
    for _ in range(HINT_SAMPLE):
        with pytest.raises(RuntimeError, match="no idea"):
            wrong(web, None, None)
    seen = read(times.series())
    assert answers == [QueueingHint.QUEUE] * 50 + [QueueingHint.SKIP] * 20
    assert seen.value(HINTS, plugin="Fit", event="NodeAdd", hint="Queue") == 5
    assert seen.value(HINTS, plugin="Taints", event="AssignedPodDelete", hint="QueueSkip") == 2
    assert seen.value(HINTS, plugin="Wrong", event="NodeAdd", hint="Error") == 1


@pytest.mark.parametrize("generation", [1, 2])
def test_the_queue_asks_hints_through_the_watch_and_moves_the_same_pods(generation: int) -> None:
    moved = []
    for timed in (None, HintTimes()):
        world = World(timed=timed)
        world.nodes(node("a").offers(cpu="1")).pods(*(pod(f"web-{n}").requests(cpu="2") for n in range(30)))
        if generation > 1:
            world.use_profile(generation=generation)
        for _ in range(30):
            world.decide()
        world.now += 60
        world.nodes(node("tiny").offers(cpu="1"), node("large").offers(cpu="64"))
        moved.append(world.queue.sizes())
        seen = read(timed.series()) if timed else None
    assert moved[0] == moved[1]
    assert moved[0].active == 30
    assert seen is not None
    assert seen.value(HINTS, plugin="NodeResourcesFit", event="NodeAdd", hint="Queue") == 3
    assert seen.value(HINTS, plugin="NodeResourcesFit", event="NodeAdd", hint="QueueSkip") == 3


def test_requests_are_named_by_the_servers_host_alone() -> None:
    times = RequestTimes("https://user:secret@api.example.test:6443/k8s/clusters/c-1?token=secret")
    times.answered("GET", 200)
    times.ended("GET", 0.5, 2.0)
    seen = read(times.series())
    assert seen.values("rest_client_requests_total", "host") == {"api.example.test:6443"}
    assert seen.value("rest_client_request_duration_seconds_sum", verb="GET", host="api.example.test:6443") == 2.0
    assert seen.value("rest_client_rate_limiter_duration_seconds_sum", verb="GET", host="api.example.test:6443") == 0.5


async def test_requests_are_counted_as_the_server_answered_them(stage: Stage) -> None:
    refused = stage.sandbox.faults.add(Rule(method="POST", path="/binding", code=500, times=3))
    names = stage.pods(10)
    async with watched(stage) as running:
        await stage.until(lambda: stage.placed(*names))
        await stage.until(lambda: running.seen().value("placewright_bindings_total", outcome="bound") == 10)
        seen = running.seen()
    host = stage.sandbox.server.removeprefix("https://")
    assert refused.met == 3
    assert seen.value("rest_client_requests_total", code="500", method="POST", host=host) == refused.met
    assert seen.total("rest_client_requests_total", code="201", method="POST") >= len(stage.bindings) == 10
    assert seen.value("rest_client_request_duration_seconds_count", verb="POST", host=host) == seen.total(
        "rest_client_requests_total", method="POST"
    )
    assert seen.value("placewright_bindings_total", outcome="retry") == 3


async def test_what_is_not_answered_is_counted_and_the_server_is_away(stage: Stage) -> None:
    async with watched(stage, EngineOptions(seed=1, reconcile_seconds=3600.0, leader_elect=False)) as running:
        await stage.until(lambda: running.engine.started and not running.engine.reading.unsynced())
        before = running.seen()
        stage.sandbox.faults.refuse_connections(1.0)
        await stage.until(lambda: running.seen().value("placewright_api_server_away") == 1)
        away = running.seen()
        await stage.until(lambda: running.seen().value("placewright_api_server_away") == 0)
        after = running.seen()
    errors = [seen.total("rest_client_requests_total", code="<error>") for seen in (before, away)]
    assert errors[0] == 0 < errors[1]
    assert away.value("placewright_api_server_away_seconds") > 0
    assert after.value("placewright_api_server_away_seconds") == 0
    assert after.total("placewright_watch_starts_total") > before.total("placewright_watch_starts_total")
    assert after.total("placewright_watch_problems_total", problem="failed") > 0
    assert before.total("leader_election_master_status") == 0  # there is no election
    assert before.total("placewright_leader") == 1
