"""The spans of one attempt: `schedule pod`, and below it the wait in the queue and every step. Needs OpenTelemetry."""

from __future__ import annotations

from typing import Final

from opentelemetry.context import Context
from opentelemetry.trace import Span, StatusCode, Tracer, set_span_in_context

from placewright.framework.status import Code
from placewright.framework.steps import Step
from placewright.observability.logformat import cut
from placewright.scheduler.attempts import Attempt, Result

ROOT: Final = "schedule pod"
QUEUE: Final = "queue"
#: Characters of a message.
_LONGEST: Final = 2048
_NANO: Final = 1_000_000_000

Attributes = dict[str, str | int | bool]


def export_spans(tracer: Tracer, attempt: Attempt, offset: int) -> None:
    """Begin and end the spans of an attempt that has ended.

    Args:
        tracer: makes the spans.
        attempt: attempt with its steps.
        offset: nanoseconds from the attempt's clock to the wall's.
    """

    def wall(seconds: float) -> int:
        return int(seconds * _NANO) + offset

    began, ended = min(attempt.queued_at, attempt.started), attempt.ended or attempt.started
    root = tracer.start_span(ROOT, Context(), attributes=_attributes(attempt), start_time=wall(began))
    within = set_span_in_context(root, Context())
    tracer.start_span(QUEUE, within, start_time=wall(began)).end(wall(attempt.started))
    for step in attempt.steps.taken:
        _end_step(tracer.start_span(step.name, within, start_time=wall(step.began)), step, wall(step.began + step.seconds))
    if attempt.result is Result.ERROR and attempt.failure is not None:
        root.set_status(StatusCode.ERROR, _text(attempt.failure.message))
    root.end(wall(ended))


def _end_step(span: Span, step: Step, when: int) -> None:
    span.set_attribute("placewright.outcome", step.outcome.value)
    if step.outcome is Code.ERROR:
        span.set_status(StatusCode.ERROR)
    span.end(when)


def _attributes(attempt: Attempt) -> Attributes:
    pod, profile = attempt.pod, attempt.profile
    found: Attributes = {
        "k8s.pod.name": _text(pod.name),
        "k8s.namespace.name": _text(pod.namespace),
        "k8s.pod.uid": _text(attempt.uid),
        "placewright.profile": _text(profile.name),
        "placewright.generation": profile.generation,
        "placewright.attempt": attempt.number,
        "placewright.result": attempt.result.value if attempt.result else "",
    }
    return found | _placement(attempt) | _failure(attempt)


def _placement(attempt: Attempt) -> Attributes:
    result = attempt.schedule_result
    if result is None:
        return {}
    found: Attributes = {"k8s.node.name": _text(result.node), "placewright.feasible_nodes": result.feasible}
    if result.plugins:  # otherwise nothing was scored
        found["placewright.score"] = result.score
        if result.runner_up is not None:
            found["placewright.runner_up"] = result.runner_up
    return found


def _failure(attempt: Attempt) -> Attributes:
    failure = attempt.failure
    if failure is None:
        return {}
    plugins = ",".join(sorted(failure.unschedulable_plugins | failure.pending_plugins))
    found: Attributes = {"placewright.message": _text(failure.message)}
    return found | {"placewright.plugins": _text(plugins)} if plugins else found


def _text(text: str) -> str:
    """Cut a text and escape halves of surrogate pairs: Protocol Buffers refuse them, and the whole batch would be lost."""
    text = cut(text, _LONGEST)
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")
