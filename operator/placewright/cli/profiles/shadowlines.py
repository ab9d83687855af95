"""Describes the results of a shadow for people: the lines that `list`, `show` and `promote` print of its status."""

from __future__ import annotations

from collections.abc import Iterator

from placewright.api.profile import Allocation, Regret, ShadowStatus


def in_short(status: ShadowStatus | None) -> str:
    """Write the agreement in a clause.

    Returns:
        The clause; empty if nothing was decided.
    """
    if status is None or status.agreement_percent is None:
        return ""
    return f"same node for {status.agreement_percent:g} % of {_pods(status)}"


def in_full(status: ShadowStatus | None) -> Iterator[str]:
    """Write every figure that is known.

    Yields:
        Lines.
    """
    if status is None:
        yield "it has not been compared yet"
        return
    sampled = "" if status.pods == status.decided else f", a sample of {status.sampled_percent:g} % of {status.pods}"
    beside = f", beside generation {status.live_generation} of the live profile" if status.live_generation else ""
    yield f"since {status.since}{beside}: {_pods(status)} decided{sampled}"
    if status.agreement_percent is not None:
        yield f"same node: {status.agreement_percent:g} %; {', '.join(_counts(status))}"
    if status.regret.decisions:
        yield f"by its own totals, live nodes are worse by {_regret(status.regret)}"
    if status.live_regret.decisions:
        yield f"by the live totals, its nodes are worse by {_regret(status.live_regret)}"
    yield f"empty nodes: {status.empty_nodes.shadow}, live {status.empty_nodes.live}"
    for use in status.resources or ():
        yield f"{use.name} requested, mean ± deviation over nodes: {_use(use.shadow)}, live {_use(use.live)}"
    yield f"it took {status.time_percent:g} % of the time"
    if status.errors:
        yield f"it had {status.errors} errors, the last: {status.last_error}"


def _use(found: Allocation | None) -> str:
    return "not known" if found is None else f"{found.mean_percent:g} ± {found.deviation_percent:g} %"


def _pods(status: ShadowStatus) -> str:
    return f"{status.decided} pod" if status.decided == 1 else f"{status.decided} pods"


def _counts(status: ShadowStatus) -> Iterator[str]:
    counts = (
        (status.other, "another node"),
        (status.live_only, "only live found one"),
        (status.shadow_only, "only the shadow found one"),
        (status.neither, "neither did"),
        (status.not_feasible, "live node full in its world"),
        (status.pending, "without a node now"),
    )
    yield f"{status.same} the same"
    yield from (f"{count} {what}" for count, what in counts if count)


def _regret(regret: Regret) -> str:
    mean, most = f"{regret.mean_points:g} points on average, {regret.mean_percent:g} %", f"{regret.max_points:g}"
    return f"{mean}, at most {most} (told of {regret.decisions} decisions)"
