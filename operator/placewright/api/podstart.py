"""How far a pod on a node has come: when it was bound, and whether it is Ready.

Both follow from conditions that are decoded for every pod, so nothing more is kept.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from placewright.api.objects import Condition
from placewright.api.pods import FINISHED_PHASES, PodInfo

#: A kubelet puts this annotation on the object that shows a pod from a file of its own. No scheduler placed such a pod.
MIRROR: Final = "kubernetes.io/config.mirror"
_READY: Final = "Ready"
_SCHEDULED: Final = "PodScheduled"
_TRUE: Final = "True"


def is_ready(pod: PodInfo) -> bool:
    """Return True for a pod whose condition `Ready` is True: its containers run, and their readiness probes have succeeded."""
    return _holds(pod, _READY) is not None


def may_be_starting(pod: PodInfo) -> bool:
    """Return whether a pod on a node is still to become Ready; not for pods that are being deleted, have ended, or are a kubelet's own."""
    meta, status = pod.pod.metadata, pod.pod.status
    if meta.deletion_timestamp is not None or status.phase in FINISHED_PHASES:
        return False
    if status.conditions and is_ready(pod):  # most pods come here when they are assumed, and have no conditions yet
        return False
    return not meta.annotations or MIRROR not in meta.annotations


def bound_at(pod: PodInfo) -> float | None:
    """Read when a pod was bound, from its condition `PodScheduled`.

    Returns:
        Seconds since 1970; None if the condition is not True, or its time cannot be read.
    """
    condition = _holds(pod, _SCHEDULED) if pod.pod.status.conditions else None
    if condition is None or not condition.last_transition_time:
        return None
    try:
        return datetime.fromisoformat(condition.last_transition_time).timestamp()
    except ValueError:
        return None


def _holds(pod: PodInfo, kind: str) -> Condition | None:
    for condition in pod.pod.status.conditions or ():
        if condition.type == kind:
            return condition if condition.status == _TRUE else None
    return None
