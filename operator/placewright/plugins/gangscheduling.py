"""GangScheduling: places the pods of a group all or none. Implements `PodGroupPlugin`; `scheduler.podgroups` decides.

A pod that names a group waits until an object declares the group and enough of its members exist. Once a member of the group runs
on a node, the others join it like any other pod. A group with a parent waits until enough members of enough groups of its tree exist.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final

import msgspec

from placewright.api.objects import Node
from placewright.api.podgroups import (
    FORM_OF,
    CompositePodGroup,
    GroupObject,
    GroupRef,
    NativePodGroup,
    PodGroup,
    declares,
    parent_of,
)
from placewright.api.pods import PodInfo
from placewright.cluster.podgrouprules import declaration_complaint, tree_complaint, tree_to_place
from placewright.cluster.podgrouptrees import GroupTree
from placewright.framework.constraints import within
from placewright.framework.events import Action, ClusterEventWithHint, EventResource, QueueingHint, event_with_hint
from placewright.framework.interface import Handle, PodGroupPlugin
from placewright.framework.status import SUCCESS, Status, unresolvable

NAME: Final = "GangScheduling"


class GangSchedulingArgs(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Arguments of GangScheduling: how groups are decided, and what they may keep from others.

    Attributes:
        reservation_after_seconds: wait of a group, since it was first tried in vain, until nodes may be kept for it; 0: at once.
        reservations: most groups with kept nodes at the same time; 0: none ever. Pods of the same or a lower priority may use a
            kept node only if they fit beside the group. Nodes are kept only if each pod there ends. A pod ends if its restartPolicy is not
            Always, or it has activeDeadlineSeconds.
        reservation_percent: share of all nodes that may be kept for groups; at least one node.
        reservation_percent_of_namespace: share of all nodes that may be kept for the groups of one namespace; at least one node.
        reservation_seconds: longest time that nodes are kept for a group. Then none is kept for its namespace for as long.
        schedule_timeout_seconds: longest wait of members for each other after their decision. The group may set another; 0: as long as
            their volumes and devices take.
        domains_to_compare: most topology domains that hold enough members and are compared. For a group with schedulingConstraints, the
            first domain that holds all members ends the comparison.
    """

    reservation_after_seconds: Annotated[int, within(0)] = 60
    reservations: Annotated[int, within(0)] = 0
    reservation_percent: Annotated[int, within(1, 100)] = 10
    reservation_percent_of_namespace: Annotated[int, within(1, 100)] = 5
    reservation_seconds: Annotated[int, within(1)] = 600
    schedule_timeout_seconds: Annotated[int, within(0)] = 0
    domains_to_compare: Annotated[int, within(1)] = 4


class GangScheduling(PodGroupPlugin[GangSchedulingArgs]):
    """Keeps members of a group back until the group can be decided."""

    name = NAME

    def __init__(self, args: GangSchedulingArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._pod_groups = handle.cluster.pod_groups

    @property
    def settings(self) -> GangSchedulingArgs:
        """Arguments of the plugin."""
        return self.args

    def pre_enqueue(self, pod: PodInfo) -> Status:
        """Reject while the group is not declared, is declared wrongly, or has too few members."""
        if pod.pod_group is None:
            return SUCCESS
        complaint = declaration_complaint(self._pod_groups, pod.pod_group)
        pod_group = self._pod_groups.get(pod.pod_group)
        if complaint or pod_group is None:
            return unresolvable(f'waiting for pods\'s pod group "{pod.pod_group.name}" to appear in scheduling queue: {complaint}')
        tree = tree_to_place(self.handle.cluster, pod_group.ref)
        return SUCCESS if tree is None else self._enough(pod, pod_group.ref, tree)

    def _enough(self, pod: PodInfo, ref: GroupRef, tree: GroupTree) -> Status:
        ready = {leaf.ref: self.handle.ready_members(leaf.ref, pod) for leaf in tree.leaves()}
        complaint = tree_complaint(tree, ready, ref)
        if not complaint:
            return SUCCESS
        if tree.group.ref != ref:
            return unresolvable(f'waiting for composite pod group "{tree.group.ref.name}" tree to meet quorum: {complaint}')
        missing = tree.group.min_member - sum(ready[ref].values())
        if missing <= 0:  # they are members of several profiles
            return unresolvable(complaint)
        return unresolvable(f"waiting for minCount pods from a gang to appear in scheduling queue: {missing} more needed ({complaint})")

    def events(self) -> Sequence[ClusterEventWithHint]:
        """Declare new and changed groups, and node labels that put a node into another domain of the group's topology.

        New members need no event, because the last one activates all (see `queue.pod_groups`). Filters handle new nodes.
        """
        return (
            event_with_hint(EventResource.POD_GROUP, Action.ADD | Action.UPDATE | Action.DELETE, self._is_in_its_tree),
            event_with_hint(EventResource.NODE, Action.UPDATE_NODE_LABEL, self._comes_into_a_domain),
        )

    def _is_in_its_tree(self, pod: PodInfo, old: GroupObject | None, new: GroupObject | None) -> QueueingHint:
        """Return QUEUE for a change of the pod's group or of any group of its tree."""
        item = new or old
        if pod.pod_group is None or item is None or type(item) not in FORM_OF:
            return QueueingHint.SKIP
        if declares(item, pod.pod_group):
            return QueueingHint.when(new is not None)
        if not isinstance(item, NativePodGroup | CompositePodGroup) or (new and old and new.spec == old.spec):
            return QueueingHint.SKIP
        above = self._pod_groups.lineage(pod.pod_group)[1:]
        return QueueingHint.when(bool(above) and above[-1].ref in (each.ref for each in self._above(item)))

    def _above(self, item: NativePodGroup | CompositePodGroup) -> list[PodGroup]:
        """Return the groups from a changed one towards the root. An object that is gone is known by its parent alone."""
        ref = GroupRef(FORM_OF[type(item)], item.metadata.namespace, item.metadata.name)
        return self._pod_groups.lineage(ref) or self._pod_groups.lineage(parent_of(item) or ref)

    def _comes_into_a_domain(self, pod: PodInfo, old: Node | None, new: Node | None) -> QueueingHint:
        pod_group = None if pod.pod_group is None else self._pod_groups.get(pod.pod_group)
        if pod_group is None or new is None or not pod_group.topology_key or not pod_group.topology_required:
            return QueueingHint.SKIP
        before = None if old is None else (old.metadata.labels or {}).get(pod_group.topology_key)
        after = (new.metadata.labels or {}).get(pod_group.topology_key)
        return QueueingHint.when(after is not None and after != before)
