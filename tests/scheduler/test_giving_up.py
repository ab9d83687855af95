"""Pods that are given up, in virtual time: each is told once, and every change that helps a pod brings it back."""

from __future__ import annotations

from collections import Counter
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placewright.api.givenup import GIVEN_UP, PROFILE_CHANGED, SCHEDULED, WAITED_TOO_LONG
from placewright.api.quantity import ceil_milli, nano
from placewright.testing import World, assert_bound, assert_waiting, node, pod, pod_group, profile
from placewright.testing.ports import FakeStatus
from randomcases import cases

LIMIT: Final = 600.0
GIVES_UP: Final = profile("patient").spec(giveUpAfterSeconds=LIMIT)


def told(status: FakeStatus, name: str) -> list[tuple[str, str]]:
    """(status, reason) of a pod's conditions beside PodScheduled, in order."""
    return [(condition.status, condition.reason) for who, condition in status.others if who == name]


def test_a_pod_is_told_how_long_it_waited_and_what_rejected_it_last() -> None:
    world = World(nodes=[node("a")], profile=GIVES_UP)
    world.add(pod("big").requests(cpu="32"))
    world.advance(LIMIT - 1)
    assert not world.status.others
    world.advance(1)
    ((_, condition),) = world.status.others
    assert condition.message == (
        "waited 10m0s, and profile patient gives up after 10m0s; rejected last by NodeResourcesFit; "
        "tried again after a change that may help"
    )
    assert [event.note for event in world.events.about("big") if event.reason == "GivenUp"] == [condition.message]
    assert world.scheduler.given_up.counts == {"patient": 1}


def test_without_the_field_a_pod_is_tried_for_ever_and_told_nothing_more() -> None:
    world = World(nodes=[node("a")])
    world.add(pod("big").requests(cpu="32"))
    world.advance(10 * LIMIT)
    assert not world.status.others
    assert len(world.log.attempts) > 10


def test_a_pod_that_is_given_up_is_not_tried_by_the_clock_and_is_by_a_node() -> None:
    world = World(nodes=[node("a")], profile=GIVES_UP)
    world.add(pod("big").requests(cpu="32"))
    world.advance(LIMIT)
    tries = len(world.log.attempts)
    world.advance(10 * LIMIT)
    assert len(world.log.attempts) == tries
    world.add(node("b", cpu="8"))
    world.advance(60)
    assert_waiting(world, "big", plugin="NodeResourcesFit")
    assert len(world.log.attempts) == tries, "its hint sees that the node is too small"
    world.add(node("c", cpu="64"))
    world.advance(60)
    assert_bound(world, "big", on="c")
    assert told(world.status, "big") == [("True", WAITED_TOO_LONG), ("False", SCHEDULED)]


def test_a_pod_that_breaks_every_time_is_not_given_up() -> None:
    world = World(nodes=[node("a")], profile=GIVES_UP)
    world.binder.fail(RuntimeError("refused"), "web", always=True)
    world.add(pod("web"))
    world.advance(2 * LIMIT)
    assert not world.status.others
    world.binder.recover()
    world.advance(60)
    assert_bound(world, "web")


def test_a_longer_limit_takes_pods_back_and_they_are_tried_by_the_clock_again() -> None:
    world = World(nodes=[node("a")], profile=GIVES_UP)
    world.add(pod("big").requests(cpu="32"))
    world.advance(LIMIT)
    world.use(GIVES_UP.generation(2).spec(giveUpAfterSeconds=10 * LIMIT))
    world.advance(10)
    tries = len(world.log.attempts)
    world.advance(LIMIT)
    assert told(world.status, "big") == [("True", WAITED_TOO_LONG), ("False", PROFILE_CHANGED)]
    assert len(world.log.attempts) > tries


def test_an_incomplete_group_is_given_up_and_its_object_says_so() -> None:
    world = World(nodes=[node("a")], objects=[pod_group("train", 3)], profile=GIVES_UP)
    world.add(*(pod(name).in_group("train") for name in ("a", "b")))
    world.advance(LIMIT)
    assert [told(world.status, name) for name in ("a", "b")] == [[("True", WAITED_TOO_LONG)]] * 2
    ((group, condition),) = world.groups.given_up
    assert group == "train"
    assert "gated by GangScheduling" in condition.message
    world.add(pod("c").in_group("train"))
    world.advance(60)
    assert [world.node_of(name) for name in ("a", "b", "c")] == ["a"] * 3
    assert told(world.status, "c") == []


def test_a_time_that_a_rule_states_brings_back_a_pod_that_is_given_up() -> None:
    """It is no retry by the clock: the pod may preempt from then on."""
    waits = profile("patient").spec(giveUpAfterSeconds=LIMIT, preemption={"waitSeconds": 2 * LIMIT})
    world = World(nodes=[node("a", cpu="1")], profile=waits)
    world.add(pod("old").requests(cpu="1"))
    world.add(pod("important").requests(cpu="1").priority(10))
    world.advance(2 * LIMIT - 1)
    assert told(world.status, "important") == [("True", WAITED_TOO_LONG)]
    assert_waiting(world, "important", plugin="NodeResourcesFit")
    world.advance(60)
    assert_bound(world, "important", on="a")


