"""Shadows as rows of the console's state.

A row says how often a shadow agrees with its live profile, and on which pods they differ. It also says how much worse each finds the
other's nodes. Figures are sums, which all readers get. Examples name pods, so a reader gets the visible ones, and the number of the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

from placewright.api.profile import Allocation, Regret, SchedulingProfile, ShadowStatus
from placewright.serving.rights import Rights
from placewright.shadow.figures import Disagreement

#: Examples that a row has.
MOST_NAMED: Final = 20


class SeenShadow(NamedTuple):
    """A shadow as the operator, or the status of its profile, tells it.

    Attributes:
        profile: the name of its profile.
        beside: the name of the live profile.
        generation: generation of its profile.
        differences: the last ones, the latest last; none where only the status is known.
    """

    profile: str
    beside: str
    generation: int
    status: ShadowStatus
    differences: Sequence[Disagreement] = ()


def shadows_of(profiles: Iterable[SchedulingProfile]) -> list[SeenShadow]:
    """Find the shadows among profiles by their status, as a file or a watch of profiles shows them.

    Returns:
        The shadows whose status has figures.
    """
    return [
        SeenShadow(each.metadata.name, each.spec.shadows or "", each.metadata.generation, each.status.shadow)
        for each in profiles
        if each.status.shadow is not None
    ]


def shadow_rows(shadows: Iterable[SeenShadow], rights: Rights) -> dict[str, Any]:
    """Make the section `shadows`.

    Args:
        shadows: all of them.
        rights: rights of the readers.

    Returns:
        Rows by the name of the shadow's profile.
    """
    return {each.profile: _row(each, rights) for each in shadows}


def _row(shadow: SeenShadow, rights: Rights) -> dict[str, Any]:
    status = shadow.status
    seen = (each for each in reversed(shadow.differences) if rights.may_see(each.namespace))
    return {
        "beside": shadow.beside,
        "generation": shadow.generation,
        "liveGeneration": status.live_generation,
        "since": status.since,
        "pods": status.pods,
        "decided": status.decided,
        "agreement": status.agreement_percent,
        "outcomes": [status.same, status.other, status.live_only, status.shadow_only, status.neither],
        "notFeasible": status.not_feasible,
        "regret": _regret(status.regret),
        "liveRegret": _regret(status.live_regret),
        "emptyNodes": [status.empty_nodes.shadow, status.empty_nodes.live],
        "resources": [[use.name, *_allocation(use.shadow), *_allocation(use.live)] for use in status.resources or ()],
        "pending": status.pending,
        "backlog": status.backlog,
        "restarts": status.restarts,
        "timePercent": status.time_percent,
        "errors": status.errors,
        # An error quotes names of pods.
        "lastError": status.last_error if rights.namespaces is None else "",
        "examples": [list(each) for each in islice(seen, MOST_NAMED)],
        "hidden": sum(not rights.may_see(each.namespace) for each in shadow.differences),
    }


def _allocation(found: Allocation | None) -> tuple[float | None, float | None]:
    """Mean and deviation, which are not known of a resource that no node offers."""
    return (None, None) if found is None else (found.mean_percent, found.deviation_percent)


def _regret(regret: Regret) -> list[float]:
    return [regret.decisions, regret.mean_points, regret.max_points, regret.mean_percent]
