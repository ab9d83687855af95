"""GangScheduling: what could help a pod whose group found no nodes."""

from __future__ import annotations

from typing import Final

from hints.rows import Rejected, Row
from placewright.api.podgroups import VolcanoPodGroup
from placewright.testing import coscheduling_group, node, pod

MINE, OTHER = coscheduling_group("mine"), coscheduling_group("other")
_pod = pod("me").in_coscheduling_group("mine")
_member = Rejected("GangScheduling", _pod, known=(MINE,))
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
    _member.rests("a pod that leaves a node", old=pod("else", on="n")),
)
