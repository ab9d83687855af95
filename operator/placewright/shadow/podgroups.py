"""Decides a pod, or the members of a group, in a shadow's world. As many members as are needed get nodes, or none does.

It works like `scheduler.podgroups`, with the same rules for domains. Each member is a step, and other work may come between steps,
because only the shadow sees its world.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence

from placewright.api.objects import NodeName
from placewright.api.podgroups import GroupRef, PodGroup
from placewright.cluster.podgrouprules import standing
from placewright.scheduler.podgroups.domains import domains, joined_domain
from placewright.scheduler.podgroups.group import largest_first, mixed
from placewright.scheduler.podgroups.placements import HoldingDomain, Placements
from placewright.shadow.chooser import Chooser, Found, ShadowCluster
from placewright.shadow.tape import Decided

#: Yields after each member, and returns the choices by uid.
Steps = Generator[None, None, Mapping[str, Found]]
_Trial = Generator[None, None, Mapping[str, Found] | None]


def together(world: ShadowCluster, chooser: Chooser, ref: GroupRef | None, members: Sequence[Decided]) -> Steps:
    """Choose nodes for the members of a group that have none yet. If fewer fit than are needed, no member gets a node.

    An error of a plugin is raised after all choices are taken back. Without a group, or if no plugin of the profile decides groups, each
    member is decided as a single pod.

    Args:
        world: world of the shadow, in which the chosen members are placed.
        chooser: chooser of the shadow.
        ref: the group; None for a pod without one.
        members: members without a node.

    Returns:
        Steps, each for a member, with the choices by uid at the end.
    """
    settings, cluster = chooser.groups, world.cluster
    if settings is None or ref is None:
        return (yield from _Group(world, chooser, members, 0).tried(None)) or {}
    pod_group = cluster.pod_groups.get(ref)
    if pod_group is None:
        return {}
    if pod_group.basic or standing(cluster, ref):
        within = joined_domain(cluster, pod_group) if pod_group.topology_key and pod_group.topology_required else None
        return (yield from _Group(world, chooser, members, 0).tried(within)) or {}
    group = _Group(world, chooser, members, pod_group.min_member)
    if pod_group.topology_key:
        found = yield from group.in_best_domain(pod_group, settings.domains_to_compare)
        if found is not None or pod_group.topology_required:
            return found or {}
    return (yield from group.tried(None)) or {}


class _Group:
    """The members that are decided together. At least `needed` of them must get a node."""

    def __init__(self, world: ShadowCluster, chooser: Chooser, members: Sequence[Decided], needed: int) -> None:
        self._world = world
        self._chooser = chooser
        self._members = members
        self._needed = needed
        self._waiting = {member.pod.uid for member in members if member.pod.uid in world.waiting}

    def in_best_domain(self, pod_group: PodGroup, most: int) -> _Trial:
        """Compare at most `most` domains as the scheduler does. Among equally good domains, take the live profile's if possible."""
        live = {member.choice.node for member in self._members if member.choice is not None}
        holding: list[HoldingDomain] = []
        pods = [member.pod for member in self._members]
        cluster, chooser = self._world.cluster, self._chooser
        placements = Placements(cluster, pod_group, pods, chooser.runtime, lambda domain: (live.isdisjoint(domain.names), chooser.draw()))
        for domain in placements.ordered(domains(cluster, pod_group.topology_key, pods, self._needed)):
            if len(holding) == most or (holding and placements.settles(holding[-1])):
                break
            found = yield from self.tried(domain.names, compared=True)
            if found is not None:
                self._take_back(found)
                placed = [pod for pod in pods if pod.uid in found]
                holding.append(HoldingDomain(domain, placed, sum(one.score for one in found.values())))
        for domain in placements.ranked(holding):
            found = yield from self.tried(domain.names)
            if found is not None:
                return found
        return None

    def tried(self, within: frozenset[NodeName] | None, *, compared: bool = False) -> _Trial:
        """Try the members in their order. If they differ in size and too few fit, try once more with the largest first."""
        found = yield from self._one_by_one(self._members, within, compared)
        if found is None and mixed(self._members):
            found = yield from self._one_by_one(largest_first(self._members), within, compared)
        return found

    def _one_by_one(self, members: Sequence[Decided], within: frozenset[NodeName] | None, compared: bool) -> _Trial:
        """Try each member beside the earlier ones. If too few fit, take all choices back and return None."""
        found: dict[str, Found] = {}
        enough = False
        try:
            for place, member in enumerate(members):
                if len(found) + len(members) - place < self._needed:
                    break
                one = self._chooser.find(member.pod, member.choice, within, compared=compared)
                if one is not None:
                    self._world.choose(member.pod, one.node)
                    found[member.pod.uid] = one
                yield
            enough = len(found) >= self._needed
        finally:
            if not enough:
                self._take_back(found)
        return found if enough else None

    def _take_back(self, found: Mapping[str, Found]) -> None:
        for member in self._members:
            if member.pod.uid in found:
                self._world.take_back(member.pod)
                if member.pod.uid in self._waiting:
                    self._world.wait(member.pod)
