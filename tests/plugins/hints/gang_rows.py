"""GangScheduling: what could help a pod whose group found no nodes."""

from __future__ import annotations

from typing import Final

from hints.rows import GROUP_ADDED, GROUP_CHANGED, NODE_ADDED, NODE_LABELLED, POD_DELETED, Rejected, Row
from placewright.api.objects import ObjectMeta
from placewright.api.podgroups import GROUP_LABEL, TOPOLOGY_KEY, CoschedulingPodGroup, CoschedulingSpec, VolcanoPodGroup
from placewright.testing import node, pod


def _group(name: str, members: int = 1) -> CoschedulingPodGroup:
    return CoschedulingPodGroup(metadata=ObjectMeta(name=name, namespace="default"), spec=CoschedulingSpec(min_member=members))


_racked = CoschedulingPodGroup(
    metadata=ObjectMeta(name="mine", namespace="default", annotations={TOPOLOGY_KEY: "rack"}), spec=CoschedulingSpec(min_member=1)
)
_member = Rejected("GangScheduling", pod("me", labels={GROUP_LABEL: "mine"}), known=(_group("mine"),))
_in_a_rack = Rejected("GangScheduling", pod("me", labels={GROUP_LABEL: "mine"}), known=(_racked,))

ROWS: Final[tuple[Row, ...]] = (
    _member.wakes("its group, which is declared", GROUP_ADDED, new=_group("mine")),
    _member.rests("another group, which is declared", GROUP_ADDED, new=_group("other")),
    _member.rests("a group of another kind with the same name", GROUP_ADDED, new=VolcanoPodGroup(metadata=_group("mine").metadata)),
    _member.wakes("its group, which asks for something else", GROUP_CHANGED, old=_group("mine", 2), new=_group("mine")),
    _member.rests("another group, which asks for something else", GROUP_CHANGED, old=_group("other", 2), new=_group("other")),
    _member.rests("a new node", NODE_ADDED, new=node("n")),
    _member.rests("another label, of no meaning to it,", NODE_LABELLED, old=node("n"), new=node("n", labels={"rack": "a"})),
    _in_a_rack.wakes("a node that comes into a rack", NODE_LABELLED, old=node("n"), new=node("n", labels={"rack": "a"})),
    _in_a_rack.rests("a node that leaves its rack", NODE_LABELLED, old=node("n", labels={"rack": "a"}), new=node("n")),
    _member.rests("a pod that leaves a node", POD_DELETED, old=pod("else", on="n")),
)
