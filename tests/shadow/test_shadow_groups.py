"""Members of groups beside a live profile: the shadow decides them together in its own world, too."""

from __future__ import annotations

import random
from typing import Any, ClassVar

import numpy as np
import pytest

from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.interface import CycleState, IntColumn, Reads, Rows, ScorePlugin
from placewright.shadow import tape as tape_module
from placewright.shadow.shadow import Shadow
from placewright.testing import FakeExtender
from randomcases import cases
from scheduler.makers import CONFLICT, World, node, pod
from scheduler.podgroups.makers import bound, group, member, members, native, tried
from shadow.shadowing import Beside, Ticking
from shadow.test_shadow import PACK, place, stands

NO_GROUPS = {"plugins": {"multiPoint": {"disabled": [{"name": "GangScheduling"}]}}}


def racks(world: Beside, **cpus: str) -> Beside:
    """Two nodes in each rack, of so many CPUs."""
    for rack, cpu in cpus.items():
        world.nodes(*(node(f"{rack}{n}").labels(rack=rack).offers(cpu=cpu) for n in range(2)))
    return world


def where(shadow: Shadow, of: str, count: int) -> list[str | None]:
    """Where the members are in the shadow's world."""
    return [stands(shadow, f"{of}-{index}") for index in range(count)]


def really(world: World, of: str, count: int) -> list[str | None]:
    """Where they are in truth."""
    return [world.node_of(f"{of}-{index}") for index in range(count)]


async def later(world: Beside) -> None:
    """What waits is tried again."""
    world.now += 100
    world.queue.flush_backoff()
    await tried(world)


async def test_a_group_is_decided_once_a_member_and_each_decision_sees_the_earlier_ones() -> None:
    """Live they are spread; the shadow packs all of them on one node."""
    world = Beside().nodes(*(node(name) for name in "abcd"))
    shadow = world.shadow(**PACK)
    world.event_handlers.cluster_object(group("job", 4))
    world.pods(*members("job", 4))
    await tried(world)
    world.rest(shadow)
    assert sorted(map(str, really(world, "job", 4))) == ["a", "b", "c", "d"]
    assert len(set(where(shadow, "job", 4))) == 1
    report = shadow.report
    assert (report.pods, report.decided, report.errors) == (4, 4, 0)
    assert report.same + report.other == 4
    assert report.same == 1, "the one that really is on the node of all"
    assert report.regret.decisions == 4


@pytest.mark.parametrize("seed", range(cases(20)))
async def test_the_same_settings_agree_whatever_groups_and_pods_come_and_go(seed: int) -> None:
    """With one domain looked at, and groups of members of one size: else lots among equally good nodes may decide what fits."""
    rng = random.Random(seed)
    one_domain = {"pluginConfig": [{"name": "GangScheduling", "args": {"domainsToCompare": 1, "reservations": 0}}]}
    world = Beside(**one_domain)
    for number in range(6):
        world.nodes(node(f"n{number}").labels(rack=f"r{number % 2}").offers(cpu=str(rng.randint(2, 6))))
    shadow = world.shadow(**one_domain)
    standing: list[str] = []
    for number in range(25):
        cpu, size = str(rng.randint(1, 2)), rng.randint(1, 5)
        if rng.random() < 0.5:
            topology = {} if rng.random() < 0.5 else {"topology": "rack", "mode": rng.choice(["required", "preferred"])}
            world.event_handlers.cluster_object(group(f"g{number}", rng.randint(1, size), **topology))
            world.pods(*(member(f"g{number}", index, cpu) for index in range(size)))
        else:
            world.pods(pod(f"p{number}").requests(cpu=cpu))
        await later(world)
        standing += [name for name in bound(world) if name not in standing]
        for name in list(standing):
            if rng.random() < 0.2:
                standing.remove(name)
                world.binder.bound[:] = [each for each in world.binder.bound if each[0] != name]
                world.event_handlers.assigned_pod_gone(f"uid-{name}")
        world.rest(shadow)
    report = shadow.report
    assert (report.other, report.live_only, report.shadow_only, report.errors) == (0, 0, 0, 0)
    assert report.same > 20
    assert report.agreement_percent == 100
    assert [stands(shadow, name) for name in standing] == [world.node_of(name) for name in standing]


