"""Trees of groups (KEP-6012): every group of a tree gets its nodes in one turn, or none does. A rule a case.

The rules are those of upstream's TestCPGQueueing, written anew, and what a tree must not do while it is decided and bound.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from placewright.cluster.podgrouprules import MOST_LEAVES
from placewright.framework.status import error
from placewright.testing import World as LiveWorld
from placewright.testing import node, pod
from scheduler.makers import World

from .makers import bound, child, composite, native_member
from .test_binding_groups import Readying, begun, say, turns

BACKOFF = 11.0
ROOT, A, B = composite("root", 2), child("a", 2, "root"), child("b", 2, "root")
MEMBERS = {of: [native_member(of, f"{of}{index}") for index in range(2)] for of in ("a", "b", "c", "d")}


def tree(*given: Any, cpu: int = 8) -> LiveWorld:
    """A world with one node and these objects, which come one by one."""
    world = LiveWorld(nodes=[node("n0").offers(cpu=str(cpu))] if cpu else [])
    for each in given:
        world.add(each)
    return world


def later(world: LiveWorld, *things: Any) -> LiveWorld:
    for each in things:
        world.add(each)
    world.advance(BACKOFF)
    return world


def placed(world: LiveWorld) -> str:
    """The placed members of the makers above, such as `a0 a1`."""
    makers = [each for members in MEMBERS.values() for each in members]
    return " ".join(each.name for each in makers if world.node_of(each.name) is not None)


def why(world: LiveWorld, name: str) -> str:
    attempt = world.last_attempt(name)
    return "" if attempt is None else str(attempt.failure)


# --- who waits, and for what ---------------------------------------------------------------------------------------------------------


def test_all_leaves_of_a_tree_are_placed_in_one_turn() -> None:
    assert placed(tree(ROOT, A, B, *MEMBERS["a"], *MEMBERS["b"])) == "a0 a1 b0 b1"


@pytest.mark.parametrize("missing", ["root", "mid", "a"])
def test_members_wait_for_a_group_that_is_missing_in_their_chain(missing: str) -> None:
    chain = {"root": composite("root", 1), "mid": composite("mid", 1, "root"), "a": child("a", 2, "mid")}
    gone = chain.pop(missing)
    world = tree(*chain.values(), *MEMBERS["a"])
    assert not placed(world)
    assert f"{missing}" in world.gated_by("a0")
    assert placed(later(world, gone)) == "a0 a1"


def test_members_wait_while_their_chain_is_a_cycle() -> None:
    world = tree(composite("mid", 1, "root"), composite("root", 1, "mid"), child("a", 2, "mid"), *MEMBERS["a"])
    assert not placed(world)
    assert "which is below itself" in world.gated_by("a0")
    world.remove(composite("root", 1, "mid"))
    assert placed(later(world, composite("root", 1))) == "a0 a1"


def test_a_fifth_level_is_refused() -> None:
    deep = [composite("1", 1), composite("2", 1, "1"), composite("3", 1, "2"), composite("4", 1, "3")]
    world = tree(*deep, child("a", 2, "4"), *MEMBERS["a"], child("b", 2, "3"), *MEMBERS["b"])
    assert placed(world) == "b0 b1"
    assert "on level 5" in world.gated_by("a0")


def test_all_groups_of_a_tree_have_one_priority() -> None:
    world = tree(composite("root", 1, priority=7), child("a", 2, "root", priority=8), *MEMBERS["a"])
    assert "spec.priority is 8, but 7 in" in world.gated_by("a0")


def test_a_tree_waits_for_enough_groups_with_enough_members() -> None:
    world = tree(ROOT, A, *MEMBERS["a"], MEMBERS["b"][0])
    assert world.gated_by("a0").endswith("spec.schedulingPolicy.gang.minGroupCount is 2, but 1 of its child groups has enough pods")
    assert not placed(later(world, B))
    assert placed(later(world, MEMBERS["b"][1])) == "a0 a1 b0 b1"


@pytest.mark.parametrize("changed", [composite("root", 1), child("b", 1, "root")])
def test_a_lower_minimum_frees_the_tree(changed: Any) -> None:
    world = tree(ROOT, A, B, *MEMBERS["a"], MEMBERS["b"][0])
    assert not placed(world)
    assert placed(later(world, changed)).startswith("a0 a1")


def test_members_of_two_profiles_do_not_share_a_tree() -> None:
    world = tree(ROOT, A, B, *MEMBERS["a"], *(each.scheduler("other") for each in MEMBERS["b"]))
    assert "spec.schedulerName must be the same in all members" in world.gated_by("a0")


# --- all or none ---------------------------------------------------------------------------------------------------------------------


def test_no_leaf_is_placed_while_another_has_too_little_room() -> None:
    world = tree(ROOT, A, B, *MEMBERS["a"], *MEMBERS["b"], cpu=3)
    world.advance(BACKOFF)
    assert not placed(world)
    told = 'composite pod group "root" is unschedulable: needs 2 child groups placed, 1 can be; b needs 1 more member placed: 1 lacks cpu'
    assert why(world, "a0").startswith(told)
    assert placed(later(world, node("n1").offers(cpu="1"))) == "a0 a1 b0 b1"


def test_a_tree_is_tried_again_when_a_pod_leaves_room() -> None:
    world = tree(pod("large").requests(cpu="4"), ROOT, A, B, *MEMBERS["a"], *MEMBERS["b"], cpu=4)
    assert not placed(world)
    world.remove("large")
    world.advance(BACKOFF)
    assert placed(world) == "a0 a1 b0 b1"


def test_a_tree_is_tried_again_without_a_waiting_member_that_is_deleted() -> None:
    large = [each.requests(cpu="2") for each in MEMBERS["a"]]
    world = tree(ROOT, A, B, child("c", 2, "root"), *large, *MEMBERS["b"], *MEMBERS["c"], cpu=5)
    assert placed(later(world)) == "", "a is tried first, and leaves no room for b or c"
    world.remove("a0", "a1")
    assert placed(later(world)) == "b0 b1 c0 c1"


def test_a_branch_that_cannot_stand_gives_its_nodes_to_the_others() -> None:
    """The branch `mid` comes first, and needs two groups. `a` alone would take the room of `c`."""
    mid, large = composite("mid", 2, "root"), [each.requests(cpu="9") for each in MEMBERS["b"]]
    groups = (composite("root", 1), mid, child("a", 2, "mid"), child("b", 2, "mid"), child("c", 2, "root"))
    world = tree(*groups, *MEMBERS["a"], *large, *MEMBERS["c"], cpu=2)
    assert placed(later(world)) == "c0 c1"


def test_what_stands_is_placed_while_another_branch_waits_and_joins_later() -> None:
    sub = (composite("sub", 2, "root"), child("b", 1, "sub"), child("c", 2, "sub"))
    world = tree(composite("root", 1), child("a", 2, "root"), *sub, *MEMBERS["a"], MEMBERS["b"][0], MEMBERS["c"][0])
    assert placed(world) == "a0 a1"
    assert placed(later(world, child("c", 1, "sub"))) == "a0 a1 b0 c0"


def test_children_of_a_basic_group_do_not_wait_for_each_other() -> None:
    world = tree(composite("root", None), A, B, *MEMBERS["a"], *MEMBERS["b"], cpu=3)
    assert placed(later(world)) == "a0 a1"


def test_a_basic_leaf_waits_for_its_tree() -> None:
    world = tree(ROOT, child("a", None, "root"), B, *MEMBERS["a"])
    assert not placed(world)
    assert placed(later(world, *MEMBERS["b"])) == "a0 a1 b0 b1"


def test_a_tree_preempts_for_all_its_groups_or_not_at_all() -> None:
    high = [each.priority(100) for of in "ab" for each in MEMBERS[of]]
    world = tree(pod("low").requests(cpu="2").priority(1).on("n0"), ROOT, A, B, *high, cpu=4)
    assert placed(later(world)) == "a0 a1 b0 b1"
    world = tree(pod("low").requests(cpu="2").priority(1).on("n0"), ROOT, A, B, *high, cpu=3)
    assert placed(later(world)) == ""
    assert world.node_of("low") == "n0", "its room would not be enough"
    modest = composite("root", 2, preemptionPolicy="Never")
    world = tree(pod("low").requests(cpu="2").priority(1).on("n0"), modest, A, B, *high, cpu=4)
    assert (placed(later(world)), world.node_of("low")) == ("", "n0")


# --- evictions and domains -----------------------------------------------------------------------------------------------------------


def test_a_group_of_groups_that_is_disrupted_as_a_whole_leaves_as_a_whole() -> None:
    for mode, left in (("all", ""), ("single", "a0 a1")):
        world = tree(composite("root", 1, disruptionMode={mode: {}}), A, B, *MEMBERS["a"], *MEMBERS["b"], cpu=4)
        assert placed(world) == "a0 a1 b0 b1"
        later(world, pod("high").requests(cpu="2").priority(100))
        assert world.node_of("high") == "n0"
        assert len(placed(world)) == len(left)


def racks(count: int, cpu: int) -> list[Any]:
    return [node(f"{rack}{number}", labels={"rack": rack}).offers(cpu=str(cpu)) for rack in "xyz"[:count] for number in range(2)]


def racks_of(world: LiveWorld, of: str) -> set[str]:
    return {(world.node_of(each.name) or "-")[0] for each in MEMBERS[of]}


def in_racks(name: str) -> dict[str, Any]:
    return {"schedulingConstraints": {"topology": [{"key": name}]}}


def test_all_members_of_a_tree_go_into_the_domain_of_its_root() -> None:
    world = tree(*racks(2, 2), composite("root", 2, **in_racks("rack")), A, B, *MEMBERS["a"], *MEMBERS["b"], cpu=0)
    assert racks_of(world, "a") == racks_of(world, "b") in ({"x"}, {"y"})


def test_each_leaf_goes_into_a_domain_of_its_own() -> None:
    leaves = [child(of, 2, "root", **in_racks("rack")) for of in "ab"]
    world = tree(*racks(2, 1), ROOT, *leaves, *MEMBERS["a"], *MEMBERS["b"], cpu=0)
    assert sorted([racks_of(world, "a"), racks_of(world, "b")], key=str) == [{"x"}, {"y"}]


def test_a_group_that_comes_later_joins_the_domain_of_its_tree() -> None:
    world = tree(*racks(2, 2), composite("root", 1, **in_racks("rack")), A, *MEMBERS["a"], cpu=0)
    assert racks_of(later(world, B, *MEMBERS["b"]), "b") == racks_of(world, "a")


# --- from the decision to the Bindings -----------------------------------------------------------------------------------------------


@pytest.fixture
def readying() -> type[Readying]:
    return type("OneReadying", (Readying,), {"may": {}})


def decided(world: World, *groups: Any, members: str = "ab") -> World:
    world.nodes(node("n0").offers(cpu="8"))
    for each in groups:
        world.event_handlers.cluster_object(each)
    return world.pods(*(each for of in members for each in MEMBERS[of]))


async def test_no_binding_of_a_tree_is_sent_before_all_its_members_are_prepared(readying: type[Readying]) -> None:
    world = decided(World(readying), ROOT, A, B)
    task = await begun(world)
    for name in ("a0", "a1", "b0"):
        say(readying, name)
    await turns()
    assert bound(world) == []
    say(readying, "b1")
    assert await task
    assert sorted(bound(world)) == ["a0", "a1", "b0", "b1"]


async def test_a_member_that_cannot_be_prepared_takes_back_its_tree(readying: type[Readying]) -> None:
    world = decided(World(readying), ROOT, A, B)
    task = await begun(world)
    say(readying, "a0")
    say(readying, "b1", error("no volume"))
    assert not await task
    assert (bound(world), world.requested("n0")) == ([], 0)


async def test_a_member_that_cannot_be_prepared_takes_back_its_group_alone_if_the_tree_stands(readying: type[Readying]) -> None:
    world = decided(World(readying), composite("root", 1), A, B)
    task = await begun(world)
    say(readying, "b0")
    say(readying, "b1", error("no volume"))
    await turns()
    assert bound(world) == [], "the others are still being prepared"
    say(readying, "a0")
    say(readying, "a1")
    await task
    assert sorted(bound(world)) == ["a0", "a1"]
    assert world.requested("n0") == 2000


async def test_another_group_of_the_tree_waits_until_the_tree_is_bound(readying: type[Readying]) -> None:
    world = decided(World(readying), ROOT, A, B, child("c", 2, "root"))
    task = await begun(world)
    world.pods(*MEMBERS["c"])
    assert world.decide() is None, "c would be bound alone if a and b were taken back"
    for name in ("a0", "a1", "b0", "b1"):
        say(readying, name)
    assert await task
    late = await begun(world)
    say(readying, "c0")
    say(readying, "c1")
    assert await late
    assert len(bound(world)) == 6


async def test_another_group_of_the_tree_falls_back_with_it(readying: type[Readying]) -> None:
    world = decided(World(readying), ROOT, A, B, child("c", 2, "root"))
    task = await begun(world)
    world.pods(*MEMBERS["c"])
    assert world.decide() is None
    say(readying, "a0", error("no volume"))
    assert not await task
    await turns()
    assert bound(world) == []


async def test_a_member_of_a_basic_group_waits_behind_the_barrier_of_its_tree(readying: type[Readying]) -> None:
    world = decided(World(readying), ROOT, A, B, child("c", None, "root"))
    task = await begun(world)
    world.pods(MEMBERS["c"][0])
    late = await begun(world)
    say(readying, "c0")
    await turns()
    assert bound(world) == []
    say(readying, "a0", error("no volume"))
    assert not await task
    assert not await late
    assert (bound(world), world.requested("n0")) == ([], 0)


@pytest.mark.parametrize("gone", [ROOT, B])
async def test_a_group_that_goes_while_the_tree_is_decided_leaves_nothing(gone: Any) -> None:
    world = decided(World(), ROOT, A, B)
    queued = world.pop()
    steps = world.scheduler.pod_groups.schedule_in_steps(queued, world.evaluator)
    for _ in range(3):
        next(steps)
    assert world.requested("n0")
    world.event_handlers.cluster_object_gone(gone)
    for _ in steps:
        pass
    await asyncio.sleep(0)
    assert (bound(world), world.requested("n0")) == ([], 0)


def test_a_tree_of_too_many_groups_waits_and_says_so() -> None:
    world = tree(composite("root", 1), *(child(f"g{number}", 1, "root") for number in range(MOST_LEAVES + 1)))
    world.add(native_member("g0", "p"))
    assert world.gated_by("p").endswith("default/root: its tree has 513 PodGroups, at most 512 are allowed")
    world.remove(child("g9", 1, "root"))
    assert later(world).node_of("p")
