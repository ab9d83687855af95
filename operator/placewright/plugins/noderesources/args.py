"""Arguments of the resource plugins, as in KubeSchedulerConfiguration v1."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Annotated, Final, Literal

import msgspec

from placewright.api.bad_input import in_json
from placewright.api.requests import CPU, MEMORY
from placewright.framework.constraints import Problem, within, without

_MAX_WEIGHT: Final = 100
_MAX_SHAPE_SCORE: Final = 10
_MAX_UTILIZATION: Final = 100


class ResourceSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A resource and how much it weighs in a score; 0 or absent counts as 1."""

    name: str
    weight: Annotated[int, within(0, _MAX_WEIGHT)] = 1


class BalancedResource(ResourceSpec, frozen=True, forbid_unknown_fields=True):
    """A resource of a balance; all weigh the same."""

    weight: Annotated[int, within(0, 1)] = 1


class ShapePoint(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One point of a scoring function: utilisation in percent (0..100) to score (0..10)."""

    utilization: Annotated[int, within(0, _MAX_UTILIZATION)]
    score: Annotated[int, within(0, _MAX_SHAPE_SCORE)]


class RequestedToCapacityRatio(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The points of the scoring function, by rising utilisation."""

    shape: tuple[ShapePoint, ...] = ()


CPU_AND_MEMORY: Final = (ResourceSpec(CPU), ResourceSpec(MEMORY))
StrategyType = Literal["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"]


class ScoringStrategy(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The scoring strategy of NodeResourcesFit."""

    type: StrategyType = "LeastAllocated"
    resources: tuple[ResourceSpec, ...] = CPU_AND_MEMORY
    requested_to_capacity_ratio: RequestedToCapacityRatio | None = None


class NodeResourcesFitArgs(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Arguments of NodeResourcesFit."""

    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[Annotated[str, without("/", "a domain without '/'")], ...] = ()
    scoring_strategy: ScoringStrategy = ScoringStrategy()

    def validate(self) -> list[Problem]:
        """Check that a shape belongs to its type of strategy, and that its utilisation rises."""
        return list(_strategy_problems(self.scoring_strategy))


class BalancedAllocationArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of NodeResourcesBalancedAllocation."""

    resources: tuple[BalancedResource, ...] = (BalancedResource(CPU), BalancedResource(MEMORY))

    def validate(self) -> list[Problem]:
        """Refuse resources that are named twice."""
        names = [each.name for each in self.resources]
        return [(f"resources[{i}].name", in_json(name), "each resource once") for i, name in enumerate(names) if name in names[:i]]


def shape_problems(shape: Sequence[ShapePoint], path: str) -> Iterator[Problem]:
    """Refuse a shape without points, or with points that do not rise."""
    if not shape:
        yield path, "no points", "at least one point"
    for i, (before, point) in enumerate(pairwise(shape), 1):
        if point.utilization <= before.utilization:
            yield f"{path}[{i}].utilization", str(point.utilization), f"rising values from 0 to {_MAX_UTILIZATION}"


def _strategy_problems(strategy: ScoringStrategy) -> Iterator[Problem]:
    ratio = strategy.requested_to_capacity_ratio
    path = "scoringStrategy.requestedToCapacityRatio"
    if strategy.type != "RequestedToCapacityRatio":
        if ratio is not None:
            yield path, "a shape", f"nothing with type {strategy.type}"
        return
    yield from shape_problems(() if ratio is None else ratio.shape, f"{path}.shape")
