"""Metrics of shadows: the figures of their status."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from prometheus_client.core import Metric

from placewright.api.profile import Allocation
from placewright.observability.metrics import own
from placewright.observability.metrics.series import Labels, counted
from placewright.shadow.shadow import Shadow


def compared(shadows: Mapping[str, Shadow]) -> Iterator[Metric]:
    """Read the figures of every shadow at work, by the name of its profile."""
    figures = {name: shadow.figures for name, shadow in shadows.items()}
    outcomes = ("same", "other", "live_only", "shadow_only", "neither")
    yield counted(own.SHADOW_DECISIONS, {(name, each): getattr(one, each) for name, one in figures.items() for each in outcomes})
    yield counted(own.SHADOW_PASSED_OVER, {name: one.passed_over for name, one in figures.items()})
    yield counted(own.SHADOW_AGREEMENT, {name: share for name, one in figures.items() if (share := one.agreement) is not None})
    regrets = {(name, side): each for name, one in figures.items() for side, each in (("shadow", one.regret), ("live", one.live_regret))}
    yield counted(own.SHADOW_REGRET, {labels: each.points for labels, each in regrets.items()})
    yield counted(own.SHADOW_REGRETTED, {labels: each.decisions for labels, each in regrets.items()})
    yield from _nodes(shadows)
    yield counted(own.SHADOW_PENDING, {name: shadow.report.pending for name, shadow in shadows.items()})
    yield counted(own.SHADOW_BACKLOG, {name: len(shadow.tape) for name, shadow in shadows.items()})
    yield counted(own.SHADOW_SECONDS, {name: shadow.pace.spent for name, shadow in shadows.items()})
    yield counted(own.SHADOW_ERRORS, {name: shadow.errors for name, shadow in shadows.items()})
    yield counted(own.SHADOW_RESTARTS, {name: shadow.restarts for name, shadow in shadows.items()})


def _nodes(shadows: Mapping[str, Shadow]) -> Iterator[Metric]:
    shares: dict[Labels, float] = {}
    empty: dict[Labels, float] = {}
    for name, shadow in shadows.items():
        report = shadow.report
        empty |= {(name, "shadow"): report.empty_nodes.shadow, (name, "live"): report.empty_nodes.live}
        for use in report.resources or ():
            for placements, allocation in (("shadow", use.shadow), ("live", use.live)):
                if allocation is not None:
                    shares |= {(name, use.name, placements, what): share for what, share in _shares(allocation)}
    yield counted(own.SHADOW_ALLOCATION, shares)
    yield counted(own.SHADOW_EMPTY_NODES, empty)


def _shares(allocation: Allocation) -> Iterator[tuple[str, float]]:
    yield "mean", allocation.mean_percent / 100
    yield "deviation", allocation.deviation_percent / 100
