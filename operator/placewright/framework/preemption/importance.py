"""Which of two running pods matters more: the higher priority, then the one that has run longer."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

from placewright.api.pods import PodInfo
from placewright.framework.interface import Seconds

#: Later than any start: the start time of pods that have not reported one. kube-scheduler takes "now" for these.
NOT_STARTED: Final = math.inf


def start_time(pod: PodInfo) -> Seconds:
    """When the pod started, in seconds since 1970; `NOT_STARTED` where the kubelet has not said so, or not legibly."""
    stated = pod.pod.status.start_time
    return NOT_STARTED if stated is None else _seconds(stated)


@lru_cache(maxsize=65536)
def _seconds(stated: str) -> Seconds:
    try:
        time = datetime.fromisoformat(stated)
    except ValueError:
        return NOT_STARTED
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()


def importance(pod: PodInfo) -> tuple[int, Seconds]:
    """A sort key that puts the most important pod first."""
    return -pod.priority, start_time(pod)
