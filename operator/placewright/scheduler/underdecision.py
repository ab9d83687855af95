"""Finds the pod that is being decided when the event loop hangs. It reads the stack, so that no decision has to note its pod.

A pod whose queueing hint hangs is found as well. Once it is set apart as a suspect, its hints are no longer asked.
"""

from __future__ import annotations

from types import FrameType
from typing import Any, Final

from placewright.queue import hints
from placewright.queue.queued import QueuedPod
from placewright.scheduler.attempts import Attempt
from placewright.scheduler.podgroups.group import Group

_ROOMS: Final = (__name__.rpartition(".")[0], hints.__name__)
#: Functions that decide a pod, and the local variable that holds it. Frames of other functions may hold pods that are decided already.
_DECIDING: Final = {
    "schedule_one": "queued",
    "schedule_in_steps": "queued",
    "_prepare": "queued",
    "scheduling_cycle": "attempt",
    "_cycles_with_extenders": "attempt",
    "_schedule_with_extenders": "group",
    "_helps": "queued",
}


def pod_under_decision(frame: FrameType | None) -> QueuedPod | None:
    """Find the pod that a frame or one of its callers decides.

    Args:
        frame: the innermost frame of a stack.

    Returns:
        The pod; None when no pod is being decided. A group is found by the member that was handed out, or by its first member.
    """
    while frame is not None:
        if str(frame.f_globals.get("__name__")).startswith(_ROOMS):
            name = _DECIDING.get(frame.f_code.co_name)
            found = None if name is None else _pod_in(frame.f_locals.get(name))
            if found is not None:
                return found
        frame = frame.f_back
    return None


def _pod_in(held: Any) -> QueuedPod | None:
    if isinstance(held, QueuedPod):
        return held
    if isinstance(held, Group):
        held = held.attempts[0] if held.attempts else None
    return held.queued if isinstance(held, Attempt) else None
