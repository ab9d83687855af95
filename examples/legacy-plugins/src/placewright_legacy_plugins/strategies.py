"""Strategies of NodeResourcesFit that were plugins of their own up to 1.22."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from placewright.profiles.kubescheduler.findings import ConversionFindings

FIT: Final = "NodeResourcesFit"
#: Score plugins of v1beta1 that became strategies of NodeResourcesFit.
STRATEGIES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "NodeResourcesLeastAllocated": "LeastAllocated",
        "NodeResourcesMostAllocated": "MostAllocated",
        "RequestedToCapacityRatio": "RequestedToCapacityRatio",
    }
)


class Strategy(NamedTuple):
    """A way to score, under the name of its former plugin, with that plugin's arguments (`resources`, `shape`)."""

    name: str
    weight: int
    args: dict[str, Any]


def heaviest(strategies: Sequence[Strategy], path: str, findings: ConversionFindings) -> Strategy | None:
    """Choose a strategy; the others are lost, with a finding each.

    Args:
        strategies: that score.
        path: for findings.
        findings: takes the others.

    Returns:
        The strategy of the highest weight, the first of equals; None without any.
    """
    chosen = max(strategies, key=lambda one: one.weight, default=None)
    for other in strategies:
        if chosen is not None and other is not chosen:
            both = f"{other.name} (weight {other.weight}) beside {chosen.name} (weight {chosen.weight})"
            findings.placement(path, f"{both}: {FIT} has one strategy, and takes the second's")
    return chosen


def adopt_strategy(args: dict[str, dict[str, Any]], chosen: Strategy) -> None:
    """Write a strategy into the arguments of NodeResourcesFit, unless it is the default one.

    Args:
        args: arguments by plugin; changed in place.
        chosen: the strategy.
    """
    strategy: dict[str, Any] = {"type": STRATEGIES[chosen.name]}
    if chosen.args.get("resources"):
        strategy["resources"] = chosen.args["resources"]
    if chosen.args.get("shape"):
        strategy["requestedToCapacityRatio"] = {"shape": chosen.args["shape"]}
    if strategy != {"type": "LeastAllocated"}:
        args[FIT] = {**args.get(FIT, {}), "scoringStrategy": strategy}
