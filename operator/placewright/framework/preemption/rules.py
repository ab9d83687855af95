"""The rules of `spec.preemption`, for one generation of a profile: whether a pod may preempt now, and which pods may be its victims.

A profile without rules has no such object, and then no question is asked. The plugin DefaultPreemption asks while it looks for victims.
The search for a group's room asks for the whole group. The scheduler asks once more about the victims of any plugin.

The words in which the rules of `spec.preemption` refuse, and the times after which they may refuse no longer.

They have two forms, both from kube-scheduler. The reason why a pod may not preempt at all follows `preemption: not eligible due to`. The
reason why victims stay is one that nodes are counted by, after `preemption: 0/5 nodes are available:`. A rule is named by its field, with
its value where it has one. The text is the same in each attempt, so that events about it are counted and not repeated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple

from placewright.api.pods import PodInfo
from placewright.api.preemption import NEVER, STRICT, PreemptionSpec
from placewright.api.selectors import Selector, compile_label_selector
from placewright.cluster.cluster import Cluster
from placewright.framework.ports import Seconds
from placewright.framework.preemption.budgets import Budgets
from placewright.framework.preemption.evictions import NOT_STARTED, Evictions, start_time

#: The field of the profile that has the rules.
RULES: Final = "spec.preemption"
#: Seconds until a pod that a disruption budget keeps from preempting looks again: no plugin listens for changes of budgets.
LOOK_AGAIN: Final = 30.0


class PreemptionRefusal(NamedTuple):
    """Why a pod may not preempt, or victims may not leave.

    Attributes:
        reason: text that names the rule.
        retry_after: seconds after which the answer may be another although nothing happens in the cluster; None if only a change helps.
    """

    reason: str
    retry_after: Seconds | None = None


#: The profile's pods displace no others.
POLICY_NEVER: Final = PreemptionRefusal(f"not eligible due to {RULES}.policy=Never.")
PROTECTED: Final = PreemptionRefusal(f"Victims are protected by {RULES}.protect")
IN_BUDGETS: Final = PreemptionRefusal(f"Victims are kept by a PodDisruptionBudget under {RULES}.disruptionBudgets=Strict", LOOK_AGAIN)


def soonest(times: Iterable[Seconds | None]) -> Seconds | None:
    """Return the first of these times.

    Args:
        times: seconds from now; None for never.

    Returns:
        Seconds from now; None if all are never.
    """
    return min((time for time in times if time is not None), default=None)


def one_for_each_reason(refusals: Iterable[PreemptionRefusal | None]) -> tuple[PreemptionRefusal, ...]:
    """Put refusals for one reason together: the one that may end first stands for all.

    Args:
        refusals: one for each pod of a node; None for pods that may leave.
    """
    found: dict[str, PreemptionRefusal] = {}
    for each in refusals:
        if each is not None:
            before = found.get(each.reason, each)
            found[each.reason] = PreemptionRefusal(each.reason, soonest((before.retry_after, each.retry_after)))
    return tuple(found.values())


class PreemptionRules:
    """The rules of one generation of a profile.

    Args:
        spec: says something that kube-scheduler does not do.
        scheduler_name: the profile's schedulerName; its evictions are counted together.
        evictions: the record of all profiles.
        empty_covers_all: argument of `Budgets`.

    Attributes:
        spec: the rules as the profile has them.
        cluster: the victims' cluster.
        protect: selector of pods that never leave; None for none.
        strict: whether no disruption budget may be violated.
    """

    def __init__(self, spec: PreemptionSpec, scheduler_name: str, evictions: Evictions, *, empty_covers_all: bool = False) -> None:
        evictions.needed = True
        self.spec = spec
        self.cluster: Cluster = evictions.cluster
        self.protect: Selector | None = None if spec.protect is None else compile_label_selector(spec.protect.as_label_selector())
        self.strict = spec.disruption_budgets == STRICT
        self._name = scheduler_name
        self._empty_covers_all = empty_covers_all
        self._evictions = evictions
        #: Victims that a group's search has chosen so far; None while single pods are decided.
        self._chosen: Sequence[PodInfo] | None = None

    @property
    def steady(self) -> bool:
        """Whether the pods that may leave a node depend on its pods alone, and not on time or other evictions."""
        return not self.spec.min_run_seconds and not self.strict

    def why_not_yet(self, preemptors: Iterable[PodInfo]) -> PreemptionRefusal | None:
        """Say why pods may not preempt now, whichever victims there are.

        Returns:
            The refusal; None if they may preempt. Members in the midst of their group's search may, because the group was asked about.
        """
        if self._chosen is not None:
            return None
        if self.spec.policy == NEVER:
            return POLICY_NEVER
        if self.spec.wait_seconds:
            left = self.spec.wait_seconds - max(map(self._evictions.waited, preemptors), default=0.0)
            if left > 0:
                return PreemptionRefusal(f"not eligible due to {RULES}.waitSeconds={self.spec.wait_seconds:g}.", left)
        most = self.spec.max_evictions_per_minute
        if most is not None and self._evictions.within_a_minute(self._name) >= most:
            left = self._evictions.until_fewer(self._name)
            return PreemptionRefusal(f"not eligible due to {RULES}.maxEvictionsPerMinute={most}.", left)
        return None

    def limits(self) -> VictimLimits:
        """Return the limits of one attempt's victims."""
        objects = self.cluster.objects
        beside = (self._evictions.not_shown_by, self._chosen or ()) if self.strict else ()
        budgets = Budgets(objects, *beside, empty_covers_all=self._empty_covers_all)
        return VictimLimits(self, budgets, self._evictions.now - self.spec.min_run_seconds)

    def why_not_so_many(self, victims: int) -> PreemptionRefusal | None:
        """Say why so many pods may not be displaced by one preemption now.

        Returns:
            The refusal; None for a number that is allowed.
        """
        most, in_a_minute = self.spec.max_victims, self.spec.max_evictions_per_minute
        if most is not None and victims > most:
            return PreemptionRefusal(f"More victims than {RULES}.maxVictims={most}")
        if in_a_minute is None or self._evictions.within_a_minute(self._name) + victims <= in_a_minute:
            return None
        # No minute has room for more victims than it may have in all.
        left = None if victims > in_a_minute else self._evictions.until_fewer(self._name)
        return PreemptionRefusal(f"More victims than {RULES}.maxEvictionsPerMinute={in_a_minute} allows", left)

    @contextmanager
    def for_a_group(self, chosen: Sequence[PodInfo]) -> Iterator[None]:
        """Judge a member of a group until the end of the block: whether it may preempt has been asked for the whole group."""
        before, self._chosen = self._chosen, chosen
        try:
            yield
        finally:
            self._chosen = before


