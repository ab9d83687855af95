"""Logs a line for each decision, and a warning for each slow decision or binding.

docs/logs.md lists the fields.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any, Final

from placewright.engine.companions import Companions, Listeners, ReplicaInfo
from placewright.framework.steps import BIND, PERMIT, POST_BIND, PRE_BIND, RESERVE, WAIT_ON_PERMIT, Step
from placewright.scheduler.attempts import SCHEDULER_ERROR, UNSCHEDULABLE, Attempt, Result

#: Documented in docs/logs.md. Log collectors select by it, so it stays where the module moves.
LOGGER: Final = "placewright.serving.decisionlog"
_log = logging.getLogger(LOGGER)

#: Seconds from the hand-out of a pod to a node, or to none. kube-scheduler traces decisions that take longer.
SLOW_DECISION_SECONDS: Final = 0.1
#: Seconds from the choice of a node to the end, without the steps in which a pod may wait long: Permit, and PreBind for new volumes.
SLOW_BINDING_SECONDS: Final = 1.0
_WAITS: Final = (WAIT_ON_PERMIT, PRE_BIND)
#: The steps after the choice of a node.
_BINDING: Final = (RESERVE, PERMIT, WAIT_ON_PERMIT, PRE_BIND, BIND, POST_BIND)
#: Named as the slowest step if the time between the steps is longer than every step.
BETWEEN: Final = "between the steps"
_MILLI: Final = 1000.0


class DecisionLog:
    """An observer that logs the end of each attempt.

    Args:
        active: whether this replica leads. Without the lead a failed attempt is no error, because the next leader tries the pod again.
    """

    def __init__(self, active: Callable[[], bool] = lambda: True) -> None:
        self._active = active

    def attempt_ended(self, attempt: Attempt) -> None:
        """Log an attempt that has ended, with a warning if it was slow."""
        if attempt.result is Result.SCHEDULED:
            _say(logging.INFO, "pod placed", _placed(attempt), None)
        else:
            self._not_placed(attempt)
        _say_slow(attempt)

    def pod_entered(self, place: str, event: str) -> None:
        """Do nothing, because moves in the queue are not logged."""

    def _not_placed(self, attempt: Attempt) -> None:
        fields = _refused(attempt)
        message = fields["message"]
        level, said = logging.ERROR if attempt.result is Result.ERROR else logging.INFO, "pod not placed"
        if not self._active():
            level, said = logging.INFO, "pod not placed, another replica sees to it"
        _say(level, said, fields, (attempt.uid, message))


def decision_log(info: ReplicaInfo) -> Companions:
    """Make the companion that logs an engine's decisions."""
    return Companions(Listeners(attempts=(DecisionLog(info.leads),)))


def _say(level: int, said: str, fields: dict[str, Any], about: object) -> None:
    """Log a record that is made by hand: `Logger.log` looks up the caller's file and line, which costs more than all the rest."""
    if _log.isEnabledFor(level):
        record = logging.LogRecord(LOGGER, level, "", 0, said, None, None)
        record.fields = fields
        record.about = about
        _log.handle(record)


def _placed(attempt: Attempt) -> dict[str, Any]:
    result, profile = attempt.schedule_result, attempt.profile
    if result is None:
        return _pod(attempt) | _times(attempt)
    # With a single feasible node, or a nominated one, nothing is scored: 0 would be no score.
    scored = bool(result.plugins)
    return {
        "pod": attempt.pod.key,
        "uid": attempt.uid,
        "node": result.node,
        "profile": profile.name,
        "generation": profile.generation,
        "score": result.score if scored else None,
        "runner_up": result.runner_up if scored else None,
        "feasible": result.feasible,
        "attempt": attempt.number,
        **_times(attempt),
    }


def _refused(attempt: Attempt) -> dict[str, Any]:
    failure, fields = attempt.failure, _pod(attempt)
    if attempt.schedule_result is not None:
        fields["node"] = attempt.schedule_result.node  # chosen first, and rolled back
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
    """Return the milliseconds in the queue, to the choice of a node, and to the end of the attempt."""
    return {
        "queue_ms": (attempt.started - attempt.queued_at) * _MILLI,
        "decision_ms": _decision_seconds(attempt) * _MILLI,
        "attempt_ms": ((attempt.ended or attempt.started) - attempt.started) * _MILLI,
    }


# --- slow attempts -----------------------------------------------------------------------------------------------------------------


def _decision_seconds(attempt: Attempt) -> float:
    return 0.0 if attempt.decided is None else attempt.decided - attempt.started


def _binding_seconds(attempt: Attempt) -> float:
    """Return the seconds of the binding, without Permit and PreBind if these make it long."""
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
    """Log a slow attempt with its slowest step. Permit and PreBind are listed and never named: pods may wait there by their own wish."""
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
    if attempt.schedule_result is not None:
        fields["node"] = attempt.schedule_result.node
    _say(logging.WARNING, said, fields, (attempt.profile.name, slowest))