@pytest.mark.parametrize("minimum", [2, 4])
async def test_a_native_group_gets_the_rack_that_placement_scores_prefer(minimum: int) -> None:
    """All four fit into `b` and `c`; node scores alone would prefer `c`, and the tightest rack holds only two."""
    world = racks(Beside(), a="1", b="2", c="8")
    shadow = world.shadow()
    world.event_handlers.cluster_object(native("job", minimum, schedulingConstraints={"topology": [{"key": "rack"}]}))
    world.pods(*(pod(f"job-{index}").in_group("job").requests(cpu="1") for index in range(4)))
    await tried(world)
    world.rest(shadow)
    for nodes in (really(world, "job", 4), where(shadow, "job", 4)):
        assert {str(each)[:-1] for each in nodes} == {"b"}


async def test_a_group_that_the_shadow_has_no_room_for_waits_whole_until_all_of_it_fits() -> None:
    """The live profile packs and keeps a node free; the shadow spread the two, and has room for one large member alone at a time."""
    world = Beside(**PACK).nodes(node("a"), node("b"), node("c"))
    shadow = world.shadow()
    await place(world, "p1", "p2")
    world.event_handlers.cluster_object(group("job", 2))
    world.pods(*members("job", 2, cpu="4"))
    await tried(world)
    world.rest(shadow)
    assert None not in really(world, "job", 2)
    assert where(shadow, "job", 2) == [None, None], "one of them would fit"
    assert (shadow.report.live_only, shadow.report.pending) == (2, 2)
    world.event_handlers.assigned_pod_gone("uid-p1")
    world.rest(shadow)
    assert None not in where(shadow, "job", 2)
    assert (shadow.report.pending, shadow.report.decided) == (0, 4)


async def test_a_group_that_only_the_shadow_has_room_for_stays_while_the_live_profile_goes_on_trying() -> None:
    """Trials of the live profile come and go on its columns, and nothing of that is news."""
    world = Beside().nodes(node("a"), node("b"), node("c"))
    shadow = world.shadow(**PACK)
    await place(world, "p1", "p2", "p3", cpu="2")
    world.event_handlers.cluster_object(group("job", 2))
    world.pods(*members("job", 2, cpu="3"))
    await tried(world)
    world.rest(shadow)
    assert really(world, "job", 2) == [None, None]
    first = where(shadow, "job", 2)
    assert shadow.report.neither == 2, first
    world.nodes(node("d"))
    await later(world)
    world.rest(shadow)
    kept = where(shadow, "job", 2)
    assert (really(world, "job", 2), shadow.report.shadow_only) == ([None, None], 2), "one node is enough for one of them, in truth"
    assert None not in kept
    await later(world)
    world.rest(shadow)
    assert (where(shadow, "job", 2), shadow.report.shadow_only) == (kept, 2)
    world.nodes(node("e"))
    await later(world)
    world.rest(shadow)
    assert None not in really(world, "job", 2)
    assert (where(shadow, "job", 2), shadow.report.shadow_only, shadow.report.other) == (kept, 2, shadow.report.other)
    world.event_handlers.assigned_pod_gone("uid-job-0")
    world.rest(shadow)
    assert where(shadow, "job", 2) == [None, kept[1]]


