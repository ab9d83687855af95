"""The three cells of a pod that take thought: how many containers are ready, one word for its state, restarts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kubesandbox.shapes import Object


def pod_ready(pod: Object) -> str:
    """Ready containers of all containers: `1/2`."""
    statuses = (pod.get("status") or {}).get("containerStatuses") or []
    total = len((pod.get("spec") or {}).get("containers") or [])
    running = [each for each in statuses if each.get("ready") and "running" in (each.get("state") or {})]
    return f"{len(running)}/{total}"


def pod_status(pod: Object) -> str:
    """The word that says most: the phase, unless a container, a gate or a deletion says more."""
    status = pod.get("status") or {}
    word = str(status.get("reason") or status.get("phase") or "Unknown")
    if any(_gated(condition) for condition in status.get("conditions") or []):
        word = "SchedulingGated"
    word = _init_word(pod) or _container_word(status) or word
    if (pod.get("metadata") or {}).get("deletionTimestamp"):
        if status.get("reason") == "NodeLost":
            return "Unknown"
        return word if status.get("phase") in ("Succeeded", "Failed") else "Terminating"
    return word


def pod_restarts(pod: Object, ago: Callable[[Any], str]) -> str:
    """Restarts of all containers and when the last was: `3 (5m ago)`; `ago` words a time."""
    statuses = (pod.get("status") or {}).get("containerStatuses") or []
    count = sum(int(each.get("restartCount", 0)) for each in statuses)
    ends = [((each.get("lastState") or {}).get("terminated") or {}).get("finishedAt") for each in statuses]
    last = max(filter(None, ends), default=None)
    return f"{count} ({ago(last)} ago)" if count and last else str(count)


def _gated(condition: Mapping[str, Any]) -> bool:
    return condition.get("type") == "PodScheduled" and condition.get("reason") == "SchedulingGated"


def _init_word(pod: Object) -> str:
    """Why the pod is still initialising; empty when it is not."""
    statuses = (pod.get("status") or {}).get("initContainerStatuses") or []
    total = len((pod.get("spec") or {}).get("initContainers") or [])
    for at, each in enumerate(statuses):
        state = each.get("state") or {}
        if (state.get("terminated") or {}).get("exitCode") == 0 or each.get("started"):
            continue
        reason = _reason(state)
        return f"Init:{reason}" if reason and reason != "PodInitializing" else f"Init:{at}/{total}"
    return ""


def _container_word(status: Mapping[str, Any]) -> str:
    """What the first container in trouble says; empty when none is."""
    return next(filter(None, (_reason(each.get("state") or {}) for each in status.get("containerStatuses") or [])), "")


def _reason(state: Mapping[str, Any]) -> str:
    waiting, terminated = state.get("waiting") or {}, state.get("terminated")
    if waiting.get("reason"):
        return str(waiting["reason"])
    if terminated is None:
        return ""
    if terminated.get("reason"):
        return str(terminated["reason"])
    signal, code = terminated.get("signal"), terminated.get("exitCode", 0)
    return f"Signal:{signal}" if signal else f"ExitCode:{code}"
