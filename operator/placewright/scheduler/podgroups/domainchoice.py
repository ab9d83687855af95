"""Where a group goes: anywhere, or into one domain of a node label."""

from __future__ import annotations

from dataclasses import dataclass

from placewright.scheduler.podgroups.domains import Domain, domains
from placewright.scheduler.podgroups.group import Group, MemberCycle
from placewright.scheduler.podgroups.trial import GroupTrial
from placewright.scheduler.podgroups.turns import Steps


@dataclass(frozen=True, slots=True)
class DomainChoice:
    """Finds the best way to place a group. What it returns is taken: the caller keeps it, or takes it back."""

    members: MemberCycle

    def best(self, group: Group) -> Steps[GroupTrial]:
        """In steps of a member each, the trial with the best placement of the whole group.

        When there is none, a trial that does not fit, as it went in the best domain.

        Of the domains that hold the whole group the one with the highest sum of members' scores is taken, ties by lot. They are tried in
        the order of `domains`, and no more are compared than the profile says. Each domain is a trial of its own, on the real columns.
        """
        pod_group = group.pod_group
        if not pod_group.topology_key:
            return (yield from self._trial(group, None))
        found = self.domains(group)
        holding: list[tuple[int, int, Domain]] = []
        for domain in found:
            if domain.room < 1 or len(holding) == group.settings.domains_to_compare:
                break
            trial = yield from self._trial(group, domain, compared=True)
            if trial.fits():
                holding.append((trial.score, self.members.cycle.draw(1 << 30), domain))
            trial.take_back()
        for _, _, domain in sorted(holding, key=lambda each: each[:2], reverse=True):
            trial = yield from self._trial(group, domain)
            if trial.fits():
                return trial
            trial.take_back()
        return (yield from self._trial(group, self._otherwise(group, found)))

    def _trial(self, group: Group, domain: Domain | None, *, compared: bool = False) -> Steps[GroupTrial]:
        """A trial of the members in their order; if they differ in size and too few fit, another one with the largest first.

        Small ones that were spread over all nodes may have left no node whole for the large ones.
        """
        trial = yield from GroupTrial(self.members, group, domain, compared=compared).run(to_the_end=not compared)
        if trial.fits() or not group.mixed:
            return trial
        trial.take_back()
        turned = GroupTrial(self.members, group.largest_first(), domain, compared=compared)
        largest_first = yield from turned.run(to_the_end=not compared)
        if largest_first.fits():
            return largest_first
        largest_first.take_back()
        return (yield from GroupTrial(self.members, group, domain, compared=compared).run(to_the_end=not compared))

    async def best_with_extenders(self, group: Group) -> GroupTrial:
        """The same, but the first domain that holds the group is taken: every question costs a request."""
        found = self.domains(group) if group.pod_group.topology_key else []
        for domain in found:
            if domain.room < 1:
                break
            trial = await GroupTrial(self.members, group, domain).run_with_extenders()
            if trial.fits():
                return trial
            trial.take_back()
        return await GroupTrial(self.members, group, self._otherwise(group, found)).run_with_extenders()

    def domains(self, group: Group) -> list[Domain]:
        """Those of the group's label, in the order in which they are to be tried."""
        pods = [attempt.pod for attempt in group.attempts]
        return domains(self.members.cluster, group.pod_group.topology_key, pods, group.needed)

    def _otherwise(self, group: Group, found: list[Domain]) -> Domain | None:
        """Where the group is tried when no domain holds it: anywhere if it only prefers one, else in the one that comes closest."""
        pod_group = group.pod_group
        if not pod_group.topology_key or not pod_group.topology_required:
            return None
        nowhere = Domain(pod_group.topology_key, "", frozenset(), 0.0)
        return max(found, key=lambda domain: domain.room, default=nowhere)
