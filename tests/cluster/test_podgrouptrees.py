"""Trees of groups, against a scalar model on random trees: which groups stand, and whose members keep their nodes."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from placewright.api.podgroups import Form, GroupRef
from placewright.cluster.cluster import Cluster
from placewright.cluster.podgrouprules import tree_at
from placewright.cluster.podgrouptrees import NO_NUMBER, GroupTree
from randomcases import cases
from scheduler.podgroups.makers import child, composite

#: (least, children) of a composite group, (least, members) of a leaf; None for the policy `basic`.
LEAST = st.one_of(st.none(), st.integers(1, 3))
LEAF = st.tuples(LEAST, st.integers(0, 3))
TREES = st.tuples(LEAST, st.lists(st.one_of(LEAF, st.tuples(LEAST, st.lists(LEAF, max_size=3))), max_size=3))


def declared(cluster: Cluster, shape: Any, name: str = "r", parent: str | None = None) -> Counter[GroupRef]:
    """Declare the groups of a shape; return the members of its leaves."""
    least, below = shape
    if isinstance(below, int):
        cluster.objects.put(child(name, least, parent or ""))
        return Counter({GroupRef(Form.NATIVE, "default", name): below})
    cluster.objects.put(composite(name, least, parent))
    return sum((declared(cluster, each, f"{name}-{number}", name) for number, each in enumerate(below)), Counter[GroupRef]())


def stands(shape: Any) -> bool:
    least, below = shape
    return (below if isinstance(below, int) else sum(map(stands, below))) >= (least or 1)


def keeping(shape: Any, name: str = "r") -> set[str]:
    """Names of the leaves whose members keep their nodes, and of `basic` leaves that members may still join."""
    below = shape[1]
    if not stands(shape):
        return set()
    if isinstance(below, int):
        return {name}
    late = {f"{name}-{number}" for number, (policy, each) in enumerate(below) if isinstance(each, int) and policy is None}
    return late.union(*(keeping(each, f"{name}-{number}") for number, each in enumerate(below)))


def fewest(shape: Any) -> int | None:
    """The fewest members with which a shape could stand; None if no number is enough, because a group lacks child groups."""
    least, below = shape
    if isinstance(below, int):
        return least or 1
    needs = sorted(need for each in below if (need := fewest(each)) is not None)
    return sum(needs[: least or 1]) if len(needs) >= (least or 1) else None


def built(shape: Any) -> tuple[GroupTree, Counter[GroupRef]]:
    cluster = Cluster()
    counts = declared(cluster, shape)
    root = cluster.pod_groups.get(GroupRef(Form.COMPOSITE, "default", "r"))
    assert root is not None
    return tree_at(cluster.pod_groups, root), counts


@settings(max_examples=cases(300))
@given(shape=TREES)
def test_a_tree_stands_and_keeps_its_members_as_the_model_says(shape: Any) -> None:
    tree, counts = built(shape)
    assert tree.stands(counts) == stands(shape)
    assert {ref.name for ref in tree.staying(counts)} == keeping(shape)
    needed = fewest(shape)
    assert tree.needed == needed if needed is not None else tree.needed >= NO_NUMBER


@settings(max_examples=cases(100))
@given(shape=TREES, more=st.integers(0, 7))
def test_a_further_member_never_makes_a_group_fall(shape: Any, more: int) -> None:
    tree, counts = built(shape)
    before = tree.staying(counts)
    leaves = [leaf.ref for leaf in tree.leaves()]
    if leaves:
        counts[leaves[more % len(leaves)]] += 1
    assert before <= tree.staying(counts)
