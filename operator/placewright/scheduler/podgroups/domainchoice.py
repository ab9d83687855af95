"""Chooses where a group is placed: on any nodes, or in one domain of a node label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from placewright.scheduler.podgroups.domains import ROOM_FILTER, Domain, domains
from placewright.scheduler.podgroups.group import Group, MemberCycle
from placewright.scheduler.podgroups.placements import HoldingDomain, Placements
from placewright.scheduler.podgroups.trial import GroupTrial, TrialBudget
from placewright.scheduler.turns import Steps, at_once


@dataclass(slots=True)
class _TriedDomains:
    """The domains of one attempt that were tried.

    Attributes:
        rejected_by: names of plugins that kept the group out of domains.
        values: label values of the domains.
    """

    rejected_by: set[str]
    values: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class DomainChoice:
    """Finds the best way to place a group. Members of the returned trial are assumed. The caller keeps them or takes them back.

    Attributes:
        members: the tools that place one member.
    """

    members: MemberCycle

    def best(self, group: Group) -> Steps[GroupTrial]:
        """Find the trial with the best placement of the whole group, in steps of a member each.

        Members are looked at first. If no node could hold too many of them, the group is not tried. Each domain has its own trial on the
        real columns. `Placements` compares the domains that hold the group; ties are broken at random. The profile bounds the number of
        these domains. A `TrialBudget` bounds the others. The domain that most members are nominated to comes first, and is not compared.

        Returns:
            The trial. If no domain holds the group, it does not fit: it is the look, or the trial in the domain that comes closest.
        """
        pod_group = group.pod_group
        found = self.domains(group) if pod_group.topology_key else []
        if found or not pod_group.topology_key:
            look = yield from GroupTrial(self.members, group).look()
            if look.hopeless:
                return look
        if not pod_group.topology_key:
            return (yield from self._trial(group, None))
        tried, before = _TriedDomains(set(_short_of_room(group, found))), self._tried_before(group)
        placements = self._placements(group)
        roomy = sorted(placements.ordered(found), key=lambda domain: domain.value in before)
        fitting = yield from self._compared(group, placements, roomy, tried)
        if fitting is not None:
            return fitting
        trial = yield from self._trial(group, self._otherwise(group, found))
        trial.elsewhere = frozenset(tried.rejected_by)
        left = {domain.value for domain in roomy} - tried.values - before
        trial.domains_left = len(left)
        trial.domains_tried = frozenset(before | tried.values) if left else frozenset()
        return trial

    def _compared(self, group: Group, placements: Placements, roomy: list[Domain], tried: _TriedDomains) -> Steps[GroupTrial | None]:
        """Find the trial in the best of the domains that hold the group; None if none holds it. Note which domains were tried."""
        nominated, holding = self._nominated(group, placements, roomy), list[HoldingDomain]()
        budget = TrialBudget(len(group.attempts))
        for domain in sorted(roomy, key=lambda domain: domain is not nominated):
            if len(holding) == group.settings.domains_to_compare or (holding and placements.settles(holding[-1])):
                break
            trial = yield from self._trial(group, domain, budget)
            tried.rejected_by |= trial.rejected_by
            if trial.fits():
                holding.append(HoldingDomain(domain, [seat.attempt.pod for seat in trial.seats.values()], trial.score))
                if domain is nominated or (len(holding) == 1 and placements.settles(holding[0])):
                    return trial
            elif not budget.left:
                trial.take_back()
                break
            tried.values.add(domain.value)
            trial.take_back()
        # The comparison took every trial back, so the best domain is tried once more, for good.
        for domain in placements.ranked(holding):
            trial = yield from self._trial(group, domain)
            if trial.fits():
                return trial
            trial.take_back()
        return None

    def _placements(self, group: Group) -> Placements:
        pods = [attempt.pod for attempt in group.attempts]
        draw = self.members.cycle.draw
        return Placements(self.members.cluster, group.pod_group, pods, group.evaluator.runtime, lambda _: (False, draw(1 << 30)))

    def _nominated(self, group: Group, placements: Placements, roomy: Sequence[Domain]) -> Domain | None:
        return placements.nominated(roomy, [self.members.queue.nominator.node_of(attempt.uid) for attempt in group.attempts])

    def _trial(self, group: Group, domain: Domain | None, budget: TrialBudget | None = None) -> Steps[GroupTrial]:
        """Try the members in their order; if they differ in size and too few fit, try them again with the largest first.

        Small members that are spread over all nodes may leave no node whole for the large ones.

        Args:
            group: a group without nodes.
            domain: domain of all members; None for any nodes.
            budget: budget of a comparison of domains, whose trials end once they are hopeless; None for a trial that is explained.
        """
        compared = budget is not None
        trial = yield from GroupTrial(self.members, group, domain, budget=budget, compared=compared).run(to_the_end=not compared)
        if trial.fits() or not group.mixed:
            return trial
        trial.take_back()
        turned = GroupTrial(self.members, group.largest_first(), domain, budget=budget, compared=compared)
        largest_first = yield from turned.run(to_the_end=not compared)
        if largest_first.fits() or compared:
            return largest_first
        largest_first.take_back()
        return (yield from GroupTrial(self.members, group, domain).run())

    def _tried_before(self, group: Group) -> frozenset[str]:
        """Return the domains that earlier attempts tried in vain, while others were left."""
        queued = self.members.queue.pod_groups.get(group.pod_group.ref)
        return frozenset() if queued is None else queued.domains_tried

    async def best_with_extenders(self, group: Group) -> GroupTrial:
        """Find the first domain that holds the group, and return its trial. If no domain holds it, return a trial that does not fit.

        Domains are not compared, because every question to an extender costs a request.
        """
        found = self.domains(group) if group.pod_group.topology_key else []
        look = at_once(GroupTrial(self.members, group).look())
        if look.hopeless and (found or not group.pod_group.topology_key):
            return look
        elsewhere = _short_of_room(group, found)
        placements = self._placements(group)
        roomy = placements.ordered(found)
        nominated = self._nominated(group, placements, roomy)
        for domain in sorted(roomy, key=lambda domain: domain is not nominated)[: group.settings.domains_to_compare]:
            trial = await GroupTrial(self.members, group, domain).run_with_extenders()
            if trial.fits():
                return trial
            elsewhere |= trial.rejected_by
            trial.take_back()
        trial = await GroupTrial(self.members, group, self._otherwise(group, found)).run_with_extenders()
        trial.elsewhere = elsewhere
        return trial

    def domains(self, group: Group) -> list[Domain]:
        """Return the domains of the group's label in the order in which they are tried."""
        pods = [attempt.pod for attempt in group.attempts]
        return domains(self.members.cluster, group.pod_group.topology_key, pods, group.needed)

    def roomiest(self, group: Group) -> Sequence[Domain | None]:
        """Return a few domains, the ones with the most room first, because each costs as much as all nodes.

        Returns:
            As many domains as the profile compares; [None], for all nodes, if the group does not require a domain.
        """
        if not group.pod_group.topology_key or not group.pod_group.topology_required:
            return [None]
        found = sorted(self.domains(group), key=lambda domain: (-domain.room, domain.value))
        return found[: group.settings.domains_to_compare]

    def _otherwise(self, group: Group, found: list[Domain]) -> Domain | None:
        """Return the domain with the most room for a group that no domain holds; None, for all nodes, if it only prefers a domain."""
        pod_group = group.pod_group
        if not pod_group.topology_key or not pod_group.topology_required:
            return None
        nowhere = Domain(pod_group.topology_key, "", frozenset(), 0.0)
        return max(found, key=lambda domain: domain.room, default=nowhere)


def _short_of_room(group: Group, found: list[Domain]) -> frozenset[str]:
    """Return the filter that rules out domains before they are tried, if a domain lacks room or there is none."""
    short = not found or any(domain.room < 1 for domain in found)
    return frozenset({ROOM_FILTER} & {plugin.name for plugin in group.evaluator.runtime.filter}) if short else frozenset()