class VictimLimits:
    """Which pods may leave for one preemptor now. Made by `PreemptionRules.limits`.

    Args:
        rules: the profile's rules.
        budgets: the disruption budgets; with Strict, less what evictions under way use of them.
        youngest_start: pods that started later have not run long enough, in seconds since 1970.

    Attributes:
        budgets: the disruption budgets.
        strict: whether no disruption budget may be violated.
    """

    __slots__ = ("_rules", "_youngest_start", "budgets", "strict")

    def __init__(self, rules: PreemptionRules, budgets: Budgets, youngest_start: Seconds) -> None:
        self.budgets = budgets
        self.strict = rules.strict
        self._rules = rules
        self._youngest_start = youngest_start

    def keeps(self, pod: PodInfo) -> bool:
        """Tell whether a rule keeps a pod where it is; see `why_it_stays`."""
        return self.why_it_stays(pod) is not None

    def why_it_stays(self, pod: PodInfo) -> PreemptionRefusal | None:
        """Say which rule keeps a pod where it is.

        Args:
            pod: a pod on a node, of lower priority than the preemptor.

        Returns:
            The refusal; None for a pod that may leave, or is leaving already.
        """
        rules, shortest = self._rules, self._rules.spec.min_run_seconds
        if rules.cluster.leaves(pod):
            return None
        if rules.protect is not None and rules.protect.matches(pod.labels):
            return PROTECTED
        if shortest and (started := start_time(pod)) > self._youngest_start:
            left = shortest if started == NOT_STARTED else started - self._youngest_start
            return PreemptionRefusal(f"Victims have run less than {RULES}.minRunSeconds={shortest:g}", left)
        if self.strict and self.budgets.exhausted_for(pod):
            return IN_BUDGETS
        return None

    def why_not_these(self, victims: Iterable[PodInfo]) -> PreemptionRefusal | None:
        """Say which rule keeps victims from leaving together.

        Returns:
            The refusal; None for victims that may leave.
        """
        evicted = [victim for victim in victims if not self._rules.cluster.leaves(victim)]
        if self.strict and self.budgets.broken_by(evicted):
            return IN_BUDGETS
        return self._rules.why_not_so_many(len(evicted))

    def objection(self, victims: Sequence[PodInfo]) -> PreemptionRefusal | None:
        """Say which rule forbids a preemption: one that keeps any of its victims, or one that keeps them together.

        Returns:
            The refusal; None for a preemption that is allowed.
        """
        kept = (refusal for victim in victims if (refusal := self.why_it_stays(victim)) is not None)
        return next(kept, None) or self.why_not_these(victims)
