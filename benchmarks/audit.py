"""Checks that each decision used one generation of its profile, and no mixture of two, from the decisions themselves. Pure functions.

Each generation gets weights of its own, all of them prime and above the highest score. A plugin's part of a score is its score times its
weight; from 1 to 100 points, no product of one such weight is one of another. So any difference but 0 names the weight that made it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from placewright.api.annotations import Decision
from placewright.api.profilelimits import MAX_WEIGHT
from placewright.framework.interface import MAX_NODE_SCORE

#: The default plugins that score pods without claims to devices.
SCORERS: Final = (
    "TaintToleration",
    "NodeAffinity",
    "VolumeBinding",
    "PodTopologySpread",
    "InterPodAffinity",
    "NodeResourcesFit",
    "NodeResourcesBalancedAllocation",
    "ImageLocality",
)


def distinct_weights(number: int) -> dict[str, int]:
    """Return the weights of change `number`, from 0 to 1000; no two changes, and no two plugins, share one."""
    first = number * len(SCORERS)
    return dict(zip(SCORERS, _primes()[first : first + len(SCORERS)], strict=True))


@cache
def _primes() -> tuple[int, ...]:
    """Return the primes that may be weights and are above the highest score, ascending."""
    sieve = bytearray([1]) * (MAX_WEIGHT + 1)
    for number in range(2, math.isqrt(MAX_WEIGHT) + 1):
        if sieve[number]:
            multiples = slice(number * number, None, number)
            sieve[multiples] = bytes(len(sieve[multiples]))
    return tuple(number for number in range(MAX_NODE_SCORE + 1, MAX_WEIGHT + 1) if sieve[number])


@dataclass
class Audit:
    """Looks at decisions, one by one.

    Attributes:
        weights: weights of each generation as they were applied; plugins without one are not checked.
        proved: decisions with at least one part that names its generation.
        torn: a line for each decision that its generation does not explain.
    """

    weights: dict[int, Mapping[str, int]]
    proved: int = 0
    torn: list[str] = field(default_factory=list)

    def look_at(self, pod: str, decision: Decision) -> None:
        """Check that every part is a score times the weight that the named generation gives, and that they add up."""
        weights = self.weights.get(decision.generation)
        if weights is None:
            self.torn.append(f"{pod}: generation {decision.generation} is none that was applied")
            return
        known = {plugin: part for plugin, part in decision.plugins.items() if plugin in weights}
        wrong = [f"{plugin} {part}" for plugin, part in known.items() if not _explains(weights[plugin], part)]
        if wrong or sum(decision.plugins.values()) != decision.score:
            self.torn.append(f"{pod}: generation {decision.generation} does not explain {', '.join(wrong) or 'the sum'}")
        self.proved += any(known.values())


def _explains(weight: int, part: int) -> bool:
    return part % weight == 0 and part // weight <= MAX_NODE_SCORE
