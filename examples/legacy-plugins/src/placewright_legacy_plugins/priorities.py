"""Priorities of the legacy Policy: the plugins that score, their weights, and the strategy of NodeResourcesFit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from placewright.profiles.kubescheduler.findings import ConversionFindings
from placewright.profiles.kubescheduler.history import AVOID, AVOID_WEIGHT
from placewright.profiles.problem import Problem, ProfileError, did_you_mean
from placewright_legacy_plugins.policytypes import PriorityArgument, PriorityPolicy
from placewright_legacy_plugins.predicates import SPREAD
from placewright_legacy_plugins.strategies import Strategy

_SELECTOR_SPREAD: Final = "SelectorSpreadPriority"
#: Priority to plugin; kube-scheduler 1.22, `pkg/scheduler/framework/plugins/legacy_registry.go`.
PRIORITIES: Final[Mapping[str, str]] = MappingProxyType(
    {
        # 1.20 to 1.22 spread by PodTopologySpread's system defaults; SelectorSpread ran only where these were switched off.
        _SELECTOR_SPREAD: SPREAD,
        "ServiceSpreadingPriority": SPREAD,
        "EvenPodsSpreadPriority": SPREAD,
        "InterPodAffinityPriority": "InterPodAffinity",
        "BalancedResourceAllocation": "NodeResourcesBalancedAllocation",
        "NodePreferAvoidPodsPriority": AVOID,
        "NodeAffinityPriority": "NodeAffinity",
        "TaintTolerationPriority": "TaintToleration",
        "ImageLocalityPriority": "ImageLocality",
    }
)
#: Priorities that became strategies of NodeResourcesFit, to the plugin that they were in between.
STRATEGY_PRIORITIES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "LeastRequestedPriority": "NodeResourcesLeastAllocated",
        "MostRequestedPriority": "NodeResourcesMostAllocated",
        "RequestedToCapacityRatioPriority": "RequestedToCapacityRatio",
    }
)
DEFAULT_PRIORITIES: Final[Mapping[str, int]] = MappingProxyType(
    {
        _SELECTOR_SPREAD: 1,
        "InterPodAffinityPriority": 1,
        "LeastRequestedPriority": 1,
        "BalancedResourceAllocation": 1,
        "NodePreferAvoidPodsPriority": AVOID_WEIGHT,
        "NodeAffinityPriority": 1,
        "TaintTolerationPriority": 1,
        "ImageLocalityPriority": 1,
        "EvenPodsSpreadPriority": 2,
    }
)
_SPREADS_BY_SYSTEM: Final = frozenset({_SELECTOR_SPREAD, "ServiceSpreadingPriority"})


@dataclass(slots=True)
class Scores:
    """The result of the priorities.

    Attributes:
        weights: by plugin, without the strategies of NodeResourcesFit.
        strategies: of NodeResourcesFit.
        present_labels, absent_labels: that nodes should have, or should not have.
        anti_affinity_labels: over whose values the pods of a Service are spread.
        system_spread: whether pods without constraints of their own are spread.
    """

    weights: dict[str, int] = field(default_factory=dict)
    strategies: list[Strategy] = field(default_factory=list)
    present_labels: list[str] = field(default_factory=list)
    absent_labels: list[str] = field(default_factory=list)
    anti_affinity_labels: list[str] = field(default_factory=list)
    system_spread: bool = False

    def add(self, plugin: str, weight: int) -> None:
        """Set a plugin's weight; of several priorities for one plugin the highest weight counts.

        Args:
            plugin: its name.
            weight: 1 or more.
        """
        self.weights[plugin] = max(weight, self.weights.get(plugin, 0))


def read_priorities(priorities: Sequence[PriorityPolicy] | None, findings: ConversionFindings) -> Scores:
    """Read the priorities of a policy. An unknown name is a finding.

    Args:
        priorities: None for the default ones.
        findings: takes differences.

    Returns:
        The scores.

    Raises:
        ProfileError: a weight or an argument is one that made kube-scheduler exit.
    """
    scores = Scores()
    defaults = [PriorityPolicy(name=name, weight=weight) for name, weight in DEFAULT_PRIORITIES.items()]
    labels: dict[str, int] = {}
    for i, priority in enumerate(defaults if priorities is None else priorities):
        _read(priority, f"priorities[{i}]", scores, labels, findings)
    # With n labels kube-scheduler gave the one plugin n times the weight, because it averages over the labels.
    if "NodeLabel" in labels:
        scores.add("NodeLabel", labels["NodeLabel"] * len(scores.present_labels + scores.absent_labels))
    if "ServiceAffinity" in labels:
        scores.add("ServiceAffinity", labels["ServiceAffinity"] * len(scores.anti_affinity_labels))
    return scores


def _read(priority: PriorityPolicy, path: str, scores: Scores, labels: dict[str, int], findings: ConversionFindings) -> None:
    name, weight = priority.name, priority.weight
    if name == "EqualPriority":
        findings.note(path, f"{name}: the same for all nodes, it decides nothing")
        return
    if weight < 1:
        raise ProfileError([Problem(f"{path}.weight", str(weight), "1 or more")])
    if name in STRATEGY_PRIORITIES and priority.argument is None:
        _add_strategy(scores, Strategy(STRATEGY_PRIORITIES[name], weight, {}), path)
    elif name in PRIORITIES:
        scores.add(PRIORITIES[name], weight)
        scores.system_spread |= name in _SPREADS_BY_SYSTEM
    elif name == "ResourceLimitsPriority":
        findings.placement(path, f"{name}: kube-scheduler dropped it with 1.20")
    elif priority.argument is not None:
        _read_own(priority.argument, weight, path, scores, labels)
    else:
        hint = did_you_mean(name, [*PRIORITIES, *STRATEGY_PRIORITIES])
        findings.placement(path, f"{name}: no priority of this name is known{hint}; it is left out")


def _add_strategy(scores: Scores, strategy: Strategy, path: str) -> None:
    if strategy.name == "RequestedToCapacityRatio" and not strategy.args.get("shape"):
        allowed = "requestedToCapacityRatioArguments with a shape"
        raise ProfileError([Problem(f"{path}.argument", "nothing", allowed)])
    scores.strategies.append(strategy)


def _read_own(argument: PriorityArgument, weight: int, path: str, scores: Scores, labels: dict[str, int]) -> None:
    """Read a user's own priority; its name is free."""
    ratio, preference, spread = (
        argument.requested_to_capacity_ratio_arguments,
        argument.label_preference,
        argument.service_anti_affinity,
    )
    if sum(part is not None for part in (ratio, preference, spread)) != 1:
        allowed = "one of serviceAntiAffinity, labelPreference, requestedToCapacityRatioArguments"
        raise ProfileError([Problem(f"{path}.argument", "none of them, or several", allowed)])
    if ratio is not None:
        args = {"shape": ratio.shape} | ({"resources": ratio.resources} if ratio.resources else {})
        _add_strategy(scores, Strategy("RequestedToCapacityRatio", weight, args), path)
    elif preference is not None:
        _same_weight(labels, "NodeLabel", weight, path)
        (scores.present_labels if preference.presence else scores.absent_labels).append(preference.label)
    elif spread is not None:
        _same_weight(labels, "ServiceAffinity", weight, path)
        scores.anti_affinity_labels.append(spread.label)


def _same_weight(labels: dict[str, int], plugin: str, weight: int, path: str) -> None:
    """Require one weight of all priorities for one plugin, as kube-scheduler did: the plugin has one weight."""
    before = labels.setdefault(plugin, weight)
    if before != weight:
        raise ProfileError([Problem(f"{path}.weight", str(weight), f"{before}, as of the priority of this sort before it")])
