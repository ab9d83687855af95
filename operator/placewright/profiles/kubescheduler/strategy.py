"""How full nodes are scored: plugins or priorities of their own once, one strategy of NodeResourcesFit today."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from placewright.profiles.kubescheduler.findings import ConversionFindings
from placewright.profiles.kubescheduler.history import FIT, STRATEGIES


class Strategy(NamedTuple):
    """One way to score, under the name of its former plugin, with that plugin's arguments (`resources`, `shape`)."""

    name: str
    weight: int
    args: dict[str, Any]


def heaviest(strategies: Sequence[Strategy], path: str, findings: ConversionFindings) -> Strategy | None:
    """The one with the highest weight, the first of equals; the others are lost."""
    chosen = max(strategies, key=lambda one: one.weight, default=None)
    for other in strategies:
        if chosen is not None and other is not chosen:
            both = f"{other.name} (weight {other.weight}) beside {chosen.name} (weight {chosen.weight})"
            findings.placement(path, f"{both}: {FIT} has one strategy, and takes the second's")
    return chosen


def adopt_strategy(args: dict[str, dict[str, Any]], chosen: Strategy) -> None:
    """Write the strategy into the arguments of NodeResourcesFit, unless it is the default one."""
    strategy: dict[str, Any] = {"type": STRATEGIES[chosen.name]}
    if chosen.args.get("resources"):
        strategy["resources"] = chosen.args["resources"]
    if chosen.args.get("shape"):
        strategy["requestedToCapacityRatio"] = {"shape": chosen.args["shape"]}
    if strategy != {"type": "LeastAllocated"}:
        args[FIT] = {**args.get(FIT, {}), "scoringStrategy": strategy}
