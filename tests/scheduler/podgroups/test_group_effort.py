"""The work of a group's decision is counted: what a label's many domains cost does not grow with them, and no domain is forgotten."""

from __future__ import annotations

import pytest

from placewright.scheduler.podgroups.trial import LEAST_TRIES, TRIES_A_MEMBER
from scheduler.makers import World, node

from .makers import bound, group, member, members, tried

DOMAINS = 200
MEMBERS = 20


def counted(world: World) -> list[str]:
    """The names of pods that the cycle evaluates from now on."""
    evaluated: list[str] = []
    cycle, evaluate = world.scheduler._cycle, world.scheduler._cycle.evaluate

    def noted(evaluator: object, asked: object, *args: object) -> object:
        evaluated.append(asked.name)  # type: ignore[attr-defined]
        return evaluate(evaluator, asked, *args)  # type: ignore[arg-type]

    cycle.evaluate = noted  # type: ignore[method-assign, assignment]
    return evaluated


def racks(room_in: int) -> World:
    """A node a rack: room for all members in one of them, and in the others only where nothing is in the way of the last member."""
    world = World()
    for index in range(DOMAINS):
        labels = {"rack": f"r{index:03}", "last": "yes" if index == room_in else "no"}
        world.nodes(node(f"n{index:03}").labels(**labels).offers(cpu="100", pods="100"))
    return world


async def attempts(world: World, most: int) -> int:
    """Let time bring the group back until it is placed; return the number of attempts."""
    for number in range(1, most + 1):
        await tried(world)
        if bound(world):
            return number
        for _ in range(15):
            world.now += 1
            world.queue.flush_backoff()
    return most + 1


@pytest.mark.parametrize("where", [0, DOMAINS // 2, DOMAINS - 1])
async def test_the_one_domain_that_holds_the_group_is_found_by_attempts_that_cost_a_fixed_number_of_tries(where: int) -> None:
    world = racks(where)
    world.event_handlers.cluster_object(group("job", MEMBERS, topology="rack"))
    last = member("job", MEMBERS - 1).node_selector(last="yes")
    evaluated = counted(world)
    world.pods(*members("job", MEMBERS - 1), last)
    await tried(world)
    most = max(TRIES_A_MEMBER * MEMBERS, LEAST_TRIES)
    assert len(evaluated) <= most + 4 * MEMBERS, "beside the look, the trial that is explained, and the search for victims"
    assert await attempts(world, DOMAINS * MEMBERS // most + 2) <= DOMAINS * MEMBERS // most + 2
    assert len(bound(world)) == MEMBERS


async def test_the_attempt_that_leaves_domains_says_so_and_needs_no_event_to_go_on() -> None:
    world = racks(DOMAINS)
    world.event_handlers.cluster_object(group("job", MEMBERS, topology="rack"))
    # Both halves fit somewhere, and never in one rack.
    for index in range(DOMAINS):
        labels = {"rack": f"r{index:03}", "last": "no"}
        world.nodes(node(f"n{index:03}").labels(**labels).offers(cpu="100", pods="100"))
    world.nodes(node("apart").labels(rack="apart", last="yes").offers(cpu="2", pods="100"))
    world.pods(*members("job", MEMBERS - 1), member("job", MEMBERS - 1).node_selector(last="yes"))
    await tried(world)
    notes = [note for name, _, reason, _, note in world.events.recorded if (name, reason) == ("job-0", "FailedScheduling")]
    assert "other domains are left for the next attempt" in notes[-1]
    assert world.queue.wake_ups.of("uid-job-0") is not None


async def test_members_that_no_node_could_hold_cost_one_look_however_many_domains_there_are() -> None:
    world = racks(DOMAINS)
    world.event_handlers.cluster_object(group("job", MEMBERS, topology="rack"))
    evaluated = counted(world)
    world.pods(*members("job", MEMBERS - 1), member("job", MEMBERS - 1).node_selector(no="such"))
    await tried(world)
    assert len(evaluated) <= 2 + 4, "two kinds of members, and the one that is hopeless once in each domain that is searched for victims"


async def test_the_steps_of_a_member_do_not_grow_with_the_domains() -> None:
    world = racks(DOMAINS)
    world.event_handlers.cluster_object(group("job", MEMBERS, topology="rack"))
    world.nodes(node("apart").labels(rack="apart", last="yes").offers(cpu="2", pods="100"))
    world.pods(*members("job", MEMBERS - 1), member("job", MEMBERS - 1).node_selector(last="yes"))
    await tried(world)
    assert max(len(attempt.steps.taken) for attempt in world.log.attempts) < 12
