"""Failures of plugins by profile and generation, and the pods that only the watch can tell."""

from __future__ import annotations

from typing import Any

from placewright.api.pods import PodInfo
from placewright.engine.profilekeeper import PluginWatch
from placewright.framework.interface import PreEnqueuePlugin
from placewright.framework.runtime.resolvedprofile import ResolvedProfile
from placewright.framework.status import SUCCESS, Status
from scheduler.makers import World, node, pod


class Boom(PreEnqueuePlugin):
    """Raises for pods that are labelled so."""

    name = "Boom"

    def pre_enqueue(self, pod: PodInfo) -> Status:
        if "boom" in pod.labels:
            raise ValueError(pod.labels["boom"])
        return SUCCESS


def a_profile(generation: int, name: str = "p") -> ResolvedProfile:
    made: Any = type("Profile", (), {"name": name, "generation": generation})()
    found: ResolvedProfile = made
    return found


def test_failures_are_kept_for_each_generation_and_summed_up_for_all() -> None:
    watch = PluginWatch()
    watch.guarding(a_profile(1)).failures.note("Boom", "Filter", "eh")
    watch.guarding(a_profile(2)).failures.note("Boom", "Filter", "oh")
    watch.guarding(a_profile(2)).failures.note("Boom", "Filter", "oh")
    watch.guarding(a_profile(1, "other")).failures.note("Boom", "Score", "ah")
    counts = [getattr(watch.failures_of("p", generation), "total", None) for generation in (1, 2, 3, None)]
    assert counts == [1, 2, None, None]
    assert watch.totals == {("p", "Boom", "Filter"): 3, ("other", "Boom", "Score"): 1}
    watch.forget("p")
    assert watch.totals == {("other", "Boom", "Score"): 1}
    assert watch.failures_of("p", 2) is None


def test_only_so_many_generations_are_remembered() -> None:
    watch = PluginWatch()
    for generation in range(1, 100):
        watch.guarding(a_profile(generation))
    assert watch.failures_of("p", 1) is None
    assert watch.failures_of("p", 99) is not None


def test_a_pod_that_a_failing_preenqueue_keeps_out_is_told_once_for_each_reason() -> None:
    watch = PluginWatch()
    world = World(Boom, guarding=watch.guarding(a_profile(1))).nodes(node("a"))
    world.pods(pod("fine"), pod("kept").labels(boom="eh"))
    for _ in range(3):
        watch.tell(world.queue, world.events, world.status)
        world.pods(pod("kept").labels(boom="eh"))
    said = 'running PreEnqueue plugin "Boom": ValueError: eh'
    assert [(name, reason, note) for name, _, reason, _, note in world.events.recorded] == [("kept", "FailedScheduling", said)]
    assert world.status.written == [("kept", "SchedulerError", said, None)]
    world.pods(pod("kept").labels(boom="oh"))
    watch.tell(world.queue, world.events, world.status)
    assert len(world.events.recorded) == 2