MARK: Final = {"type": GIVEN_UP, "status": "True", "reason": WAITED_TOO_LONG, "message": "told by an earlier leader"}


@pytest.mark.parametrize("spec", [{}, {"giveUpAfterSeconds": 10 * LIMIT}], ids=["no limit", "a longer one"])
def test_a_mark_of_an_earlier_leader_that_is_not_true_any_more_is_taken_back(spec: dict[str, float]) -> None:
    """The profile changed while no replica led."""
    world = World(nodes=[node("a")], profile=profile("patient").spec(**spec))
    world.add(pod("big").requests(cpu="32").status(conditions=[MARK]))
    world.advance(60)
    assert told(world.status, "big") == [("False", PROFILE_CHANGED)]


def test_a_mark_of_an_earlier_leader_that_is_true_is_left_alone() -> None:
    world = World(nodes=[node("a")], profile=GIVES_UP)
    world.add(pod("big").requests(cpu="32").status(conditions=[MARK]))
    world.advance(2 * LIMIT)
    assert [event for event in world.events.recorded if event.reason == "GivenUp"] == []
    assert {queued.given_up_at is not None for _, queued in world.queue.pods()} == {True}


def test_many_pods_are_given_up_at_once_and_told_in_turn() -> None:
    world = World(nodes=[node("a")], profile=GIVES_UP)
    world.add(*(pod(f"big-{number}").requests(cpu="32") for number in range(250)))
    world.advance(LIMIT)
    assert sum(queued.given_up_at is not None for _, queued in world.queue.pods()) == 250
    assert len(world.status.others) == 100
    world.advance(2)
    assert len(world.status.others) == 250


# --- the property --------------------------------------------------------------------------------------------------------------------


@settings(max_examples=cases(25), deadline=None)
@given(
    arrivals=st.lists(st.tuples(st.integers(0, 3000), st.sampled_from([1, 8, 20, 40])), min_size=1, max_size=12),
    nodes=st.lists(st.tuples(st.integers(0, 3000), st.sampled_from([4, 16, 64])), max_size=4),
)
def test_each_pod_that_waits_so_long_is_told_exactly_once_and_a_node_that_holds_it_brings_it_back(
    arrivals: list[tuple[int, int]], nodes: list[tuple[int, int]]
) -> None:
    """Against the plain rule: told once if it waited longer than the limit, placed as soon as a node has room for it."""
    world = World(nodes=[node("tiny", cpu="500m")], profile=GIVES_UP)
    agenda = sorted(
        [(at, 0, f"pod-{number}", cpu) for number, (at, cpu) in enumerate(arrivals)]
        + [(at, 1, f"node-{number}", cpu) for number, (at, cpu) in enumerate(nodes)]
    )
    came: dict[str, float] = {}
    for at, kind, name, cpu in agenda:
        world.advance(max(at - world.now, 0))
        if kind == 0:
            came[name] = world.now
            world.add(pod(name).requests(cpu=str(cpu)))
        else:
            world.add(node(name, cpu=str(cpu)))
            world.advance(11)  # the longest backoff
        _nothing_that_fits_waits(world)
    world.advance(LIMIT + 2)
    yes = Counter(name for name, condition in world.status.others if condition.status == "True")
    no = Counter(name for name, condition in world.status.others if condition.status == "False")
    for name in came:
        assert yes[name] <= 1
        if world.node_of(name) is None:
            assert (yes[name], no[name]) == (1, 0), name
        else:
            assert yes[name] == no[name], name
    given_up = [event.pod for event in world.events.recorded if event.reason == "GivenUp"]
    assert Counter(given_up) == yes


def _nothing_that_fits_waits(world: World) -> None:
    free = [
        ceil_milli(nano(each.status.allocatable["cpu"])) - world.requested(each.metadata.name)
        for row in world.cluster.rows().tolist()
        if (each := world.cluster.node(row)).status.allocatable
    ]
    for _, queued in world.queue.pods():
        assert all(queued.pod.requests["cpu"] > room for room in free), f"{queued.key} fits and waits"


@pytest.mark.parametrize("lead", [True, False])
def test_only_a_replica_that_leads_tells(lead: bool) -> None:
    class Held:
        active = True

        async def wait_active(self) -> None:
            return

    held = Held()
    world = World(nodes=[node("a")], profile=GIVES_UP, lead=held)
    world.add(pod("big").requests(cpu="32"))
    held.active = lead
    world.advance(LIMIT)
    assert bool(world.status.others) is lead
    held.active = True
    world.advance(2)
    assert told(world.status, "big") == [("True", WAITED_TOO_LONG)]
