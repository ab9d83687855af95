"""GangScheduling: what could help a pod whose group found no nodes."""

from __future__ import annotations

from typing import Final

from framework.makers import node, pod
from hints.rows import GROUP_ADDED, GROUP_CHANGED, NODE_ADDED, POD_DELETED, Rejected, Row
from placewright.api.objects import ObjectMeta
from placewright.api.podgroups import GROUP_LABEL, CoschedulingPodGroup, CoschedulingSpec, VolcanoPodGroup


def _group(name: str, members: int = 1) -> CoschedulingPodGroup:
    return CoschedulingPodGroup(metadata=ObjectMeta(name=name, namespace="default"), spec=CoschedulingSpec(min_member=members))


_member = Rejected("GangScheduling", pod("me", labels={GROUP_LABEL: "mine"}), known=(_group("mine"),))

ROWS: Final[tuple[Row, ...]] = (
    _member.wakes("its group, which is declared", GROUP_ADDED, new=_group("mine")),
    _member.rests("another group, which is declared", GROUP_ADDED, new=_group("other")),
    _member.rests("a group of another kind with the same name", GROUP_ADDED, new=VolcanoPodGroup(metadata=_group("mine").metadata)),
    _member.wakes("its group, which asks for something else", GROUP_CHANGED, old=_group("mine", 2), new=_group("mine")),
    _member.rests("another group, which asks for something else", GROUP_CHANGED, old=_group("other", 2), new=_group("other")),
    _member.rests("a new node", NODE_ADDED, new=node("n")),
    _member.rests("a pod that leaves a node", POD_DELETED, old=pod("else", node="n")),
)
