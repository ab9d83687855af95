"""One line a decision: what it says of pods that are placed, of those that are not, and of what took long."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from framework.scripts import Script
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.interface import CycleState, Plugin, PreScorePlugin, Rows
from placewright.framework.status import SUCCESS, Status
from placewright.observability import decisionlog
from placewright.observability.decisionlog import BETWEEN, DecisionLog
from scheduler.makers import CONFLICT, REFUSED, UNKNOWN, World, node, pod
from scheduler.scripted import late

TIMES = {"queue_ms", "decision_ms", "attempt_ms"}


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> Callable[[], list[logging.LogRecord]]:
    caplog.set_level(logging.DEBUG, decisionlog.LOGGER)
    return lambda: [record for record in caplog.records if record.name == decisionlog.LOGGER]


Said = Callable[[], list[logging.LogRecord]]


def logged(world: World, *, active: bool = True) -> World:
    world.listening.append(DecisionLog(lambda: active))
    return world


def fields(record: logging.LogRecord) -> dict[str, Any]:
    return dict(record.__dict__["fields"])


def slow_scoring(world: list[World], seconds: float) -> type[Plugin]:
    class Slow(PreScorePlugin):
        name = "Slow"

        def pre_score(self, state: CycleState, pod: PodInfo, cluster: Cluster, feasible: Rows) -> Status:
            world[0].now += seconds
            return SUCCESS

    return Slow


async def test_a_pod_that_is_placed_is_one_line_at_info_with_what_decided(said: Said) -> None:
    world = logged(World()).nodes(node("a"), node("b").offers(cpu="1")).pods(pod("web").requests(cpu="500m"))
    world.now += 2.5
    await world.attempt()
    [(_, _, bound, decision)] = world.binder.bound
    assert decision is not None
    [record] = said()
    found = fields(record)
    assert (record.levelname, record.getMessage()) == ("INFO", "pod placed")
    assert {key: found[key] for key in set(found) - TIMES} == {
        "pod": "default/web", "uid": "uid-web", "node": bound, "profile": decision.profile, "generation": decision.generation,
        "score": decision.score, "runner_up": decision.runner_up, "feasible": 2, "attempt": 1,
    }  # fmt: skip
    assert found["queue_ms"] == 2500


async def test_what_was_not_scored_has_no_score(said: Said) -> None:
    world = logged(World(Script("Narrowing").pre_filters(nodes="a").kind)).nodes(node("a"), node("b")).pods(pod("web"))
    await world.attempt()
    [record] = said()
    assert (fields(record)["score"], fields(record)["runner_up"], fields(record)["feasible"]) == (None, None, 1)


async def test_a_pod_that_fits_nowhere_has_kubernetes_message_and_the_plugins_that_said_no(said: Said) -> None:
    world = logged(World()).nodes(node("a"), node("b")).pods(pod("web").requests(cpu="900"))
    await world.attempt()
    [(_, reason, message, _)] = world.status.written
    [record] = said()
    found = fields(record)
    assert (record.levelname, record.getMessage()) == ("INFO", "pod not placed")
    assert (found["pod"], found["reason"], found["message"], found["plugins"]) == ("default/web", reason, message, ["NodeResourcesFit"])
    assert "0/2 nodes are available" in message


@pytest.mark.parametrize("problem", [REFUSED, CONFLICT])
async def test_what_broke_is_an_error_and_names_the_node_that_was_chosen(problem: Exception, said: Said) -> None:
    world = logged(World()).nodes(node("a")).pods(pod("web"))
    world.binder.answers["uid-web"] = problem
    await world.attempt()
    [record] = said()
    assert (record.levelname, fields(record)["reason"], fields(record)["node"]) == ("ERROR", "SchedulerError", "a")


async def test_what_a_replica_without_the_lead_cannot_bind_is_no_error(said: Said) -> None:
    world = logged(World(), active=False).nodes(node("a")).pods(pod("web"))
    world.binder.answers["uid-web"] = REFUSED
    await world.attempt()
    [record] = said()
    assert (record.levelname, record.getMessage()) == ("INFO", "pod not placed, another replica sees to it")


async def test_a_binding_whose_answer_was_lost_is_told_once_it_is_known(said: Said) -> None:
    world = logged(World()).nodes(node("a")).pods(pod("web"))
    world.binder.answers["uid-web"] = UNKNOWN
    await world.attempt()
    assert said() == []
    world.binding.resolve("uid-web", "a")
    assert [record.getMessage() for record in said()] == ["pod placed"]


async def test_a_pod_that_fails_again_with_the_same_message_is_a_repeat_and_placed_pods_are_not(said: Said) -> None:
    world = logged(World()).nodes(node("a"), node("b")).pods(pod("web"), pod("huge").requests(cpu="900"), pod("large").requests(cpu="900"))
    for _ in range(3):
        await world.attempt()
    about = {fields(record)["pod"]: record.__dict__["about"] for record in said()}
    assert about["default/web"] is None
    assert about["default/huge"] != about["default/large"]
    assert about["default/huge"] == ("uid-huge", fields(next(r for r in said() if "huge" in fields(r)["pod"]))["message"])


async def test_a_slow_decision_is_a_warning_that_names_the_step(said: Said) -> None:
    holder: list[World] = []
    holder.append(world := logged(World(slow_scoring(holder, 0.15))))
    world.nodes(node("a"), node("b")).pods(pod("web"))
    await world.attempt()
    placed, slow = said()
    assert (placed.getMessage(), slow.levelname, slow.getMessage()) == ("pod placed", "WARNING", "decision was slow")
    found = fields(slow)
    assert (found["pod"], found["slowest"]) == ("default/web", "PreScore")
    assert found["took_ms"] == pytest.approx(150)
    assert found["steps_ms"] == pytest.approx({"PreFilter": 0, "Filter": 0, "PreScore": 150, "Score": 0})


async def test_a_decision_within_a_tenth_of_a_second_is_not_slow(said: Said) -> None:
    holder: list[World] = []
    holder.append(world := logged(World(slow_scoring(holder, 0.09))))
    await world.nodes(node("a"), node("b")).pods(pod("web")).attempt()
    assert [record.getMessage() for record in said()] == ["pod placed"]


async def test_time_between_the_steps_is_named_as_such(said: Said) -> None:
    world = logged(World()).nodes(node("a")).pods(pod("web"))
    real = world.cycle.place

    def place(*arguments: Any) -> Any:
        result = real(*arguments)
        world.now += 0.2
        return result

    world.cycle.place = place  # type: ignore[method-assign]
    await world.attempt()
    assert [fields(record)["slowest"] for record in said()[1:]] == [BETWEEN]


async def test_a_slow_binding_is_a_warning_but_not_for_what_the_pod_waits_for_itself(said: Said) -> None:
    world: World

    def wait(seconds: float) -> Callable[..., Status]:
        def act(*_: object) -> Status:
            world.now += seconds
            return SUCCESS

        return act

    world = logged(World(late("Late", pre_bind=wait(60.0), post_bind=wait(0.5)).kind)).nodes(node("a")).pods(pod("web"))
    await world.attempt()
    assert [record.getMessage() for record in said()] == ["pod placed"]

    world = logged(World(late("Late", pre_bind=wait(60.0), post_bind=wait(1.5)).kind)).nodes(node("a")).pods(pod("db"))
    await world.attempt()
    slow = said()[-1]
    found = fields(slow)
    assert (slow.levelname, slow.getMessage(), found["slowest"], found["node"]) == ("WARNING", "binding was slow", "PostBind", "a")
    assert found["took_ms"] == pytest.approx(1500)
    assert (found["steps_ms"]["PreBind"], found["steps_ms"]["PostBind"]) == pytest.approx((60_000, 1500))
    assert "Filter" not in found["steps_ms"]


async def test_nothing_is_made_when_nobody_listens(said: Said, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR, decisionlog.LOGGER)
    world = logged(World()).nodes(node("a")).pods(pod("web"))
    await world.attempt()
    assert world.node_of("web") == "a"
    assert said() == []
