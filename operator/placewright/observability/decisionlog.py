"""One line a decision: which pod, which node, why, and how long it took; and a warning for those that took long.

The fields are in docs/logs.md.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any, Final

from placewright.engine.beside import Beside, Listeners, Membership
from placewright.framework.steps import BIND, PERMIT, POST_BIND, PRE_BIND, RESERVE, WAIT_ON_PERMIT, Step
from placewright.scheduler.attempts import Attempt, Result
from placewright.scheduler.failures import SCHEDULER_ERROR, UNSCHEDULABLE

#: Documented in docs/logs.md. Log collectors select by it, so it stays where the module moves.
LOGGER: Final = "placewright.serving.decisionlog"
_log = logging.getLogger(LOGGER)

#: From being handed out to a node or to none; kube-scheduler traces what takes longer.
SLOW_DECISION_SECONDS: Final = 0.1
#: From the node to the end, without what a pod waits for by its own wish: permission, and volumes that are being made.
SLOW_BINDING_SECONDS: Final = 1.0
_WAITS: Final = (WAIT_ON_PERMIT, PRE_BIND)
#: What follows once a node is chosen.
_BINDING: Final = (RESERVE, PERMIT, WAIT_ON_PERMIT, PRE_BIND, BIND, POST_BIND)
#: What is named when no step took as long as the time between the steps.
BETWEEN: Final = "between the steps"
_MILLI: Final = 1000.0


class DecisionLog:
    """An observer that logs the end of each attempt.

    Args:
        active: whether this replica still sees to pods; when it does not, a failure is nobody's fault.
    """

    def __init__(self, active: Callable[[], bool] = lambda: True) -> None:
        self._active = active

    def attempt_ended(self, attempt: Attempt) -> None:
        """Log it."""
        if attempt.result is Result.SCHEDULED:
            _say(logging.INFO, "pod placed", _placed(attempt), None)
        else:
            self._not_placed(attempt)
        if _decision_seconds(attempt) > SLOW_DECISION_SECONDS or _binding_seconds(attempt) > SLOW_BINDING_SECONDS:
            _say_slow(attempt)

    def pod_entered(self, place: str, event: str) -> None:
        """Nothing to say."""

    def _not_placed(self, attempt: Attempt) -> None:
        fields = _refused(attempt)
        message = fields["message"]
        level, said = logging.ERROR if attempt.result is Result.ERROR else logging.INFO, "pod not placed"
        if not self._active():
            level, said = logging.INFO, "pod not placed, another replica sees to it"
        _say(level, said, fields, (attempt.uid, message))


def decision_log(member: Membership) -> Beside:
    """An engine's decisions are logged."""
    return Beside(Listeners(attempts=(DecisionLog(member.leads),)))


def _say(level: int, said: str, fields: dict[str, Any], about: object) -> None:
    """`Logger.log` would look for the caller's file and line, which nobody asks about here and which cost more than the rest."""
    if _log.isEnabledFor(level):
        record = logging.LogRecord(LOGGER, level, "", 0, said, None, None)
        record.fields = fields
        record.about = about
        _log.handle(record)


def _placed(attempt: Attempt) -> dict[str, Any]:
    placement, profile = attempt.placement, attempt.profile
    if placement is None:
        return _pod(attempt) | _times(attempt)
    # With a single feasible node, or a nominated one, nothing is scored: 0 would be no score.
    scored = bool(placement.plugins)
    return {
        "pod": attempt.pod.key,
        "uid": attempt.uid,
        "node": placement.node,
        "profile": profile.name,
        "generation": profile.generation,
        "score": placement.score if scored else None,
        "runner_up": placement.runner_up if scored else None,
        "feasible": placement.feasible,
        "attempt": attempt.number,
        **_times(attempt),
    }


def _refused(attempt: Attempt) -> dict[str, Any]:
    failure, fields = attempt.failure, _pod(attempt)
    if attempt.placement is not None:
        fields["node"] = attempt.placement.node  # chosen, and taken back
    if failure is None:
        return fields | {"message": ""} | _times(attempt)
    fields["reason"] = SCHEDULER_ERROR if failure.internal else UNSCHEDULABLE
    fields["message"] = failure.message
    if plugins := failure.unschedulable_plugins | failure.pending_plugins:
        fields["plugins"] = sorted(plugins)
    if failure.nominated_node:
        fields["nominated"] = failure.nominated_node
    if failure.victims:
        fields["victims"] = len(failure.victims)
    return fields | _times(attempt)


def _pod(attempt: Attempt) -> dict[str, Any]:
    profile = attempt.profile
    return {
        "pod": attempt.pod.key, "uid": attempt.uid, "profile": profile.name, "generation": profile.generation, "attempt": attempt.number,
    }  # fmt: skip


def _times(attempt: Attempt) -> dict[str, float]:
    """Milliseconds: waiting in the queue, until a node was chosen or refused, until all was over."""
    return {
        "queue_ms": (attempt.started - attempt.queued_at) * _MILLI,
        "decision_ms": _decision_seconds(attempt) * _MILLI,
        "attempt_ms": ((attempt.ended or attempt.started) - attempt.started) * _MILLI,
    }


# --- slow ones ---------------------------------------------------------------------------------------------------------------------


def _decision_seconds(attempt: Attempt) -> float:
    return 0.0 if attempt.decided is None else attempt.decided - attempt.started


def _binding_seconds(attempt: Attempt) -> float:
    """Of the binding, without what the pod waits for by its own wish."""
    if attempt.decided is None or attempt.ended is None:
        return 0.0
    whole = attempt.ended - attempt.decided
    if whole <= SLOW_BINDING_SECONDS:
        return whole
    return whole - sum(step.seconds for step in attempt.steps.taken if step.name in _WAITS)


def _say_slow(attempt: Attempt) -> None:
    if (took := _decision_seconds(attempt)) > SLOW_DECISION_SECONDS:
        _slow("decision was slow", attempt, took, [step for step in attempt.steps.taken if step.name not in _BINDING])
    if (took := _binding_seconds(attempt)) > SLOW_BINDING_SECONDS:
        _slow("binding was slow", attempt, took, [step for step in attempt.steps.taken if step.name in _BINDING])


def _slow(said: str, attempt: Attempt, took: float, steps: Iterable[Step]) -> None:
    """Name the step that took longest; what the pod waited for by its own wish is listed, but is not to blame."""
    spent: dict[str, float] = {}
    for step in steps:
        spent[step.name] = spent.get(step.name, 0.0) + step.seconds
    blamed = {name: seconds for name, seconds in spent.items() if name not in _WAITS}
    blamed[BETWEEN] = max(took - sum(blamed.values()), 0.0)
    slowest = max(blamed, key=lambda name: blamed[name])
    fields = _pod(attempt) | {
        "took_ms": took * _MILLI,
        "slowest": slowest,
        "slowest_ms": blamed[slowest] * _MILLI,
        "steps_ms": {name: seconds * _MILLI for name, seconds in spent.items()},
    }
    if attempt.placement is not None:
        fields["node"] = attempt.placement.node
    _say(logging.WARNING, said, fields, (attempt.profile.name, slowest))
