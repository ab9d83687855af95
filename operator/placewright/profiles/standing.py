"""How a profile stands, and the status that says so.

Conditions follow what kstatus, Flux and Argo CD read: `Ready` is always there; `Reconciling` and `Stalled` only while they are true.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from placewright.api.objects import Condition
from placewright.api.profile import QueueSizes

READY: Final = "Ready"
RECONCILING: Final = "Reconciling"
STALLED: Final = "Stalled"

_MAX_MESSAGE: Final = 4096


class Reason(enum.StrEnum):
    """Reasons of the conditions; stable, for alerts and scripts."""

    ACTIVE = "Active"
    PAUSED = "Paused"
    APPLYING = "Applying"
    INVALID_PROFILE = "InvalidProfile"
    BUILD_FAILED = "BuildFailed"
    SCHEDULER_NAME_TAKEN = "SchedulerNameTaken"
    QUEUE_SORT_DIFFERS = "QueueSortDiffers"

    @property
    def stalls(self) -> bool:
        """True when nothing will change until somebody edits a profile."""
        return self not in (Reason.ACTIVE, Reason.PAUSED, Reason.APPLYING)


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a profile stands: the generation that was judged, what came of it, and what is in effect.

    Attributes:
        name: of the SchedulingProfile.
        scheduler_name: that the judged generation asks for.
        observed_generation: the generation that was judged last.
        active_generation: the generation that decisions use; None when no pod is placed by this profile.
        reason: what came of the judged generation.
        message: for people; names what is wrong and what stays in effect.
    """

    name: str
    scheduler_name: str
    observed_generation: int
    active_generation: int | None
    reason: Reason
    message: str


def status_of(
    standing: Standing, previous: Sequence[Condition], now: str, pending: QueueSizes = QueueSizes()  # noqa: B008 - frozen
) -> dict[str, Any]:
    """The body of `status`.

    Args:
        standing: what to say.
        previous: the conditions that the object carries now; times of unchanged ones are kept, types that are not ours are passed on.
        now: RFC 3339, for conditions whose status flips.
        pending: the profile's pods in the queue.
    """
    total = pending.active + pending.backoff + pending.unschedulable + pending.gated
    return {
        "observedGeneration": standing.observed_generation,
        "activeGeneration": standing.active_generation or 0,
        "conditions": [msgspec.to_builtins(condition) for condition in _conditions(standing, previous, now)],
        "pending": {
            "total": total,
            "active": pending.active,
            "backoff": pending.backoff,
            "unschedulable": pending.unschedulable,
            "gated": pending.gated,
        },
    }


def _conditions(standing: Standing, previous: Sequence[Condition], now: str) -> Iterable[Condition]:
    known = {condition.type: condition for condition in previous}
    ready = "False" if standing.reason.stalls or standing.reason is Reason.APPLYING else "True"
    current = [(READY, ready)]
    if standing.reason is Reason.APPLYING:
        current.append((RECONCILING, "True"))
    if standing.reason.stalls:
        current.append((STALLED, "True"))
    for kind, status in current:
        before = known.get(kind)
        unchanged = before is not None and before.status == status and before.last_transition_time
        yield Condition(
            type=kind,
            status=status,
            reason=standing.reason,
            message=_short(standing.message),
            last_transition_time=before.last_transition_time if before is not None and unchanged else now,
            observed_generation=standing.observed_generation,
        )
    yield from (condition for condition in previous if condition.type not in (READY, RECONCILING, STALLED))


def _short(message: str) -> str:
    return message if len(message) <= _MAX_MESSAGE else message[: _MAX_MESSAGE - 1] + "…"