async def test_a_required_domain_is_one_in_the_shadows_world_and_who_joins_later_joins_it_there() -> None:
    world = racks(Beside(), a="2", b="2")
    shadow = world.shadow()
    world.event_handlers.cluster_object(group("job", 3, topology="rack"))
    world.pods(*members("job", 3))
    await tried(world)
    world.rest(shadow)
    rack = str(world.node_of("job-0"))[0]
    assert {str(name)[0] for name in where(shadow, "job", 3)} == {str(name)[0] for name in really(world, "job", 3)} == {rack}
    world.pods(member("job", 3, "2"))
    await tried(world)
    world.rest(shadow)
    assert (world.node_of("job-3"), stands(shadow, "job-3")) == (None, None), "there is room in the other rack alone"
    assert shadow.report.neither >= 1
    world.nodes(node(f"{rack}2").labels(rack=rack))
    await later(world)
    world.rest(shadow)
    assert stands(shadow, "job-3") == world.node_of("job-3") == f"{rack}2"


@pytest.mark.parametrize("seed", range(cases(4)))
async def test_of_the_domains_that_hold_a_group_the_one_with_the_best_scores_is_taken(seed: int) -> None:
    """The live profile spreads, the shadow packs: one takes the empty rack, the other the one that is in use; both are whole."""
    world = racks(Beside(), a="4", b="4")
    world.cycle._rng.seed(seed)
    shadow = world.shadow(**PACK)
    await place(world, "p1")
    used = str(world.node_of("p1"))[0]
    world.event_handlers.cluster_object(group("job", 2, topology="rack"))
    world.pods(*members("job", 2))
    await tried(world)
    world.rest(shadow)
    assert {str(name)[0] for name in where(shadow, "job", 2)} == {used}
    assert {str(name)[0] for name in really(world, "job", 2)} == {"b" if used == "a" else "a"}
    assert shadow.report.other == 2


async def test_a_group_without_a_domain_in_the_shadows_world_has_no_node_there() -> None:
    world = racks(Beside(**PACK), a="2", b="2")
    shadow = world.shadow()
    await place(world, "p1", "p2")  # packed on one node in truth; on two nodes of any racks in the shadow's world
    world.event_handlers.cluster_object(group("job", 4, topology="rack"))
    world.pods(*members("job", 4))
    await tried(world)
    world.rest(shadow)
    assert len({str(name)[0] for name in really(world, "job", 4)}) == 1
    taken = {str(stands(shadow, name))[0] for name in ("p1", "p2")}
    assert len(taken) == 2, "or this test tells nothing"
    assert where(shadow, "job", 4) == [None] * 4


async def test_members_of_different_sizes_are_tried_with_the_largest_first_too() -> None:
    world = Beside().nodes(node("a").offers(cpu="2"), node("b").offers(cpu="2"))
    shadow = world.shadow()
    world.event_handlers.cluster_object(group("job", 3))
    world.pods(*members("job", 2), member("job", 2, "2"))
    await tried(world)
    world.rest(shadow)
    assert None not in really(world, "job", 3)
    assert where(shadow, "job", 3) == really(world, "job", 3)
    assert shadow.report.same == 3


async def test_a_shadow_that_does_not_mind_groups_places_whom_it_can() -> None:
    world = Beside().nodes(node("a"))
    shadow = world.shadow(**NO_GROUPS)
    world.event_handlers.cluster_object(group("job", 3))
    world.pods(*members("job", 3, cpu="2"))
    await tried(world)
    world.rest(shadow)
    assert really(world, "job", 3) == [None] * 3
    assert where(shadow, "job", 3) == ["a", "a", None]
    assert (shadow.report.shadow_only, shadow.report.neither) == (2, 1)


async def test_a_group_whose_binding_failed_is_decided_again() -> None:
    world = Beside().nodes(node("a"))
    shadow = world.shadow()
    world.event_handlers.cluster_object(group("job", 2))
    world.pods(*members("job", 2))
    world.binder.answers["uid-job-1"] = CONFLICT
    await tried(world)
    world.rest(shadow)
    assert where(shadow, "job", 2) == really(world, "job", 2) == ["a", None]
    await later(world)
    world.rest(shadow)
    assert where(shadow, "job", 2) == really(world, "job", 2) == ["a", "a"]
    assert (shadow.report.decided, shadow.report.same) == (3, 3)


