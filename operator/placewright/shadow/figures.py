"""What decisions of a shadow and of its live profile come to: how often they agree, and how much worse each finds the other's nodes."""

from __future__ import annotations

from dataclasses import dataclass, field

from placewright.api.objects import NodeName
from placewright.api.profile import Regret


@dataclass(slots=True)
class Regrets:
    """Distances from the best total, in points."""

    decisions: int = 0
    points: int = 0
    worst: int = 0
    share: float = 0.0

    def add(self, best: int, other: int) -> None:
        """A decision whose node has the total `best` by somebody's scores, where the other one's has `other`."""
        distance = best - other
        self.decisions += 1
        self.points += distance
        self.worst = max(self.worst, distance)
        self.share += distance / best if best > 0 else 0.0

    @property
    def told(self) -> Regret:
        """As the status has it."""
        count = self.decisions or 1
        return Regret(
            decisions=self.decisions,
            mean_points=round(self.points / count, 2),
            max_points=float(self.worst),
            mean_percent=round(100 * self.share / count, 2),
        )


@dataclass(slots=True)
class Figures:
    """Counted since `since` (RFC 3339), beside one generation of the live profile.

    Attributes:
        same, other, live_only, shadow_only, neither: decisions, by what came of both.
        passed_over: decisions of the live profile that the shadow had no time for.
        not_feasible: the live node could not have held the pod in the shadow's world.
        regret: of the live node, by the shadow's totals.
        live_regret: of the shadow's node, by the live totals, where these are known of it.
    """

    since: str
    live_generation: int = 0
    same: int = 0
    other: int = 0
    live_only: int = 0
    shadow_only: int = 0
    neither: int = 0
    passed_over: int = 0
    not_feasible: int = 0
    regret: Regrets = field(default_factory=Regrets)
    live_regret: Regrets = field(default_factory=Regrets)

    def count(self, shadow: NodeName | None, live: NodeName | None) -> None:
        """Which nodes the two chose; None for no node."""
        if shadow is None and live is None:
            self.neither += 1
        elif shadow is None:
            self.live_only += 1
        elif live is None:
            self.shadow_only += 1
        elif shadow == live:
            self.same += 1
        else:
            self.other += 1

    @property
    def decided(self) -> int:
        """Decisions of the shadow."""
        return self.same + self.other + self.live_only + self.shadow_only + self.neither

    @property
    def sampled(self) -> float:
        """The share of decisions that the shadow made, too; 1 where there were none."""
        pods = self.decided + self.passed_over
        return self.decided / pods if pods else 1.0

    @property
    def agreement(self) -> float | None:
        """The share of decisions for the same node among those for any; None where there were none."""
        placed = self.decided - self.neither
        return self.same / placed if placed else None
