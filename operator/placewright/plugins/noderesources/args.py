"""Arguments of the resource plugins, as in KubeSchedulerConfiguration v1."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, Literal

import msgspec

from placewright.api.requests import CPU, MEMORY

#: (path inside args, what was found, what is allowed)
Problem = tuple[str, str, str]
_MAX_WEIGHT: Final = 100
_MAX_SHAPE_SCORE: Final = 10
_MAX_UTILIZATION: Final = 100


class ResourceSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A resource and how much it weighs in a score; 0 or absent counts as 1."""

    name: str
    weight: int = 1


class ShapePoint(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One corner of a scoring function: utilisation in percent (0..100) to score (0..10)."""

    utilization: int
    score: int


class RequestedToCapacityRatio(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The corners of the scoring function, by rising utilisation."""

    shape: tuple[ShapePoint, ...] = ()


CPU_AND_MEMORY: Final = (ResourceSpec(CPU), ResourceSpec(MEMORY))
StrategyType = Literal["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"]


class ScoringStrategy(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """How NodeResourcesFit scores."""

    type: StrategyType = "LeastAllocated"
    resources: tuple[ResourceSpec, ...] = CPU_AND_MEMORY
    requested_to_capacity_ratio: RequestedToCapacityRatio | None = None


class NodeResourcesFitArgs(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Arguments of NodeResourcesFit."""

    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()
    scoring_strategy: ScoringStrategy = ScoringStrategy()

    def validate(self) -> list[Problem]:
        """What a schema cannot say: weights, shapes, groups without a slash."""
        strategy = self.scoring_strategy
        return [
            *_weight_problems(strategy.resources, "scoringStrategy.resources"),
            *_shape_problems(strategy),
            *(
                (f"ignoredResourceGroups[{i}]", repr(group), "a domain without '/'")
                for i, group in enumerate(self.ignored_resource_groups)
                if "/" in group
            ),
        ]


class BalancedAllocationArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of NodeResourcesBalancedAllocation."""

    resources: tuple[ResourceSpec, ...] = CPU_AND_MEMORY

    def validate(self) -> list[Problem]:
        """Every weight is 1 and no resource is named twice."""
        wrong = [
            (f"resources[{i}].weight", str(spec.weight), "1") for i, spec in enumerate(self.resources) if spec.weight not in (0, 1)
        ]
        return [*wrong, *_duplicates(self.resources)]


def _weight_problems(resources: Iterable[ResourceSpec], path: str) -> Iterator[Problem]:
    for i, spec in enumerate(resources):
        if not 0 <= spec.weight <= _MAX_WEIGHT:
            yield f"{path}[{i}].weight", str(spec.weight), f"1 to {_MAX_WEIGHT}"


def _duplicates(resources: Iterable[ResourceSpec]) -> Iterator[Problem]:
    seen: set[str] = set()
    for i, spec in enumerate(resources):
        if spec.name in seen:
            yield f"resources[{i}].name", repr(spec.name), "each resource once"
        seen.add(spec.name)


def _shape_problems(strategy: ScoringStrategy) -> Iterator[Problem]:
    ratio = strategy.requested_to_capacity_ratio
    path = "scoringStrategy.requestedToCapacityRatio"
    if strategy.type != "RequestedToCapacityRatio":
        if ratio is not None:
            yield path, "a shape", f"nothing with type {strategy.type}"
        return
    if ratio is None or not ratio.shape:
        yield f"{path}.shape", "no points", "at least one point"
        return
    previous = -1
    for i, point in enumerate(ratio.shape):
        if not previous < point.utilization <= _MAX_UTILIZATION:
            yield f"{path}.shape[{i}].utilization", str(point.utilization), f"rising values from 0 to {_MAX_UTILIZATION}"
        if not 0 <= point.score <= _MAX_SHAPE_SCORE:
            yield f"{path}.shape[{i}].score", str(point.score), f"0 to {_MAX_SHAPE_SCORE}"
        previous = point.utilization