async def test_members_that_there_is_no_time_for_stand_where_they_really_stand() -> None:
    world = Beside().nodes(*(node(name) for name in "abc"))
    shadow = world.shadow(**PACK)
    shadow.tape = tape_module.Tape(most_decisions=0)
    world.event_handlers.cluster_object(group("job", 3))
    world.pods(*members("job", 3))
    await tried(world)
    world.rest(shadow)
    assert where(shadow, "job", 3) == really(world, "job", 3)
    assert (shadow.report.pods, shadow.report.decided) == (3, 0)


async def test_a_group_that_extenders_are_asked_about_is_left_out_and_stands_where_it_really_stands() -> None:
    """Only the shadow had room for all three before; then extenders come, and one member is deleted while they are asked."""
    extender = FakeExtender("http://nowhere.invalid", preempt_verb="")
    world = Beside().nodes(node("a"), node("b"))
    shadow = world.shadow(**PACK)
    await place(world, "p1", "p2")
    world.event_handlers.cluster_object(group("job", 3))
    world.pods(*members("job", 3, cpu="2"))
    await tried(world)
    world.rest(shadow)
    assert (None in where(shadow, "job", 3), really(world, "job", 3)) == (False, [None] * 3)
    assert shadow.report.decided == 5

    def deleted(verb: str) -> None:
        if extender.asked[-1][:2] == ("filter", "job-1"):
            world.event_handlers.pod_gone("uid-job-1")

    extender.meanwhile = deleted
    world.use_profile(asking=[extender])
    world.event_handlers.cluster_object(group("job", 2))
    await later(world)
    world.rest(shadow)
    assert [name is None for name in really(world, "job", 3)] == [False, True, False]
    assert [name is None for name in where(shadow, "job", 3)] == [False, True, False]
    assert (shadow.report.pods, shadow.report.decided, shadow.report.pending) == (5, 5, 0)


class Third(ScorePlugin):
    """Breaks at the third member; until then each decision takes 4 ms."""

    name = "Third"
    clock: ClassVar[Ticking]
    breaks: ClassVar[bool]
    reads = Reads.CLUSTER

    def sign(self, pod: PodInfo) -> tuple[()]:
        return ()

    def score(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> IntColumn:
        if self.breaks and pod.name == "job-2":
            raise RuntimeError("no way")
        self.clock.now += 0.004
        return np.zeros(len(rows), np.int64)


THIRD: dict[str, Any] = {"plugins": {"multiPoint": {"enabled": [{"name": "Third"}]}}}


async def test_what_breaks_in_the_midst_of_a_group_leaves_all_members_where_they_really_are() -> None:
    world = Beside(Third).nodes(*(node(name) for name in "abc"))
    Third.clock, Third.breaks = world.clock, True
    shadow = world.shadow(**THIRD, **{key: value for key, value in PACK.items() if key != "plugins"})
    world.event_handlers.cluster_object(group("job", 3))
    world.pods(*members("job", 3))
    await tried(world)
    await place(world, "after")
    world.rest(shadow)
    assert where(shadow, "job", 3) == really(world, "job", 3)
    assert (shadow.report.errors, shadow.report.decided) == (1, 1), "the pod that came after is decided"


async def test_a_large_group_is_no_long_pause() -> None:
    """Nobody else sees the shadow's world: between two members others have their turn, and news waits."""
    world = Beside(Third).nodes(node("a").offers(cpu="100"), node("b").offers(cpu="100"))
    Third.clock, Third.breaks = world.clock, False
    shadow = world.shadow(**THIRD)
    world.event_handlers.cluster_object(group("job", 30))
    world.pods(*members("job", 30))
    await tried(world)
    longest = 0.0
    while not shadow.idle and shadow.report.decided == 0:
        world.clock.now = max(world.clock.now, shadow.pace.due) + 0.001
        before = world.clock.now
        world.shadows.work()
        longest = max(longest, world.clock.now - before)
    world.rest(shadow)
    assert None not in where(shadow, "job", 30)
    assert 0.004 <= longest < 0.009
