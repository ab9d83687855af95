"""The facts about a group, and the resources that it lacks, against counts that are made pod by pod and node by node."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from placewright.api.objects import NodeName
from placewright.api.podgroups import Form, GroupRef
from placewright.api.pods import PodInfo
from placewright.cluster.clusterlimits import amount
from placewright.explain.groupfacts import MOST_HOLDERS, GroupAbove, GroupFacts, Shortage, group_facts, kept_nodes, shortages
from placewright.explain.words import group_lines
from placewright.testing import World, coscheduling_group, node, pod, pod_group
from randomcases import cases
from scheduler.podgroups.makers import child, composite

REF = GroupRef(Form.NATIVE, "default", "train")
NODES = [NodeName(f"n-{i}") for i in range(40)]


def member(name: str, cpu: str = "1", **more: Any) -> PodInfo:
    return pod(name, cpu=cpu, **more).in_group("train").build()


def facts(world: World, *waiting: PodInfo, ref: GroupRef = REF) -> GroupFacts:
    return group_facts(world.cluster.pod_groups, ref, waiting)


def told(world: World, *waiting: PodInfo) -> tuple[Shortage, ...]:
    declared = world.cluster.pod_groups.get(REF)
    assert declared is not None
    return shortages(world.profiles["default-scheduler"], world.cluster, declared, waiting)


# --- facts ------------------------------------------------------------------------------------------------------------------------


def test_members_on_nodes_members_that_wait_and_members_that_are_to_come_add_up() -> None:
    world = World(nodes=[node("a")], pods=[member("m-0", on="a")], objects=[pod_group("train", 4)])
    found = facts(world, member("m-1"), member("m-2"))
    assert (found.needed, found.placed, found.waiting, found.missing, found.complaint) == (4, 1, 2, 1, "")


def test_an_assumed_member_is_placed_and_no_longer_waits() -> None:
    world = World(nodes=[node("a")], objects=[pod_group("train", 2)])
    assumed = member("m-0")
    world.cluster.assume(assumed, NodeName("a"))
    found = facts(world, assumed, member("m-1"))
    assert (found.placed, found.waiting, found.missing) == (1, 1, 0)


def test_more_members_than_are_needed_do_not_make_a_negative_number_of_missing_ones() -> None:
    found = facts(World(objects=[pod_group("train", 2)]), *(member(f"m-{i}") for i in range(5)))
    assert (found.waiting, found.missing) == (5, 0)


def test_the_groups_above_a_group_say_what_they_need_and_have() -> None:
    groups = [composite("root", 2), composite("mid", None, "root"), child("train", 1, "mid"), child("other", 1, "mid")]
    world = World(nodes=[node("a")], pods=[member("m-0", on="a")], objects=groups)
    root, mid = "CompositePodGroup.scheduling.k8s.io default/root", "CompositePodGroup.scheduling.k8s.io default/mid"
    assert facts(world).above == (GroupAbove(mid, children=2, placed=1), GroupAbove(root, needed=2, children=1, placed=1))
    *_, first, second = group_lines(facts(world))
    assert first == f"  below {mid}: its child groups are placed one by one; 1 of 2 placed"
    assert second == f"  below {root}: needs 2 child groups at once; 1 of 1 placed"


def test_a_group_without_an_object_has_members_and_a_complaint() -> None:
    found = facts(World(), member("m-0"))
    assert (found.needed, found.placed, found.waiting) == (0, 0, 1)
    assert "default/train" in found.complaint


def test_members_of_a_basic_group_wait_for_nobody() -> None:
    found = facts(World(objects=[pod_group("train", 9).basic()]), member("m-0"))
    assert (found.needed, found.singly, found.missing, found.complaint) == (0, True, 0, "")


def test_members_of_two_profiles_are_a_complaint_until_one_of_them_stands() -> None:
    both = member("m-0"), member("m-1", schedulerName="other")
    world = World(nodes=[node("a")], objects=[pod_group("train", 2)])
    assert "spec.schedulerName must be the same" in facts(world, *both).complaint
    world.show(member("m-2", on="a"))
    assert facts(world, *both).complaint == ""


@pytest.mark.parametrize(("required", "preferred"), [(True, False), (False, True)])
def test_a_topology_is_told_with_whether_it_must_be_kept(required: bool, preferred: bool) -> None:
    world = World(objects=[coscheduling_group("train", 1).topology("rack", required=required)])
    found = facts(world, ref=GroupRef(Form.COSCHEDULING, "default", "train"))
    assert (found.topology, found.preferred) == ("rack", preferred)


def test_a_name_that_a_tenant_chose_stays_on_one_line_and_short() -> None:
    found = facts(World(), ref=GroupRef(Form.VOLCANO, "default", "x\n\x1b[2J" + "y" * 100_000))
    for text in (found.object, found.complaint):
        assert text.isprintable()
        assert len(text) < 1000


@given(st.lists(st.sampled_from(NODES), max_size=200))
@example([*NODES, *NODES[:5]])
def test_kept_nodes_are_counted_and_the_most_used_come_first(nodes: list[NodeName]) -> None:
    found, counts = kept_nodes(nodes), Counter(nodes)
    assert len(found) == min(len(counts), 20)
    assert all(counts[NodeName(name)] == members for name, members in found.items())
    assert list(found.values()) == sorted(counts.values(), reverse=True)[:20]


# --- shortages --------------------------------------------------------------------------------------------------------------------


def test_a_resource_that_is_too_scarce_is_told_with_what_is_missing_and_who_holds_it() -> None:
    held = [pod("web", on="a", cpu="3", priority=7), *(pod(f"old-{i}", on="b", cpu="1").in_group("old").priority(i) for i in range(2))]
    world = World(nodes=[node("a"), node("b")], pods=held, objects=[pod_group("train", 3), pod_group("old", 2).priority(50)])
    (cpu,) = told(world, *(member(f"m-{i}", "2") for i in range(3)))
    assert (cpu.resource, cpu.wanted, cpu.free, cpu.total, cpu.short) == ("cpu", "6000m", "3000m", "8000m", "3000m")
    assert (cpu.fit, cpu.members, cpu.others) == (1, 3, 0)
    assert [(each.name, each.amount, each.priority, each.pods) for each in cpu.holders] == [
        ("default/web", "3000m", 7, 0),
        (str(GroupRef(Form.NATIVE, "default", "old")), "2000m", 50, 2),
    ]


def test_enough_in_pieces_that_are_too_small_is_no_missing_amount() -> None:
    world = World(nodes=[node(f"n-{i}", cpu="3") for i in range(2)], objects=[pod_group("train", 3)])
    (cpu,) = told(world, *(member(f"m-{i}", "2") for i in range(3)))
    assert (cpu.fit, cpu.free, cpu.wanted, cpu.short) == (2, "6000m", "6000m", "")


def test_the_scarcest_resource_comes_first() -> None:
    world = World(nodes=[node(f"n-{i}", cpu="4", memory="3Gi") for i in range(2)], objects=[pod_group("train", 9)])
    members = [member(f"m-{i}", "1", memory="1Gi") for i in range(9)]
    assert [(each.resource, each.fit) for each in told(world, *members)] == [("memory", 6), ("cpu", 8)]


def test_nodes_that_no_member_may_use_do_not_count() -> None:
    world = World(nodes=[node("a", cpu="1"), node("b", cpu="64").taint("gpu")], objects=[pod_group("train", 2)])
    (cpu,) = told(world, member("m-0"), member("m-1"))
    assert (cpu.free, cpu.total, cpu.fit) == ("1000m", "1000m", 1)
    assert told(world, *(member(name, tolerations=[{"operator": "Exists"}]) for name in ("m-0", "m-1"))) == ()


def test_no_shortage_is_told_of_a_group_that_waits_for_members_or_whose_members_go_one_by_one() -> None:
    world = World(nodes=[node("a", cpu="1")], objects=[pod_group("train", 3)])
    assert told(world, member("m-0", "2"), member("m-1", "2")) == ()
    assert told(world, *(member(f"m-{i}", "2") for i in range(3))) != ()
    world.show(pod_group("train", 3).basic())
    assert told(world, *(member(f"m-{i}", "2") for i in range(3))) == ()


def test_of_many_holders_the_largest_are_named_and_the_others_counted() -> None:
    held = [pod(f"p-{i:02}", on="a", cpu=f"{i + 1}m") for i in range(MOST_HOLDERS + 5)]
    world = World(nodes=[node("a", cpu="1")], pods=held, objects=[pod_group("train", 1)])
    (cpu,) = told(world, member("m-0", "1"))
    assert [each.name for each in cpu.holders] == [f"default/p-{i:02}" for i in reversed(range(5, MOST_HOLDERS + 5))]
    assert cpu.others == 5


@settings(max_examples=cases(60))
@given(
    offers=st.lists(st.integers(1, 9), min_size=1, max_size=4), used=st.lists(st.tuples(st.integers(0, 3), st.integers(1, 9)), max_size=4),
    asked=st.lists(st.integers(0, 6), min_size=1, max_size=5), needed=st.integers(1, 5),
)  # fmt: skip
def test_shortages_are_those_that_counting_finds(offers: list[int], used: list[tuple[int, int]], asked: list[int], needed: int) -> None:
    nodes = [node(f"n-{i}", cpu=str(cpu)) for i, cpu in enumerate(offers)]
    held = [pod(f"x-{i}", on=f"n-{at % len(offers)}", cpu=str(cpu)) for i, (at, cpu) in enumerate(used)]
    world = World(nodes=nodes, pods=held, objects=[pod_group("train", needed)])
    found = told(world, *(member(f"m-{i}", str(cpu) if cpu else "") for i, cpu in enumerate(asked)))
    # A node that could not hold the first member even if it were empty is none that members may use.
    usable = [i for i, cpu in enumerate(offers) if cpu >= asked[0]]
    free = [offers[i] - sum(part for at, part in used if at % len(offers) == i) for i in usable]
    smallest = sorted(asked)[:needed]
    fit = sum(max(each, 0) // smallest[0] for each in free) if smallest[0] else needed
    if len(asked) < needed or fit >= needed:
        assert found == ()
        return
    (cpu,) = found
    left, wanted = sum(max(each, 0) for each in free), sum(smallest)
    assert (cpu.fit, cpu.members, cpu.free) == (fit, needed, amount("cpu", left * 1000))
    assert cpu.short == (amount("cpu", (wanted - left) * 1000) if wanted > left else "")
    assert {each.name for each in cpu.holders} == {f"default/x-{i}" for i, (at, _) in enumerate(used) if at % len(offers) in usable}
