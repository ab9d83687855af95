"""GangScheduling: what could help a pod whose group found no nodes."""

from __future__ import annotations

from typing import Final

from hints.rows import Rejected, Row
from placewright.api.podgroups import VolcanoPodGroup
from placewright.testing import coscheduling_group, node, pod, pod_group
from scheduler.podgroups.makers import child, composite

MINE, OTHER = coscheduling_group("mine"), coscheduling_group("other")
_pod = pod("me").in_coscheduling_group("mine")
_member = Rejected("GangScheduling", _pod, known=(MINE,))
_ROOT, _OTHER_ROOT, _BESIDE, _ELSEWHERE = composite("root", 1), composite("far", 1), child("b", 1, "root"), child("b", 1, "far")
_in_a_tree = Rejected("GangScheduling", pod("me").in_group("a"), known=(_ROOT, _OTHER_ROOT, child("a", 1, "root")))
_in_a_rack = Rejected("GangScheduling", _pod, known=(MINE.topology("rack"),))

ROWS: Final[tuple[Row, ...]] = (
    _member.wakes("its group, which is declared", new=MINE),
    _member.rests("another group, which is declared", new=OTHER),
    _member.rests("a group of another kind with the same name", new=VolcanoPodGroup(metadata=MINE.build().metadata)),
    _member.wakes("its group, which asks for something else", old=MINE.members(2), new=MINE),
    _member.rests("another group, which asks for something else", old=OTHER.members(2), new=OTHER),
    _member.rests("a new node", new=node("n")),
    _member.rests("another label, of no meaning to it,", "node_label", old=node("n"), new=node("n", labels={"rack": "a"})),
    _in_a_rack.wakes("a node that comes into a rack", "node_label", old=node("n"), new=node("n", labels={"rack": "a"})),
    _in_a_rack.rests("a node that leaves its rack", "node_label", old=node("n", labels={"rack": "a"}), new=node("n")),
    _in_a_tree.wakes("a group beside its own", new=_BESIDE),
    _in_a_tree.wakes("a group beside its own, which needs less", old=child("b", 2, "root"), new=_BESIDE),
    _in_a_tree.wakes("a group beside its own, which is gone", old=_BESIDE),
    _in_a_tree.wakes("its root, which needs less", old=composite("root", 2), new=_ROOT),
    _in_a_tree.rests("its root, with another status", old=_ROOT, new=_ROOT),
    _in_a_tree.rests("a group of another tree", new=_ELSEWHERE),
    _in_a_tree.rests("the root of another tree, which is gone", old=_OTHER_ROOT),
    _in_a_tree.rests("its own group, which is gone", old=child("a", 1, "root")),
    _in_a_tree.rests("a group that belongs to no tree", new=pod_group("c", 1)),
    _member.rests("a pod that leaves a node", old=pod("else", on="n")),
)
