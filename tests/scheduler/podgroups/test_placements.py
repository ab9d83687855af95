"""A native group gets the topology domain that kube-scheduler's placement scores prefer. A model in whole numbers says which that is."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pytest

from placewright.queue.queued import SubQueue
from randomcases import cases
from scheduler.makers import World, node, pod

from .makers import bound, native, native_member, tried
from .test_with_extenders import asking

RACK: Final = {"schedulingConstraints": {"topology": [{"key": "rack"}]}}
#: What kube-scheduler's scores count for a container without requests.
LEAST_CPU, LEAST_MEMORY = 100, 200 * 2**20
GIB: Final = 2**30


@dataclass
class Rack:
    """Nodes as (milli-CPU, bytes), and the pods on each as (milli-CPU, bytes); 0 for no request."""

    nodes: list[tuple[int, int]]
    pods: list[list[tuple[int, int]]] = field(default_factory=list)

    def places(self, cpu: int, memory: int) -> int:
        """For how many pods of one size there is room."""
        total = 0
        for (cpus, room), there in zip(self.nodes, self.pods, strict=True):
            free_cpu, free_memory = cpus - sum(each[0] for each in there), room - sum(each[1] for each in there)
            total += min(free_cpu // cpu, free_memory // memory if memory else 10**9, 110 - len(there))
        return total

    def fullness(self, count: int, cpu: int, memory: int) -> int:
        """How full it is with so many more pods: per cent of CPU and of memory, each cut to a whole number, then their mean."""
        there = [each for pods in self.pods for each in pods] + [(cpu, memory)] * count
        used = sum(each[0] or LEAST_CPU for each in there), sum(each[1] or LEAST_MEMORY for each in there)
        offered = sum(each[0] for each in self.nodes), sum(each[1] for each in self.nodes)
        return sum(min(want, have) * 100 // have for want, have in zip(used, offered, strict=True)) // 2


def best_racks(racks: dict[str, Rack], count: int, needed: int, cpu: int, memory: int) -> set[str]:
    """The racks among which kube-scheduler draws."""
    placed = {name: min(rack.places(cpu, memory), count) for name, rack in racks.items()}
    holding = {name: number for name, number in placed.items() if number >= needed}
    if not holding:
        return set()
    most = max(holding.values())
    scores = {name: number * 100 // most + racks[name].fullness(number, cpu, memory) for name, number in holding.items()}
    return {name for name, score in scores.items() if score == max(scores.values())}


def world_of(racks: dict[str, Rack], **spec: object) -> World:
    world = World(**spec)
    for name, rack in racks.items():
        for number, ((cpu, memory), there) in enumerate(zip(rack.nodes, rack.pods, strict=True)):
            world.nodes(node(f"{name}-{number}").labels(rack=name).offers(cpu=f"{cpu}m", memory=str(memory)))
            for each, (asked, bytes_asked) in enumerate(there):
                requests = {"cpu": f"{asked}m"} if asked else {}
                requests |= {"memory": str(bytes_asked)} if bytes_asked else {}
                world.pods(pod(f"run-{name}-{number}-{each}").requests(**requests).on(f"{name}-{number}"))
    return world


def random_racks(rng: random.Random) -> dict[str, Rack]:
    racks = {}
    for number in range(rng.randint(2, 7)):
        nodes = [(rng.randint(2, 8) * 1000, rng.randint(2, 16) * GIB) for _ in range(rng.randint(1, 4))]
        pods = [[(rng.choice((0, 250, 500)), rng.choice((0, GIB // 4))) for _ in range(rng.randint(0, 3))] for _ in nodes]
        racks[f"r{number}"] = Rack(nodes, pods)
    return racks


async def chosen(racks: dict[str, Rack], count: int, needed: int | None, cpu: int, memory: int, **spec: object) -> set[str]:
    world = world_of(racks, **spec)
    world.event_handlers.cluster_object(native("job", needed, **RACK))
    requests = {"cpu": f"{cpu}m"} | ({"memory": str(memory)} if memory else {})
    world.pods(*(native_member("job", f"m{number}").requests(**requests) for number in range(count)))
    await tried(world)
    return {str(world.node_of(name)).split("-")[0] for name in bound(world)}


@pytest.mark.parametrize("seed", range(cases(60)))
async def test_a_gang_of_all_its_members_gets_the_rack_that_kube_scheduler_prefers(seed: int) -> None:
    """With the default of `domainsToCompare`: the first rack that holds all is the best."""
    rng = random.Random(seed)
    racks, count = random_racks(rng), rng.randint(1, 8)
    cpu, memory = rng.choice((500, 1000, 2000)), rng.choice((0, GIB // 2, 2 * GIB))
    best = best_racks(racks, count, count, cpu, memory)
    found = await chosen(racks, count, count, cpu, memory)
    assert len(found) == bool(best)
    assert found <= best


@pytest.mark.parametrize("seed", range(100, 100 + cases(60)))
async def test_a_gang_with_spare_members_gets_it_too_where_all_racks_are_compared(seed: int) -> None:
    rng = random.Random(seed)
    racks, count = random_racks(rng), rng.randint(2, 12)
    cpu, memory, needed = rng.choice((500, 1000, 2000)), rng.choice((0, GIB // 2, 2 * GIB)), rng.choice((None, rng.randint(1, count)))
    best = best_racks(racks, count, needed or 1, cpu, memory)
    all_compared = [{"name": "GangScheduling", "args": {"domainsToCompare": 100}}]
    found = await chosen(racks, count, needed, cpu, memory, pluginConfig=all_compared)
    assert len(found) == bool(best)
    assert found <= best


def test_a_rack_of_which_all_nodes_have_gone_scores_nothing() -> None:
    world = world_of({"a": Rack([(4000, 4 * GIB)], [[(2000, 2 * GIB)]])})
    scorer = world.profiles["default-scheduler"].runtime.plugin("NodeResourcesFit")
    member = native_member("job", "m", cpu="1").build()
    none, all_rows = np.zeros(0, np.intp), world.cluster.rows()
    assert scorer.score_placements(world.cluster, [none, all_rows, none], [member]) == [0, (75 + 54) // 2, 0]
    assert scorer.score_placements(world.cluster, [], [member]) == []


async def test_equally_good_racks_are_drawn() -> None:
    racks = {name: Rack([(4000, 4 * GIB)], [[]]) for name in "abc"}
    world = world_of(racks)
    drawn: Counter[str] = Counter()
    for number in range(30):
        world.event_handlers.cluster_object(native(f"job{number}", 1, **RACK))
        world.pods(native_member(f"job{number}", f"m{number}", cpu="10m"))
        await tried(world)
        drawn[str(world.node_of(f"m{number}"))] += 1
        world.event_handlers.assigned_pod_gone(f"uid-m{number}")
    assert set(drawn) == {"a-0", "b-0", "c-0"}


# --- the rules of upstream's table, a case each. A node has two CPUs, and a member asks for one. ------------------------------------


def cluster(running: str = "", **racks: int) -> World:
    """Racks of so many nodes; `running`: names of nodes with a pod of a CPU, separated by blanks."""
    world = World()
    for rack, nodes in racks.items():
        world.nodes(*(node(f"{rack}{number}").labels(rack=rack, zone=rack[0]).offers(cpu="2") for number in range(nodes)))
    return world.pods(*(pod(f"run{index}").requests(cpu="1").on(name) for index, name in enumerate(running.split())))


async def come(world: World, group: str, *names: str, cpu: str = "1") -> list[str]:
    """The racks of these members, once they were tried; "" for one that waits."""
    world.pods(*(native_member(group, name, cpu=cpu) for name in names))
    await tried(world)
    return [(world.node_of(name) or "")[:-1] for name in names]


def declare(world: World, name: str, needed: int | None, key: str = "rack") -> None:
    world.event_handlers.cluster_object(native(name, needed, schedulingConstraints={"topology": [{"key": key}]}))


async def test_of_two_racks_that_hold_the_gang_the_smaller_one_is_filled() -> None:
    world = cluster(a=2, b=3, c=1)
    declare(world, "job", 3)
    assert await come(world, "job", "p1", "p2", "p3") == ["a"] * 3


async def test_pods_that_run_there_make_a_rack_fuller() -> None:
    world = cluster("b0 b0 c2", a=2, b=3, c=3, d=1)
    declare(world, "job", 3)
    assert await come(world, "job", "p1", "p2", "p3") == ["b"] * 3


async def test_a_member_that_comes_later_joins_the_gangs_rack_or_waits() -> None:
    world = cluster(a=3, b=2, c=1)
    declare(world, "job", 3)
    assert await come(world, "job", "p1", "p2", "p3") == ["b"] * 3
    assert await come(world, "job", "p4", "p5") == ["b", ""]
    assert world.place("p5") is SubQueue.UNSCHEDULABLE


async def test_two_gangs_with_different_labels_are_placed_one_after_the_other() -> None:
    world = cluster(ya=2, yb=1, zc=3)
    declare(world, "one", 3)
    declare(world, "two", 3, key="zone")
    assert await come(world, "one", "p1", "p2", "p3", cpu="2") == ["zc"] * 3
    assert sorted(await come(world, "two", "p4", "p5", "p6", cpu="2")) == ["ya", "ya", "yb"]


async def test_members_of_a_basic_group_that_come_together_share_the_rack_that_holds_most_of_them() -> None:
    world = cluster(a=1, b=2, c=4)
    declare(world, "job", None)
    assert await come(world, "job", "p1", "p2", "p3") == ["b"] * 3
    assert world.groups.placed == [("job", 3)]


async def test_a_basic_group_that_fits_in_no_rack_as_a_whole_fills_one() -> None:
    world = cluster(a=1, b=1)
    declare(world, "job", None)
    found = await come(world, "job", "p1", "p2", "p3")
    assert sorted(found) in (["", "a", "a"], ["", "b", "b"])


async def test_the_first_member_of_a_basic_group_chooses_the_fullest_rack_and_the_next_ones_stay_there() -> None:
    world = cluster("a0 a0", a=4, b=1)
    declare(world, "job", None)
    assert await come(world, "job", "p1") == ["b"]
    assert await come(world, "job", "p2", "p3") == ["b", ""]


async def test_a_basic_group_of_which_no_member_fits_waits_and_one_with_a_large_member_does_not() -> None:
    world = cluster(a=1, b=1)
    declare(world, "none", None)
    assert await come(world, "none", "p1", "p2", cpu="3") == ["", ""]
    declare(world, "some", None)
    world.pods(native_member("some", "large", cpu="3"))
    assert (await come(world, "some", "small"))[0]
    assert world.node_of("large") is None


async def test_a_basic_group_goes_on_when_its_rack_has_room_again() -> None:
    world = cluster("a0", a=1, b=1)
    declare(world, "job", None)
    assert await come(world, "job", "p1") == ["a"], "half full already"
    assert await come(world, "job", "p2") == [""]
    world.event_handlers.assigned_pod_gone("uid-run0")
    world.now += 60
    world.queue.flush_backoff()
    await tried(world)
    assert world.node_of("p2") == "a0"


async def test_a_basic_group_is_on_no_node_without_the_label() -> None:
    world = World().nodes(node("x").offers(cpu="16"))
    declare(world, "job", None)
    assert await come(world, "job", "p1") == [""]


# --- nodes that members are nominated to ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("extenders", [False, True], ids=["without extenders", "with extenders"])
@pytest.mark.parametrize(
    ("nominated", "rack"),
    [
        ((), "a"),
        (("b1", None, None), "b"),
        (("b1", "c0", "c1"), "c"),
        (("d0", None, None), "a"),  # too small, so all are compared
        (("x9", None, None), "a"),  # no such node
    ],
)
async def test_the_rack_with_most_nominations_is_taken_if_it_holds_the_gang(
    nominated: tuple[str | None, ...], rack: str, *, extenders: bool
) -> None:
    world = cluster(a=2, b=3, c=3, d=1)
    world.use_profile(asking=[asking()] if extenders else [])
    declare(world, "job", 3)
    names = ("p1", "p2", "p3")
    makers = [native_member("job", name) for name in names]
    world.pods(*(maker.nominated(to) if to else maker for maker, to in zip(makers, nominated or (None,) * 3, strict=True)))
    await tried(world)
    await world.scheduler.drain()
    assert {str(world.node_of(name))[:-1] for name in names} == {rack}
