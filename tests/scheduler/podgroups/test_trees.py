"""Trees of groups (KEP-6012): every group of a tree gets its nodes in one turn, or none does. A rule a case."""

from __future__ import annotations

from placewright.cluster.podgrouprules import MOST_LEAVES
from placewright.testing import World as LiveWorld
from placewright.testing import node

from .makers import child, composite, native_member

BACKOFF = 11.0


def tree(*given: object, cpu: int = 8) -> LiveWorld:
    """A world with one node and these objects, which come one by one."""
    world = LiveWorld(nodes=[node("n0").offers(cpu=str(cpu))] if cpu else [])
    for each in given:
        world.add(each)
    return world


def placed(world: LiveWorld, *names: str) -> list[bool]:
    return [world.node_of(name) is not None for name in names]


PAIR = (composite("root", 2), child("a", 2, "root"), child("b", 2, "root"))
MEMBERS = [native_member(of, f"{of}{index}") for of in "ab" for index in range(2)]
NAMES = [member.name for member in MEMBERS]


def test_all_leaves_of_a_tree_are_placed_in_one_turn() -> None:
    world = tree(*PAIR, *MEMBERS)
    assert all(placed(world, *NAMES))


def test_no_leaf_is_placed_while_another_has_too_little_room() -> None:
    world = tree(*PAIR, *MEMBERS, cpu=3)
    world.advance(BACKOFF)
    assert not any(placed(world, *NAMES))
    world.add(node("n1").offers(cpu="1"))
    world.advance(BACKOFF)
    assert all(placed(world, *NAMES))


def test_a_tree_of_too_many_groups_waits_and_says_so() -> None:
    world = tree(composite("root", 1), *(child(f"g{number}", 1, "root") for number in range(MOST_LEAVES + 1)))
    world.add(native_member("g0", "p"))
    assert world.gated_by("p").endswith("default/root: its tree has 513 PodGroups, at most 512 are allowed")
    world.remove(child("g9", 1, "root"))
    world.advance(BACKOFF)
    assert placed(world, "p") == [True]
